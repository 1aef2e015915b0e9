//! The real CLIs, pinned in `tests/agents`, under the shipped definitions and against a scripted model API: what the
//! definitions promise holds for these versions. Needs root, for a network namespace per test.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that is surprised fails its test"
)]

#[path = "../support/mod.rs"]
mod support;

mod claude_code;
mod codex;
mod envelopes;
mod hostile_checkout;
mod isolation;
mod real_cli_runs;

//! The whole binary on one machine: real processes, real git, and agents that are small shell scripts with definitions of a
//! person's own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests"
)]

#[path = "../support/local/mod.rs"]
mod support;

mod agents;
mod approval;
mod cli;
mod crash;
mod input;
mod leaks;
mod output;
mod prompts;
mod workspace;

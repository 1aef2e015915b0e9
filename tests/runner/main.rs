//! The runner with real processes: the real binary, a real socket and a small supervisor of the tests' own.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests"
)]

mod delivery;
mod ending;
mod output;
mod protection;
mod support;

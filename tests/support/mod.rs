//! What the integration tests share.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that is surprised fails its test"
)]
#![expect(dead_code, reason = "each binary of tests uses some of it")]

pub(crate) mod agent_cli;
pub(crate) mod hosts;
pub(crate) mod model_api;
pub(crate) mod netns;

//! What the integration tests share.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a helper that is surprised fails its test"
)]

pub(crate) mod agent_cli;
pub(crate) mod model_api;
pub(crate) mod netns;

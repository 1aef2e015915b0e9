//! On a real Kubernetes: the test cluster itself, then what runs on it. `tests/cluster/README.md` says what it is made of.
//! Before that, the servers that such tests run as hosts outside.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that is surprised fails its test"
)]

#[path = "../support/cluster/mod.rs"]
mod cluster;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/wait.rs"]
mod wait;

mod crds;
mod hosts;
mod outside;
mod test_cluster;

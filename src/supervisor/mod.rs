//! Prepares the workspace, talks to the runner, reports the outcome.

pub mod workspace;

//! Beside the agent, out of its reach: prepares the workspace, asks for the grant, follows the runner, reports the outcome.

pub mod control;
pub mod output;
pub mod workspace;

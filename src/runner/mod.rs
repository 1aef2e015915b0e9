//! Process 1 of the agent: starts the CLI, bounds it, reports it.

pub mod machine;
pub mod tail;

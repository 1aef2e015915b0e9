//! The whole binary on one machine: real processes, real git, and agents that are small shell scripts with definitions of a
//! person's own.

#[path = "../support/mod.rs"]
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

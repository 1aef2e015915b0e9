//! Caisson runs coding-agent CLIs as bounded, approved, at-most-once tasks.

#[macro_use]
mod guard;

pub mod api;
pub mod cli;
pub mod controller;
pub mod core;
pub mod executor;
pub mod protocol;
pub mod redact;
pub mod runner;
pub mod supervisor;

//! Caisson runs coding-agent CLIs as bounded, approved, at-most-once tasks.

pub mod api;
pub mod core;
pub mod executor;
pub mod protocol;
pub mod redact;
pub mod runner;
pub mod supervisor;

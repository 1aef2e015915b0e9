//! The pure core: given objects, observations and a time, what should be so. No IO, no clock, no environment, no randomness.
//!
//! It can't fail: bad input is a condition or a refusal with a code, never an `Err` that someone has to handle.

pub mod canonical;
pub mod classify;
pub mod command;
pub mod contract;
pub mod decide;
pub mod digest;
pub mod limits;
pub mod outcome;
pub mod plan;
pub mod status;
pub mod validate;

#[cfg(test)]
pub(crate) mod fixtures;

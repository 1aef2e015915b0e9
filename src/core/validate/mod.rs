//! Whether an object is sound. Every problem is reported at once, each with its JSON path and never with the offending value.
//!
//! Two layers: [`document()`] checks a manifest as a person wrote it (schema, CEL rules, unknown fields: what the API server would
//! say, and what it would silently prune); [`definition()`] and [`task()`] check what no schema can express.

mod definition;
mod document;
mod hosts;
mod task;
mod text;

use std::fmt;

use serde::Serialize;

pub use definition::definition;
pub use document::{Document, UnknownKind, document};
pub use hosts::covers;
pub use task::{Origin, task};

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// Where, such as `.spec.limits.timeout`.
    pub path: String,
    /// What, for people. It quotes no value of the object.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

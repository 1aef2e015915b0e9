//! Waiting for what a run does, and how long it takes.

#[path = "../wait.rs"]
mod condition;

use std::time::{Duration, Instant};

pub use condition::{until, within};

/// How long something takes.
#[expect(clippy::disallowed_methods, reason = "moments of a run are parts of its length")]
pub fn length(action: impl FnOnce()) -> Duration {
    let start = Instant::now();
    action();
    start.elapsed()
}

/// Waits until a file exists and has content, and returns that.
pub fn for_file(path: &std::path::Path, dump: impl Fn() -> String) -> String {
    let mut content = String::new();
    until(&format!("{} to have content", path.display()), dump, || {
        content = std::fs::read_to_string(path).unwrap_or_default();
        !content.is_empty()
    });
    content
}

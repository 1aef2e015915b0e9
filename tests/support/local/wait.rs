//! Waiting for conditions, with a bound and with something to read when it is reached.

use std::time::{Duration, Instant};

/// Longer than anything takes that works, on a busy machine; below the time after which the test runner ends a test.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// Waits for a condition, looking every few milliseconds.
///
/// # Panics
/// With `dump` in its message when the condition doesn't come true in time.
pub fn until(what: &str, dump: impl Fn() -> String, condition: impl FnMut() -> bool) {
    within(PATIENCE, what, dump, condition);
}

/// The same where it matters that it doesn't take long.
#[expect(clippy::disallowed_methods, reason = "a bound on waiting for a condition")]
pub fn within(limit: Duration, what: &str, dump: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "waited in vain for {what}\n{}", dump());
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

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

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

//! A value that a server changes and a test waits on.

use std::fmt::Debug;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a test waits before it gives up; below the time after which the test runner ends a test.
const PATIENCE: Duration = Duration::from_mins(1);

/// A shared value; waiting for a condition of it needs no polling.
pub(crate) struct Monitor<T>(watch::Sender<T>);

impl<T> Monitor<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(watch::Sender::new(value))
    }

    /// Looks at the value.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.borrow())
    }

    /// Changes the value and wakes whoever waits.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut result = None;
        self.0.send_modify(|value| result = Some(change(value)));
        result.expect("a change is made at once")
    }

    /// Returns once `condition` holds, however long that takes. For servers: they end with their test.
    pub(crate) async fn reached(&self, condition: impl FnMut(&T) -> bool) {
        self.0.subscribe().wait_for(condition).await.expect("the sender is alive");
    }
}

impl<T: Debug> Monitor<T> {
    /// Returns once `condition` holds.
    ///
    /// # Panics
    /// With the value in its message when the condition doesn't come true in time.
    pub(crate) async fn until(&self, what: &str, condition: impl FnMut(&T) -> bool) {
        let reached = timeout(PATIENCE, self.reached(condition)).await;
        assert!(reached.is_ok(), "waited in vain for {what}: {:#?}", self.0.borrow());
    }

    /// The same for a thread that runs nothing asynchronous, which it would block.
    pub(crate) fn block_until(&self, what: &str, condition: impl FnMut(&T) -> bool) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
        runtime.block_on(self.until(what, condition));
    }
}

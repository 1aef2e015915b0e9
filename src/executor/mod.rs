//! One trait for everything that can run a task, and its implementations.
//!
//! An executor brings up a sandbox with a supervisor in it; the supervisor asks its [`Control`](crate::supervisor::control::Control)
//! for the grant and reports the outcome there. The executor itself decides nothing: every method is idempotent, and that
//! something doesn't exist is an answer, not an error.

pub mod fake;
pub mod process;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::core::decide::RunState;
use crate::core::plan::{RunId, RunSpec, Unsupported};
use crate::protocol::StopReason;

/// Runs tasks somewhere.
///
/// # Guarantees
/// For one [`RunId`] at most one supervisor asks for the grant, however often `ensure` is called, until `remove`; after that
/// returned, no process and no file of the run is left. A run that reports does so once, before its state says that it ended.
/// `tests/conformance` holds every implementation to this.
#[async_trait]
pub trait Executor: Send + Sync {
    /// A short name for people: `process`, `docker`, `kubernetes`.
    fn name(&self) -> &'static str;

    /// What this executor can't enforce. It is refused or shown, never ignored.
    fn unsupported(&self) -> &[Unsupported];

    /// Makes sure that the run's sandbox exists.
    ///
    /// # Errors
    /// When the sandbox can't be brought up now.
    async fn ensure(&self, spec: &RunSpec) -> Result<(), ExecutorError>;

    /// The run's state; [`RunState::Absent`] for one that doesn't exist.
    ///
    /// # Errors
    /// When the platform doesn't answer.
    async fn observe(&self, id: &RunId) -> Result<RunState, ExecutorError>;

    /// Asks the run to end: SIGTERM, and SIGKILL after `grace`. It returns before the end.
    ///
    /// The first reason counts; asking again can shorten the grace, not lengthen it.
    ///
    /// # Errors
    /// When the platform doesn't answer.
    async fn stop(&self, id: &RunId, reason: StopReason, grace: Duration) -> Result<(), ExecutorError>;

    /// Ends the run without grace where it hasn't ended, removes everything of it, and returns when it is gone.
    ///
    /// # Errors
    /// When something of it is left.
    async fn remove(&self, id: &RunId) -> Result<(), ExecutorError>;

    /// Changes whenever the state of some run may have changed.
    fn watch(&self) -> watch::Receiver<u64>;
}

/// Why an executor could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// The platform isn't there or doesn't answer.
    #[error("{executor} is not available")]
    Unavailable {
        /// The executor's name.
        executor: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Something of a removed run is left.
    #[error("something of run {id} is left")]
    Leftover {
        /// The run.
        id: RunId,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

//! What the suite has to know of an executor that it tests, and those that it tests.

pub mod fake;
pub mod process;

use std::sync::Arc;

use caisson::core::plan::RunId;
use caisson::executor::Executor;
use caisson::supervisor::control::Control;

use crate::agents::Agent;

/// An executor with the world that it works in.
pub trait Subject: Sized + 'static {
    /// Its name in the table.
    const NAME: &'static str;
    /// Whether its time is tokio's, so that nothing has to be waited for.
    const PAUSED: bool = false;

    /// A new world with an executor whose supervisors answer to `control`.
    fn new(control: Arc<dyn Control>) -> Self;

    fn executor(&self) -> Arc<dyn Executor>;

    /// Makes a program that acts as `agent` in every attempt of the task `uid`, and names it.
    fn program(&self, uid: &str, agent: &Agent) -> String;

    /// How many agents this run has started, told by the world and not by the executor.
    fn starts(&self, run: &RunId) -> usize;

    /// What exists of this run, told by the world.
    fn remains(&self, run: &RunId) -> Vec<String>;
}

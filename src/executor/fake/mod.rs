//! An executor in memory: no process, no file, and every fault on demand.
//!
//! It drives a pretended agent through the same seam as all others: its supervisor asks [`Control`] for the grant, starts the
//! agent only with it, and reports the outcome there. Time is tokio's, so a test with a paused clock waits for nothing.
//!
//! It ships with the crate because controllers of every kind are tested with it; nothing that runs for people names it.

mod faults;
mod script;
mod session;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Executor, ExecutorError};
use crate::core::decide::RunState;
use crate::core::plan::{RunId, RunSpec, Unsupported};
use crate::protocol::{Stop, StopReason};
use crate::supervisor::control::Control;
use crate::supervisor::{StopSwitch, stop_channel};
use faults::Faults;
pub use faults::{Fault, Injection};
pub use script::{Lasts, Script};
use session::Session;

const NAME: &str = "fake";
/// From SIGTERM to SIGKILL where nobody says otherwise: after a deadline, or when control is lost.
pub const GRACE: Duration = Duration::from_secs(5);

/// Runs pretended agents. Clones share everything.
#[derive(Clone)]
pub struct FakeExecutor {
    world: Arc<World>,
    unsupported: Vec<Unsupported>,
}

/// What exists, and what happened to it.
struct World {
    control: Arc<dyn Control>,
    state: Mutex<State>,
    faults: Faults,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    runs: HashMap<RunId, Arc<Run>>,
    scripts: HashMap<String, Script>,
    starts: BTreeMap<RunId, usize>,
    /// What `observe` answered last.
    answered: HashMap<RunId, RunState>,
}

struct Run {
    state: watch::Receiver<RunState>,
    stop: StopSwitch,
}

impl FakeExecutor {
    /// An executor that can enforce everything, and whose supervisors answer to `control`.
    pub fn new(control: Arc<dyn Control>) -> Self {
        let world = World {
            control,
            state: Mutex::default(),
            faults: Faults::default(),
            changed: watch::Sender::new(0),
        };
        Self { world: Arc::new(world), unsupported: Vec::new() }
    }

    /// The same, without what can't be enforced.
    #[must_use]
    pub fn without(self, unsupported: &[Unsupported]) -> Self {
        Self { unsupported: unsupported.to_vec(), ..self }
    }

    /// What the agent of every later attempt of the task `uid` does. Unset: [`Script::default`].
    pub fn script(&self, uid: &str, script: Script) {
        self.world.state().scripts.insert(uid.to_owned(), script);
    }

    /// Lets something go wrong later on.
    pub fn inject(&self, injection: Injection) {
        self.world.faults.inject(injection);
    }

    /// How often agents of the task `uid` were started, over all attempts.
    pub fn starts(&self, uid: &str) -> usize {
        let state = self.world.state();
        state.starts.iter().filter(|(run, _)| run.uid == uid).map(|(_, count)| count).sum()
    }

    /// How often the agent of one attempt was started.
    pub fn starts_of(&self, run: &RunId) -> usize {
        self.world.state().starts.get(run).copied().unwrap_or_default()
    }

    /// Every sandbox that exists, in order.
    pub fn sandboxes(&self) -> Vec<RunId> {
        let mut runs: Vec<RunId> = self.world.state().runs.keys().cloned().collect();
        runs.sort();
        runs
    }
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, id: &RunId) -> Option<Arc<Run>> {
        self.state().runs.get(id).map(Arc::clone)
    }

    fn strikes(&self, fault: Fault, id: &RunId) -> bool {
        self.faults.strikes(fault, &id.uid)
    }

    fn announce(&self, id: &RunId) {
        if !self.strikes(Fault::EventLost, id) {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    fn bring_up(self: &Arc<Self>, spec: &RunSpec) {
        let mut state = self.state();
        if state.runs.contains_key(&spec.id) {
            return;
        }
        let (sender, receiver) = watch::channel(RunState::Starting);
        let (stop, signal) = stop_channel(GRACE);
        let script = state.scripts.get(&spec.id.uid).cloned().unwrap_or_default();
        let session = Session { world: Arc::clone(self), id: spec.id.clone(), script, state: sender };
        tokio::spawn(session.run(signal));
        state.runs.insert(spec.id.clone(), Arc::new(Run { state: receiver, stop }));
        drop(state);
        self.announce(&spec.id);
    }

    /// The sandbox is gone, as if it had never been.
    fn forget(&self, id: &RunId) {
        self.state().runs.remove(id);
        self.announce(id);
    }
}

#[async_trait]
impl Executor for FakeExecutor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn unsupported(&self) -> &[Unsupported] {
        &self.unsupported
    }

    async fn ensure(&self, spec: &RunSpec) -> Result<(), ExecutorError> {
        let world = &self.world;
        if world.strikes(Fault::EnsureFails, &spec.id) {
            return Err(unavailable());
        }
        world.bring_up(spec);
        if world.strikes(Fault::EnsureAmbiguous, &spec.id) { Err(unavailable()) } else { Ok(()) }
    }

    async fn observe(&self, id: &RunId) -> Result<RunState, ExecutorError> {
        let world = &self.world;
        if world.strikes(Fault::ObserveFails, id) {
            return Err(unavailable());
        }
        let is_stale = world.strikes(Fault::ObserveStale, id);
        let mut state = world.state();
        let present = state.runs.get(id).map_or(RunState::Absent, |run| *run.state.borrow());
        let answer = if is_stale { state.answered.get(id).copied().unwrap_or_default() } else { present };
        state.answered.insert(id.clone(), answer);
        Ok(answer)
    }

    async fn stop(&self, id: &RunId, reason: StopReason, grace: Duration) -> Result<(), ExecutorError> {
        if self.world.strikes(Fault::StopFails, id) {
            return Err(unavailable());
        }
        if let Some(run) = self.world.run(id) {
            run.stop.ask(Stop { reason, grace });
        }
        Ok(())
    }

    async fn remove(&self, id: &RunId) -> Result<(), ExecutorError> {
        if self.world.strikes(Fault::RemoveFails, id) {
            return Err(ExecutorError::Leftover { id: id.clone(), source: injected() });
        }
        let Some(run) = self.world.run(id) else { return Ok(()) };
        run.stop.ask(Stop { reason: StopReason::Interrupted, grace: Duration::ZERO });
        // An error says that the session is gone, which is what is waited for.
        let _ = run.state.clone().wait_for(|state| *state == RunState::Ended).await;
        let present = self.world.run(id);
        if present.is_some_and(|present| Arc::ptr_eq(&present, &run)) {
            self.world.forget(id);
        }
        Ok(())
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.world.changed.subscribe()
    }
}

fn unavailable() -> ExecutorError {
    ExecutorError::Unavailable { executor: NAME, source: injected() }
}

fn injected() -> io::Error {
    io::Error::other("a fault that was asked for")
}

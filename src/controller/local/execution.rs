//! One run seen through: decide, carry out, wait for news, look, and again.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tracing::{debug, trace};

use super::hub::Request;
use super::journal::Entry;
use super::{Finished, GRACE, LocalRun, Observer, Signals};
use crate::api::Code;
use crate::core::decide::{self, Observed, RunState};
use crate::core::outcome::{Failure, Outcome};
use crate::core::plan::{Action, RunId};
use crate::executor::Executor;
use crate::protocol::SystemCode;
use crate::redact::Redacted;
use crate::supervisor::Report;
use crate::supervisor::workspace::WorkspaceDiff;

/// Longest wait before the executor is asked again, so that a change that nobody told of only delays.
const RESYNC: Duration = Duration::from_secs(5);
/// How often a removal is tried before what is left is left to the next command.
const REMOVALS: u32 = 3;

/// What surrounds a run while it is executed.
pub(super) struct Execution<'a> {
    pub(super) run: LocalRun,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
    pub(super) entry: Entry,
    pub(super) signals: Signals,
    pub(super) watcher: &'a mut dyn Observer,
    pub(super) state: State,
}

/// What is known of it.
#[derive(Default)]
pub(super) struct State {
    observed: Observed,
    change: Option<WorkspaceDiff>,
    /// The attempt whose sandbox has existed.
    ensured: Option<RunId>,
}

impl Execution<'_> {
    /// Until the task is finished and nothing of it is left, or what is left is said.
    pub(super) async fn run(mut self) -> Finished {
        let mut changes = self.executor.watch();
        loop {
            let plan = decide::decide(&self.run.inputs(), &self.state.observed, self.now());
            self.run.task.status = Some(plan.status);
            trace!(run = %self.run.run_id(), sandbox = ?self.state.observed.run, actions = plan.actions.len(), "decided");
            self.watcher.status(&self.run.task);
            for action in &plan.actions {
                self.carry_out(action).await;
            }
            if self.run.is_finished() {
                break;
            }
            // An action that failed for good is an outcome, and nothing more will happen.
            if self.state.observed.outcome.is_none() {
                let pause = plan.wake_at.map_or(RESYNC, |at| self.until(at).min(RESYNC));
                // That nothing happened is a reason to look, too.
                let _ = tokio::time::timeout(pause, self.news(&mut changes)).await;
            }
            self.look().await;
        }
        self.tear_down().await
    }

    fn now(&self) -> Timestamp {
        (self.run.clock)()
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }

    /// What fails here is decided again from what is found: stops are repeated, removals come again at the end.
    async fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Ensure(spec) => {
                debug!(run = %spec.id, executor = self.executor.name(), "bringing up the sandbox");
                let ensured = self.executor.ensure(spec).await.is_ok();
                // An error doesn't say that nothing exists.
                let exists = ensured
                    || self.executor.observe(&spec.id).await.is_ok_and(|state| state != RunState::Absent);
                if exists {
                    self.state.observed.run = RunState::Starting;
                    self.state.ensured = Some(spec.id.clone());
                } else {
                    self.state.observed.run = RunState::Absent;
                    let outcome = Outcome::before_start(Code::RuntimeUnavailable, None);
                    self.state.observed.outcome.get_or_insert(outcome);
                }
            }
            Action::Stop(id, reason) => {
                debug!(run = %id, ?reason, "stopping the run");
                let _ = self.executor.stop(id, *reason, GRACE).await;
            }
            Action::Remove(id) => {
                debug!(run = %id, "removing the run");
                let _ = self.executor.remove(id).await;
            }
        }
    }

    /// Waits for something that a decision depends on.
    async fn news(&mut self, changes: &mut watch::Receiver<u64>) {
        loop {
            let cancelled = self.run.is_cancelled();
            tokio::select! {
                // The caller's word first: it must not wait behind a flood of output. Then what supervisors say, since a
                // report must be seen before the end of its sandbox.
                biased;
                () = interrupted(&mut self.signals.interrupted), if !cancelled => return self.run.cancel(),
                Some(request) = self.requests.recv() => {
                    if self.take(request) {
                        return;
                    }
                }
                Ok(()) = changes.changed() => return,
            }
        }
    }

    /// Answers a supervisor. Whether it was news.
    fn take(&mut self, request: Request) -> bool {
        match request {
            Request::Launch { run, reply } => {
                let answer = if run == self.run.run_id() {
                    self.run.grant(&mut self.entry)
                } else {
                    Err(Failure { code: Code::Lost, system_code: SystemCode::new("OTHER_ATTEMPT") })
                };
                let refused = answer.as_ref().err().map(|refused| refused.code.name());
                debug!(run = %run, refused, "the grant was asked for");
                // A supervisor that no longer waits has ended; its state says so.
                let _ = reply.send(answer);
                true
            }
            Request::Report { run, report } => {
                // The first report counts, and none of an attempt that was given up.
                let counts = run == self.run.run_id() && self.state.observed.outcome.is_none();
                if counts {
                    let Report { outcome, change } = *report;
                    self.state.observed.outcome = Some(outcome);
                    self.state.change = change;
                }
                counts
            }
            Request::Live(live) => {
                self.watcher.live(live);
                false
            }
        }
    }

    async fn look(&mut self) {
        let run = self.run.run_id();
        match self.executor.observe(&run).await {
            // It has existed and is gone: whatever became of it, it has ended.
            Ok(RunState::Absent) if self.state.ensured.as_ref() == Some(&run) => {
                self.state.observed.run = RunState::Ended;
            }
            Ok(state) => self.state.observed.run = state,
            // Unknown is not absent; it is asked again.
            Err(_) => {}
        }
        // What was sent before the sandbox ended counts: it is in the queue already. A request for the grant is too late.
        while self.state.observed.run == RunState::Ended && self.state.observed.outcome.is_none() {
            match self.requests.try_recv() {
                Ok(Request::Launch { .. }) => {}
                Ok(request) => {
                    self.take(request);
                }
                Err(_) => break,
            }
        }
    }

    /// Removes every attempt, whatever was observed of it, and forgets the run.
    async fn tear_down(self) -> Finished {
        let Self { run, executor, requests, entry, state, .. } = self;
        // Whoever still waits for an answer is told that there is none.
        drop(requests);
        let RunId { uid, attempt: last } = run.run_id();
        let mut removed = true;
        for attempt in 1..=last {
            removed &= remove(executor.as_ref(), &RunId { uid: uid.clone(), attempt }).await;
        }
        let result = run.task.status.as_ref().and_then(|status| status.result.as_ref());
        debug!(run = %uid, code = result.and_then(|result| result.code).map(Code::name), "the task is over");
        let mut notes = state.observed.outcome.map(|outcome| outcome.notes).unwrap_or_default();
        // The journal keeps what is left, so that the next command finds it. The result isn't lost over it.
        if !removed || entry.finish().is_err() {
            notes.push(Redacted::fixed("something of the run is left; the next command ends and removes it"));
        }
        Finished { task: run.task, notes, change: state.change }
    }
}

async fn remove(executor: &dyn Executor, id: &RunId) -> bool {
    for _ in 0..REMOVALS {
        if executor.remove(id).await.is_ok() {
            return true;
        }
    }
    false
}

async fn interrupted(signal: &mut watch::Receiver<bool>) {
    if signal.wait_for(|interrupted| *interrupted).await.is_err() {
        // Nobody can interrupt any more.
        std::future::pending::<()>().await;
    }
}

//! The controller of a local run: one task, one executor, the same gates and the same decisions as on a cluster.
//!
//! What the API server is for the operator, a [`Journal`] is here: the record that a run exists is on disk before its sandbox
//! does, and the grant is on disk before its agent starts. A run whose `caisson` is gone is never resumed.

mod hub;
mod journal;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{mpsc, watch};
use tracing::{debug, trace};

pub use hub::Live;
use hub::{Hub, Request};
pub use journal::{Journal, JournalError, Leftover, RunRecord};

use crate::api::{
    APPROVED_BY, APPROVED_DIGEST, AgentCliDefinition, AgentCliTask, CANCEL, Code, EnvironmentVariable, Grant,
};
use crate::core::decide::{self, Inputs, Installation, Judgement, Observed, PromptState, RunState};
use crate::core::outcome::{Failure, Outcome};
use crate::core::plan::Action;
use crate::executor::{Executor, ExecutorError};
use crate::protocol::SystemCode;
use crate::redact::Redacted;
use crate::supervisor::Report;
use crate::supervisor::control::{Control, Order, Ready, Variable};
use crate::supervisor::workspace::WorkspaceDiff;

/// From SIGTERM to SIGKILL when a run is stopped.
pub const GRACE: Duration = Duration::from_secs(5);

/// One task of the caller's own, and everything that it needs of this machine.
#[derive(Debug)]
pub struct LocalRun {
    /// The task; its status is kept up to date.
    pub task: AgentCliTask,
    /// Its definition.
    pub definition: AgentCliDefinition,
    /// Its prompt.
    pub prompt: PromptState,
    /// What this machine can do.
    pub installation: Installation,
    /// Where secrets come from.
    pub secrets: Secrets,
    /// The clock.
    pub clock: fn() -> Timestamp,
}

/// The caller's environment variables, of which a definition's secrets are taken by name. `Debug` shows none.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<OsString, OsString>);

impl Secrets {
    /// The variables of the caller's environment.
    pub fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    fn value(&self, name: &str) -> Option<Vec<u8>> {
        use std::os::unix::ffi::OsStringExt;
        let value = self.0.get(&OsString::from(name))?.clone().into_vec();
        (!value.is_empty()).then_some(value)
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} variables)", self.0.len())
    }
}

/// How a local run ended.
#[derive(Debug)]
pub struct Finished {
    /// The task with its terminal status.
    pub task: AgentCliTask,
    /// What people should know and no field says.
    pub notes: Vec<Redacted>,
    /// The whole change, for `--apply`.
    pub change: Option<WorkspaceDiff>,
}

/// Whoever watches a local run.
pub trait Observer {
    /// The status changed.
    fn status(&mut self, task: &AgentCliTask);
    /// The agent wrote something.
    fn live(&mut self, live: Live);
}

/// What the run's surroundings tell it.
#[derive(Debug)]
pub struct Signals {
    /// True once the caller wants the run to end.
    pub interrupted: watch::Receiver<bool>,
}

impl LocalRun {
    /// How far the task gets, before anything is started.
    pub fn judge(&self) -> Judgement {
        decide::judge(&self.inputs(), (self.clock)())
    }

    /// Approves exactly `digest`, as `by`.
    pub fn approve(&mut self, digest: &str, by: &str) {
        let annotations = self.task.metadata.annotations.get_or_insert_default();
        annotations.insert(APPROVED_DIGEST.to_owned(), digest.to_owned());
        annotations.insert(APPROVED_BY.to_owned(), by.to_owned());
    }

    /// The first secret of the definition that the caller's environment lacks.
    pub fn missing_secret(&self) -> Option<&EnvironmentVariable> {
        let secret = |variable: &&EnvironmentVariable| variable.secret_key_ref.is_some();
        self.definition
            .spec
            .environment
            .iter()
            .filter(secret)
            .find(|variable| self.secrets.value(&variable.name).is_none())
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            task: &self.task,
            definition: Some(&self.definition),
            prompt: &self.prompt,
            installation: &self.installation,
        }
    }

    /// Decides once, without an executor: for tasks that end or wait at a gate.
    pub fn settle(&mut self) {
        let plan = decide::decide(&self.inputs(), &Observed::default(), (self.clock)());
        self.task.status = Some(plan.status);
    }

    /// Sees the task through.
    ///
    /// # Errors
    /// When the journal can't be written, or when something of the run is left. A task that fails is no error.
    pub async fn execute(
        mut self,
        journal: &Journal,
        executor: impl FnOnce(Arc<dyn Control>) -> Arc<dyn Executor>,
        mut signals: Signals,
        watcher: &mut dyn Observer,
    ) -> Result<Finished, LocalError> {
        let (sender, mut requests) = mpsc::unbounded_channel();
        let executor = executor(Arc::new(Hub::new(sender)));
        let uid = self.task.metadata.uid.clone().unwrap_or_default();
        let record = RunRecord::new(&self.task, executor.name(), (self.clock)());
        let mut entry = journal.begin(&uid, record).map_err(|source| LocalError::Journal { source })?;
        let mut changes = executor.watch();
        let mut observed = Observed::default();
        let mut change = None;
        loop {
            let plan = decide::decide(&self.inputs(), &observed, (self.clock)());
            self.task.status = Some(plan.status);
            trace!(run = %self.run_id(), sandbox = ?observed.run, actions = plan.actions.len(), "decided");
            watcher.status(&self.task);
            for action in &plan.actions {
                self.carry_out(action, executor.as_ref(), &mut observed).await?;
            }
            if self.is_finished() {
                break;
            }
            tokio::select! {
                // Requests first: a report must be seen before the end of its sandbox.
                biased;
                Some(request) = requests.recv() => match request {
                    Request::Launch { ready, reply, .. } => {
                        let answer = self.grant(&ready, &mut entry);
                        let refused = answer.as_ref().err().map(|refused| refused.code.name());
                        debug!(run = %self.run_id(), refused, "the grant was asked for");
                        // A supervisor that no longer waits has ended; its state says so.
                        let _ = reply.send(answer);
                    }
                    Request::Report { report, .. } => {
                        let Report { outcome, change: left } = *report;
                        change = left;
                        observed.outcome.get_or_insert(outcome);
                    }
                    Request::Live(live) => watcher.live(live),
                },
                Ok(()) = changes.changed() => {}
                () = interrupted(&mut signals.interrupted) => self.cancel(),
            }
            observed.run = executor.observe(&self.run_id()).await.unwrap_or(observed.run);
            // What was sent before the sandbox ended counts: it is in the queue already.
            while observed.run == RunState::Ended && observed.outcome.is_none() {
                match requests.try_recv() {
                    Ok(Request::Report { report, .. }) => {
                        change = report.change;
                        observed.outcome = Some(report.outcome);
                    }
                    Ok(Request::Live(live)) => watcher.live(live),
                    Ok(Request::Launch { .. }) => {}
                    Err(_) => break,
                }
            }
        }
        entry.finish().map_err(|source| LocalError::Journal { source })?;
        let result = self.task.status.as_ref().and_then(|status| status.result.as_ref());
        let code = result.and_then(|result| result.code).map(Code::name);
        debug!(run = %self.run_id(), code, "the task is over");
        let notes = observed.outcome.map(|outcome| outcome.notes).unwrap_or_default();
        Ok(Finished { task: self.task, notes, change })
    }

    fn is_finished(&self) -> bool {
        self.task.status.as_ref().is_some_and(|status| status.finished_at.is_some())
    }

    fn is_granted(&self) -> bool {
        let launch = self.task.status.as_ref().and_then(|status| status.launch.as_ref());
        launch.is_some_and(|launch| launch.grant.is_some())
    }

    fn run_id(&self) -> crate::core::plan::RunId {
        decide::run_id(&self.task)
    }

    fn cancel(&mut self) {
        self.task.metadata.annotations.get_or_insert_default().insert(CANCEL.to_owned(), "true".to_owned());
    }

    async fn carry_out(
        &self,
        action: &Action,
        executor: &dyn Executor,
        observed: &mut Observed,
    ) -> Result<(), LocalError> {
        match action {
            Action::Ensure(spec) => {
                debug!(run = %spec.id, executor = executor.name(), "bringing up the sandbox");
                if executor.ensure(spec).await.is_err() {
                    observed.outcome.get_or_insert(Outcome::before_start(Code::RuntimeUnavailable, None));
                }
            }
            Action::Stop(id, reason) => {
                debug!(run = %id, ?reason, "stopping the run");
                executor.stop(id, *reason, GRACE).await.map_err(|source| LocalError::Executor { source })?;
            }
            Action::Remove(id) => {
                debug!(run = %id, "removing the run");
                executor.remove(id).await.map_err(|source| LocalError::Executor { source })?;
            }
        }
        Ok(())
    }

    /// The grant: every gate once more, then the record on disk, then the order.
    fn grant(&mut self, _ready: &Ready, entry: &mut journal::Entry) -> Result<Order, Failure> {
        if self.is_granted() {
            return Err(Failure { code: Code::Lost, system_code: SystemCode::new("GRANTED_BEFORE") });
        }
        let now = (self.clock)();
        let facts = decide::grant(&self.inputs(), now).map_err(|refusal| refusal.failure)?;
        let environment = self.environment()?;
        let PromptState::Present(prompt) = self.prompt.clone() else {
            return Err(Failure { code: Code::SourceMissing, system_code: SystemCode::new("PROMPT") });
        };
        let unrecorded = |_: JournalError| Failure {
            code: Code::RuntimeUnavailable,
            system_code: SystemCode::new("JOURNAL"),
        };
        entry.granted().map_err(unrecorded)?;
        let grant = Grant { pod_uid: String::new(), instance: facts.run.id.uid.clone(), at: Time(now) };
        if let Some(launch) = self.task.status.as_mut().and_then(|status| status.launch.as_mut()) {
            launch.grant = Some(grant);
        }
        let definition = &self.definition.spec;
        Ok(Order {
            command: facts.command,
            prompt,
            environment,
            output: definition.output.clone(),
            limits: facts.run.limits,
            logs: facts.run.logs,
        })
    }

    fn environment(&self) -> Result<Vec<Variable>, Failure> {
        let value = |variable: &EnvironmentVariable| {
            let name = variable.name.clone();
            match &variable.value {
                Some(value) => Ok(Variable { name, value: value.clone().into_bytes(), secret: false }),
                None => match self.secrets.value(&name) {
                    Some(value) => Ok(Variable { name, value, secret: true }),
                    None => Err(Failure { code: Code::SourceMissing, system_code: SystemCode::new(name) }),
                },
            }
        };
        self.definition.spec.environment.iter().map(value).collect()
    }
}

async fn interrupted(signal: &mut watch::Receiver<bool>) {
    loop {
        if signal.changed().await.is_err() {
            // Nobody can interrupt any more.
            return std::future::pending().await;
        }
        if *signal.borrow() {
            return;
        }
    }
}

/// Why a local run could not be seen through. A task that fails is no error.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The journal can't be written.
    #[error("the record of the run can't be kept")]
    Journal {
        /// Why.
        #[source]
        source: JournalError,
    },
    /// The executor failed at something that has no code.
    #[error("the run could not be ended cleanly")]
    Executor {
        /// Why.
        #[source]
        source: ExecutorError,
    },
}

/// Reads the caller's prompt from a manifest's inline text.
///
/// # Errors
/// Never: a prompt that can't be used is a state.
pub fn inline_prompt(text: Option<String>) -> PromptState {
    use crate::core::command::Prompt;
    text.map_or(PromptState::Missing, |text| {
        Prompt::new(text).map_or(PromptState::Invalid, PromptState::Present)
    })
}

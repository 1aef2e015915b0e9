//! The controller of a local run: one task, one executor, the same gates and the same decisions as on a cluster.
//!
//! What the API server is for the operator, a [`Journal`] is here: the record that a run exists is on disk before its sandbox
//! does, and the grant is on disk before its agent starts. A run whose `caisson` is gone is never resumed.

mod execution;
mod hub;
mod journal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{mpsc, watch};

use execution::{Execution, State};
use hub::Hub;
pub use hub::Live;
pub use journal::{Journal, JournalError, Leftover, RunRecord};

use crate::api::{
    APPROVED_BY, APPROVED_DIGEST, AgentCliDefinition, AgentCliTask, CANCEL, Code, EnvironmentVariable, Grant,
};
use crate::core::decide::{self, Inputs, Installation, Judgement, Observed, PromptState};
use crate::core::outcome::Failure;
use crate::core::plan::RunId;
use crate::executor::Executor;
use crate::protocol::SystemCode;
use crate::redact::Redacted;
use crate::supervisor::control::{Control, Order, Variable};
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
    /// # Guarantees
    /// At most one grant, whatever the executor does. When this returns, nothing of the run is left, or a note says so and the
    /// journal still knows the run.
    ///
    /// # Errors
    /// When the journal can't be written. A task that fails is no error.
    pub async fn execute(
        self,
        journal: &Journal,
        executor: impl FnOnce(Arc<dyn Control>) -> Arc<dyn Executor>,
        signals: Signals,
        watcher: &mut dyn Observer,
    ) -> Result<Finished, LocalError> {
        let (sender, requests) = mpsc::unbounded_channel();
        let executor = executor(Arc::new(Hub::new(sender)));
        let uid = self.task.metadata.uid.clone().unwrap_or_default();
        let record = RunRecord::new(&self.task, executor.name(), (self.clock)());
        let entry = journal.begin(&uid, record).map_err(|source| LocalError::Journal { source })?;
        let state = State::default();
        let execution = Execution { run: self, executor, requests, entry, signals, watcher, state };
        Ok(Box::pin(execution.run()).await)
    }

    fn is_finished(&self) -> bool {
        self.task.status.as_ref().is_some_and(|status| status.finished_at.is_some())
    }

    fn is_granted(&self) -> bool {
        let launch = self.task.status.as_ref().and_then(|status| status.launch.as_ref());
        launch.is_some_and(|launch| launch.grant.is_some())
    }

    fn run_id(&self) -> RunId {
        decide::run_id(&self.task)
    }

    fn is_cancelled(&self) -> bool {
        decide::cancel_asked(&self.task)
    }

    fn cancel(&mut self) {
        self.task.metadata.annotations.get_or_insert_default().insert(CANCEL.to_owned(), "true".to_owned());
    }

    /// The grant: every gate once more, then the record on disk, then the order.
    fn grant(&mut self, entry: &mut journal::Entry) -> Result<Order, Failure> {
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
        let Some(launch) = self.task.status.as_mut().and_then(|status| status.launch.as_mut()) else {
            return Err(Failure { code: Code::Lost, system_code: SystemCode::new("NOT_LAUNCHED") });
        };
        entry.granted().map_err(unrecorded)?;
        launch.grant =
            Some(Grant { pod_uid: String::new(), instance: facts.run.id.uid.clone(), at: Time(now) });
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
}

/// Reads the caller's prompt from a manifest's inline text.
///
/// A prompt that can't be used is a state, not an error.
pub fn inline_prompt(text: Option<String>) -> PromptState {
    use crate::core::command::Prompt;
    text.map_or(PromptState::Missing, |text| {
        Prompt::new(text).map_or(PromptState::Invalid, PromptState::Present)
    })
}

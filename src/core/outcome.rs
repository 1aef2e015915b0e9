//! What a supervisor reports when a run is over: facts, from which [`classify`](super::classify) makes the result.

use serde::{Deserialize, Serialize};

use crate::api::{Code, DiffSummary, StreamFacts, TerminationMethod, Usage};
use crate::protocol::{StopReason, SystemCode};
use crate::redact::Redacted;

/// Everything that is known about a finished run. All text in it is redacted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// What failed around the agent: before it, beside it or after it.
    pub failure: Option<Failure>,
    /// How the agent's process ended; absent when it was never started.
    pub execution: Option<Execution>,
    /// What its output says; absent when it was never started.
    pub reading: Option<Reading>,
    /// The commit that the workspace was made from.
    pub base: Option<String>,
    /// What changed in the workspace.
    pub diff: Option<DiffSummary>,
    /// What people should know and no field says, such as a nested repository that the diff leaves out.
    #[serde(deserialize_with = "Redacted::deserialize_stored_list")]
    pub notes: Vec<Redacted>,
}

impl Outcome {
    /// The outcome of a run that failed before its agent was started.
    pub fn before_start(code: Code, system_code: Option<SystemCode>) -> Self {
        Self { failure: Some(Failure { code, system_code }), ..Self::default() }
    }
}

/// A failure outside the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failure {
    /// Its code.
    pub code: Code,
    /// The system's word for it.
    pub system_code: Option<SystemCode>,
}

impl Failure {
    /// A run that was asked to end before its agent was started.
    pub fn stopped(reason: StopReason) -> Self {
        let code = match reason {
            StopReason::Cancelled => Code::Cancelled,
            StopReason::Retired => Code::DefinitionRetired,
            StopReason::Interrupted => Code::Evicted,
            StopReason::ControlLost => Code::ControlLost,
        };
        Self { code, system_code: None }
    }
}

/// How an agent's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Execution {
    /// What ended it.
    pub end: End,
    /// Its exit code; -1 when a signal ended it; absent when it was never started or is still alive.
    pub exit_code: Option<i32>,
    /// The system's word for what went wrong.
    pub system_code: Option<SystemCode>,
    /// How it was ended, when it didn't end by itself.
    pub termination_method: Option<TerminationMethod>,
    /// Facts about standard output.
    pub stdout: StreamFacts,
    /// Facts about standard error.
    pub stderr: StreamFacts,
    /// Milliseconds from start to end.
    pub duration_ms: i64,
}

/// What ended an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It ended by itself.
    Exited,
    /// It could not be started.
    SpawnFailed,
    /// Its deadline.
    TimedOut,
    /// Someone cancelled the task.
    Cancelled,
    /// Its definition was retired.
    Retired,
    /// The platform took the sandbox away.
    Interrupted,
    /// The connection to whoever controls it was lost.
    ControlLost,
    /// It had more processes than allowed.
    ProcessLimit,
    /// It was still alive after SIGKILL.
    TerminationFailed,
}

impl End {
    /// An agent that was asked to end.
    pub const fn stopped(reason: StopReason) -> Self {
        match reason {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::Retired => Self::Retired,
            StopReason::Interrupted => Self::Interrupted,
            StopReason::ControlLost => Self::ControlLost,
        }
    }
}

/// What an agent's output says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reading {
    /// Whether output of the declared format was found.
    pub parsed: bool,
    /// Whether the agent itself reports a failure.
    pub failed: bool,
    /// The final text.
    #[serde(deserialize_with = "Redacted::deserialize_stored_option")]
    pub text: Option<Redacted>,
    /// Whether the text is only the end of what was said.
    pub text_truncated: bool,
    /// What the agent used, by its own account.
    pub usage: Option<Usage>,
}

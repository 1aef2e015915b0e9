//! What the runner found out about one execution. Holds no text of the agent: numbers, fixed words and a system code.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::launch::millis;
use super::record::StopReason;

/// The account of one launch: how it ended and what was left to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecReport {
    /// Why it is over.
    pub outcome: Outcome,
    /// How the agent's own process ended. Absent when it never started, or when it couldn't be ended.
    pub exit: Option<Exit>,
    /// The platform's name for what went wrong, such as `ENOENT` for a start that failed or `PROCESS_LIMIT`.
    pub system_code: Option<SystemCode>,
    /// The strongest signal that the runner sent to the agent's group while the agent's own process was alive.
    pub termination_method: TerminationMethod,
    /// Whether the deadline passed while the agent ran, also if it then couldn't be ended.
    pub timeout: bool,
    /// The agent's standard output.
    pub stdout: StreamReport,
    /// The agent's standard error.
    pub stderr: StreamReport,
    /// Processes besides the agent's own that the runner had to kill and that it reaped.
    pub leftovers: u32,
    /// From the start (or the attempt) to this report, on the runner's monotonic clock, in whole milliseconds.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
}

/// Why an execution is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// The agent ended by itself (also by a signal that wasn't the runner's).
    Exited,
    /// Nothing was started; the system code says why.
    SpawnFailed,
    /// The runner ended everything for this reason, and all of it is gone.
    Ended(Ended),
    /// Something of the agent's was still alive 5 seconds after SIGKILL. The reason why it had to end, if it didn't
    /// exit by itself.
    TerminationFailed(Option<Ended>),
}

/// Why the runner ended an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ended {
    /// The deadline passed.
    TimedOut,
    /// More processes at once than the limit allows.
    ProcessLimit,
    /// The supervisor asked for it, or the platform did by a signal to the runner.
    Stopped(StopReason),
    /// The supervisor is gone, or broke the protocol.
    SupervisorLost,
}

/// How the agent's own process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// The exit code, 0 to 255; -1 when a signal ended it.
    pub code: i32,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// An ordinary exit with this code.
    #[must_use]
    pub const fn with_code(code: i32) -> Self {
        Self { code, signal: None }
    }

    /// An end by this signal; its code is -1.
    #[must_use]
    pub const fn by_signal(signal: i32) -> Self {
        Self { code: -1, signal: Some(signal) }
    }
}

/// The strongest signal that was needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminationMethod {
    /// No signal was sent.
    #[default]
    None,
    /// SIGTERM was enough.
    Sigterm,
    /// SIGKILL was sent, after the grace or at once.
    Sigkill,
}

/// One output stream of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamReport {
    /// Everything that was written and read, in bytes, kept or not.
    pub bytes: u64,
    /// Whether the tail lacks bytes from the stream's beginning.
    pub truncated: bool,
    /// Whether the stream's end was seen. When not, something outside the agent's tree still held it open.
    pub complete: bool,
}

/// An upper-case name from the platform, `^[A-Z][A-Z0-9_]{0,31}$`: safe to show, whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SystemCode(String);

impl SystemCode {
    /// The code, unless the text isn't of the allowed form.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        Self::try_from(text.into()).ok()
    }

    /// The code of [`Ended::ProcessLimit`].
    #[must_use]
    pub fn process_limit() -> Self {
        Self("PROCESS_LIMIT".to_owned())
    }

    /// The code for an error that the platform gave no name.
    #[must_use]
    pub fn unknown() -> Self {
        Self("UNKNOWN".to_owned())
    }

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is no system code. The text isn't repeated, since it can come from anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a system code of 1 to 32 characters A-Z, 0-9 and _ that starts with a letter")]
pub struct SystemCodeError;

impl TryFrom<String> for SystemCode {
    type Error = SystemCodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let starts_well = text.starts_with(|first: char| first.is_ascii_uppercase());
        let reads_well = text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if starts_well && reads_well && text.len() <= 32 { Ok(Self(text)) } else { Err(SystemCodeError) }
    }
}

impl From<SystemCode> for String {
    fn from(code: SystemCode) -> Self {
        code.0
    }
}

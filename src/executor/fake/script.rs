//! What a pretended agent does.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::GRACE;
use crate::api::{DiffSummary, StreamFacts, TerminationMethod};
use crate::core::outcome::{End, Execution, Outcome, Reading};
use crate::redact::{Redacted, Redactor};
use crate::supervisor::StopSignal;

/// What a pretended agent does: it prints, lasts, and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What it prints at once.
    pub says: String,
    /// How long it works.
    pub lasts: Lasts,
    /// Its exit code at the end of its work; -1: a signal that nobody asked for.
    pub exit_code: i32,
    /// Whether SIGTERM leaves it alone.
    pub ignores_sigterm: bool,
    /// Whether it reports that it failed, whatever its exit code is.
    pub fails: bool,
    /// Files of one line each that it adds to the workspace.
    pub files: usize,
}

/// How long a pretended agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// So long, on tokio's clock.
    For(Duration),
    /// Until something ends it.
    UntilStopped,
}

/// An agent that says nothing and succeeds at once.
impl Default for Script {
    fn default() -> Self {
        Self {
            says: String::new(),
            lasts: Lasts::For(Duration::ZERO),
            exit_code: 0,
            ignores_sigterm: false,
            fails: false,
            files: 0,
        }
    }
}

impl Script {
    /// What it prints, as a supervisor that knows no secret would show it.
    pub(super) fn text(&self) -> Redacted {
        Redactor::without_secrets().text(&self.says)
    }

    /// Works until it is done, its `limit` is over, or it is stopped.
    pub(super) async fn perform(&self, limit: Duration, stop: &mut StopSignal) -> Outcome {
        let started = Instant::now();
        let work = match self.lasts {
            Lasts::For(work) if work <= limit => Some(work),
            Lasts::For(_) | Lasts::UntilStopped => None,
        };
        let over = started + work.unwrap_or(limit);
        let (end, exit_code, method) = match timeout_at(over, stop.next()).await {
            Err(_) if work.is_some() => (End::Exited, self.exit_code, None),
            Err(_) => (End::TimedOut, -1, Some(self.terminated(GRACE, stop).await)),
            Ok(asked) => (End::stopped(asked.reason), -1, Some(self.terminated(asked.grace, stop).await)),
        };
        self.outcome(end, exit_code, method, started.elapsed())
    }

    async fn terminated(&self, grace: Duration, stop: &mut StopSignal) -> TerminationMethod {
        if !self.ignores_sigterm {
            return TerminationMethod::Sigterm;
        }
        let mut kill_at = Instant::now() + grace;
        while let Ok(sooner) = timeout_at(kill_at, stop.next()).await {
            kill_at = kill_at.min(Instant::now() + sooner.grace);
        }
        TerminationMethod::Sigkill
    }

    fn outcome(
        &self,
        end: End,
        exit_code: i32,
        method: Option<TerminationMethod>,
        took: Duration,
    ) -> Outcome {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let execution = Execution {
            end,
            exit_code: Some(exit_code),
            system_code: None,
            termination_method: method,
            stdout: StreamFacts { bytes: number(self.says.len()), truncated: false },
            stderr: StreamFacts::default(),
            duration_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
        };
        let reading =
            Reading { parsed: true, failed: self.fails, text: Some(self.text()), ..Reading::default() };
        let diff = DiffSummary {
            files: number(self.files),
            insertions: number(self.files),
            ..DiffSummary::default()
        };
        Outcome { execution: Some(execution), reading: Some(reading), diff: Some(diff), ..Outcome::default() }
    }
}

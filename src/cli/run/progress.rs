//! What a person sees on standard error while a task runs.

use std::fmt::Write as _;
use std::time::Instant;

use crate::api::{AgentCliTask, ConditionType, Reason};
use crate::cli::terminal::Terminal;
use crate::controller::local::{Live, Observer};

/// Tells each state once, with the time since the start.
pub(super) struct Progress {
    terminal: Terminal,
    follow: bool,
    started: Instant,
    told: Option<Reason>,
    /// Whether live output stopped in the middle of a line.
    midline: bool,
}

impl Progress {
    pub(super) fn new(terminal: Terminal, follow: bool) -> Self {
        Self { terminal, follow, started: now(), told: None, midline: false }
    }

    /// Seconds since the start.
    pub(super) fn finish(&mut self) -> f64 {
        self.end_line();
        self.started.elapsed().as_secs_f64()
    }

    fn end_line(&mut self) {
        if self.midline {
            self.terminal.tell("\n");
            self.midline = false;
        }
    }
}

impl Observer for Progress {
    fn status(&mut self, task: &AgentCliTask) {
        let conditions = task.status.iter().flat_map(|status| &status.conditions);
        let state = conditions.into_iter().find(|condition| condition.kind == ConditionType::Succeeded);
        let Some(state) = state else { return };
        if task.status.as_ref().is_some_and(|status| status.finished_at.is_some()) {
            return;
        }
        if self.told.as_ref() != Some(&state.reason) {
            self.told = Some(state.reason.clone());
            self.end_line();
            let mut line = String::new();
            // Writing to a String can't fail.
            let _ = writeln!(line, "[{:5.1} s] {}", self.started.elapsed().as_secs_f64(), state.message);
            self.terminal.tell(&line);
        }
    }

    fn live(&mut self, live: Live) {
        if self.follow {
            let text = live.text.as_str();
            self.terminal.tell(text);
            self.midline = !text.ends_with('\n');
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell is where time comes from")]
fn now() -> Instant {
    Instant::now()
}

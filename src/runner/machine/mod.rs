//! What the runner decides, without doing any of it: inputs in, actions out, time as an argument.
//!
//! ```text
//! Idle ─launch→ Running ─deadline, stop→ Terminating ─grace over→ Killing
//!                  │  └──process limit, supervisor lost──────────────┤
//!                  │                          │ (5 s at most)        │
//!                  └──────the agent exits─────┴──→ Sweeping ←────────┘
//!                                                     │ nothing of it is left
//!                                                  Draining ─streams closed, or 500 ms→ Done
//! ```
//!
//! # Guarantees
//! - One launch leads to exactly one [`Action::Spawn`] and, whatever happens in whatever order, to exactly one report,
//!   as long as the shell calls [`Machine::handle`] by the time that [`Machine::deadline`] names.
//! - Every input also counts as the passing of time: a flood of output can't hold up a deadline.
//! - A report is made at the latest [`VANISH`] after SIGKILL or after the agent's own exit, plus [`DRAIN`].

mod event;

use std::time::Duration;

pub use self::event::{Action, Input, Signal};
use super::tail::{Kept, Tail};
use crate::protocol::{
    Ended, ExecReport, Exit, Launch, Limits, Outcome, Stop, StopReason, Stream, StreamReport, SystemCode,
    TerminationMethod, ToSupervisor,
};

/// Longest wait for killed processes to vanish, from SIGKILL or the agent's own exit.
pub const VANISH: Duration = Duration::from_secs(5);

/// Longest wait for the end of the output streams once nothing of the agent is left: only a process outside of its tree
/// can hold one open then, and what the agent wrote is read in far less.
pub const DRAIN: Duration = Duration::from_millis(500);

/// Between two sweeps over what is left; each needs a moment, since orphans appear when their parents end.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// Between two counts of the agent's processes; one costs a few system calls per process.
pub const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// After this many reaped orphans a count is due at once. A tree that doubles itself leaves orphans by the hundred, and
/// after a few hundred milliseconds of it the runner hardly gets any processor time.
pub const COUNT_ORPHANS: u32 = 32;

/// The runner's state, see the [module](self).
#[derive(Debug)]
pub struct Machine {
    phase: Phase,
    run: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No launch yet.
    Idle,
    /// The agent runs, until its deadline.
    Running { deadline: Duration },
    /// SIGTERM was sent.
    Terminating { kill_at: Duration },
    /// SIGKILL was sent and the agent's own process isn't reaped yet.
    Killing { give_up_at: Duration, sweep_at: Duration },
    /// The agent's own process is gone; what it left is being ended.
    Sweeping { give_up_at: Duration, sweep_at: Duration },
    /// Nothing is left but perhaps unread output.
    Draining { until: Duration },
    /// Reported, or ended before any launch.
    Done,
}

/// What is known about the one execution.
#[derive(Debug)]
struct Run {
    started_at: Duration,
    limits: Limits,
    live_output: bool,
    count_at: Option<Duration>,
    /// Orphans reaped since the last count.
    orphans: u32,
    ended: Option<Ended>,
    exit: Option<Exit>,
    system_code: Option<SystemCode>,
    method: TerminationMethod,
    stdout: Capture,
    stderr: Capture,
    leftovers: u32,
}

/// One output stream.
#[derive(Debug)]
struct Capture {
    tail: Tail,
    closed: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// A machine that waits for its launch.
    #[must_use]
    pub const fn new() -> Self {
        Self { phase: Phase::Idle, run: None }
    }

    /// Takes one input and says what to do. `now` is a monotonic clock with any origin.
    #[must_use]
    pub fn handle(&mut self, now: Duration, input: Input<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        // An agent that is found to have ended by itself is neither timed out nor signalled in the same moment.
        if !matches!(input, Input::ChildExited(_)) {
            self.pass_time(now, &mut actions);
        }
        self.take(now, input, &mut actions);
        self.pass_time(now, &mut actions);
        actions
    }

    /// When [`Machine::handle`] has to be called at the latest. `None`: nothing but another input matters.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let count_at = self.run.as_ref().and_then(|run| run.count_at);
        match self.phase {
            Phase::Idle | Phase::Done => None,
            Phase::Running { deadline: at } | Phase::Terminating { kill_at: at } => {
                Some(count_at.map_or(at, |count_at| at.min(count_at)))
            }
            Phase::Killing { give_up_at, sweep_at } | Phase::Sweeping { give_up_at, sweep_at } => {
                Some(give_up_at.min(sweep_at))
            }
            Phase::Draining { until } => Some(until),
        }
    }

    fn take(&mut self, now: Duration, input: Input<'_>, actions: &mut Vec<Action>) {
        let phase = self.phase;
        match (input, &mut self.run) {
            (Input::Launch(launch), None) if matches!(phase, Phase::Idle) => {
                self.run = Some(Run::new(now, &launch));
                self.phase = Phase::Running { deadline: now + launch.limits.timeout };
                actions.push(Action::Spawn(launch));
            }
            (Input::Stop(_) | Input::Interrupted | Input::SupervisorLost, None) => self.leave(actions),
            // A second launch is no mistake that a sound supervisor makes.
            (Input::SupervisorLost | Input::Launch(_), _) => self.kill(now, Ended::SupervisorLost, actions),
            (Input::Stop(stop), Some(_)) => self.stop(now, stop, actions),
            (Input::Interrupted, Some(run)) => {
                let stop = Stop { reason: StopReason::Interrupted, grace: run.limits.grace };
                self.stop(now, stop, actions);
            }
            (Input::Spawned { pid }, Some(_)) if phase.is_agent_alive() => {
                actions.push(Action::Send(ToSupervisor::Started { pid }));
            }
            (Input::SpawnFailed { code }, Some(run)) => {
                run.system_code = Some(code);
                if phase.is_agent_alive() {
                    self.report(now, Outcome::SpawnFailed, actions);
                }
            }
            (Input::Output { stream, bytes }, Some(run)) => run.output(stream, bytes, actions),
            (Input::StreamClosed(stream), Some(run)) => {
                run.capture(stream).closed = true;
                if matches!(phase, Phase::Draining { .. }) {
                    self.drain(now, actions);
                }
            }
            (Input::ChildExited(exit), Some(run)) => {
                run.exit = run.exit.or(Some(exit));
                self.sweep_after_exit(now, actions);
            }
            (Input::OrphanReaped { killed }, Some(run)) if phase.is_killing() => {
                run.leftovers = run.leftovers.saturating_add(u32::from(killed));
            }
            (Input::OrphanReaped { .. }, Some(run)) => run.note_orphan(now),
            (Input::Swept { remaining: false }, Some(_)) if matches!(phase, Phase::Sweeping { .. }) => {
                self.drain(now, actions);
            }
            (Input::Counted { processes }, Some(run)) => {
                if run.limits.processes.is_some_and(|most| processes > most) && phase.is_before_kill() {
                    run.system_code = Some(SystemCode::process_limit());
                    self.kill(now, Ended::ProcessLimit, actions);
                }
            }
            (
                Input::Spawned { .. }
                | Input::SpawnFailed { .. }
                | Input::Output { .. }
                | Input::StreamClosed(_)
                | Input::ChildExited(_)
                | Input::OrphanReaped { .. }
                | Input::Swept { .. }
                | Input::Counted { .. }
                | Input::Tick,
                _,
            ) => {}
        }
    }

    /// Does whatever is due by now.
    fn pass_time(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Running { deadline } if *deadline <= now => {
                let grace = self.run.as_ref().map_or(Duration::ZERO, |run| run.limits.grace);
                self.terminate(now, Ended::TimedOut, grace, actions);
                // A grace of zero is over at once.
                self.pass_time(now, actions);
            }
            Phase::Terminating { kill_at } if *kill_at <= now => {
                let ended = self.run.as_ref().and_then(|run| run.ended).unwrap_or(Ended::TimedOut);
                self.kill(now, ended, actions);
            }
            Phase::Killing { give_up_at, .. } | Phase::Sweeping { give_up_at, .. } if *give_up_at <= now => {
                let ended = self.run.as_ref().and_then(|run| run.ended);
                self.report(now, Outcome::TerminationFailed(ended), actions);
            }
            Phase::Killing { sweep_at, .. } | Phase::Sweeping { sweep_at, .. } if *sweep_at <= now => {
                *sweep_at = now + SWEEP_INTERVAL;
                actions.push(Action::Sweep);
            }
            Phase::Draining { until } if *until <= now => self.report_outcome(now, actions),
            Phase::Running { .. } | Phase::Terminating { .. } => {
                if let Some(run) = &mut self.run
                    && let Some(most) = run.limits.processes
                    && run.count_at.is_some_and(|at| at <= now)
                {
                    run.count_at = Some(now + COUNT_INTERVAL);
                    run.orphans = 0;
                    actions.push(Action::Count { most });
                }
            }
            Phase::Idle
            | Phase::Killing { .. }
            | Phase::Sweeping { .. }
            | Phase::Draining { .. }
            | Phase::Done => {}
        }
    }

    fn stop(&mut self, now: Duration, stop: Stop, actions: &mut Vec<Action>) {
        if let Phase::Terminating { kill_at } = &mut self.phase {
            *kill_at = (*kill_at).min(now + stop.grace);
        } else {
            self.terminate(now, Ended::Stopped(stop.reason), stop.grace, actions);
        }
    }

    /// Asks a running agent to end.
    fn terminate(&mut self, now: Duration, ended: Ended, grace: Duration, actions: &mut Vec<Action>) {
        let (Phase::Running { .. }, Some(run)) = (self.phase, &mut self.run) else { return };
        run.ended = Some(ended);
        run.method = TerminationMethod::Sigterm;
        actions.push(Action::Signal(Signal::Terminate));
        self.phase = Phase::Terminating { kill_at: now + grace };
    }

    /// Ends an agent that is still alive, by force. The first reason stays.
    fn kill(&mut self, now: Duration, ended: Ended, actions: &mut Vec<Action>) {
        if let (true, Some(run)) = (self.phase.is_before_kill(), &mut self.run) {
            run.ended = run.ended.or(Some(ended));
            run.method = TerminationMethod::Sigkill;
            actions.extend([Action::Signal(Signal::Kill), Action::Sweep]);
            self.phase = Phase::Killing { give_up_at: now + VANISH, sweep_at: now + SWEEP_INTERVAL };
        }
    }

    /// Ends what an agent left behind. It gets no grace: whoever needed it is gone.
    fn sweep_after_exit(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let give_up_at = match self.phase {
            Phase::Running { .. } | Phase::Terminating { .. } => now + VANISH,
            Phase::Killing { give_up_at, .. } => give_up_at,
            _ => return,
        };
        self.phase = Phase::Sweeping { give_up_at, sweep_at: now + SWEEP_INTERVAL };
        actions.push(Action::Sweep);
    }

    /// Waits for the rest of the output, if there can be any.
    fn drain(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.run.as_ref().is_none_or(|run| run.stdout.closed && run.stderr.closed) {
            self.report_outcome(now, actions);
        } else if !matches!(self.phase, Phase::Draining { .. }) {
            self.phase = Phase::Draining { until: now + DRAIN };
        }
    }

    fn report_outcome(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let ended = self.run.as_ref().and_then(|run| run.ended);
        self.report(now, ended.map_or(Outcome::Exited, Outcome::Ended), actions);
    }

    fn report(&mut self, now: Duration, outcome: Outcome, actions: &mut Vec<Action>) {
        if let Some(run) = self.run.take() {
            actions.push(Action::Send(run.into_exited(now, outcome)));
        }
        self.leave(actions);
    }

    fn leave(&mut self, actions: &mut Vec<Action>) {
        if !matches!(self.phase, Phase::Done) {
            self.phase = Phase::Done;
            actions.push(Action::Exit);
        }
    }
}

impl Phase {
    /// Whether the agent's own process is, as far as known, running.
    const fn is_agent_alive(self) -> bool {
        matches!(self, Self::Running { .. } | Self::Terminating { .. } | Self::Killing { .. })
    }

    const fn is_before_kill(self) -> bool {
        matches!(self, Self::Running { .. } | Self::Terminating { .. })
    }

    /// Whether what SIGKILL ends is ended by the runner.
    const fn is_killing(self) -> bool {
        matches!(self, Self::Killing { .. } | Self::Sweeping { .. } | Self::Draining { .. })
    }
}

impl Run {
    fn new(now: Duration, launch: &Launch) -> Self {
        let cap = usize::try_from(launch.limits.max_output_bytes).unwrap_or(usize::MAX);
        let capture = || Capture { tail: Tail::new(cap), closed: false };
        Self {
            started_at: now,
            limits: launch.limits.clone(),
            live_output: launch.live_output,
            count_at: launch.limits.processes.map(|_| now + COUNT_INTERVAL),
            orphans: 0,
            ended: None,
            exit: None,
            system_code: None,
            method: TerminationMethod::None,
            stdout: capture(),
            stderr: capture(),
            leftovers: 0,
        }
    }

    fn output(&mut self, stream: Stream, bytes: &[u8], actions: &mut Vec<Action>) {
        self.capture(stream).tail.push(bytes);
        if self.live_output && !bytes.is_empty() {
            actions.push(Action::Send(ToSupervisor::Output { stream, bytes: bytes.to_vec() }));
        }
    }

    fn note_orphan(&mut self, now: Duration) {
        self.orphans += 1;
        if self.orphans >= COUNT_ORPHANS {
            self.count_at = self.count_at.map(|at| at.min(now));
        }
    }

    const fn capture(&mut self, stream: Stream) -> &mut Capture {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn into_exited(self, now: Duration, outcome: Outcome) -> ToSupervisor {
        let (stdout, stdout_report) = self.stdout.finish();
        let (stderr, stderr_report) = self.stderr.finish();
        let report = ExecReport {
            outcome,
            exit: self.exit,
            system_code: self.system_code,
            termination_method: self.method,
            timeout: self.ended == Some(Ended::TimedOut),
            stdout: stdout_report,
            stderr: stderr_report,
            leftovers: self.leftovers,
            duration: now.saturating_sub(self.started_at),
        };
        ToSupervisor::Exited { report, stdout, stderr }
    }
}

impl Capture {
    fn finish(self) -> (Vec<u8>, StreamReport) {
        let kept: Kept = self.tail.finish();
        let report =
            StreamReport { bytes: kept.total, truncated: kept.is_truncated(), complete: self.closed };
        (kept.bytes, report)
    }
}

#[cfg(test)]
mod tests;

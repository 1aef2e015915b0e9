//! A task that was launched: see it through, and never start its agent again after the grant.

use jiff::Timestamp;

use super::{Facts, Gate, Judgement, MAX_ATTEMPTS, Pass, Refusal, RunState, clean_up};
use crate::api::{Code, Duration, Reason};
use crate::core::outcome::{Failure, Outcome};
use crate::core::plan::Action;
use crate::core::status::{self, Writer};
use crate::core::validate::Origin;
use crate::protocol::{StopReason, SystemCode};

/// Seconds from the decision to launch within which an attempt must have asked for its grant: the image's pull and the clone.
pub const START_SECONDS: i64 = 15 * 60;
/// Seconds after a granted run's timeout within which its supervisor must have reported: teardown, diff, delivery.
pub const REPORT_SECONDS: i64 = 10 * 60;
/// Seconds to wait before the second attempt; each further one waits four times as long.
const FIRST_BACKOFF_SECONDS: i64 = 1;
/// The longest timeout that a definition may allow, for a status without a preview.
const LONGEST_TIMEOUT: Duration = Duration::from_seconds(24 * 3600);

impl Pass<'_> {
    pub(super) fn follow(&mut self, judgement: Judgement) {
        let grant = self.status.launch.as_ref().and_then(|launch| launch.grant.as_ref());
        match grant.map(|grant| grant.at.0) {
            Some(granted_at) => self.follow_granted(granted_at),
            None => self.follow_ungranted(judgement),
        }
    }

    /// The agent may run or have run, so only its supervisor's word or the end of all deadlines ends the task.
    fn follow_granted(&mut self, granted_at: Timestamp) {
        if let Some(outcome) = &self.observed.outcome {
            return self.finish_with(outcome);
        }
        let timeout = self.status.preview.as_ref().map_or(LONGEST_TIMEOUT, |preview| preview.limits.timeout);
        let deadline = after(granted_at, timeout.seconds().saturating_add(REPORT_SECONDS));
        let gone = matches!(self.observed.run, RunState::Absent | RunState::Ended);
        if gone || deadline.is_some_and(|deadline| self.now >= deadline) {
            // The agent may have run. Nobody can tell, so nobody runs it again.
            return self.fail(Code::Lost, None);
        }
        self.wake_at = deadline;
        if self.status.cancel.is_some() {
            self.stop(StopReason::Cancelled);
        } else if self.definition_is_gone() {
            self.stop(StopReason::Retired);
        } else {
            self.running();
        }
    }

    /// No agent was started, and none can be once this attempt is fenced: ending or replacing it is safe at any time.
    fn follow_ungranted(&mut self, judgement: Judgement) {
        if self.status.cancel.is_some() {
            return self.refuse(&Refusal::of(Code::Cancelled));
        }
        if self.definition_is_gone() {
            return self.refuse(&Refusal::of(Code::DefinitionRetired));
        }
        match (judgement.gate, judgement.facts) {
            (Gate::Refused(refusal), _) => self.refuse(&refusal),
            (_, Some(facts)) if self.status.digest.as_ref() != Some(&facts.digest) => {
                self.refuse(&Refusal::of(Code::DefinitionDrifted));
            }
            (Gate::Open, Some(facts)) => self.bring_up(&facts),
            (Gate::WaitForApproval { stale, expires }, _) => {
                // The approval was withdrawn: nothing stays up while the task waits for another one.
                self.actions.extend(clean_up(self.run.clone(), self.observed));
                if let Some(launch) = &mut self.status.launch {
                    launch.pod_name = None;
                }
                self.wait_for_approval(stale, expires);
            }
            (Gate::DryRun | Gate::Open, _) => self.refuse(&Refusal::of(Code::DefinitionDrifted)),
        }
    }

    /// Deleting a definition is retiring it.
    fn definition_is_gone(&self) -> bool {
        self.inputs.definition.is_none_or(|definition| definition.spec.retired)
    }

    fn stop(&mut self, reason: StopReason) {
        self.actions.push(Action::Stop(self.run.clone(), reason));
        let mut writer = Writer { status: &mut self.status, now: self.now };
        writer.active(Reason::Stopping, "the agent is being ended", false);
    }

    fn bring_up(&mut self, facts: &Facts) {
        if let Some(outcome) = &self.observed.outcome {
            return self.not_started(outcome, facts);
        }
        let launch = self.status.launch.as_ref();
        let not_before = launch.and_then(|launch| launch.not_before.as_ref()).map(|time| time.0);
        let begun = not_before.or_else(|| launch.map(|launch| launch.at.0)).unwrap_or(self.now);
        let deadline = after(begun, START_SECONDS);
        if self.observed.run == RunState::Ended {
            return self.replace(Failure { code: Code::ExecFailed, system_code: None }, facts);
        }
        if deadline.is_some_and(|deadline| self.now >= deadline) {
            let system_code = SystemCode::new("START_DEADLINE");
            return self.replace(Failure { code: Code::ExecFailed, system_code }, facts);
        }
        self.write_start(facts);
        let early = not_before.is_some_and(|not_before| self.now < not_before);
        self.wake_at = if early { not_before } else { deadline };
        if self.observed.run == RunState::Absent && !early {
            self.ensure(facts);
        }
    }

    /// What a supervisor without a grant reports can only be why its agent was not started.
    fn not_started(&mut self, outcome: &Outcome, facts: &Facts) {
        let failure = match &outcome.failure {
            Some(failure) if outcome.execution.is_none() => failure.clone(),
            _ => return self.fail(Code::InvalidExecResult, None),
        };
        // In a local run the caller is there to see the failure and to try again.
        if failure.code.retryable() && self.inputs.installation.origin == Origin::Cluster {
            self.replace(failure, facts);
        } else {
            self.finish_with(outcome);
        }
    }

    /// Another attempt, or the end with `failure` when this was the last.
    fn replace(&mut self, failure: Failure, facts: &Facts) {
        let attempt = self.run.attempt;
        if attempt >= MAX_ATTEMPTS {
            return self.fail(failure.code, failure.system_code);
        }
        self.actions.extend(clean_up(self.run.clone(), self.observed));
        let backoff = (1..attempt).fold(FIRST_BACKOFF_SECONDS, |backoff, _| backoff.saturating_mul(4));
        // In a local run someone waits, and no one else's platform is spared.
        let not_before = match self.inputs.installation.origin {
            Origin::Cluster => after(self.now, backoff),
            Origin::Local => None,
        };
        self.launch(facts, attempt.saturating_add(1), not_before);
    }

    fn running(&mut self) {
        let mut writer = Writer { status: &mut self.status, now: self.now };
        writer.workspace_ready();
        writer.active(Reason::Running, "the agent runs", false);
    }

    fn finish_with(&mut self, outcome: &Outcome) {
        let mut result = status::result(outcome);
        if outcome.execution.is_some() {
            result.command = self.status.preview.as_ref().map(|preview| preview.command.clone());
        }
        self.finish(result, Reason::Succeeded);
    }

    fn fail(&mut self, code: Code, system_code: Option<SystemCode>) {
        self.finish(status::failed(&Failure { code, system_code }), Reason::Succeeded);
    }
}

fn after(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second().saturating_add(seconds)).ok()
}

//! Observe → decide: the one function that says what comes next for a task.
//!
//! [`decide`] is total and synchronous. It asks no clock, no environment and no chance; the same inputs give the same plan, and
//! any crash while a plan is carried out is safe, because the next pass decides again from what it finds.

mod follow;
mod gates;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use follow::{REPORT_SECONDS, START_SECONDS};
pub use gates::{Approvals, Facts, Gate, Inputs, Installation, Judgement, PromptState, Refusal, judge};

use super::outcome::Outcome;
use super::plan::{Action, Plan, RunId, RunSpec};
use super::status::{self, Writer, whole_seconds};
use crate::api::{
    AgentCliTask, AgentCliTaskStatus, Approval, CANCEL, Cancel, Code, ConditionStatus, ConditionType, Launch,
    Reason, TaskResult,
};
use crate::redact::Redacted;

/// Attempts to bring up a sandbox. None of them starts an agent: that takes the grant, and there is at most one.
pub const MAX_ATTEMPTS: i64 = 3;

/// What is known about a task's run at this moment.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The sandbox of the present attempt.
    pub run: RunState,
    /// What the supervisor of the present attempt reported.
    pub outcome: Option<Outcome>,
}

/// State of a sandbox, as its executor sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunState {
    /// There is none, and as far as the observer knows there never was.
    #[default]
    Absent,
    /// It exists; no agent has been started as far as the executor knows.
    Starting,
    /// Its agent was started.
    Running,
    /// It has ended, or it has existed and is gone; whatever its supervisor had to say has been said.
    Ended,
}

/// The next step for a task.
pub fn decide(inputs: &Inputs<'_>, observed: &Observed, now: Timestamp) -> Plan {
    let previous = inputs.task.status.clone().unwrap_or_default();
    let run = run_id(inputs.task);
    if previous.finished_at.is_some() {
        return Plan { actions: clean_up(run, observed), status: previous, wake_at: None };
    }
    let mut pass = Pass { inputs, observed, now, run, status: previous, actions: Vec::new(), wake_at: None };
    pass.note_cancel();
    pass.step();
    Plan { status: pass.status, actions: pass.actions, wake_at: pass.wake_at }
}

/// Whether the agent may be started now: every gate once more, at the last moment before it.
///
/// # Guarantees
/// Nothing is granted twice, without a launch, or after the end. What is granted is what the launch was decided for.
///
/// # Errors
/// The refusal, when some gate has closed since the decision to launch, or when what would run isn't what was launched.
pub fn grant(inputs: &Inputs<'_>, now: Timestamp) -> Result<Facts, Refusal> {
    let status = inputs.task.status.as_ref();
    if status.is_some_and(|status| status.cancel.is_some()) || cancel_asked(inputs.task) {
        return Err(Refusal::of(Code::Cancelled));
    }
    let Some((status, launch)) = status.and_then(|status| Some((status, status.launch.as_ref()?))) else {
        return Err(Refusal::of(Code::Cancelled));
    };
    if status.finished_at.is_some() {
        let code = status.result.as_ref().and_then(|result| result.code);
        return Err(Refusal::of(code.unwrap_or(Code::Cancelled)));
    }
    if guard!("one-grant", launch.grant.is_some()) {
        return Err(Refusal::of(Code::Lost));
    }
    let Judgement { gate, facts } = judge(inputs, now);
    match (gate, facts) {
        (Gate::Refused(refusal), _) => Err(refusal),
        (_, Some(facts))
            if guard!(
                "grant-of-what-was-launched",
                status.digest.as_deref() != Some(facts.digest.as_str())
            ) =>
        {
            Err(Refusal::of(Code::DefinitionDrifted))
        }
        (Gate::Open, Some(facts)) => Ok(facts),
        _ => Err(Refusal::of(Code::ApprovalExpired)),
    }
}

/// The run of the task's present attempt.
pub fn run_id(task: &AgentCliTask) -> RunId {
    let attempt =
        task.status.as_ref().and_then(|status| status.launch.as_ref()).map_or(1, |launch| launch.attempt);
    RunId { uid: task.metadata.uid.clone().unwrap_or_default(), attempt }
}

fn clean_up(run: RunId, observed: &Observed) -> Vec<Action> {
    if observed.run == RunState::Absent { Vec::new() } else { vec![Action::Remove(run)] }
}

/// Whether someone asks for the task's end.
pub fn cancel_asked(task: &AgentCliTask) -> bool {
    task.metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(CANCEL))
        .is_some_and(|value| value == "true")
}

/// One pass over one task.
struct Pass<'a> {
    inputs: &'a Inputs<'a>,
    observed: &'a Observed,
    now: Timestamp,
    run: RunId,
    status: AgentCliTaskStatus,
    actions: Vec<Action>,
    wake_at: Option<Timestamp>,
}

impl Pass<'_> {
    fn note_cancel(&mut self) {
        if self.status.cancel.is_none() && cancel_asked(self.inputs.task) {
            self.status.cancel = Some(Cancel { at: Time(whole_seconds(self.now)) });
        }
    }

    fn step(&mut self) {
        let judgement = judge(self.inputs, self.now);
        self.status.observed_generation = self.inputs.task.metadata.generation.unwrap_or(0);
        if self.status.launch.is_some() {
            self.follow(judgement);
        } else {
            self.write_facts(&judgement);
            self.pass_gates(judgement);
        }
    }

    /// What would run, for the person who approves it. A launch fixes it: a sandbox that was planned for something else is never
    /// granted.
    fn write_facts(&mut self, judgement: &Judgement) {
        let Some(facts) = &judgement.facts else { return };
        self.status.digest = Some(facts.digest.clone());
        self.status.definition = Some(facts.definition.clone());
        self.status.preview = Some(facts.preview.clone());
        let required = facts.approval_required
            || self.status.approval.as_ref().is_some_and(|approval| approval.required);
        self.status.approval.get_or_insert_with(Approval::default).required = required;
    }

    fn pass_gates(&mut self, judgement: Judgement) {
        if self.status.cancel.is_some() {
            return self.refuse(&Refusal::of(Code::Cancelled));
        }
        match judgement.gate {
            Gate::Refused(refusal) => self.refuse(&refusal),
            Gate::DryRun => self.simulate(),
            Gate::WaitForApproval { stale, expires } => self.wait_for_approval(stale, expires),
            Gate::Open => {
                if let Some(facts) = judgement.facts {
                    self.launch(&facts, 1, None);
                }
            }
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        // A cancelled task says nothing new about any gate.
        if refusal.failure.code != Code::Cancelled {
            let mut writer = Writer { status: &mut self.status, now: self.now };
            if refusal.gate != ConditionType::Validated {
                writer.fixed(ConditionType::Validated, ConditionStatus::True, Reason::Valid, "valid");
            }
            let reason = Reason::Failure(refusal.failure.code);
            writer.set(refusal.gate, ConditionStatus::False, reason, refusal.message());
        }
        self.finish(status::failed(&refusal.failure), Reason::Succeeded);
    }

    fn simulate(&mut self) {
        let mut writer = Writer { status: &mut self.status, now: self.now };
        writer.fixed(ConditionType::Validated, ConditionStatus::True, Reason::Valid, "valid");
        let command = self.status.preview.as_ref().map(|preview| preview.command.clone());
        self.finish(
            TaskResult { simulated: true, exit_code: Some(0), command, ..TaskResult::default() },
            Reason::DryRun,
        );
    }

    fn wait_for_approval(&mut self, stale: bool, expires: Option<Timestamp>) {
        self.wake_at = expires;
        let mut writer = Writer { status: &mut self.status, now: self.now };
        writer.fixed(ConditionType::Validated, ConditionStatus::True, Reason::Valid, "valid");
        let (reason, message) = if stale {
            (Reason::ApprovalStale, "the approval names another digest; approve the present one")
        } else {
            (Reason::WaitingForApproval, "waiting for an approval of the digest")
        };
        writer.fixed(ConditionType::Approved, ConditionStatus::False, reason.clone(), message);
        writer.active(reason, message, true);
    }

    /// Decides the attempt. The status is written before the sandbox exists, so that a crash in between is seen.
    fn launch(&mut self, facts: &Facts, attempt: i64, not_before: Option<Timestamp>) {
        self.run.attempt = attempt;
        self.status.launch = Some(Launch {
            attempt,
            at: Time(whole_seconds(self.now)),
            not_before: not_before.map(Time),
            pod_name: None,
            grant: None,
        });
        self.write_start(facts);
        self.wake_at = not_before;
        if not_before.is_none() {
            self.ensure(facts);
        }
    }

    /// Writes that every gate is open and the sandbox is on its way.
    fn write_start(&mut self, facts: &Facts) {
        let at = Time(whole_seconds(self.now));
        if let (Some(approval), Some(by)) = (&mut self.status.approval, &facts.approved_by)
            && (approval.by.as_ref(), approval.digest.as_ref()) != (Some(by), Some(&facts.digest))
        {
            approval.by = Some(by.clone());
            approval.digest = Some(facts.digest.clone());
            approval.at = Some(at);
        }
        let mut writer = Writer { status: &mut self.status, now: self.now };
        writer.fixed(ConditionType::Validated, ConditionStatus::True, Reason::Valid, "valid");
        let (reason, message) = facts.approval_reason();
        writer.fixed(ConditionType::Approved, ConditionStatus::True, reason, message);
        writer.fixed(ConditionType::Admitted, ConditionStatus::True, Reason::Admitted, "admitted");
        if facts.egress_unenforced {
            let message = "the executor can't limit egress";
            writer.fixed(ConditionType::EgressEnforced, ConditionStatus::False, Reason::NotEnforced, message);
        }
        writer.fixed(
            ConditionType::WorkspaceReady,
            ConditionStatus::Unknown,
            Reason::Preparing,
            "being prepared",
        );
        writer.active(Reason::Starting, "the sandbox is being started", false);
    }

    fn ensure(&mut self, facts: &Facts) {
        self.actions.push(Action::Ensure(Box::new(RunSpec { id: self.run.clone(), ..facts.run.clone() })));
    }

    fn finish(&mut self, result: TaskResult, done: Reason) {
        self.note_workspace();
        Writer { status: &mut self.status, now: self.now }.finish(result, done);
        self.actions.extend(clean_up(self.run.clone(), self.observed));
        self.wake_at = None;
    }

    fn note_workspace(&mut self) {
        let Some(outcome) = &self.observed.outcome else { return };
        let failed = outcome.failure.as_ref().is_some_and(|failure| failure.code == Code::WorkspaceFailed);
        let mut writer = Writer { status: &mut self.status, now: self.now };
        if failed {
            let reason = Reason::Failure(Code::WorkspaceFailed);
            let message = Redacted::fixed(Code::WorkspaceFailed.message());
            writer.set(ConditionType::WorkspaceReady, ConditionStatus::False, reason, message);
        } else if outcome.execution.is_some() {
            writer.workspace_ready();
        }
    }
}

#[cfg(test)]
mod tests;

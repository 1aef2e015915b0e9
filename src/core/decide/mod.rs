//! Observe → decide: the one function that says what comes next for a task.
//!
//! [`decide`] is total and synchronous. It asks no clock, no environment and no chance; the same inputs give the same plan, and
//! any crash while a plan is carried out is safe, because the next pass decides again from what it finds.

mod gates;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use gates::{Approvals, Facts, Gate, Inputs, Installation, Judgement, PromptState, Refusal, judge};

use super::outcome::{Failure, Outcome};
use super::plan::{Action, Plan, RunId, RunSpec};
use super::status::{self, Writer, whole_seconds};
use crate::api::{
    AgentCliTask, AgentCliTaskStatus, Approval, CANCEL, Cancel, Code, ConditionStatus, ConditionType, Launch,
    Reason, TaskResult,
};
use crate::protocol::StopReason;
use crate::redact::Redacted;

/// Attempts to bring up a sandbox. None of them starts an agent: that takes the grant, and there is at most one.
pub const MAX_ATTEMPTS: i64 = 3;

/// What is known about a task's run at this moment.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The sandbox of the present attempt.
    pub run: RunState,
    /// What its supervisor reported.
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
/// # Errors
/// The refusal, when some gate has closed since the decision to launch, or when what would run isn't what was approved.
pub fn grant(inputs: &Inputs<'_>, now: Timestamp) -> Result<Facts, Refusal> {
    let status = inputs.task.status.as_ref();
    let cancelled = status.is_some_and(|status| status.cancel.is_some()) || cancel_asked(inputs.task);
    if cancelled {
        return Err(Refusal::of(Code::Cancelled));
    }
    let launched = status.and_then(|status| status.digest.as_deref());
    let Judgement { gate, facts } = judge(inputs, now);
    match (gate, facts) {
        (Gate::Refused(refusal), _) => Err(refusal),
        (Gate::Open, Some(facts)) if launched == Some(facts.digest.as_str()) => Ok(facts),
        _ => Err(Refusal::of(Code::DefinitionDrifted)),
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
        let granted = self.status.launch.as_ref().is_some_and(|launch| launch.grant.is_some());
        if !granted {
            self.write_facts(&judgement);
        }
        if let Some(outcome) = &self.observed.outcome {
            self.finish(status::result(outcome), Reason::Succeeded);
        } else if self.status.launch.is_some() {
            self.follow(granted, judgement);
        } else {
            self.pass_gates(judgement);
        }
    }

    /// What would run, for the person who approves it.
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
                    self.launch(&facts, 1);
                }
            }
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        let now = self.now;
        let mut writer = Writer { status: &mut self.status, now };
        if refusal.gate != ConditionType::Validated {
            writer.fixed(ConditionType::Validated, ConditionStatus::True, Reason::Valid, "valid");
        }
        let reason = Reason::Failure(refusal.failure.code);
        writer.set(refusal.gate, ConditionStatus::False, reason, refusal.message());
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
    fn launch(&mut self, facts: &Facts, attempt: i64) {
        self.run.attempt = attempt;
        self.status.launch = Some(Launch {
            attempt,
            at: Time(whole_seconds(self.now)),
            not_before: None,
            pod_name: None,
            grant: None,
        });
        let at = Time(whole_seconds(self.now));
        if let (Some(approval), Some(by)) = (&mut self.status.approval, &facts.approved_by) {
            approval.by = Some(by.clone());
            approval.digest = Some(facts.digest.clone());
            approval.at.get_or_insert(at);
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
        self.ensure(facts);
    }

    fn ensure(&mut self, facts: &Facts) {
        self.actions.push(Action::Ensure(Box::new(RunSpec { id: self.run.clone(), ..facts.run.clone() })));
    }

    /// A task that was launched: see it through, never start it again after its grant.
    fn follow(&mut self, granted: bool, judgement: Judgement) {
        let sandbox_is_gone = matches!(self.observed.run, RunState::Absent | RunState::Ended);
        if sandbox_is_gone && granted {
            // The agent may have run. Nobody can tell, so nobody runs it again.
            return self
                .finish(status::failed(&Failure { code: Code::Lost, system_code: None }), Reason::Succeeded);
        }
        if self.status.cancel.is_some() {
            return self.stop_or_refuse(
                sandbox_is_gone,
                StopReason::Cancelled,
                &Refusal::of(Code::Cancelled),
            );
        }
        if self.inputs.definition.is_some_and(|definition| definition.spec.retired) {
            let refusal = Refusal::of(Code::DefinitionRetired);
            return self.stop_or_refuse(sandbox_is_gone, StopReason::Retired, &refusal);
        }
        match (granted, judgement.gate, judgement.facts) {
            (true, ..) => self.running(),
            (false, Gate::Refused(refusal), _) => self.refuse(&refusal),
            (false, Gate::Open, Some(facts)) => self.bring_up(sandbox_is_gone, &facts),
            // An approval was withdrawn or became stale: fence this attempt; the grant is refused anyway.
            (false, ..) => self.refuse(&Refusal::of(Code::DefinitionDrifted)),
        }
    }

    fn stop_or_refuse(&mut self, sandbox_is_gone: bool, reason: StopReason, refusal: &Refusal) {
        if sandbox_is_gone {
            return self.refuse(refusal);
        }
        self.actions.push(Action::Stop(self.run.clone(), reason));
        Writer { status: &mut self.status, now: self.now }.active(
            Reason::Stopping,
            "the agent is being ended",
            false,
        );
    }

    fn bring_up(&mut self, sandbox_is_gone: bool, facts: &Facts) {
        let attempt = self.run.attempt;
        match self.observed.run {
            RunState::Ended if attempt >= MAX_ATTEMPTS => {
                self.finish(
                    status::failed(&Failure { code: Code::ExecFailed, system_code: None }),
                    Reason::Succeeded,
                );
            }
            RunState::Ended => {
                self.actions.push(Action::Remove(self.run.clone()));
                self.launch(facts, attempt + 1);
            }
            _ if sandbox_is_gone => self.ensure(facts),
            _ => {}
        }
    }

    fn running(&mut self) {
        let mut writer = Writer { status: &mut self.status, now: self.now };
        let message = "the workspace is ready";
        writer.fixed(
            ConditionType::WorkspaceReady,
            ConditionStatus::True,
            Reason::WorkspacePrepared,
            message,
        );
        writer.active(Reason::Running, "the agent runs", false);
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
            let message = "the workspace is ready";
            writer.fixed(
                ConditionType::WorkspaceReady,
                ConditionStatus::True,
                Reason::WorkspacePrepared,
                message,
            );
        }
    }
}

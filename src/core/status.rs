//! Writing a status: conditions that keep their history, and the result of an outcome.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::classify::classify;
use super::outcome::{Failure, Outcome};
use crate::api::{
    AgentCliTaskStatus, CommitRange, Condition, ConditionStatus, ConditionType, DiffSummary, Reason,
    TaskResult,
};
use crate::redact::Redacted;

/// Most bytes of result text in a status.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;
/// Most bytes of patch in a status.
pub const MAX_PATCH_BYTES: usize = 12 * 1024;

/// Sets conditions of one generation at one time.
pub(super) struct Writer<'a> {
    pub(super) status: &'a mut AgentCliTaskStatus,
    pub(super) now: Timestamp,
}

impl Writer<'_> {
    /// Sets one condition; `lastTransitionTime` stays while the status does.
    pub(super) fn set(
        &mut self,
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: Redacted,
    ) {
        let previous = self.status.conditions.iter().position(|condition| condition.kind == kind);
        let previous = previous.map(|index| self.status.conditions.remove(index));
        let last_transition_time = previous
            .filter(|previous| previous.status == status)
            .map_or_else(|| Time(whole_seconds(self.now)), |previous| previous.last_transition_time);
        let observed_generation = Some(self.status.observed_generation);
        self.status.conditions.push(Condition {
            kind,
            status,
            reason,
            message,
            last_transition_time,
            observed_generation,
        });
        self.status.conditions.sort_by_key(|condition| condition.kind);
    }

    /// Sets a condition whose message is fixed.
    pub(super) fn fixed(
        &mut self,
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: &'static str,
    ) {
        self.set(kind, status, reason, Redacted::fixed(message));
    }

    /// Says that the workspace stands at its commit.
    pub(super) fn workspace_ready(&mut self) {
        let (kind, reason) = (ConditionType::WorkspaceReady, Reason::WorkspacePrepared);
        self.fixed(kind, ConditionStatus::True, reason, "the workspace is ready");
    }

    /// Marks gates that were never reached.
    pub(super) fn not_reached(&mut self) {
        use ConditionType::{Admitted, Approved, EgressEnforced, Validated, WorkspaceReady};
        for kind in [Validated, Approved, Admitted, EgressEnforced, WorkspaceReady] {
            if self.status.conditions.iter().all(|condition| condition.kind != kind) {
                self.fixed(kind, ConditionStatus::Unknown, Reason::NotReached, "not reached");
            }
        }
    }

    /// Writes the end: result, time and the conditions that say so.
    pub(super) fn finish(&mut self, result: TaskResult, done: Reason) {
        let failure = result.code;
        let mut stalled = (ConditionStatus::False, Reason::Finished, "finished");
        self.status.result = Some(result);
        self.status.finished_at = Some(Time(whole_seconds(self.now)));
        match failure {
            None => self.fixed(ConditionType::Succeeded, ConditionStatus::True, done, "done"),
            Some(code) => {
                // kstatus has no other way to say that an object failed for good.
                stalled = (ConditionStatus::True, Reason::Failure(code), code.message());
                self.fixed(
                    ConditionType::Succeeded,
                    ConditionStatus::False,
                    Reason::Failure(code),
                    code.message(),
                );
            }
        }
        self.fixed(
            ConditionType::Finished,
            ConditionStatus::True,
            Reason::Finished,
            "nothing will change any more",
        );
        self.fixed(ConditionType::Reconciling, ConditionStatus::False, Reason::Finished, "finished");
        let (status, reason, message) = stalled;
        self.fixed(ConditionType::Stalled, status, reason, message);
        self.not_reached();
    }

    /// Writes that the task is active, and whether it waits for a person. To kstatus a waiting task is in progress, too: neither
    /// done nor failed, so that a GitOps tool waits with it.
    pub(super) fn active(&mut self, reason: Reason, message: &'static str, waits: bool) {
        self.fixed(ConditionType::Succeeded, ConditionStatus::Unknown, reason, message);
        self.fixed(ConditionType::Finished, ConditionStatus::False, Reason::Active, "active");
        let reason = if waits { Reason::WaitingForPerson } else { Reason::Progressing };
        self.fixed(ConditionType::Reconciling, ConditionStatus::True, reason, message);
        self.fixed(ConditionType::Stalled, ConditionStatus::False, Reason::Active, message);
        self.not_reached();
    }
}

/// Statuses carry whole seconds, as Kubernetes' own do.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The result of a failure without an outcome.
pub(super) fn failed(failure: &Failure) -> TaskResult {
    TaskResult {
        code: Some(failure.code),
        category: Some(failure.code.category()),
        retryable: Some(failure.code.retryable()),
        system_code: failure.system_code.as_ref().map(|code| code.as_str().to_owned()),
        timeout: failure.code == crate::api::Code::Timeout,
        ..TaskResult::default()
    }
}

/// The result of an outcome. Its text is shown only when the agent succeeded: a failed agent's output may hold anything.
pub fn result(outcome: &Outcome) -> TaskResult {
    let failure = classify(outcome);
    let mut result = failure.as_ref().map(failed).unwrap_or_default();
    if let Some(execution) = &outcome.execution {
        result.exit_code = execution.exit_code;
        result.termination_method = execution.termination_method;
        result.stdout = Some(execution.stdout);
        result.stderr = Some(execution.stderr);
    }
    if let Some(reading) = &outcome.reading {
        result.output_parsed = Some(reading.parsed);
        result.usage.clone_from(&reading.usage);
        if let (None, Some(text)) = (&failure, &reading.text) {
            let (text, cut) = text.clone().truncate_start(MAX_TEXT_BYTES);
            result.text = Some(text);
            result.text_truncated = cut || reading.text_truncated;
        }
    }
    result.commit = outcome.base.clone().map(|base| CommitRange { base: Some(base), head: None });
    result.diff = outcome.diff.clone().map(bounded);
    result
}

fn bounded(mut diff: DiffSummary) -> DiffSummary {
    if let Some(patch) = &diff.patch {
        let (patch, cut) = patch.clone().truncate_end(MAX_PATCH_BYTES);
        diff.patch = Some(patch);
        diff.truncated |= cut;
    }
    diff
}

#[cfg(test)]
mod tests;

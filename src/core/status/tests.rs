//! Results of outcomes, and conditions that keep their history.

use super::*;
use crate::api::{Code, StreamFacts, Usage};
use crate::core::outcome::{End, Execution, Reading};
use crate::redact::Redactor;

fn outcome(exit_code: i32, text: &str) -> Outcome {
    let execution = Execution {
        end: End::Exited,
        exit_code: Some(exit_code),
        system_code: None,
        termination_method: None,
        stdout: StreamFacts { bytes: 7, truncated: true },
        stderr: StreamFacts { bytes: 3, truncated: false },
        duration_ms: 1,
    };
    let text = Redactor::without_secrets().text(text);
    let usage = Some(Usage { turns: Some(2), ..Usage::default() });
    let reading = Reading { parsed: true, text: Some(text), usage, ..Reading::default() };
    Outcome { execution: Some(execution), reading: Some(reading), ..Outcome::default() }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn text_is_shown_only_when_the_agent_succeeded() {
    let done = result(&outcome(0, "all done"));
    assert_eq!((done.code, done.text.unwrap().as_str()), (None, "all done"));
    let failed = result(&outcome(1, "all done"));
    assert_eq!((failed.code, failed.text), (Some(Code::NonzeroExit), None));
    // The numbers stand either way, and so does that an envelope was there.
    assert_eq!((failed.exit_code, failed.output_parsed), (Some(1), Some(true)));
    assert_eq!(failed.usage.unwrap().turns, Some(2));
    assert_eq!(failed.stdout, Some(StreamFacts { bytes: 7, truncated: true }));
    assert_eq!(failed.stderr, Some(StreamFacts { bytes: 3, truncated: false }));
}

#[test]
fn text_and_patch_keep_to_their_budgets_and_say_what_is_cut() {
    let wide = "é".repeat(MAX_TEXT_BYTES);
    let done = result(&outcome(0, &wide));
    let text = done.text.unwrap();
    assert!(text.len() <= MAX_TEXT_BYTES && text.len() > MAX_TEXT_BYTES - 4);
    assert!(done.text_truncated);
    assert!(!result(&outcome(0, "short")).text_truncated);

    let mut with_diff = outcome(0, "");
    let patch = Some(Redactor::without_secrets().text(&"é".repeat(MAX_PATCH_BYTES)));
    with_diff.diff = Some(DiffSummary { files: 1, patch, ..DiffSummary::default() });
    let diff = result(&with_diff).diff.unwrap();
    assert!(diff.patch.unwrap().len() <= MAX_PATCH_BYTES && diff.truncated);
    // Cut by the supervisor already, then short enough: still not whole.
    with_diff.diff = Some(DiffSummary { truncated: true, ..DiffSummary::default() });
    assert!(result(&with_diff).diff.unwrap().truncated);
}

#[test]
fn a_whole_result_fits_the_default_budget_of_a_status() {
    let mut full = outcome(0, &"x".repeat(1 << 20));
    let patch = Some(Redactor::without_secrets().text(&"+ x\n".repeat(1 << 18)));
    full.diff = Some(DiffSummary { patch, ..DiffSummary::default() });
    let bytes = serde_json::to_vec(&result(&full)).unwrap().len();
    // Escapes of line ends add a byte each, to a quarter of the patch.
    assert!(bytes <= 32 * 1024, "{bytes}");
}

#[test]
fn a_failure_says_who_has_to_act_and_whether_to_try_again() {
    for code in Code::ALL {
        let result = failed(&Failure { code: *code, system_code: None });
        assert_eq!(result.category, Some(code.category()));
        assert_eq!(result.retryable, Some(code.retryable()));
        assert_eq!(result.timeout, *code == Code::Timeout);
    }
}

#[test]
fn a_transition_time_stays_while_the_status_does() {
    let mut status = AgentCliTaskStatus::default();
    let mut set = |at, value, reason| {
        let mut writer = Writer { status: &mut status, now: second(at) };
        writer.fixed(ConditionType::Approved, value, reason, "text");
        let [one] = &status.conditions[..] else { panic!("one condition of one type") };
        (one.last_transition_time.0.as_second(), one.reason.clone())
    };
    assert_eq!(set(1, ConditionStatus::False, Reason::WaitingForApproval), (1, Reason::WaitingForApproval));
    assert_eq!(set(2, ConditionStatus::False, Reason::ApprovalStale), (1, Reason::ApprovalStale));
    assert_eq!(set(3, ConditionStatus::True, Reason::Approved), (3, Reason::Approved));
    assert_eq!(set(4, ConditionStatus::True, Reason::Approved), (3, Reason::Approved));
}

#[test]
fn times_are_whole_seconds() {
    assert_eq!(whole_seconds(Timestamp::from_millisecond(1_999).unwrap()), second(1));
}

/// <https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus>: Reconciling is in progress, Stalled has failed, neither
/// is done.
#[test]
fn kstatus_sees_in_progress_done_or_failed() {
    let look = |write: &dyn Fn(&mut Writer<'_>)| {
        let mut status = AgentCliTaskStatus::default();
        write(&mut Writer { status: &mut status, now: second(1) });
        let truth = |kind| {
            let found = status.conditions.iter().find(|condition| condition.kind == kind).unwrap();
            found.status == ConditionStatus::True
        };
        (truth(ConditionType::Reconciling), truth(ConditionType::Stalled), truth(ConditionType::Finished))
    };
    let timeout = Failure { code: Code::Timeout, system_code: None };
    assert_eq!(look(&|writer| writer.active(Reason::Running, "runs", false)), (true, false, false));
    assert_eq!(
        look(&|writer| writer.active(Reason::WaitingForApproval, "waits", true)),
        (true, false, false)
    );
    assert_eq!(look(&|writer| writer.finish(TaskResult::default(), Reason::Succeeded)), (false, false, true));
    assert_eq!(look(&|writer| writer.finish(failed(&timeout), Reason::Succeeded)), (false, true, true));
}

#[test]
fn every_status_names_every_condition_of_a_task_once() {
    use ConditionType as T;

    let mut status = AgentCliTaskStatus::default();
    let mut writer = Writer { status: &mut status, now: second(1) };
    writer.active(Reason::Starting, "starts", false);
    writer.active(Reason::Running, "runs", false);
    writer.finish(TaskResult::default(), Reason::Succeeded);
    let kinds: Vec<ConditionType> = status.conditions.iter().map(|condition| condition.kind).collect();
    let all = [
        T::Validated,
        T::Approved,
        T::Admitted,
        T::EgressEnforced,
        T::WorkspaceReady,
        T::Succeeded,
        T::Finished,
        T::Reconciling,
        T::Stalled,
    ];
    assert_eq!(kinds, all);
}

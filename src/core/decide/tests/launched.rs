//! A task after its launch, whatever becomes of its sandbox.

use super::*;
use RunState::{Absent, Ended, Running, Starting};

/// The result's code and the actions of the next pass.
fn next(mut world: World) -> (&'static str, Vec<String>) {
    let plan = world.step();
    (end(&plan.status), actions(&plan))
}

fn at_every_state(world: &World) -> [(&'static str, Vec<String>); 4] {
    [Absent, Starting, Running, Ended].map(|run| next(world.clone().seen(run)))
}

fn none() -> Vec<String> {
    Vec::new()
}

fn some(action: &str) -> Vec<String> {
    vec![action.to_owned()]
}

#[test]
fn the_status_knows_the_attempt_before_anything_exists() {
    let mut world = World::new().approved();
    let plan = world.step();
    assert_eq!(plan.status.launch.as_ref().unwrap().attempt, 1);
    assert_eq!(actions(&plan), ["ensure 1"]);
    // A crash before the action: the same again.
    assert_eq!(world.step().actions, plan.actions);
}

#[test]
fn without_a_grant_a_sandbox_is_brought_up_or_replaced() {
    assert_eq!(
        at_every_state(&World::launched()),
        [("-", some("ensure 1")), ("-", none()), ("-", none()), ("-", some("remove 1"))]
    );
}

#[test]
fn with_a_grant_a_sandbox_that_is_gone_is_lost() {
    assert_eq!(
        at_every_state(&World::granted()),
        [("lost", none()), ("-", none()), ("-", none()), ("lost", some("remove 1"))]
    );
}

#[test]
fn a_cancel_ends_what_was_not_granted_at_once_and_asks_what_was_to_stop() {
    assert_eq!(
        at_every_state(&World::launched().cancelled()),
        [
            ("cancelled", none()),
            ("cancelled", some("remove 1")),
            ("cancelled", some("remove 1")),
            ("cancelled", some("remove 1")),
        ]
    );
    assert_eq!(
        at_every_state(&World::granted().cancelled()),
        [
            ("lost", none()),
            ("-", some("stop 1 Cancelled")),
            ("-", some("stop 1 Cancelled")),
            ("lost", some("remove 1")),
        ]
    );
}

#[test]
fn retiring_or_deleting_a_definition_does_the_same() {
    let deleted = |world| World { definition: None, ..world };
    for world in [World::launched().retired(), deleted(World::launched())] {
        assert_eq!(next(world.clone().seen(Absent)), ("definition-retired", none()));
        assert_eq!(next(world.seen(Starting)), ("definition-retired", some("remove 1")));
    }
    for world in [World::granted().retired(), deleted(World::granted())] {
        assert_eq!(next(world.clone().seen(Running)), ("-", some("stop 1 Retired")));
        assert_eq!(next(world.seen(Ended)), ("lost", some("remove 1")));
    }
    // Whoever cancels is heard first.
    assert_eq!(next(World::granted().retired().cancelled()).1, ["stop 1 Cancelled"]);
}

#[test]
fn a_cancel_is_sticky() {
    let mut world = World::granted().cancelled();
    let seen = world.step().status.cancel.unwrap();
    world.task.metadata.annotations.as_mut().unwrap().remove(CANCEL);
    let plan = world.later(9).step();
    assert_eq!((actions(&plan), plan.status.cancel), (some("stop 1 Cancelled"), Some(seen)));
    assert_eq!(next(World::granted().annotate(CANCEL, "yes")), ("-", none()), "only \"true\" cancels");
}

#[test]
fn a_granted_supervisors_word_counts_whatever_else_is_seen() {
    for run in [Absent, Starting, Running, Ended] {
        let remove = if run == Absent { none() } else { some("remove 1") };
        let world = World::granted().seen(run).reported(succeeded());
        assert_eq!(next(world.clone()), ("ok", remove.clone()));
        // The agent was done before anyone's change of mind arrived.
        assert_eq!(next(world.clone().cancelled()), ("ok", remove.clone()));
        assert_eq!(next(world.clone().retired()), ("ok", remove.clone()));
        assert_eq!(next(world.rejected()), ("ok", remove));
    }
}

#[test]
fn a_finished_run_names_its_command() {
    let mut world = World::granted().reported(succeeded());
    let status = world.step().status;
    assert_eq!(status.result.unwrap().command, Some(status.preview.unwrap().command));
    assert_eq!(
        condition(world.status(), ConditionType::WorkspaceReady),
        "WorkspaceReady=True WorkspacePrepared"
    );
    assert_eq!(condition(world.status(), ConditionType::Succeeded), "Succeeded=True Succeeded");
}

fn before_start(code: Code) -> Outcome {
    Outcome::before_start(code, SystemCode::new("WHY"))
}

#[test]
fn without_a_grant_only_a_failure_before_the_start_counts() {
    let up = World::launched().seen(Ended);
    assert_eq!(next(up.clone().reported(succeeded())), ("invalid-exec-result", some("remove 1")));
    assert_eq!(next(up.clone().reported(Outcome::default())), ("invalid-exec-result", some("remove 1")));
    assert_eq!(next(up.reported(before_start(Code::SourceMissing))), ("source-missing", some("remove 1")));
    // Without a launch there is nobody who could report.
    assert_eq!(next(World::new().reported(succeeded())), ("-", none()));
}

#[test]
fn a_retryable_failure_before_the_start_is_tried_again_where_nobody_waits() {
    let mut world = World::launched();
    for attempt in 1..MAX_ATTEMPTS {
        world = world.seen(Ended).reported(before_start(Code::WorkspaceFailed));
        let plan = world.step();
        assert_eq!((end(&plan.status), actions(&plan)), ("-", some(&format!("remove {attempt}"))));
        assert_eq!(plan.status.launch.unwrap().attempt, attempt + 1);
        world.observed = Observed::default();
        world = world.later(3600);
    }
    world = world.seen(Ended).reported(before_start(Code::WorkspaceFailed));
    let plan = world.step();
    assert_eq!((end(&plan.status), actions(&plan)), ("workspace-failed", some("remove 3")));
    assert_eq!(plan.status.result.unwrap().system_code.as_deref(), Some("WHY"));
    assert_eq!(
        condition(world.status(), ConditionType::WorkspaceReady),
        "WorkspaceReady=False WorkspaceFailed"
    );

    let mut local = World::new();
    local.installation =
        Installation { origin: Origin::Local, approvals: Approvals::Own, ..local.installation };
    let mut local = local.approved();
    local.step();
    assert_eq!(next(local.seen(Ended).reported(before_start(Code::WorkspaceFailed))).0, "workspace-failed");
}

#[test]
fn a_sandbox_that_ends_without_a_word_is_replaced_with_growing_patience() {
    let mut world = World::launched().seen(Ended);
    let mut waits = Vec::new();
    while end(world.status()) == "-" {
        let plan = world.step();
        let not_before = plan.status.launch.as_ref().and_then(|launch| launch.not_before.as_ref());
        waits.push(not_before.map(|time| time.0.as_second() - world.now.as_second()));
        assert_eq!(plan.wake_at, not_before.map(|time| time.0).filter(|_| end(&plan.status) == "-"));
    }
    // One second, then four; after the third attempt it is over.
    assert_eq!(waits, [Some(1), Some(4), Some(4)]);
    assert_eq!(world.status().launch.as_ref().unwrap().attempt, MAX_ATTEMPTS);
    assert_eq!(end(world.status()), "exec-failed");
}

#[test]
fn the_next_attempt_waits_for_its_time() {
    let mut world = World::launched().seen(Ended);
    world.step();
    let world = world.seen(Absent);
    let mut early = world.clone();
    let plan = early.step();
    assert_eq!((actions(&plan), plan.wake_at), (none(), Timestamp::from_second(CREATED + 61).ok()));
    assert_eq!(next(world.later(1)), ("-", some("ensure 2")));
}

#[test]
fn an_attempt_that_never_asks_for_its_grant_is_replaced_after_a_while() {
    let world = World::launched().seen(Starting);
    let plan = world.clone().step();
    assert_eq!(plan.wake_at.map(Timestamp::as_second), Some(CREATED + 60 + START_SECONDS));
    assert_eq!(next(world.clone().later(START_SECONDS - 1)), ("-", none()));
    assert_eq!(next(world.later(START_SECONDS)), ("-", some("remove 1")));
}

#[test]
fn a_granted_run_has_until_its_timeout_and_time_to_report() {
    // The task asks for 5 minutes.
    let deadline = 300 + REPORT_SECONDS;
    let world = World::granted();
    let plan = world.clone().step();
    assert_eq!(plan.wake_at.map(Timestamp::as_second), Some(CREATED + 60 + deadline));
    assert_eq!(next(world.clone().later(deadline - 1)), ("-", none()));
    assert_eq!(next(world.clone().later(deadline)), ("lost", some("remove 1")));
    assert_eq!(next(world.cancelled().later(deadline)), ("lost", some("remove 1")));
}

#[test]
fn a_withdrawn_approval_takes_the_sandbox_down_and_waits_again() {
    let mut world = World::launched().seen(Starting).withdrawn();
    let plan = world.step();
    assert_eq!((end(&plan.status), actions(&plan)), ("-", some("remove 1")));
    assert_eq!(condition(&plan.status, ConditionType::Approved), "Approved=False WaitingForApproval");
    let mut world = world.seen(Absent);
    assert_eq!(actions(&world.step()), none(), "it stays down");
    // Approved anew, by someone else this time.
    let mut world = world.approved().annotate(APPROVED_BY, "eve").later(5);
    let plan = world.step();
    assert_eq!(actions(&plan), ["ensure 1"]);
    assert_eq!(plan.status.approval.unwrap().by.as_deref(), Some("eve"));
    assert_eq!(condition(world.status(), ConditionType::Approved), "Approved=True Approved");
}

#[test]
fn a_definition_that_changed_since_the_launch_ends_the_task() {
    let mut world = World::launched().seen(Starting);
    world.definition.as_mut().unwrap().spec.arguments.push("-v".to_owned());
    assert_eq!(next(world.clone()), ("definition-drifted", some("remove 1")));
    // Even when someone approved the new one meanwhile: what is up was planned for the old one.
    assert_eq!(next(world.approved()), ("definition-drifted", some("remove 1")));
}

#[test]
fn a_finished_task_is_only_cleaned_up() {
    let mut world = World::granted().reported(succeeded());
    world.step();
    let done = world.status().clone();
    let afterwards = vec![
        world.clone().cancelled(),
        world.clone().rejected(),
        world.clone().retired(),
        world.clone().later(1 << 30),
        World { definition: None, ..world.clone() },
        World { observed: Observed::default(), ..world.clone() },
    ];
    for mut world in afterwards {
        let plan = world.step();
        assert_eq!(plan.status, done);
        assert_eq!(plan.wake_at, None);
        assert!(actions(&plan).iter().all(|action| action == "remove 1"));
    }
    assert_eq!(next(world.seen(Absent)).1, none());
}

#[test]
fn stop_reasons_are_what_the_supervisor_is_told() {
    let plan = World::granted().cancelled().step();
    assert!(matches!(&plan.actions[..], [Action::Stop(_, StopReason::Cancelled)]));
    assert_eq!(condition(&plan.status, ConditionType::Succeeded), "Succeeded=Unknown Stopping");
}

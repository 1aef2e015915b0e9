//! The gates before a launch: each refuses with its code, and none starts anything.

use super::*;
use crate::api::{CREATED_BY, Category};
use crate::core::contract;

/// What a task without a launch comes to.
fn outcome_of(mut world: World) -> (&'static str, Vec<String>) {
    let plan = world.step();
    (end(&plan.status), actions(&plan))
}

#[test]
fn each_gate_refuses_with_its_code_and_starts_nothing() {
    let patched = |task, definition| World::patched(&task, &definition).approved();
    let without_definition = || World { definition: None, ..World::new() };
    let lacking = |what| {
        let mut world = World::new().approved();
        world.installation.unsupported = vec![what];
        world
    };
    let prompt = |prompt| World { prompt, ..World::new() };
    let long = Prompt::new("x".repeat(200_000)).unwrap();
    let broken = |change: fn(&mut World)| {
        let mut world = World::new().approved();
        change(&mut world);
        world
    };
    let table = vec![
        ("definition-not-found", without_definition()),
        ("definition-retired", World::new().approved().retired()),
        ("definition-mismatch", broken(|world| world.task.spec.definition.version = Some("2".to_owned()))),
        (
            "definition-mismatch",
            broken(|world| world.task.spec.definition.contract_hash = Some("v1:0".to_owned())),
        ),
        (
            "definition-invalid",
            broken(|world| world.definition.as_mut().unwrap().spec.arguments.push("--".to_owned())),
        ),
        ("definition-invalid", broken(|world| world.definition.as_mut().unwrap().spec.image = None)),
        (
            "namespace-not-allowed",
            broken(|world| world.definition.as_mut().unwrap().spec.allowed_namespaces = None),
        ),
        ("invalid-task", broken(|world| world.task.spec.egress.hosts.push("evil.example".to_owned()))),
        ("invalid-task", broken(|world| world.task.spec.prompt = None)),
        ("invalid-task", prompt(PromptState::Invalid)),
        ("source-missing", prompt(PromptState::Missing)),
        ("prompt-too-large", prompt(PromptState::Present(long))),
        ("unsupported", lacking(Unsupported::IdempotencyKey)),
        ("unsupported", lacking(Unsupported::Delivery)),
        ("unsupported", lacking(Unsupported::RepositoryCredentials)),
        ("unsupported", lacking(Unsupported::Quota)),
        ("approval-rejected", World::new().rejected()),
        ("approval-rejected", World::new().approved().rejected()),
        ("approval-expired", World::new().later(24 * 3600)),
        ("cancelled", World::new().approved().cancelled()),
        ("cancelled", without_definition().cancelled()),
        ("-", World::new()),
        ("-", patched(json!({}), json!({}))),
    ];
    for (code, world) in table {
        let (found, actions) = outcome_of(world);
        assert_eq!(found, code);
        let starts = actions.iter().any(|action| action.starts_with("ensure"));
        assert!(!starts || code == "-", "{code}: {actions:?}");
    }
}

#[test]
fn a_refusal_stands_in_the_condition_of_its_gate() {
    let table = vec![
        (
            World { definition: None, ..World::new() },
            "Validated=False DefinitionNotFound",
            "Approved=Unknown NotReached",
        ),
        (World::new().rejected(), "Validated=True Valid", "Approved=False ApprovalRejected"),
        (World::new().later(24 * 3600), "Validated=True Valid", "Approved=False ApprovalExpired"),
        // Whoever cancels says nothing about any gate.
        (World::new().cancelled(), "Validated=Unknown NotReached", "Approved=Unknown NotReached"),
    ];
    for (mut world, validated, approved) in table {
        let status = world.step().status;
        assert_eq!(condition(&status, ConditionType::Validated), validated);
        assert_eq!(condition(&status, ConditionType::Approved), approved);
        assert_eq!(condition(&status, ConditionType::Admitted), "Admitted=Unknown NotReached");
        assert_eq!(condition(&status, ConditionType::Finished), "Finished=True Finished");
        assert!(status.result.unwrap().category.is_some_and(|category| category != Category::Unknown));
    }
}

#[test]
fn a_refusal_lists_every_problem_but_stays_readable() {
    let mut world = World::new();
    world.task.spec.egress.hosts = (0..64).map(|number| format!("h{number}.example")).collect();
    let Gate::Refused(refusal) = world.judge().gate else { panic!("must be refused") };
    assert_eq!(refusal.problems.len(), 64);
    assert!(refusal.message().as_str().contains(".spec.egress.hosts[63]"));
    let many = vec![Problem::new(".spec", "x".repeat(300)); 64];
    let message = Refusal { problems: many, ..refusal }.message();
    assert!(message.len() < 9_000 && message.as_str().ends_with(" more"), "{}", message.len());
}

#[test]
fn a_dry_run_shows_the_command_and_ends_there() {
    for requires_approval in [true, false] {
        let definition = json!({"spec": {"requiresApproval": requires_approval}});
        let mut world = World::patched(&json!({"spec": {"dryRun": true}}), &definition);
        let plan = world.step();
        let result = plan.status.result.clone().unwrap();
        assert_eq!((end(&plan.status), actions(&plan)), ("ok", vec![]));
        assert!(result.simulated && plan.status.launch.is_none());
        assert_eq!(result.exit_code, Some(0));
        assert_eq!(result.command.unwrap(), plan.status.preview.unwrap().command);
    }
}

#[test]
fn a_dry_run_ends_before_anyone_is_asked_but_not_before_the_definition() {
    let dry = || World::patched(&json!({"spec": {"dryRun": true}}), &json!({}));
    assert_eq!(outcome_of(dry().rejected()).0, "ok");
    assert_eq!(outcome_of(dry().retired()).0, "definition-retired");
    assert_eq!(outcome_of(dry().cancelled()).0, "cancelled");
}

#[test]
fn an_approval_counts_when_it_names_exactly_this_digest_and_someone_else() {
    let approve =
        |digest: &str, by: &str| World::new().annotate(APPROVED_DIGEST, digest).annotate(APPROVED_BY, by);
    let digest = World::new().digest();
    let table = vec![
        ("the digest, by someone else", approve(&digest, "bob"), "Approved=True Approved"),
        ("another digest", approve("v1:00", "bob"), "Approved=False ApprovalStale"),
        ("the digest in other case", approve(&digest.to_uppercase(), "bob"), "Approved=False ApprovalStale"),
        ("the digest and more", approve(&format!("{digest} "), "bob"), "Approved=False ApprovalStale"),
        ("nothing", approve("", "bob"), "Approved=False ApprovalStale"),
        ("by nobody", approve(&digest, ""), "Approved=False WaitingForApproval"),
        ("by the author", approve(&digest, "ann"), "Approved=False WaitingForApproval"),
        ("no annotation", World::new(), "Approved=False WaitingForApproval"),
    ];
    for (what, mut world, expected) in table {
        let plan = world.step();
        assert_eq!(condition(&plan.status, ConditionType::Approved), expected, "{what}");
        let open = expected.starts_with("Approved=True");
        assert_eq!(plan.status.launch.is_some(), open, "{what}");
        assert_eq!(actions(&plan), if open { vec!["ensure 1"] } else { vec![] }, "{what}");
    }
}

#[test]
fn whoever_approves_is_recorded_with_the_digest_and_the_time() {
    let mut world = World::new().approved();
    let digest = world.digest();
    let approval = world.step().status.approval.unwrap();
    assert_eq!((approval.required, approval.by.as_deref()), (true, Some("bob")));
    assert_eq!((approval.digest, approval.at), (Some(digest), Some(Time(world.now))));
}

#[test]
fn what_an_approval_rests_on_is_its_reason() {
    for (origin, approvals, reason) in [
        (Origin::Local, Approvals::Own, "Approved=True SelfApproved"),
        (Origin::Cluster, Approvals::Policies, "Approved=True Approved"),
        (Origin::Cluster, Approvals::AnnotationOnly, "Approved=True Approved"),
    ] {
        let mut world = World::new();
        world.installation = Installation { origin, approvals, ..world.installation };
        let status = world.approved().step().status;
        assert_eq!(condition(&status, ConditionType::Approved), reason);
    }
    let mut unattended = World::unattended();
    assert_eq!(condition(&unattended.step().status, ConditionType::Approved), "Approved=True NotRequired");
}

#[test]
fn waiting_ends_with_the_approval_timeout_or_never() {
    let mut world = World::new().later(24 * 3600 - 61);
    let plan = world.step();
    assert_eq!(end(&plan.status), "-");
    assert_eq!(plan.wake_at.map(Timestamp::as_second), Some(CREATED + 24 * 3600));
    assert_eq!(end(&world.clone().later(1).step().status), "approval-expired");
    // An approval in time isn't undone by the time after it.
    assert_eq!(end(&world.approved().later(3600).step().status), "-");

    let mut for_ever = World::patched(&json!({"spec": {"approvalTimeout": null}}), &json!({})).later(1 << 30);
    let plan = for_ever.step();
    assert_eq!((end(&plan.status), plan.wake_at), ("-", None));
}

#[test]
fn a_demand_for_approval_is_never_dropped() {
    let mut world = World::new();
    assert!(world.step().status.approval.unwrap().required);
    world.definition.as_mut().unwrap().spec.requires_approval = false;
    let plan = world.step();
    assert_eq!(condition(&plan.status, ConditionType::Approved), "Approved=False WaitingForApproval");
    assert!(plan.status.approval.unwrap().required);
    // Approved by then, it says so, and not that nobody had to.
    let mut world = world.approved();
    assert_eq!(condition(&world.step().status, ConditionType::Approved), "Approved=True Approved");
}

#[test]
fn a_change_of_what_would_run_makes_an_approval_stale() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 5] = [
        ("contract", |world| world.definition.as_mut().unwrap().spec.arguments.push("-v".to_owned())),
        ("image", |world| world.definition.as_mut().unwrap().spec.image = Some("other@sha256:0".to_owned())),
        ("prompt", |world| world.prompt = PromptState::Present(Prompt::new("other".to_owned()).unwrap())),
        ("uid", |world| world.task.metadata.uid = Some("another".to_owned())),
        ("namespace", |world| world.task.metadata.namespace = Some("team-b".to_owned())),
    ];
    for (what, change) in changes {
        let mut world = World::new().approved();
        change(&mut world);
        let plan = world.step();
        let approved = condition(&plan.status, ConditionType::Approved);
        assert_eq!(approved, "Approved=False ApprovalStale", "{what}");
    }
}

#[test]
fn a_local_digest_is_the_same_for_every_run_of_one_file() {
    let mut world = World::new();
    world.installation.origin = Origin::Local;
    let before = world.digest();
    world.task.metadata.uid = Some("another".to_owned());
    assert_eq!(world.digest(), before);
}

#[test]
fn pins_are_matched_exactly_and_any_pins_nothing() {
    let hash = contract::hash(&World::new().definition.unwrap().spec);
    for (version, contract, fits) in [
        (Some("2.1.302"), Some(hash.as_str()), true),
        (Some("any"), Some("any"), true),
        (None, None, true),
        (Some("2.1.303"), None, false),
        (Some("2.1.30"), None, false),
        (None, Some("v1:00"), false),
        (Some("any"), Some("v1:00"), false),
    ] {
        let mut world = World::new();
        world.task.spec.definition.version = version.map(str::to_owned);
        world.task.spec.definition.contract_hash = contract.map(str::to_owned);
        let mismatch = Gate::Refused(Refusal::of(Code::DefinitionMismatch));
        assert_eq!(world.judge().gate != mismatch, fits, "{version:?} {contract:?}");
    }
}

#[test]
fn what_a_local_executor_lacks_is_refused_or_shown() {
    let mut world = World::unattended();
    world.installation.origin = Origin::Local;
    world.installation.unsupported =
        vec![Unsupported::Egress, Unsupported::Memory, Unsupported::Isolation, Unsupported::Quota];
    let plan = world.step();
    assert_eq!(plan.status.preview.unwrap().not_enforced, ["egress", "memory", "pod isolation"]);
    let egress = plan.status.conditions.iter().find(|one| one.kind == ConditionType::EgressEnforced);
    assert_eq!(egress.unwrap().reason, Reason::NotEnforced);
}

#[test]
fn the_author_is_known_by_the_stamp_of_admission() {
    let world = World::new().annotate(CREATED_BY, "bob").approved();
    assert_eq!(world.judge().gate, Gate::WaitForApproval { stale: false, expires: world_expiry() });
}

fn world_expiry() -> Option<Timestamp> {
    Timestamp::from_second(CREATED + 24 * 3600).ok()
}

//! The grant: every gate once more, and at most one.

use super::*;

#[test]
fn a_launched_task_whose_gates_are_open_is_granted_once() {
    let mut world = World::launched();
    let digest = world.status().digest.clone().unwrap();
    assert_eq!(world.grant().unwrap().digest, digest);
    assert_eq!(world.grant().unwrap_err().failure.code, Code::Lost);
}

#[test]
fn nothing_is_granted_without_a_launch() {
    assert!(World::new().approved().grant().is_err(), "never decided");
    let mut waiting = World::new();
    waiting.step();
    assert!(waiting.approved().grant().is_err(), "approved, but not launched");
}

#[test]
fn any_change_since_the_launch_refuses_the_grant() {
    type Change = fn(World) -> World;
    fn rules(world: &mut World) -> &mut crate::api::AgentCliDefinitionSpec {
        &mut world.definition.as_mut().unwrap().spec
    }
    let table: [(&str, Change, Code); 17] = [
        ("cancelled", World::cancelled, Code::Cancelled),
        ("rejected", World::rejected, Code::ApprovalRejected),
        ("approval withdrawn", World::withdrawn, Code::ApprovalExpired),
        ("another digest approved", |world| world.annotate(APPROVED_DIGEST, "v1:0"), Code::ApprovalExpired),
        ("approved by the author", |world| world.annotate(APPROVED_BY, "ann"), Code::ApprovalExpired),
        (
            "approval timeout after a withdrawal",
            |world| world.withdrawn().later(86_400),
            Code::ApprovalExpired,
        ),
        ("definition retired", World::retired, Code::DefinitionRetired),
        ("definition deleted", |world| World { definition: None, ..world }, Code::DefinitionNotFound),
        (
            "definition's flags",
            |mut world| {
                rules(&mut world).arguments.push("-v".to_owned());
                world
            },
            Code::DefinitionDrifted,
        ),
        (
            "definition's ceiling",
            |mut world| {
                rules(&mut world).egress.ceiling.push("more.example".to_owned());
                world
            },
            Code::DefinitionDrifted,
        ),
        (
            "definition's image",
            |mut world| {
                rules(&mut world).image = Some("a@sha256:0".to_owned());
                world
            },
            Code::DefinitionDrifted,
        ),
        (
            "definition's version",
            |mut world| {
                rules(&mut world).version = "3".to_owned();
                world
            },
            Code::DefinitionMismatch,
        ),
        (
            "namespace no longer allowed",
            |mut world| {
                rules(&mut world).allowed_namespaces = None;
                world
            },
            Code::NamespaceNotAllowed,
        ),
        (
            "another prompt",
            |world| World { prompt: PromptState::Present(Prompt::new("x".to_owned()).unwrap()), ..world },
            Code::DefinitionDrifted,
        ),
        ("no prompt", |world| World { prompt: PromptState::Missing, ..world }, Code::SourceMissing),
        (
            "the executor can't deliver",
            |mut world| {
                world.installation.unsupported.push(Unsupported::Delivery);
                world
            },
            Code::Unsupported,
        ),
        (
            "the cancel was seen and taken back",
            |mut world| {
                world.task.status.as_mut().unwrap().cancel = Some(Cancel { at: Time(world.now) });
                world
            },
            Code::Cancelled,
        ),
    ];
    for (what, change, code) in table {
        let mut world = change(World::launched());
        assert_eq!(world.grant().unwrap_err().failure.code, code, "{what}");
        // Whatever a pass writes in between, it opens nothing.
        world.step();
        assert!(world.grant().is_err(), "{what}");
    }
}

#[test]
fn a_definition_that_changes_after_the_launch_is_not_granted_even_without_approval() {
    let mut world = World::unattended();
    world.step();
    world.definition.as_mut().unwrap().spec.image = Some("b@sha256:1".to_owned());
    // The sandbox was planned with the former image: a pass must not make the new digest the launched one.
    assert_eq!(end(&world.step().status), "definition-drifted");
    assert!(world.grant().is_err());
}

#[test]
fn a_finished_task_is_never_granted() {
    let mut world = World::launched();
    for _ in 0..MAX_ATTEMPTS {
        world = world.seen(RunState::Ended).later(60);
        world.step();
    }
    assert_eq!(end(world.status()), "exec-failed");
    assert_eq!(world.grant().unwrap_err().failure.code, Code::ExecFailed);
}

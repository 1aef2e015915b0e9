//! The API server prunes fields that it doesn't know. For every field of a task and of a definition: written with a misspelt name
//! it never gives a task less guard than it would have had.

use std::collections::BTreeSet;

use super::*;
use crate::api::{AgentCliTaskSpec, EffectiveLimits};
use crate::core::contract;
use crate::core::validate::{Document, document};

/// Pointers of every field of `.spec` that a name can be misspelt for.
fn fields(text: &str) -> Vec<String> {
    fn visit(value: &Value, pointer: &str, found: &mut Vec<String>) {
        // Names in these are values: a misspelt one is kept, and refused where it means nothing.
        if ["/spec/options", "/matchLabels", "/nodeSelector"].iter().any(|map| pointer.ends_with(map))
            && value.is_object()
        {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let pointer = format!("{pointer}/{name}");
                    visit(value, &pointer, found);
                    found.push(pointer);
                }
            }
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    visit(value, &format!("{pointer}/{index}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(&fixtures::yaml(text)["spec"], "/spec", &mut found);
    found
}

/// The object as the API server stores it when that field's name was misspelt.
fn pruned(mut whole: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    whole.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).expect("the field is there");
    whole
}

/// Why the task `pruned` is less guarded than `written`, if it is.
fn less_guarded(written: &World, pruned: &World) -> Option<&'static str> {
    let (before, after) = (written.judge(), pruned.judge());
    let (old, new) = match (&after.gate, before.facts, after.facts) {
        // Nothing runs.
        (Gate::Refused(_) | Gate::DryRun, ..) => return None,
        (Gate::WaitForApproval { .. }, Some(old), Some(new)) => {
            return (old.digest == new.digest).then_some("waits for the approval of something else");
        }
        (_, Some(old), Some(new)) => (old, new),
        _ => return Some("was refused"),
    };
    let defaults = default_limits(pruned);
    let (old_spec, new_spec) = (&written.task.spec, &pruned.task.spec);
    let within = |new: &[String], old: &[String]| new.iter().all(|one| old.contains(one));
    let branch = |spec: &AgentCliTaskSpec| spec.delivery.as_ref().map(|delivery| delivery.branch.clone());
    let checks = [
        ("dry run", before.gate != Gate::DryRun),
        ("approval", old.approval_required <= new.approval_required),
        ("version", old_spec.definition.version == new_spec.definition.version),
        ("contract", old_spec.definition.contract_hash == new_spec.definition.contract_hash),
        ("key", old_spec.idempotency_key == new_spec.idempotency_key),
        ("hosts", within(&new.preview.hosts, &old.preview.hosts)),
        ("secrets", within(&new.preview.secret_names, &old.preview.secret_names)),
        ("repository", new_spec.workspace.git.is_none() || new.preview.repository == old.preview.repository),
        ("revision", new_spec.workspace.git.is_none() || new.preview.revision == old.preview.revision),
        ("branch", branch(new_spec).is_none() || branch(new_spec) == branch(old_spec)),
        ("limits", limits_within(&new.preview.limits, &old.preview.limits, &defaults)),
    ];
    checks.into_iter().find(|(_, kept)| !kept).map(|(what, _)| what)
}

/// Each limit is the written one, or at most the definition's default.
fn limits_within(new: &EffectiveLimits, old: &EffectiveLimits, defaults: &EffectiveLimits) -> bool {
    fn within<T: PartialOrd + Copy>(new: T, old: T, default: T) -> bool {
        new <= default || new == old
    }
    within(new.timeout, old.timeout, defaults.timeout)
        && within(new.max_output_bytes, old.max_output_bytes, defaults.max_output_bytes)
        && within(new.processes, old.processes, defaults.processes)
        && within(new.cpu, old.cpu, defaults.cpu)
        && within(new.memory, old.memory, defaults.memory)
        && within(new.ephemeral_storage, old.ephemeral_storage, defaults.ephemeral_storage)
}

fn default_limits(world: &World) -> EffectiveLimits {
    let rules = &world.definition.as_ref().unwrap().spec.limits;
    crate::core::limits::effective(&crate::api::Limits::default(), rules).unwrap()
}

#[test]
fn a_misspelt_field_of_a_task_never_leaves_it_less_guarded() {
    for requires_approval in [true, false] {
        for dry_run in [true, false] {
            let definition = json!({"spec": {"requiresApproval": requires_approval}});
            let task = json!({"spec": {"dryRun": dry_run, "definition": {"contractHash": "any"}}});
            let written = World::patched(&task, &definition);
            assert!(written.judge().facts.is_some(), "the written task is sound");
            let whole = serde_json::to_value(&written.task).unwrap();
            let fields = fields(fixtures::TASK);
            assert!(fields.len() > 30, "the fixture has lost fields");
            for pointer in fields {
                // What the schema doesn't take is refused by the API server.
                let Ok(Document::Task(task)) = document(pruned(whole.clone(), &pointer)) else { continue };
                let pruned = World { task, ..written.clone() };
                let lost = less_guarded(&written, &pruned);
                assert_eq!(lost, None, "{pointer}, approval {requires_approval}, dry run {dry_run}");
            }
        }
    }
}

#[test]
fn a_task_without_approval_must_state_what_it_could_misspell() {
    let mut world = World::unattended();
    world.task.spec.dry_run = None;
    world.task.spec.definition.version = None;
    world.task.spec.definition.contract_hash = None;
    world.task.spec.idempotency_key = None;
    world.task.spec.ttl_after_finished = None;
    let Gate::Refused(refusal) = world.judge().gate else { panic!("must be refused") };
    let paths: Vec<&str> = refusal.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        [".spec.dryRun", ".spec.definition.version", ".spec.definition.contractHash", ".spec.idempotencyKey"]
    );
    // A local run refuses unknown fields itself.
    world.installation.origin = Origin::Local;
    assert_eq!(world.judge().gate, Gate::Open);
}

/// Fields of a definition that no default can stand in for. Its author is the platform team, whose `kubectl` and `caisson validate`
/// refuse unknown fields; approvals and pins see what is in the contract.
const NOT_PROMISED: [&str; 5] =
    ["/spec/limits", "/spec/options", "/spec/output", "/spec/pod/runtimeClassName", "/spec/pod/hostUsers"];
/// Of those without a default, the ones that aren't in the contract either.
const NOT_IN_CONTRACT: [&str; 3] = ["/spec/rateLimit", "/spec/maxConcurrent", "/spec/pod"];

#[test]
fn a_misspelt_field_of_a_definition_never_opens_it() {
    for requires_approval in [true, false] {
        let written = World::patched(&json!({}), &json!({"spec": {"requiresApproval": requires_approval}}));
        let whole = serde_json::to_value(&written.definition).unwrap();
        for pointer in fields(fixtures::DEFINITION) {
            let Ok(Document::Definition(definition)) = document(pruned(whole.clone(), &pointer)) else {
                continue;
            };
            let (old, new) = (&written.definition.as_ref().unwrap().spec, &definition.spec);
            let within = |new: &[String], old: &[String]| new.iter().all(|one| old.contains(one));
            let pinned = |spec: &crate::api::AgentCliDefinitionSpec| {
                spec.requires_pinned_revision.unwrap_or(spec.requires_approval)
            };
            let checks = [
                ("approval", old.requires_approval <= new.requires_approval),
                ("pinned revision", pinned(old) <= pinned(new)),
                ("hosts", within(&new.egress.hosts, &old.egress.hosts)),
                ("ceiling", within(&new.egress.ceiling, &old.egress.ceiling)),
                ("repositories", within(&new.workspace.repositories, &old.workspace.repositories)),
                ("secrets", within(&new.workspace.secret_names, &old.workspace.secret_names)),
                (
                    "delivery",
                    new.delivery.as_ref().is_none_or(|new| {
                        let old = old.delivery.as_ref().unwrap();
                        new.branch_prefix == old.branch_prefix && within(&new.secret_names, &old.secret_names)
                    }),
                ),
                ("environment", new.environment.len() <= old.environment.len()),
                ("logs", new.logs == old.logs || new.logs == crate::api::LogMode::None),
            ];
            for (what, kept) in checks {
                assert!(kept, "{pointer}: {what}");
            }
            let listed = |list: &[&str]| list.iter().any(|prefix| pointer.starts_with(prefix));
            if listed(&NOT_PROMISED) && !listed(&NOT_IN_CONTRACT) && !pointer.ends_with("/description") {
                assert_ne!(contract::hash(old), contract::hash(new), "{pointer}");
            }
            let world = World { definition: Some(definition.clone()), ..written.clone() };
            match pointer.as_str() {
                "/spec/image" | "/spec/allowedNamespaces" => {
                    assert!(matches!(world.judge().gate, Gate::Refused(_)), "{pointer}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_fields_that_are_excused_exist() {
    let fields: BTreeSet<String> = fields(fixtures::DEFINITION).into_iter().collect();
    for pointer in NOT_PROMISED.iter().chain(&NOT_IN_CONTRACT) {
        assert!(fields.contains(*pointer), "{pointer}");
    }
}

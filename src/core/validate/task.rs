//! Whether a task fits its definition.

use serde_json::Value;

use super::text::{is_branch_name, whole_match};
use super::{Problem, covers};
use crate::api::{
    AgentCliDefinitionSpec, AgentCliTaskSpec, GitSource, OptionDefinition, OptionKind, OptionSchema,
    TaskDelivery,
};
use crate::core::limits;

/// Where a task comes from, which decides what its workspace may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The API server: repositories over HTTPS, inside the definition's list.
    Cluster,
    /// The person at this machine: also a repository on it, named by `--workspace`.
    Local,
}

/// Longest string value of an option whose schema says nothing, in characters.
const DEFAULT_MAX_LENGTH: i64 = 1024;

/// Largest integer of an option, either sign: 2^53 - 1. Canonical JSON writes larger ones as their nearest double, so that two of
/// them could have one digest.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Everything in a task that its definition doesn't allow.
pub fn task(spec: &AgentCliTaskSpec, definition: &AgentCliDefinitionSpec, origin: Origin) -> Vec<Problem> {
    let mut problems = Vec::new();
    if spec.prompt.is_some() == spec.prompt_from.is_some() {
        problems.push(Problem::new(".spec", "exactly one of prompt and promptFrom"));
    }
    if spec.model.is_some() && definition.model_flag.is_none() {
        problems.push(Problem::new(".spec.model", "the definition allows no choice of model"));
    }
    options(spec, definition, &mut problems);
    hosts(spec, definition, &mut problems);
    if let Some(git) = &spec.workspace.git {
        workspace(git, definition, origin, &mut problems);
    }
    if let Some(wanted) = &spec.delivery {
        delivery(wanted, spec, definition, &mut problems);
    }
    if let Err(beyond) = limits::effective(&spec.limits, &definition.limits) {
        problems.extend(beyond);
    }
    if spec.ttl_after_finished.is_some() && spec.idempotency_key.is_none() {
        problems.push(Problem::new(".spec.ttlAfterFinished", "needs an idempotencyKey"));
    }
    if !definition.requires_approval {
        unattended(spec, origin, &mut problems);
    }
    problems
}

/// Where nobody looks before the start, the guards that a task can leave out must be stated: a misspelt one is pruned by the API
/// server and would otherwise leave the task less guarded than it was written. A local run refuses unknown fields itself.
fn unattended(spec: &AgentCliTaskSpec, origin: Origin, problems: &mut Vec<Problem>) {
    if origin == Origin::Local {
        return;
    }
    let guards = [
        (".spec.dryRun", spec.dry_run.is_some()),
        (".spec.definition.version", spec.definition.version.is_some()),
        (".spec.definition.contractHash", spec.definition.contract_hash.is_some()),
        (".spec.idempotencyKey", spec.idempotency_key.is_some()),
    ];
    let missing = guards.into_iter().filter(|(_, stated)| !stated);
    problems.extend(
        missing.map(|(path, _)| Problem::new(path, "must be stated, since the definition needs no approval")),
    );
}

fn options(spec: &AgentCliTaskSpec, definition: &AgentCliDefinitionSpec, problems: &mut Vec<Problem>) {
    for (name, value) in &spec.options {
        let path = option_path(name);
        match definition.options.iter().find(|option| option.name == *name) {
            Some(option) => {
                if let Some(message) = mismatch(value, &option.schema) {
                    problems.push(Problem::new(path, message));
                }
            }
            None => problems.push(Problem::new(path, undeclared(&definition.options))),
        }
    }
}

fn option_path(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { format!(".spec.options.{name}") } else { ".spec.options".to_owned() }
}

fn undeclared(options: &[OptionDefinition]) -> String {
    if options.is_empty() {
        return "the definition has no options".to_owned();
    }
    let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
    format!("no such option; the definition has {}", names.join(", "))
}

/// Why `value` isn't legal, without quoting it.
fn mismatch(value: &Value, schema: &OptionSchema) -> Option<String> {
    match (schema.kind, value) {
        (OptionKind::Boolean, Value::Bool(_)) => None,
        (OptionKind::Boolean, _) => Some("must be true or false".to_owned()),
        (OptionKind::Integer, Value::Number(number)) => match number.as_i64() {
            Some(number) if number.unsigned_abs() <= MAX_INTEGER => match (schema.minimum, schema.maximum) {
                (Some(minimum), _) if number < minimum => Some(format!("must be at least {minimum}")),
                (_, Some(maximum)) if number > maximum => Some(format!("must be at most {maximum}")),
                _ => None,
            },
            _ => Some("must be a whole number of at most 53 bits".to_owned()),
        },
        (OptionKind::Integer, _) => Some("must be a whole number".to_owned()),
        (OptionKind::String, Value::String(text)) => illegal_text(text, schema),
        (OptionKind::String, _) => Some("must be text".to_owned()),
    }
}

fn illegal_text(text: &str, schema: &OptionSchema) -> Option<String> {
    let longest = schema.max_length.unwrap_or(DEFAULT_MAX_LENGTH);
    if i64::try_from(text.chars().count()).is_ok_and(|length| length > longest) {
        return Some(format!("must have at most {longest} characters"));
    }
    if text.contains('\0') {
        return Some("must not contain a NUL character".to_owned());
    }
    if schema.values.as_ref().is_some_and(|values| values.iter().all(|value| value != text)) {
        return Some("must be one of the values that the definition lists".to_owned());
    }
    let pattern = schema.pattern.as_deref()?;
    let matches = whole_match(pattern).is_some_and(|regex| regex.is_match(text));
    (!matches).then(|| format!("must match {pattern} as a whole"))
}

fn hosts(spec: &AgentCliTaskSpec, definition: &AgentCliDefinitionSpec, problems: &mut Vec<Problem>) {
    for (index, host) in spec.egress.hosts.iter().enumerate() {
        if !covers(&definition.egress.hosts, host) && !covers(&definition.egress.ceiling, host) {
            let path = format!(".spec.egress.hosts[{index}]");
            problems.push(Problem::new(path, "lies outside the hosts that the definition allows"));
        }
    }
}

fn workspace(
    git: &GitSource,
    definition: &AgentCliDefinitionSpec,
    origin: Origin,
    problems: &mut Vec<Problem>,
) {
    let here = origin == Origin::Local && git.repository.starts_with("file://");
    if !here && !repository_allowed(&definition.workspace.repositories, &git.repository) {
        problems.push(Problem::new(".spec.workspace.git.repository", "is not on the definition's list"));
    }
    let pinned = definition.requires_pinned_revision.unwrap_or(definition.requires_approval);
    if pinned && !is_commit_id(&git.revision) {
        problems.push(Problem::new(".spec.workspace.git.revision", "must be a full commit id"));
    }
    if git.subdirectory.as_deref().is_some_and(|path| !is_inner_path(path)) {
        problems.push(Problem::new(".spec.workspace.git.subdirectory", "must stay inside the repository"));
    }
    if let Some(secret) = &git.secret_ref {
        secret_listed(
            &secret.name,
            &definition.workspace.secret_names,
            ".spec.workspace.git.secretRef.name",
            problems,
        );
    }
}

fn repository_allowed(allowed: &[String], repository: &str) -> bool {
    let dotted = repository.split('/').any(|part| part == "." || part == "..");
    !dotted
        && allowed.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => repository.len() > prefix.len() && repository.starts_with(prefix),
            None => pattern == repository,
        })
}

/// A full object id of either of git's formats.
pub(super) fn is_commit_id(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64)
        && revision.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_inner_path(path: &str) -> bool {
    !path.starts_with('/')
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != ".." && !part.eq_ignore_ascii_case(".git"))
}

fn delivery(
    wanted: &TaskDelivery,
    spec: &AgentCliTaskSpec,
    definition: &AgentCliDefinitionSpec,
    problems: &mut Vec<Problem>,
) {
    let Some(rules) = &definition.delivery else {
        problems.push(Problem::new(".spec.delivery", "the definition allows no delivery"));
        return;
    };
    if spec.workspace.git.is_none() {
        problems.push(Problem::new(".spec.delivery", "needs a repository to deliver to"));
    }
    if !wanted.branch.starts_with(&rules.branch_prefix) || !is_branch_name(&wanted.branch) {
        problems.push(Problem::new(
            ".spec.delivery.branch",
            format!("must be a branch name that begins with {}", rules.branch_prefix),
        ));
    }
    if let Some(secret) = &wanted.secret_ref {
        secret_listed(&secret.name, &rules.secret_names, ".spec.delivery.secretRef.name", problems);
    }
}

fn secret_listed(name: &str, listed: &[String], path: &str, problems: &mut Vec<Problem>) {
    if !listed.iter().any(|allowed| allowed == name) {
        problems.push(Problem::new(path, "is not on the definition's list of secrets"));
    }
}

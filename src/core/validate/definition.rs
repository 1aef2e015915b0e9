//! What no schema can say about a definition.

use std::collections::BTreeSet;

use super::Problem;
use super::text::{is_branch_name, whole_match};
use crate::api::{AgentCliDefinitionSpec, OptionDefinition, Output};
use crate::core::limits;

/// Everything that is wrong with a definition whose schema is already satisfied.
pub fn definition(spec: &AgentCliDefinitionSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    arguments(spec, &mut problems);
    options(&spec.options, spec.model_flag.as_deref(), &mut problems);
    environment(spec, &mut problems);
    programs(&spec.output, &mut problems);
    delivery(spec, &mut problems);
    limits::check_definition(&spec.limits, &mut problems);
    problems
}

fn arguments(spec: &AgentCliDefinitionSpec, problems: &mut Vec<Problem>) {
    for (index, argument) in spec.arguments.iter().enumerate() {
        let path = || format!(".spec.arguments[{index}]");
        if argument.contains('\0') {
            problems.push(Problem::new(path(), "must not contain a NUL character"));
        }
        if argument == "--" {
            problems.push(Problem::new(path(), "must not be --, which stands before the prompt"));
        }
    }
    let delivery = &spec.prompt_delivery;
    let ways = [delivery.argument.is_some(), delivery.stdin.is_some(), delivery.file.is_some()];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        problems.push(Problem::new(".spec.promptDelivery", "at most one of argument, stdin and file"));
    }
    if spec.workspace.repositories.iter().any(|repository| repository.split('/').any(|part| part == "..")) {
        problems.push(Problem::new(".spec.workspace.repositories", "must not contain .."));
    }
}

fn options(options: &[OptionDefinition], model_flag: Option<&str>, problems: &mut Vec<Problem>) {
    let mut names = BTreeSet::new();
    let mut flags: BTreeSet<&str> = model_flag.into_iter().collect();
    for (index, option) in options.iter().enumerate() {
        if !names.insert(option.name.as_str()) {
            problems.push(Problem::new(format!(".spec.options[{index}].name"), "stands twice"));
        }
        if !flags.insert(option.flag.as_str()) {
            problems.push(Problem::new(format!(".spec.options[{index}].flag"), "stands twice"));
        }
        if option.schema.pattern.as_deref().is_some_and(|pattern| whole_match(pattern).is_none()) {
            problems.push(Problem::new(
                format!(".spec.options[{index}].schema.pattern"),
                "is not a regular expression",
            ));
        }
    }
}

fn environment(spec: &AgentCliDefinitionSpec, problems: &mut Vec<Problem>) {
    let mut names = BTreeSet::new();
    for (index, variable) in spec.environment.iter().enumerate() {
        let path = format!(".spec.environment[{index}]");
        if !names.insert(variable.name.as_str()) {
            problems.push(Problem::new(format!("{path}.name"), "stands twice"));
        }
        if variable.name.starts_with("CAISSON_") {
            problems
                .push(Problem::new(format!("{path}.name"), "names that begin with CAISSON_ are reserved"));
        }
        if variable.value.is_some() == variable.secret_key_ref.is_some() {
            problems.push(Problem::new(path.as_str(), "exactly one of value and secretKeyRef"));
        }
        if variable.value.as_deref().is_some_and(|value| value.contains('\0')) {
            problems.push(Problem::new(format!("{path}.value"), "must not contain a NUL character"));
        }
    }
}

fn programs(output: &Output, problems: &mut Vec<Problem>) {
    let usage = output.usage.clone().unwrap_or_default();
    let programs = [
        ("text", &output.text),
        ("failed", &output.failed),
        ("usage.inputTokens", &usage.input_tokens),
        ("usage.outputTokens", &usage.output_tokens),
        ("usage.costUsd", &usage.cost_usd),
        ("usage.turns", &usage.turns),
        ("usage.sessionId", &usage.session_id),
        ("usage.denials", &usage.denials),
    ];
    for (name, program) in programs {
        if program.as_deref().is_some_and(|source| cel::Program::compile(source).is_err()) {
            problems.push(Problem::new(format!(".spec.output.{name}"), "is not a CEL program"));
        }
    }
}

fn delivery(spec: &AgentCliDefinitionSpec, problems: &mut Vec<Problem>) {
    let Some(delivery) = &spec.delivery else { return };
    if !is_branch_name(&format!("{}x", delivery.branch_prefix)) {
        problems.push(Problem::new(".spec.delivery.branchPrefix", "is not the beginning of a branch name"));
    }
}

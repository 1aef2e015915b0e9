//! The contract hash: what a definition lets an agent do, and nothing else.

use serde::Serialize;

use super::canonical;
use crate::api::{
    AgentCliDefinitionSpec, DefinitionDelivery, DefinitionEgress, DefinitionLimits, DefinitionWorkspace,
    EnvironmentVariable, OptionSchema, Output, PromptDelivery,
};

/// The hash of everything in `spec` that changes what an agent is told, may reach or may use.
///
/// Options count whatever their order; descriptions, scheduling, quotas and the release (version, image, binary) don't count.
pub fn hash(spec: &AgentCliDefinitionSpec) -> String {
    // Every field is named, so that a new one can't be forgotten here.
    let AgentCliDefinitionSpec {
        description: _,
        version: _,
        image: _,
        binary: _,
        arguments,
        model_flag,
        options,
        prompt_delivery,
        output,
        environment,
        egress,
        workspace,
        delivery,
        limits,
        requires_approval,
        requires_pinned_revision,
        rate_limit: _,
        max_concurrent: _,
        allowed_namespaces: _,
        logs: _,
        pod_retention: _,
        pod,
        retired: _,
    } = spec;
    let mut options: Vec<ContractOption<'_>> = options
        .iter()
        .map(|option| ContractOption { name: &option.name, flag: &option.flag, schema: &option.schema })
        .collect();
    options.sort_by_key(|option| option.name);
    let pod = pod.as_ref();
    canonical::hash(&Contract {
        format: "caisson.dev/contract/v1",
        arguments,
        model_flag: model_flag.as_deref(),
        options,
        prompt_delivery,
        output,
        environment,
        egress,
        workspace,
        delivery: delivery.as_ref(),
        limits,
        requires_approval: *requires_approval,
        requires_pinned_revision: requires_pinned_revision.unwrap_or(*requires_approval),
        isolation: Isolation {
            runtime_class_name: pod.and_then(|pod| pod.runtime_class_name.as_deref()),
            host_users: pod.and_then(|pod| pod.host_users),
        },
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Contract<'a> {
    format: &'static str,
    arguments: &'a [String],
    model_flag: Option<&'a str>,
    options: Vec<ContractOption<'a>>,
    prompt_delivery: &'a PromptDelivery,
    output: &'a Output,
    environment: &'a [EnvironmentVariable],
    egress: &'a DefinitionEgress,
    workspace: &'a DefinitionWorkspace,
    delivery: Option<&'a DefinitionDelivery>,
    limits: &'a DefinitionLimits,
    requires_approval: bool,
    requires_pinned_revision: bool,
    isolation: Isolation<'a>,
}

#[derive(Serialize)]
struct ContractOption<'a> {
    name: &'a str,
    flag: &'a str,
    schema: &'a OptionSchema,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Isolation<'a> {
    runtime_class_name: Option<&'a str>,
    host_users: Option<bool>,
}

#[cfg(test)]
mod tests;

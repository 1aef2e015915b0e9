//! `AgentCliTask`: one bounded request to one agent CLI.

use std::collections::BTreeMap;
use std::fmt;

use kube::{CustomResource, KubeSchema};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentCliTaskStatus, ByteSize, Cpu, Duration};

/// One task for one agent CLI: what to do, where, within which limits. It never names a program, a path outside the workspace,
/// an environment variable or a pod field. A spec can't be changed.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, PartialEq)]
#[kube(
    group = "caisson.dev",
    version = "v1alpha1",
    kind = "AgentCliTask",
    plural = "agentclitasks",
    shortname = "act",
    category = "caisson",
    namespaced,
    status = "AgentCliTaskStatus",
    validation = Rule::new("!has(oldSelf.status) || has(self.status)").message("status stays"),
    derive = "PartialEq",
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason"
    ),
    printcolumn(
        name = "Approved",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Approved\")].status"
    ),
    printcolumn(name = "Definition", type_ = "string", json_path = ".spec.definition.name"),
    printcolumn(name = "Exit", type_ = "integer", json_path = ".status.result.exitCode"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Finished", type_ = "date", json_path = ".status.finishedAt")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("spec is immutable: create a new task").reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("has(self.prompt) != has(self.promptFrom)").message("exactly one of prompt and promptFrom"))]
#[x_kube(validation = Rule::new("!has(self.ttlAfterFinished) || has(self.idempotencyKey)").message("ttlAfterFinished needs an idempotencyKey: a deleted task may be created again").field_path(".ttlAfterFinished"))]
pub struct AgentCliTaskSpec {
    /// The definition to run, optionally pinned.
    pub definition: DefinitionSelector,
    /// What the agent is asked to do.
    #[schemars(length(max = 1_048_576))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Where the prompt stands instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_from: Option<PromptSource>,
    /// Model to use, where the definition allows a choice.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Values for options that the definition declares.
    #[schemars(schema_with = "values_by_name")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Value>,
    /// What the agent works on. Default: an empty folder.
    #[serde(default)]
    pub workspace: Workspace,
    /// Push the change as a new branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<TaskDelivery>,
    /// Limits below the definition's ceilings. What is unset has the definition's default.
    #[serde(default)]
    pub limits: Limits,
    /// Hosts beyond the definition's own, inside its ceiling.
    #[serde(default)]
    pub egress: TaskEgress,
    /// Show what would run and end there. A definition without approval demands that a task states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Tasks of one definition with the same key run once; later ones get the first one's result.
    #[schemars(
        length(min = 1, max = 256),
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._:/@-]*[A-Za-z0-9])?$")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How long to wait for an approval. Unset: for ever.
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('8760h')").message("must be from 1s to 8760h"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout: Option<Duration>,
    /// Delete the task this long after it finished. Needs an idempotency key.
    #[x_kube(validation = Rule::new("duration(self) <= duration('8760h')").message("must be at most 8760h"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_after_finished: Option<Duration>,
}

/// Shows that there are a prompt, a model and options, and the options' names, but no value of them.
impl fmt::Debug for AgentCliTaskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every field is named, so that a new one is shown or hidden on purpose.
        let Self {
            definition,
            prompt,
            prompt_from,
            model,
            options,
            workspace,
            delivery,
            limits,
            egress,
            dry_run,
            idempotency_key,
            approval_timeout,
            ttl_after_finished,
        } = self;
        f.debug_struct("AgentCliTaskSpec")
            .field("definition", definition)
            .field("prompt_bytes", &prompt.as_ref().map(String::len))
            .field("prompt_from", prompt_from)
            .field("model_is_set", &model.is_some())
            .field("options", &options.keys())
            .field("workspace", workspace)
            .field("delivery", delivery)
            .field("limits", limits)
            .field("egress", egress)
            .field("dry_run", dry_run)
            .field("idempotency_key", idempotency_key)
            .field("approval_timeout", approval_timeout)
            .field("ttl_after_finished", ttl_after_finished)
            .finish()
    }
}

/// A definition by name. Version and contract hash are optional pins; a definition that doesn't match them refuses the task.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionSelector {
    /// The definition's name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
    /// The CLI's version that the definition must have; `any` says that none is asked for.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The contract that the definition must have; `any` says that none is asked for.
    #[schemars(length(max = 80), regex(pattern = r"^(v1:[0-9a-f]{64}|any)$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_hash: Option<String>,
}

/// Where a prompt stands.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PromptSource {
    /// A key of a config map in the task's namespace.
    pub config_map_key_ref: ConfigMapKey,
}

/// One key of a config map.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ConfigMapKey {
    /// The config map's name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    pub key: String,
}

/// What the agent works on: a repository's copy, or an empty folder.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Start with a copy of a repository. Unset: an empty folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
}

/// A repository at a revision.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Address, over HTTPS, without user or password. It must lie inside the definition's list.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)+$")
    )]
    pub repository: String,
    /// A full commit id; a branch or tag only where the definition doesn't demand a pinned revision.
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/@+-]*$"))]
    pub revision: String,
    /// Commits of history to fetch. Default: 1; 0 means all.
    #[schemars(range(min = 0, max = 1_000_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<i64>,
    /// Folder inside the repository in which the agent starts.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[^/\x00-\x1f][^\x00-\x1f]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subdirectory: Option<String>,
    /// Secret with the credentials to read it; must be on the definition's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
}

/// An object of the task's namespace, by name.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct LocalReference {
    /// The object's name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
}

/// Push the change as a new branch.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TaskDelivery {
    /// The branch to create; it must begin with the definition's prefix.
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"))]
    pub branch: String,
    /// Secret with the credentials to push; must be on the definition's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
}

/// A task's own limits. Each must lie within the definition's ceiling.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Wall-clock time of the agent, from 1s to 24h.
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('24h')").message("must be from 1s to 24h"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Bytes kept of the end of each of standard output and standard error, from 0 to 8Mi.
    #[x_kube(validation = Rule::new("quantity(string(self)).compareTo(quantity('8Mi')) <= 0").message("must be from 0 to 8Mi"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<ByteSize>,
    /// Processes and threads that the agent may have at once, from 1 to 32768.
    #[schemars(range(min = 1, max = 32_768))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<i64>,
    /// CPU, memory and storage.
    #[serde(default)]
    pub resources: Resources,
}

/// CPU, memory and storage of the agent.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// CPUs, from 1m to 256.
    #[x_kube(validation = Rule::new("quantity(string(self)).compareTo(quantity('1m')) >= 0 && quantity(string(self)).compareTo(quantity('256')) <= 0").message("must be from 1m to 256"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory, from 16Mi to 4Ti.
    #[x_kube(validation = Rule::new("quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('4Ti')) <= 0").message("must be from 16Mi to 4Ti"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// Space for the workspace and temporary files, from 1Mi to 4Ti.
    #[x_kube(validation = Rule::new("quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('4Ti')) <= 0").message("must be from 1Mi to 4Ti"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<ByteSize>,
}

/// Hosts that a task asks for.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskEgress {
    /// Host names or `*.suffix`, with an optional port (default 443), each inside the definition's ceiling.
    #[schemars(
        length(max = 64),
        inner(
            length(max = 260),
            regex(
                pattern = r"^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?$"
            )
        )
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// Values by name, each of the type that the definition declares for it.
fn values_by_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
        "maxProperties": 64,
    })
}

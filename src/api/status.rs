//! `AgentCliTask.status`: what would run, who approved it, what happened. Every text in it is redacted.

#![expect(clippy::struct_excessive_bools, reason = "independent facts of wire objects")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ByteSize, Category, Code, Condition, Cpu, Duration, definition::never_observed};
use crate::redact::Redacted;

/// What is known about a task. Facts that may only ever come, never change or go, are held by the API server's rules.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(oldSelf.finishedAt) || (has(self.finishedAt) && self.finishedAt == oldSelf.finishedAt)").message("finishedAt is set once"))]
#[x_kube(validation = Rule::new("!has(oldSelf.launch) || has(self.launch)").message("launch stays"))]
#[x_kube(validation = Rule::new("!has(oldSelf.cancel) || has(self.cancel)").message("cancel stays"))]
#[x_kube(validation = Rule::new("!has(oldSelf.result) || has(self.result)").message("result stays"))]
#[x_kube(validation = Rule::new("!has(oldSelf.approval) || !oldSelf.approval.required || (has(self.approval) && self.approval.required)").message("approval.required only ever becomes true"))]
#[x_kube(validation = Rule::new("!has(oldSelf.launch) || !has(oldSelf.launch.grant) || (has(self.approval) == has(oldSelf.approval) && (!has(self.approval) || self.approval == oldSelf.approval))").message("the approval is fixed by the grant"))]
#[x_kube(validation = Rule::new("!has(self.launch) || !has(self.launch.grant) || (has(self.approval) && (!self.approval.required || (has(self.approval.by) && has(self.approval.digest))))").message("a grant needs the approval that is required"))]
#[x_kube(validation = Rule::new("!(has(oldSelf.finishedAt) || has(oldSelf.cancel)) || !has(self.launch) || !has(self.launch.grant) || (has(oldSelf.launch) && has(oldSelf.launch.grant))").message("nothing is granted after a cancel or the end"))]
#[x_kube(validation = Rule::new("has(self.finishedAt) == has(self.result)").message("result and finishedAt come together"))]
pub struct AgentCliTaskStatus {
    /// Generation that the rest describes; -1 before the first look.
    #[serde(default = "never_observed")]
    pub observed_generation: i64,
    /// What an approval must name: the hash of exactly what would run.
    #[schemars(length(max = 80))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The definition as it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionRef>,
    /// What would run, without anything secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// Who approved what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// That someone cancelled. Once seen, it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// The attempt to start, and the one grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Observations, one of each type.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Default for AgentCliTaskStatus {
    fn default() -> Self {
        Self {
            observed_generation: never_observed(),
            digest: None,
            definition: None,
            preview: None,
            approval: None,
            cancel: None,
            launch: None,
            result: None,
            finished_at: None,
            conditions: Vec::new(),
        }
    }
}

/// The definition as it was found.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionRef {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its UID; empty in a local run.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Its generation; 0 in a local run.
    #[serde(default)]
    pub generation: i64,
    /// Hash of what it lets an agent do.
    #[schemars(length(max = 80))]
    pub contract_hash: String,
    /// What would be started.
    pub release: Release,
}

/// What would be started: the part of a definition that changes with every update of the CLI.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The CLI's version.
    #[schemars(length(max = 64))]
    pub version: String,
    /// Its image.
    #[schemars(length(max = 512))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its program.
    #[schemars(length(max = 255))]
    pub binary: String,
}

/// What would run, without anything secret.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The command, with values and prompt replaced by placeholders.
    #[schemars(with = "String", length(max = 4096))]
    #[serde(deserialize_with = "Redacted::deserialize_stored")]
    pub command: Redacted,
    /// The image.
    #[schemars(length(max = 512))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The repository.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The revision.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The limits, defaults filled in.
    pub limits: EffectiveLimits,
    /// Every host that the agent may reach.
    #[schemars(length(max = 128), inner(length(max = 260)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Names of the secrets that are mounted.
    #[schemars(length(max = 128), inner(length(max = 253)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_names: Vec<String>,
    /// SHA-256 of the prompt.
    #[schemars(length(max = 64))]
    pub prompt_sha256: String,
    /// Length of the prompt in bytes.
    pub prompt_bytes: i64,
    /// What the executor can't enforce, in a local run.
    #[schemars(length(max = 16), inner(length(max = 64)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
}

/// A task's limits with every default filled in.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveLimits {
    /// Wall-clock time of the agent.
    pub timeout: Duration,
    /// Bytes kept of each output stream.
    pub max_output_bytes: ByteSize,
    /// Processes and threads at once.
    pub processes: i64,
    /// CPUs.
    pub cpu: Cpu,
    /// Memory.
    pub memory: ByteSize,
    /// Workspace and temporary files.
    pub ephemeral_storage: ByteSize,
}

/// Who approved what.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Approval {
    /// Whether the definition demands one. Only ever becomes true.
    pub required: bool,
    /// Who approved.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What they approved.
    #[schemars(length(max = 80))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When the approval was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// That someone cancelled.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[x_kube(validation = Rule::new("self.at == oldSelf.at").message("cancel.at is set once"))]
pub struct Cancel {
    /// When it was seen.
    pub at: Time,
}

/// The attempt to start, and the one grant.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.attempt >= oldSelf.attempt").message("attempt never falls"))]
#[x_kube(validation = Rule::new("!has(oldSelf.grant) || (has(self.grant) && self.grant == oldSelf.grant)").message("the grant is given once"))]
#[x_kube(validation = Rule::new("!has(oldSelf.grant) || self.attempt == oldSelf.attempt").message("a granted attempt is the last"))]
pub struct Launch {
    /// Number of the attempt, from 1.
    #[schemars(range(min = 1, max = 1000))]
    pub attempt: i64,
    /// When the attempt was decided.
    pub at: Time,
    /// Not to be tried before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Name of the attempt's pod.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// The permission to start the agent; there is at most one, ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

/// The permission to start the agent, given to one supervisor.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// UID of the pod; empty in a local run.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_uid: String,
    /// Name that the supervisor gave itself.
    #[schemars(length(max = 64))]
    pub instance: String,
    /// When it was given.
    pub at: Time,
}

/// How a task ended.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.code) == has(oldSelf.code) && (!has(self.code) || self.code == oldSelf.code)").message("result.code is set once"))]
pub struct TaskResult {
    /// Why it failed; absent when it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Who has to act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Whether the same request as a new task may succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The agent's exit code; -1 when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The system's word for the failure, such as `ENOENT`.
    #[schemars(length(max = 32), regex(pattern = r"^[A-Z][A-Z0-9_]{0,31}$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_code: Option<String>,
    /// How the agent was ended, when it didn't end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_method: Option<TerminationMethod>,
    /// Whether the deadline ended it.
    #[serde(default)]
    pub timeout: bool,
    /// The agent's final text: redacted, and untrusted all the same.
    #[schemars(with = "Option<String>", length(max = 262_144))]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "Redacted::deserialize_stored_option"
    )]
    pub text: Option<Redacted>,
    /// Whether the text is only the end of what was said.
    #[serde(default)]
    pub text_truncated: bool,
    /// The command that ran, or would have, with placeholders.
    #[schemars(with = "Option<String>", length(max = 4096))]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "Redacted::deserialize_stored_option"
    )]
    pub command: Option<Redacted>,
    /// True for a dry run.
    #[serde(default)]
    pub simulated: bool,
    /// True when the result is an earlier task's.
    #[serde(default)]
    pub replayed: bool,
    /// Whether output of the declared format was found, whatever the exit code says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_parsed: Option<bool>,
    /// Facts about standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StreamFacts>,
    /// Facts about standard error. Its text is shown nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<StreamFacts>,
    /// What the agent used, by its own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The image that ran, by digest.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Commits that the change lies between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitRange>,
    /// What changed in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffSummary>,
    /// What was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<DeliveredBranch>,
    /// Hosts that were refused.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_hosts: Vec<DeniedHost>,
}

/// How an agent was ended.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationMethod {
    /// SIGTERM was enough.
    Sigterm,
    /// SIGKILL was needed.
    Sigkill,
}

/// Facts about one output stream.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Bytes written in all.
    pub bytes: i64,
    /// Whether only the end was kept.
    pub truncated: bool,
}

/// What an agent used, by its own account.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<i64>,
    /// Tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<i64>,
    /// Cost in US dollars, a decimal.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<String>,
    /// Turns of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<i64>,
    /// The agent's own name for the session.
    #[schemars(with = "Option<String>", length(max = 256))]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "Redacted::deserialize_stored_option"
    )]
    pub session_id: Option<Redacted>,
    /// Tool calls that were denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<i64>,
}

/// Commits that a change lies between.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitRange {
    /// The commit that the workspace was made from.
    #[schemars(length(max = 64), regex(pattern = r"^[0-9a-f]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The commit that holds the change, once there is one.
    #[schemars(length(max = 64), regex(pattern = r"^[0-9a-f]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// What changed in the workspace.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffSummary {
    /// Files changed.
    pub files: i64,
    /// Lines added.
    pub insertions: i64,
    /// Lines removed.
    pub deletions: i64,
    /// The patch: redacted, and untrusted all the same.
    #[schemars(with = "Option<String>", length(max = 262_144))]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "Redacted::deserialize_stored_option"
    )]
    pub patch: Option<Redacted>,
    /// Whether the patch isn't whole.
    pub truncated: bool,
    /// Whether something in the patch was redacted.
    pub redacted: bool,
}

/// What was pushed.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct DeliveredBranch {
    /// The branch.
    #[schemars(length(max = 255))]
    pub branch: String,
    /// Its commit.
    #[schemars(length(max = 64))]
    pub commit: String,
}

/// A host that was refused.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct DeniedHost {
    /// Its name, sanitised.
    #[schemars(length(max = 260))]
    pub host: String,
    /// How often.
    pub count: i64,
}

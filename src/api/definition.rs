//! `AgentCliDefinition`: what the platform team allows a task to run, and how.

#![expect(clippy::duplicated_attributes, reason = "kube repeats type_ in each printcolumn")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ByteSize, Condition, Cpu, Duration};

/// One agent CLI that tasks may use, with everything that a caller must not choose: image, program, flags, hosts, ceilings.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "caisson.dev",
    version = "v1alpha1",
    kind = "AgentCliDefinition",
    plural = "agentclidefinitions",
    shortname = "acd",
    category = "caisson",
    status = "AgentCliDefinitionStatus",
    derive = "PartialEq",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Binary", type_ = "string", json_path = ".spec.binary"),
    printcolumn(name = "Approval", type_ = "boolean", json_path = ".spec.requiresApproval"),
    printcolumn(name = "Retired", type_ = "boolean", json_path = ".spec.retired"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!self.requiresApproval || !has(self.image) || self.image.matches('@sha256:[0-9a-f]{64}$')").message("an image without a digest needs requiresApproval: false").field_path(".image"))]
#[x_kube(validation = Rule::new("self.requiresApproval || has(self.requiresPinnedRevision) || !(has(self.delivery) || (has(self.workspace.repositories) && size(self.workspace.repositories) > 0))").message("a definition with repositories but without approval must state requiresPinnedRevision").field_path(".requiresPinnedRevision"))]
pub struct AgentCliDefinitionSpec {
    /// What this definition is for, in one line. It doesn't change what runs.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Version of the CLI. Part of the release that an approval names.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$"))]
    pub version: String,
    /// Container image with the CLI, by digest unless `requiresApproval` is false. Local runs need none.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[a-z0-9][A-Za-z0-9._:/@-]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The program: a bare name, looked up by the executor, or an absolute path in the image. Never chosen by a task.
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^(/([A-Za-z0-9_+-][A-Za-z0-9._+-]*/)*)?[A-Za-z0-9_+][A-Za-z0-9._+-]*$")
    )]
    pub binary: String,
    /// Arguments that stand before everything a task adds, as they are.
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Flag that takes the task's model as `FLAG=VALUE`. Unset: a task can't choose a model.
    #[schemars(length(max = 64), regex(pattern = r"^--?[A-Za-z0-9][A-Za-z0-9-]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_flag: Option<String>,
    /// Options that a task may set. Their order here doesn't matter.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionDefinition>,
    /// How the prompt reaches the CLI. Default: as the last argument, after `--`.
    #[serde(default)]
    pub prompt_delivery: PromptDelivery,
    /// How the CLI's standard output is read.
    #[serde(default)]
    pub output: Output,
    /// The agent's environment variables; it has no others but the executor's `PATH`, `HOME`, `TMPDIR` and `LANG`.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<EnvironmentVariable>,
    /// Hosts that the agent may reach.
    #[serde(default)]
    pub egress: DefinitionEgress,
    /// Repositories that a task may name, and secrets to read them with.
    #[serde(default)]
    pub workspace: DefinitionWorkspace,
    /// Rules for pushing the change as a new branch. Unset: a task can't ask for delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DefinitionDelivery>,
    /// Defaults and ceilings of what a task may use.
    #[serde(default)]
    pub limits: DefinitionLimits,
    /// Whether a task waits for someone's approval of exactly what would run. Default: true.
    #[serde(default = "yes")]
    pub requires_approval: bool,
    /// Whether a task must name its revision by full commit id. Default: the value of `requiresApproval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_pinned_revision: Option<bool>,
    /// Starts per namespace and window, such as `10/hour`. Windows are fixed and aligned to the epoch.
    #[schemars(length(max = 20), regex(pattern = r"^[1-9][0-9]{0,5}/(minute|hour|day)$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<String>,
    /// Tasks per namespace that may be active at once.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<i64>,
    /// Namespaces whose tasks may use this definition. Unset: none. Local runs have no namespace.
    #[x_kube(validation = Rule::new("(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)").message("an empty selector would allow every namespace: state matchLabels or matchExpressions"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// Whether live output goes to the supervisor's log, redacted. Default: None.
    #[serde(default)]
    pub logs: LogMode,
    /// How long a finished task's pod stays. Default: 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_retention: Option<Duration>,
    /// Settings of the pod that a task can't change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodSettings>,
    /// A retired definition takes no tasks; retiring it closes the running ones.
    #[serde(default)]
    pub retired: bool,
}

/// One option that a task may set, and the flag that carries it.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct OptionDefinition {
    /// Name that a task uses.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z][A-Za-z0-9]*$"))]
    pub name: String,
    /// Flag on the command line: `FLAG=VALUE`; a boolean is the bare flag when true and absent when false.
    #[schemars(length(max = 64), regex(pattern = r"^--?[A-Za-z0-9][A-Za-z0-9-]*$"))]
    pub flag: String,
    /// What the option means, in one line.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Legal values.
    pub schema: OptionSchema,
}

/// Legal values of an option: the part of JSON Schema that a command line can carry.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.type == 'integer' || (!has(self.minimum) && !has(self.maximum))").message("minimum and maximum are for integers"))]
#[x_kube(validation = Rule::new("self.type == 'string' || (!has(self.pattern) && !has(self.maxLength) && !has(self.enum))").message("pattern, maxLength and enum are for strings"))]
#[x_kube(validation = Rule::new("!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum").message("minimum must not exceed maximum"))]
pub struct OptionSchema {
    /// The value's type.
    #[serde(rename = "type")]
    pub kind: OptionKind,
    /// Smallest legal integer. Default, and never below: -(2^53 - 1), the numbers that JSON carries exactly.
    #[schemars(range(min = -9_007_199_254_740_991_i64, max = 9_007_199_254_740_991_i64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i64>,
    /// Largest legal integer. Default, and never above: 2^53 - 1.
    #[schemars(range(min = -9_007_199_254_740_991_i64, max = 9_007_199_254_740_991_i64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<i64>,
    /// The only legal strings.
    #[schemars(length(min = 1, max = 64), inner(length(max = 256)))]
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// Regular expression that the whole string must match.
    #[schemars(length(max = 512))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Longest legal string, in characters. Default: 1024.
    #[schemars(range(min = 0, max = 65_536))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
}

/// Type of an option's value.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OptionKind {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

/// How the prompt reaches the CLI: exactly one of the fields, or none for the default, `argument`.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[x_kube(validation = Rule::new("(has(self.argument) ? 1 : 0) + (has(self.stdin) ? 1 : 0) + (has(self.file) ? 1 : 0) <= 1").message("at most one of argument, stdin and file"))]
pub struct PromptDelivery {
    /// One argument at the end, after `--`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<ArgumentDelivery>,
    /// Standard input, then its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<StdinDelivery>,
    /// A private file whose path is the value of a flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDelivery>,
}

/// The prompt is the last argument.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgumentDelivery {}

/// The prompt is standard input.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct StdinDelivery {}

/// The prompt is a file.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct FileDelivery {
    /// Flag that takes the file's path as `FLAG=PATH`.
    #[schemars(length(max = 64), regex(pattern = r"^--?[A-Za-z0-9][A-Za-z0-9-]*$"))]
    pub flag: String,
}

/// How standard output is read. The programs are CEL; they see `out` (`Json`: the value) or `events` (`JsonLines`: the list).
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[x_kube(validation = Rule::new("self.format != 'Text' || (!has(self.text) && !has(self.failed) && !has(self.usage))").message("programs need the format Json or JsonLines"))]
pub struct Output {
    /// Format of standard output. Default: Text.
    #[serde(default)]
    pub format: OutputFormat,
    /// Program for the final text, a string. Unset: with Text the output itself, else none.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Program that says whether the agent itself reports a failure, a boolean. Unset: never.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Programs for the numbers of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsagePrograms>,
}

/// Format of standard output.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// Plain text: the result is the output's tail.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One JSON value a line.
    JsonLines,
}

/// Programs for the numbers of a run. One that fails leaves its number out; it never fails the run.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct UsagePrograms {
    /// Tokens read: an integer.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<String>,
    /// Tokens written: an integer.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<String>,
    /// Cost in US dollars: a decimal string or a number.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<String>,
    /// Turns of the conversation: an integer.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<String>,
    /// The agent's own name for the session: a string.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Tool calls that were denied: an integer.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<String>,
}

/// One environment variable of the agent.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.value) != has(self.secretKeyRef)").message("exactly one of value and secretKeyRef"))]
pub struct EnvironmentVariable {
    /// The variable's name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// A literal value. It isn't a secret: anyone who may read the definition can read it.
    #[schemars(length(max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// A secret in the task's namespace. A local run takes the caller's environment variable of the same name instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKey>,
}

/// One key of a secret.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct SecretKey {
    /// The secret's name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    pub key: String,
}

/// Hosts that tasks may reach. A pattern is a host name or `*.suffix`, with an optional port (default 443).
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionEgress {
    /// Hosts that every task may reach.
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
    /// Further hosts that a task may ask for.
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
    pub ceiling: Vec<String>,
}

/// Which repositories tasks may name.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionWorkspace {
    /// Repository addresses; one that ends in `/*` allows everything below it. None: tasks have no repository.
    #[schemars(
        length(max = 64),
        inner(
            length(max = 1024),
            regex(pattern = r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*(/\*)?$")
        )
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// Secrets that a task may name to read them.
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_names: Vec<String>,
}

/// Rules for pushing a change.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionDelivery {
    /// What every delivered branch begins with.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"))]
    pub branch_prefix: String,
    /// Secrets that a task may name to push with.
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_names: Vec<String>,
}

/// Defaults and ceilings. What is unset has the built-in ones.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionLimits {
    /// Wall-clock time of the agent. Built in: 10m, at most 1h; never above 24h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationRange>,
    /// Bytes kept of the end of each of standard output and standard error. Built in: 1Mi, at most 8Mi; never above 8Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<SizeRange>,
    /// Processes and threads that the agent may have at once. Built in: 512, at most 4096; never above 32768.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<IntegerRange>,
    /// CPU, memory and storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRanges>,
}

/// Default and ceiling of a duration.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationRange {
    /// Used when a task says nothing.
    pub default: Duration,
    /// What a task may ask for at most.
    pub max: Duration,
}

/// Default and ceiling of a number of bytes.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// Used when a task says nothing.
    pub default: ByteSize,
    /// What a task may ask for at most.
    pub max: ByteSize,
}

/// Default and ceiling of a count.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerRange {
    /// Used when a task says nothing.
    #[schemars(range(min = 1, max = 32_768))]
    pub default: i64,
    /// What a task may ask for at most.
    #[schemars(range(min = 1, max = 32_768))]
    pub max: i64,
}

/// Default and ceiling of a CPU share.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuRange {
    /// Used when a task says nothing.
    pub default: Cpu,
    /// What a task may ask for at most.
    pub max: Cpu,
}

/// Defaults and ceilings of CPU, memory and storage.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRanges {
    /// CPUs. Built in: 1, at most 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuRange>,
    /// Memory. Built in: 2Gi, at most 8Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SizeRange>,
    /// Space for the workspace and temporary files. Built in: 4Gi, at most 16Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<SizeRange>,
}

/// Whether live output is logged.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogMode {
    /// Not at all.
    #[default]
    None,
    /// Redacted.
    Redacted,
}

/// Settings of the pod.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodSettings {
    /// Runtime class, such as gVisor's. Part of the contract.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// False gives the pod a user namespace of its own. Part of the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_users: Option<bool>,
    /// Secrets to pull the image with.
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<String>,
    /// Labels of nodes that may run the pod.
    #[schemars(extend("maxProperties" = 32))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pod tolerates.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<k8s_openapi::api::core::v1::Toleration>,
    /// Priority class of the pod.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// What the operator found out about a definition.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AgentCliDefinitionStatus {
    /// Generation that the rest describes; -1 before the first look.
    #[serde(default = "never_observed")]
    pub observed_generation: i64,
    /// Hash of what the definition lets an agent do. A task may pin it.
    #[schemars(length(max = 80))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_hash: Option<String>,
    /// `Ready`: whether tasks may use it.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

const fn yes() -> bool {
    true
}

pub(super) const fn never_observed() -> i64 {
    -1
}

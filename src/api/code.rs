//! Failure codes: stable names with one fixed message, one category and one answer to "may I try again?" each.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Who has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Category {
    /// The task's author: the request itself can't be run.
    Request,
    /// The platform team: the definition, the policies or the installation.
    Configuration,
    /// A reviewer or the caller decided so.
    Decision,
    /// The environment: images, nodes, quota, network, workspace.
    Environment,
    /// The agent ran and failed.
    Agent,
    /// What happened can't be known.
    Unknown,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $category:ident, $retryable:literal, $message:literal;)+) => {
        /// Why a task did not succeed. Names are stable; a task's status, `caisson explain` and the reference show them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The stable name, as it stands in `status.result.code`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The same name as a condition's reason, such as `NonzeroExit`.
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// The fixed message for people. It never quotes anything of the task.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)+ }
            }

            /// Who has to act.
            pub const fn category(self) -> Category {
                match self { $(Self::$variant => Category::$category,)+ }
            }

            /// Whether the same request, made anew as a new task, may succeed without anyone changing anything.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retryable,)+ }
            }

            /// What the code means and what to do about it, for `caisson explain`.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc, "\n"),+),)+ }
            }
        }
    };
}

codes! {
    /// A field of the task is missing, malformed or outside its bounds. The condition `Validated` lists every problem with
    /// its path. Correct the manifest and create the task anew: a spec is immutable.
    InvalidTask = "invalid-task", Request, false, "the task is invalid";
    /// No definition of that name exists. `caisson definitions` or `kubectl get agentclidefinitions` lists them.
    DefinitionNotFound = "definition-not-found", Request, false, "the definition does not exist";
    /// The definition itself has problems, so no task may use it. Its own `Ready` condition lists them.
    DefinitionInvalid = "definition-invalid", Configuration, false, "the definition is invalid";
    /// The task asks for a version or contract hash that the definition doesn't have (any more).
    DefinitionMismatch = "definition-mismatch", Request, false, "the definition is not the one that the task asks for";
    /// The definition is retired: it takes no new tasks, and running ones were closed.
    DefinitionRetired = "definition-retired", Configuration, false, "the definition is retired";
    /// The definition changed between the approval and the start, so what was approved is not what would run.
    DefinitionDrifted = "definition-drifted", Configuration, true, "the definition changed before the start";
    /// The definition doesn't allow tasks of this namespace.
    NamespaceNotAllowed = "namespace-not-allowed", Configuration, false, "the definition does not allow this namespace";
    /// The installation lacks the admission policies that approvals rest on.
    PoliciesMissing = "policies-missing", Configuration, true, "the admission policies are missing";
    /// A reviewer rejected the task.
    ApprovalRejected = "approval-rejected", Decision, false, "the task was rejected";
    /// Nobody approved the task within its approval timeout.
    ApprovalExpired = "approval-expired", Decision, true, "no approval arrived in time";
    /// Another task with the same idempotency key asked for something else.
    IdempotencyKeyReused = "idempotency-key-reused", Request, false, "the idempotency key was used for something else";
    /// The prompt, or the whole command line, is longer than the definition's way of delivering it can carry. Use a definition
    /// with stdin or file delivery, or shorten it.
    PromptTooLarge = "prompt-too-large", Request, false, "the prompt is too large for its delivery";
    /// The prompt's `ConfigMap` key or a secret that the definition needs does not exist. In a local run: the environment variable
    /// that stands for the secret is not set.
    SourceMissing = "source-missing", Request, false, "a source of the prompt or of a secret is missing";
    /// The executor can't enforce something that the task or its definition demands, or a value can't be carried safely (a secret
    /// too short to be redacted).
    Unsupported = "unsupported", Configuration, false, "something that the task demands is not supported here";
    /// The container runtime, or the local machine, can't run agents now.
    RuntimeUnavailable = "runtime-unavailable", Environment, true, "the runtime is not available";
    /// The agent's image can't be pulled.
    ImageUnavailable = "image-unavailable", Environment, true, "the image is not available";
    /// No node had room for the pod in time.
    Unschedulable = "unschedulable", Environment, true, "no node can run the task";
    /// The namespace's quota had no room for the pod in time.
    QuotaExceeded = "quota-exceeded", Environment, true, "the quota has no room for the task";
    /// A pod of the planned name exists and isn't this task's. It was not touched.
    PodConflict = "pod-conflict", Environment, false, "another pod has the name of this task's pod";
    /// Something changed the pod on its way into the cluster; it was deleted before anything started.
    PodModified = "pod-modified", Configuration, false, "the pod is not the one that was planned";
    /// The workspace could not be prepared: repository, revision or subdirectory. The system code says which.
    WorkspaceFailed = "workspace-failed", Environment, true, "the workspace could not be prepared";
    /// It could not be proven that egress is limited, so nothing was started.
    EgressNotEnforced = "egress-not-enforced", Configuration, true, "egress limits are not enforced";
    /// The agent's program could not be started. The system code says why (`ENOENT`: no such program).
    SpawnFailed = "spawn-failed", Configuration, false, "the agent could not be started";
    /// The agent ran into its deadline and was ended.
    Timeout = "timeout", Agent, true, "the agent ran into its deadline";
    /// Processes of the agent were still alive after they were killed.
    TerminationFailed = "termination-failed", Environment, false, "the agent could not be ended";
    /// The agent, or one of its processes, ran out of memory.
    OutOfMemory = "out-of-memory", Agent, true, "the agent ran out of memory";
    /// The node evicted the pod.
    Evicted = "evicted", Environment, true, "the task was evicted";
    /// The workspace's storage was used up.
    DiskFull = "disk-full", Agent, true, "the workspace is full";
    /// The connection that controls the agent was lost, so the agent was ended.
    ControlLost = "control-lost", Environment, true, "the control of the agent was lost";
    /// The agent ended with an exit code other than zero, or by a signal (exit code -1).
    NonzeroExit = "nonzero-exit", Agent, true, "the agent exited with an error";
    /// The agent itself reported that it failed, whatever its exit code says.
    AgentReportedError = "agent-reported-error", Agent, true, "the agent reported an error";
    /// The agent's output is not of the declared format, or lacks what the definition's programs read.
    ParseOutputFailed = "parse-output-failed", Agent, true, "the agent's output could not be read";
    /// The sandbox sent a report that breaks the protocol.
    InvalidExecResult = "invalid-exec-result", Unknown, false, "the report from the sandbox is invalid";
    /// A known secret stands in what would have been delivered, so nothing was.
    SecretInDelivery = "secret-in-delivery", Agent, false, "a secret stands in the outgoing change";
    /// The branch could not be pushed, or the change not applied. The diff is in the result.
    DeliveryFailed = "delivery-failed", Environment, false, "the change could not be delivered";
    /// The task was cancelled.
    Cancelled = "cancelled", Decision, false, "the task was cancelled";
    /// The agent may have run, and what became of it can't be known. It is never run again.
    Lost = "lost", Unknown, false, "what became of the agent is not known";
    /// The sandbox failed in a way that has no code of its own. The system code may say more.
    ExecFailed = "exec-failed", Environment, true, "the sandbox failed";
}

impl Code {
    /// The code of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl JsonSchema for Code {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    // A pattern, not an enumeration: a status written by a newer release stays legal for an older schema.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "maxLength": 64})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_kebab_case_and_match_serde() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert!(code.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{code}");
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
            assert_eq!(Code::from_name(code.name()), Some(*code));
            assert_eq!(Code::ALL.iter().position(|other| other.name() == code.name()), Some(index));
            assert!(!code.explanation().trim().is_empty() && !code.message().is_empty());
        }
        assert_eq!(Code::ALL.len(), 38);
        assert_eq!(Code::from_name("no-such-code"), None);
    }
}

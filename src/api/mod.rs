//! The objects that people see: `AgentCliTask` and `AgentCliDefinition`, their statuses, conditions, codes and annotations.
//!
//! Nothing here decides anything. What the API server can check stands in the schemas and their CEL rules; the rest is
//! [`core::validate`](crate::core::validate)'s. Doc comments become the descriptions that `kubectl explain` shows.

mod code;
mod condition;
pub mod crd;
mod definition;
mod quantity;
mod status;
mod task;

pub use code::{Category, Code};
pub use condition::{Condition, ConditionStatus, ConditionType, Reason};
pub use definition::{
    AgentCliDefinition, AgentCliDefinitionSpec, AgentCliDefinitionStatus, ArgumentDelivery, CpuRange,
    DefinitionDelivery, DefinitionEgress, DefinitionLimits, DefinitionWorkspace, DurationRange,
    EnvironmentVariable, FileDelivery, IntegerRange, LogMode, OptionDefinition, OptionKind, OptionSchema,
    Output, OutputFormat, PodSettings, PromptDelivery, ResourceRanges, SecretKey, SizeRange, StdinDelivery,
    UsagePrograms,
};
pub use quantity::{ByteSize, Cpu, Duration, ParseQuantityError};
pub use status::{
    AgentCliTaskStatus, Approval, Cancel, CommitRange, DefinitionRef, DeliveredBranch, DeniedHost,
    DiffSummary, EffectiveLimits, Grant, Launch, Preview, Release, StreamFacts, TaskResult,
    TerminationMethod, Usage,
};
pub use task::{
    AgentCliTask, AgentCliTaskSpec, ConfigMapKey, DefinitionSelector, GitSource, Limits, LocalReference,
    PromptSource, Resources, TaskDelivery, TaskEgress, Workspace,
};

/// API group of every object.
pub const GROUP: &str = "caisson.dev";
/// The only served version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every object.
pub const API_VERSION: &str = "caisson.dev/v1alpha1";

/// Annotation that approves exactly one digest.
pub const APPROVED_DIGEST: &str = "caisson.dev/approved-digest";
/// Annotation that names the approver; must be the requester.
pub const APPROVED_BY: &str = "caisson.dev/approved-by";
/// Annotation that rejects a task; must name the requester.
pub const REJECTED_BY: &str = "caisson.dev/rejected-by";
/// Annotation that cancels a task when `"true"`; sticky once seen.
pub const CANCEL: &str = "caisson.dev/cancel";
/// Annotation that admission stamps with the creating identity.
pub const CREATED_BY: &str = "caisson.dev/created-by";

//! What a decision asks for. Whoever carries it out chooses nothing.

use std::fmt;

use jiff::Timestamp;

use crate::protocol::StopReason;

use crate::api::{
    AgentCliTaskStatus, EffectiveLimits, EnvironmentVariable, LogMode, PodSettings, Release, Workspace,
};

/// The next step for one task: write `status` where it differs, then carry out `actions` in order.
///
/// A crash between any two steps is safe, because the next pass decides again from what it finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The status as it should be, written before any action.
    pub status: AgentCliTaskStatus,
    /// What to do, in order; each is idempotent and complete.
    pub actions: Vec<Action>,
    /// When to decide again if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

/// One thing to do with an executor.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Make sure that the sandbox exists. It starts no agent: that takes a grant.
    Ensure(Box<RunSpec>),
    /// End the agent, then the sandbox.
    Stop(RunId, StopReason),
    /// Remove the sandbox and everything of it.
    Remove(RunId),
}

/// One attempt to run one task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId {
    /// The task's UID.
    pub uid: String,
    /// The attempt, from 1.
    pub attempt: i64,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.uid, self.attempt)
    }
}

/// What a sandbox must offer. It says what, never how, and holds nothing secret: prompt and values come with the grant.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// Which attempt it is.
    pub id: RunId,
    /// What would be started in it.
    pub release: Release,
    /// Limits to enforce.
    pub limits: EffectiveLimits,
    /// Hosts that may be reached; everything else may not.
    pub hosts: Vec<String>,
    /// The agent's variables; secrets by reference.
    pub environment: Vec<EnvironmentVariable>,
    /// What the agent works on.
    pub workspace: Workspace,
    /// Whether live output is shown.
    pub logs: LogMode,
    /// Settings of the platform's.
    pub pod: Option<PodSettings>,
}

/// Something that an executor can't enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unsupported {
    /// Limit of CPU time.
    Cpu,
    /// Limit of memory.
    Memory,
    /// Limit of the workspace's size.
    EphemeralStorage,
    /// Hosts that may be reached.
    Egress,
    /// Read-only view of everything but the workspace.
    Filesystem,
    /// Runtime class or user namespace.
    Isolation,
    /// Credentials for the repository.
    RepositoryCredentials,
    /// Pushing the change.
    Delivery,
    /// Idempotency keys.
    IdempotencyKey,
    /// Rate or concurrency per namespace.
    Quota,
}

impl Unsupported {
    /// The name that a preview shows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::EphemeralStorage => "ephemeral storage",
            Self::Egress => "egress",
            Self::Filesystem => "file system isolation",
            Self::Isolation => "pod isolation",
            Self::RepositoryCredentials => "repository credentials",
            Self::Delivery => "delivery",
            Self::IdempotencyKey => "idempotencyKey",
            Self::Quota => "rateLimit and maxConcurrent",
        }
    }
}

//! What a supervisor asks of whoever controls it: the operator over its channel, or `caisson run` in the same process.

use std::fmt;

use async_trait::async_trait;

use super::Report;
use crate::api::{EffectiveLimits, LogMode, Output};
use crate::core::command::{Command, Prompt};
use crate::core::outcome::Failure;
use crate::core::plan::RunId;
use crate::protocol::Stream;
use crate::redact::Redacted;

/// The seam between a supervisor and its controller.
#[async_trait]
pub trait Control: Send + Sync {
    /// Asks for the grant. It is given to one supervisor once; without it no agent starts.
    ///
    /// # Errors
    /// The refusal, which is final for this run.
    async fn launch(&self, run: &RunId, ready: Ready) -> Result<Order, Failure>;

    /// Reports how the run ended. The first report of a run counts.
    async fn report(&self, run: &RunId, report: Report);

    /// Shows a piece of live output.
    fn live(&self, run: &RunId, stream: Stream, text: Redacted);
}

/// What a supervisor has prepared when it asks for the grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The commit that the workspace stands at; absent for an empty workspace.
    pub base: Option<String>,
}

/// Everything that comes with the grant and must not be known earlier. `Debug` shows no value.
#[derive(Clone)]
pub struct Order {
    /// The command line.
    pub command: Command,
    /// The prompt.
    pub prompt: Prompt,
    /// The declared variables with their values.
    pub environment: Vec<Variable>,
    /// How standard output is read.
    pub output: Output,
    /// The limits.
    pub limits: EffectiveLimits,
    /// Whether live output is shown.
    pub logs: LogMode,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("command", &self.command)
            .field("prompt", &self.prompt)
            .finish_non_exhaustive()
    }
}

/// One environment variable of the agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
    /// Whether the value must be shown nowhere.
    pub secret: bool,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.name)
            .field("secret", &self.secret)
            .finish_non_exhaustive()
    }
}

//! Exit codes, as `caisson run --help` documents them.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The task ran and failed, or could not be run.
    Failed,
    /// The input is invalid; nothing was started.
    Invalid,
    /// Someone has to approve first; nothing was started.
    ApprovalNeeded,
    /// Interrupted: the agent was ended and the workspace removed.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Failed => Self::from(1),
            Exit::Invalid => Self::from(2),
            Exit::ApprovalNeeded => Self::from(3),
            Exit::Interrupted => Self::from(130),
        }
    }
}

//! Agents, described so that every executor can have them.

/// What an agent does. Its first step is to be counted by the world outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// Ends with this code.
    Exit(i32),
    /// Ends itself by SIGKILL.
    DieBySignal,
    /// Prints this and ends well.
    Print(&'static str),
    /// Adds a file of one line to its workspace and ends well.
    WriteFile(&'static str),
    /// Works until it is ended.
    WaitUntilStopped,
    /// Works until it is ended, and leaves SIGTERM unheard.
    IgnoreSigterm,
}

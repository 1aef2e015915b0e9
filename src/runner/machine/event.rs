//! What the machine is told, and what it asks for.

use crate::protocol::{Exit, Launch, Stop, Stream, SystemCode, ToSupervisor};

/// Something that happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// The supervisor asks for this program.
    Launch(Box<Launch>),
    /// The program runs, with this process id.
    Spawned {
        /// Of the program, its group and its session.
        pid: u32,
    },
    /// The program couldn't be started.
    SpawnFailed {
        /// The platform's reason.
        code: SystemCode,
    },
    /// The agent wrote something.
    Output {
        /// Where.
        stream: Stream,
        /// What.
        bytes: &'a [u8],
    },
    /// An output stream ended.
    StreamClosed(Stream),
    /// The agent's own process ended and is reaped.
    ChildExited(Exit),
    /// Another process of the agent's had lost its parent and was reaped.
    OrphanReaped {
        /// Whether SIGKILL ended it.
        killed: bool,
    },
    /// The answer to [`Action::Sweep`]. That nothing remains may also be told unasked.
    Swept {
        /// Whether anything of the agent's is still there.
        remaining: bool,
    },
    /// The answer to [`Action::Count`].
    Counted {
        /// Processes of the agent's tree, its own included.
        processes: u32,
    },
    /// The supervisor wants an end.
    Stop(Stop),
    /// The platform wants an end, by a signal to the runner. The launch's own grace applies.
    Interrupted,
    /// The supervisor is gone, or broke the protocol.
    SupervisorLost,
    /// Time passed.
    Tick,
}

/// Something to do, in order and without choices.
#[derive(Debug)]
pub enum Action {
    /// Start this program; the answer is [`Input::Spawned`] or [`Input::SpawnFailed`].
    Spawn(Box<Launch>),
    /// Send this signal to the agent's group. A group that is gone is what was wanted.
    Signal(Signal),
    /// Kill whatever is left of the agent's tree, in its group or out of it; the answer is [`Input::Swept`].
    Sweep,
    /// Count the processes of the agent's tree; the answer is [`Input::Counted`].
    Count {
        /// One more than this is enough to know.
        most: u32,
    },
    /// Tell the supervisor, if it is still there.
    Send(ToSupervisor),
    /// End the runner once everything is sent.
    Exit,
}

/// The two signals that end a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: please.
    Terminate,
    /// SIGKILL.
    Kill,
}

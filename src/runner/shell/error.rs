//! Why the runner can't do its work. Names steps and paths, never anything of a launch.

use std::io;
use std::path::PathBuf;

use crate::protocol::EncodeError;

/// A failure of the runner itself, as opposed to one of its agent, which is reported.
#[derive(Debug, thiserror::Error)]
pub(in crate::runner) enum RunnerError {
    /// The kernel refused a step of the runner's own protection.
    #[error("can not {step}")]
    Prepare {
        /// What was refused.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no token, or only a part of one.
    #[error("can not read the token of 32 bytes")]
    Token {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nobody listened in time.
    #[error("no supervisor at {path}")]
    NoSupervisor {
        /// The socket.
        path: PathBuf,
        /// The last failure.
        #[source]
        source: io::Error,
    },
    /// A signal ended the runner before it had a supervisor.
    #[error("interrupted before the supervisor was there")]
    Interrupted,
    /// Waiting for events failed, which leaves nothing to do but end.
    #[error("can not wait for events")]
    Wait {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A record of the runner's own breaks the protocol.
    #[error("can not encode a record")]
    Encode {
        /// Which rule.
        #[source]
        source: EncodeError,
    },
    /// The supervisor went away before the report was delivered. The agent is ended.
    #[error("the supervisor is gone")]
    SupervisorLost,
}

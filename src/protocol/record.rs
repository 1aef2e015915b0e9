//! The records of both directions, and how each becomes bytes.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frame::{self, Kind, MAX_CONTROL, MAX_DATA};
use super::launch::{LaunchHeader, length, millis};
use super::{DecodeError, ExecReport, Launch, LaunchError, MAX_PAYLOAD, Token};

/// What the supervisor tells the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToRunner {
    /// Start this, once.
    Launch(Box<Launch>),
    /// End it.
    Stop(Stop),
}

/// What the runner tells the supervisor.
#[derive(Clone)]
pub enum ToSupervisor {
    /// The first record: the runner is prepared and waits for its launch.
    Hello {
        /// The runner's [`VERSION`](super::VERSION).
        version: u32,
        /// The runner's own process id, in its own namespace.
        pid: u32,
        /// The secret that the supervisor gave it.
        token: Token,
    },
    /// The program was executed.
    Started {
        /// The program's process id, which is also its group's and session's, in the runner's namespace.
        pid: u32,
    },
    /// Live output, in order within its stream, cut anywhere.
    Output {
        /// Where it was written to.
        stream: Stream,
        /// What was written; untrusted.
        bytes: Vec<u8>,
    },
    /// The last record: everything is over.
    Exited {
        /// How.
        report: ExecReport,
        /// The end of standard output; untrusted, and valid UTF-8 only if the agent wrote that.
        stdout: Vec<u8>,
        /// The end of standard error; likewise.
        stderr: Vec<u8>,
    },
}

/// An output stream of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A request to end the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// From SIGTERM to SIGKILL. A later stop can shorten it, not lengthen it.
    #[serde(rename = "grace_ms", with = "millis")]
    pub grace: Duration,
}

/// Why an agent is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Someone cancelled the task.
    Cancelled,
    /// Its definition was retired.
    Retired,
    /// The platform or the user ends the run: a signal to the runner or to `caisson run`.
    Interrupted,
    /// Whoever controls the run can't be reached any more.
    ControlLost,
}

/// Why a record can't be sent. Nothing of its content is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Nobody could start this launch.
    #[error("launch can not be started")]
    Launch(#[source] LaunchError),
    /// Too many parts: arguments, variables or files.
    #[error("record header of {bytes} bytes is larger than {MAX_CONTROL}")]
    HeaderTooLarge {
        /// The header's length.
        bytes: usize,
    },
    /// The parts are too long in all.
    #[error("record payload of {bytes} bytes is larger than {MAX_PAYLOAD}")]
    PayloadTooLarge {
        /// The payload's length.
        bytes: u64,
    },
    /// The header couldn't be written as JSON.
    #[error("record header can not be written")]
    Header,
}

/// A record of one direction. Sealed: [`ToRunner`] and [`ToSupervisor`].
pub trait Record: Sized + sealed::Parts {
    /// Appends the record's frames to `out`.
    ///
    /// # Errors
    /// The record breaks a limit of the protocol; `out` is unchanged then.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.check().map_err(EncodeError::Launch)?;
        let header = serde_json::to_vec(&self.header()).map_err(|_| EncodeError::Header)?;
        if header.len() > MAX_CONTROL {
            return Err(EncodeError::HeaderTooLarge { bytes: header.len() });
        }
        let parts = self.payload();
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        if bytes > MAX_PAYLOAD {
            return Err(EncodeError::PayloadTooLarge { bytes });
        }
        frame::write(Kind::Control, &header, out);
        write_payload(&parts, out);
        Ok(())
    }
}

/// Packs the parts into as few data frames as possible: hundreds of short arguments make one.
fn write_payload(parts: &[&[u8]], out: &mut Vec<u8>) {
    let mut left: usize = parts.iter().map(|part| part.len()).sum();
    out.reserve(left + (left / MAX_DATA + 1) * frame::PREFIX);
    let mut room = 0;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            if room == 0 {
                room = left.min(MAX_DATA);
                frame::write_prefix(Kind::Data, room, out);
            }
            let (now, later) = rest.split_at(rest.len().min(room));
            out.extend_from_slice(now);
            (rest, room, left) = (later, room - now.len(), left - now.len());
        }
    }
}

impl Record for ToRunner {}
impl Record for ToSupervisor {}

/// How a record is divided into header and payload.
pub(super) mod sealed {
    use super::{DecodeError, DeserializeOwned, LaunchError, Serialize};

    pub trait Parts: Sized {
        type Header: Serialize + DeserializeOwned;
        fn check(&self) -> Result<(), LaunchError>;
        fn header(&self) -> Self::Header;
        fn payload(&self) -> Vec<&[u8]>;
        /// How many bytes of payload the header announces.
        fn announced(header: &Self::Header) -> u64;
        /// The record, from exactly as many bytes as announced.
        fn assemble(header: Self::Header, payload: Vec<u8>) -> Result<Self, DecodeError>;
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToRunnerHeader {
    Launch(Box<LaunchHeader>),
    Stop(Stop),
}

impl sealed::Parts for ToRunner {
    type Header = ToRunnerHeader;

    fn check(&self) -> Result<(), LaunchError> {
        match self {
            Self::Launch(launch) => launch.validate(),
            Self::Stop(_) => Ok(()),
        }
    }

    fn header(&self) -> Self::Header {
        match self {
            Self::Launch(launch) => ToRunnerHeader::Launch(Box::new(LaunchHeader::of(launch))),
            Self::Stop(stop) => ToRunnerHeader::Stop(*stop),
        }
    }

    fn payload(&self) -> Vec<&[u8]> {
        match self {
            Self::Launch(launch) => LaunchHeader::parts(launch),
            Self::Stop(_) => Vec::new(),
        }
    }

    fn announced(header: &Self::Header) -> u64 {
        match header {
            ToRunnerHeader::Launch(header) => header.payload(),
            ToRunnerHeader::Stop(_) => 0,
        }
    }

    fn assemble(header: Self::Header, payload: Vec<u8>) -> Result<Self, DecodeError> {
        match header {
            ToRunnerHeader::Launch(header) => {
                let launch = header.assemble(&payload).ok_or(DecodeError::WrongPayload)?;
                launch.validate().map_err(DecodeError::Launch)?;
                Ok(Self::Launch(Box::new(launch)))
            }
            ToRunnerHeader::Stop(stop) => Ok(Self::Stop(stop)),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToSupervisorHeader {
    Hello { version: u32, pid: u32 },
    Started { pid: u32 },
    Output { stream: Stream, bytes: u32 },
    Exited { report: ExecReport, stdout: u32, stderr: u32 },
}

impl sealed::Parts for ToSupervisor {
    type Header = ToSupervisorHeader;

    fn check(&self) -> Result<(), LaunchError> {
        Ok(())
    }

    fn header(&self) -> Self::Header {
        match self {
            Self::Hello { version, pid, token: _ } => {
                ToSupervisorHeader::Hello { version: *version, pid: *pid }
            }
            Self::Started { pid } => ToSupervisorHeader::Started { pid: *pid },
            Self::Output { stream, bytes } => {
                ToSupervisorHeader::Output { stream: *stream, bytes: length(bytes) }
            }
            Self::Exited { report, stdout, stderr } => ToSupervisorHeader::Exited {
                report: report.clone(),
                stdout: length(stdout),
                stderr: length(stderr),
            },
        }
    }

    fn payload(&self) -> Vec<&[u8]> {
        match self {
            Self::Hello { token, .. } => vec![token.as_bytes()],
            Self::Started { .. } => Vec::new(),
            Self::Output { bytes, .. } => vec![bytes],
            Self::Exited { stdout, stderr, .. } => vec![stdout, stderr],
        }
    }

    fn announced(header: &Self::Header) -> u64 {
        match header {
            ToSupervisorHeader::Hello { .. } => Token::BYTES as u64,
            ToSupervisorHeader::Started { .. } => 0,
            ToSupervisorHeader::Output { bytes, .. } => u64::from(*bytes),
            ToSupervisorHeader::Exited { stdout, stderr, .. } => u64::from(*stdout) + u64::from(*stderr),
        }
    }

    fn assemble(header: Self::Header, mut payload: Vec<u8>) -> Result<Self, DecodeError> {
        Ok(match header {
            ToSupervisorHeader::Hello { version, pid } => {
                let token = payload.try_into().map_err(|_| DecodeError::WrongPayload)?;
                Self::Hello { version, pid, token: Token::from_bytes(token) }
            }
            ToSupervisorHeader::Started { pid } => Self::Started { pid },
            ToSupervisorHeader::Output { stream, bytes: _ } => Self::Output { stream, bytes: payload },
            ToSupervisorHeader::Exited { report, stdout, stderr: _ } => {
                let cut = usize::try_from(stdout).map_err(|_| DecodeError::WrongPayload)?;
                let stderr = payload.split_off(cut.min(payload.len()));
                Self::Exited { report, stdout: payload, stderr }
            }
        })
    }
}

/// Shows lengths, never output or the token.
impl fmt::Debug for ToSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello { version, pid, token } => f
                .debug_struct("Hello")
                .field("version", version)
                .field("pid", pid)
                .field("token", token)
                .finish(),
            Self::Started { pid } => f.debug_struct("Started").field("pid", pid).finish(),
            Self::Output { stream, bytes } => {
                f.debug_struct("Output").field("stream", stream).field("bytes", &bytes.len()).finish()
            }
            Self::Exited { report, stdout, stderr } => f
                .debug_struct("Exited")
                .field("report", report)
                .field("stdout", &stdout.len())
                .field("stderr", &stderr.len())
                .finish(),
        }
    }
}

//! What the runner is asked to start, with its limits.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::MAX_TAIL;

/// Longest duration in a launch (a year): far above any timeout, and keeps sums of durations from overflowing.
pub const MAX_DURATION: Duration = Duration::from_hours(366 * 24);

/// One program to start, exactly as given: no shell, no lookup, no inherited variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// Absolute path of the executable. Looking a name up is the caller's work.
    pub program: PathBuf,
    /// The whole argument vector, element 0 (the program's own name) included.
    pub argv: Vec<OsString>,
    /// The whole environment, in order.
    pub environment: Vec<(OsString, OsString)>,
    /// Absolute path of the directory to start in.
    pub working_directory: PathBuf,
    /// What the program finds on its standard input.
    pub stdin: Stdin,
    /// Files that exist while the program runs, such as a prompt that is delivered by file.
    pub files: Vec<LaunchFile>,
    /// When to end it, and how much of it to keep.
    pub limits: Limits,
    /// Whether output is also sent while it is written. A supervisor that reads slowly then slows the agent down.
    pub live_output: bool,
}

/// The standard input of a launch.
#[derive(Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: reads see the end at once.
    Closed,
    /// These bytes, then the end. The program need not read them.
    Bytes(Vec<u8>),
}

/// A private file: created by the runner with mode 0600 just before the start, removed after the end.
///
/// The caller chooses the path and has put it into `argv` wherever it belongs. Creation fails if anything is at the
/// path already, a symbolic link included, so the directory should be one that only the caller writes to.
#[derive(Clone, PartialEq, Eq)]
pub struct LaunchFile {
    /// Absolute path; its directory exists.
    pub path: PathBuf,
    /// The whole content.
    pub content: Vec<u8>,
}

/// The bounds of one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// From the start to SIGTERM; whole milliseconds, at most [`MAX_DURATION`].
    #[serde(rename = "timeout_ms", with = "millis")]
    pub timeout: Duration,
    /// From SIGTERM to SIGKILL; whole milliseconds, at most [`MAX_DURATION`].
    #[serde(rename = "grace_ms", with = "millis")]
    pub grace: Duration,
    /// How much of the end of each output stream is kept, in bytes; 0 only counts, at most [`MAX_TAIL`].
    pub max_output_bytes: u64,
    /// Most processes at once (threads don't count), the agent's own included. Absent where the platform has its own cap.
    pub processes: Option<u32>,
}

/// Why a launch can't be started by anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The kernel ends strings at a zero byte, so one inside would cut the text silently.
    #[error("the launch's {field} contains a NUL byte")]
    Nul {
        /// Which part.
        field: &'static str,
    },
    /// A path has to say where it starts.
    #[error("the launch's {field} is not an absolute path")]
    NotAbsolute {
        /// Which path.
        field: &'static str,
    },
    /// There has to be an element 0.
    #[error("the launch's argument vector is empty")]
    NoArguments,
    /// A variable's name is empty or contains `=`.
    #[error("the launch's environment has a variable without a usable name")]
    VariableName,
    /// A limit is above the protocol's own ceiling.
    #[error("the launch's {limit} is larger than the protocol allows")]
    LimitTooLarge {
        /// Which limit.
        limit: &'static str,
    },
}

impl Launch {
    /// Checks what both ends rely on. Encoding and decoding do it, so a launch that arrives has passed.
    ///
    /// # Errors
    /// The first problem found, see [`LaunchError`].
    pub fn validate(&self) -> Result<(), LaunchError> {
        absolute("program", &self.program)?;
        absolute("working directory", &self.working_directory)?;
        if self.argv.is_empty() {
            return Err(LaunchError::NoArguments);
        }
        self.argv.iter().try_for_each(|argument| without_nul("argument", argument))?;
        for (name, value) in &self.environment {
            without_nul("environment", name)?;
            without_nul("environment", value)?;
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(LaunchError::VariableName);
            }
        }
        self.files.iter().try_for_each(|file| absolute("file path", &file.path))?;
        self.limits.validate()
    }
}

impl Limits {
    fn validate(&self) -> Result<(), LaunchError> {
        let checks = [
            ("timeout", self.timeout <= MAX_DURATION),
            ("grace", self.grace <= MAX_DURATION),
            ("output limit", self.max_output_bytes <= MAX_TAIL),
        ];
        checks.into_iter().try_for_each(
            |(limit, fits)| {
                if fits { Ok(()) } else { Err(LaunchError::LimitTooLarge { limit }) }
            },
        )
    }
}

fn absolute(field: &'static str, path: &Path) -> Result<(), LaunchError> {
    without_nul(field, path.as_os_str())?;
    if path.is_absolute() { Ok(()) } else { Err(LaunchError::NotAbsolute { field }) }
}

fn without_nul(field: &'static str, text: &OsStr) -> Result<(), LaunchError> {
    if text.as_bytes().contains(&0) { Err(LaunchError::Nul { field }) } else { Ok(()) }
}

/// Shows counts, sizes and limits; never a path, an argument, a variable or a prompt.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("arguments", &self.argv.len())
            .field("variables", &self.environment.len())
            .field("stdin", &self.stdin)
            .field("files", &self.files)
            .field("limits", &self.limits)
            .field("live_output", &self.live_output)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("Closed"),
            Self::Bytes(bytes) => write!(f, "Bytes({} hidden)", bytes.len()),
        }
    }
}

impl fmt::Debug for LaunchFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaunchFile({} bytes hidden)", self.content.len())
    }
}

/// A launch's JSON header: the lengths of its parts, which follow as payload in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchHeader {
    program: u32,
    argv: Vec<u32>,
    environment: Vec<(u32, u32)>,
    working_directory: u32,
    stdin: Option<u32>,
    files: Vec<(u32, u32)>,
    limits: Limits,
    live_output: bool,
}

impl LaunchHeader {
    pub(super) fn of(launch: &Launch) -> Self {
        let os = |text: &OsStr| length(text.as_bytes());
        Self {
            program: os(launch.program.as_os_str()),
            argv: launch.argv.iter().map(|argument| os(argument)).collect(),
            environment: launch.environment.iter().map(|(name, value)| (os(name), os(value))).collect(),
            working_directory: os(launch.working_directory.as_os_str()),
            stdin: match &launch.stdin {
                Stdin::Closed => None,
                Stdin::Bytes(bytes) => Some(length(bytes)),
            },
            files: launch
                .files
                .iter()
                .map(|file| (os(file.path.as_os_str()), length(&file.content)))
                .collect(),
            limits: launch.limits.clone(),
            live_output: launch.live_output,
        }
    }

    /// The parts in the order of the payload.
    pub(super) fn parts(launch: &Launch) -> Vec<&[u8]> {
        let mut parts = vec![launch.program.as_os_str().as_bytes()];
        parts.extend(launch.argv.iter().map(|argument| argument.as_bytes()));
        parts.extend(launch.environment.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        parts.push(launch.working_directory.as_os_str().as_bytes());
        if let Stdin::Bytes(bytes) = &launch.stdin {
            parts.push(bytes);
        }
        parts.extend(
            launch.files.iter().flat_map(|file| [file.path.as_os_str().as_bytes(), file.content.as_slice()]),
        );
        parts
    }

    /// Length of the payload, in bytes.
    pub(super) fn payload(&self) -> u64 {
        let pairs = self.environment.iter().chain(&self.files).flat_map(|(a, b)| [*a, *b]);
        let single = [self.program, self.working_directory, self.stdin.unwrap_or(0)];
        self.argv.iter().copied().chain(pairs).chain(single).map(u64::from).sum()
    }

    /// Cuts the payload into its parts. `None` when it is shorter than announced.
    pub(super) fn assemble(self, payload: &[u8]) -> Option<Launch> {
        let mut rest = payload;
        let mut bytes = |length: u32| {
            let (part, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            rest = after;
            Some(part.to_vec())
        };
        let program = PathBuf::from(OsString::from_vec(bytes(self.program)?));
        let argv = self.argv.into_iter().map(|n| bytes(n).map(OsString::from_vec)).collect::<Option<_>>()?;
        let environment = self
            .environment
            .into_iter()
            .map(|(name, value)| Some((OsString::from_vec(bytes(name)?), OsString::from_vec(bytes(value)?))))
            .collect::<Option<_>>()?;
        let working_directory = PathBuf::from(OsString::from_vec(bytes(self.working_directory)?));
        let stdin = match self.stdin {
            None => Stdin::Closed,
            Some(length) => Stdin::Bytes(bytes(length)?),
        };
        let files = self
            .files
            .into_iter()
            .map(|(path, content)| {
                let path = PathBuf::from(OsString::from_vec(bytes(path)?));
                Some(LaunchFile { path, content: bytes(content)? })
            })
            .collect::<Option<_>>()?;
        let (limits, live_output) = (self.limits, self.live_output);
        Some(Launch { program, argv, environment, working_directory, stdin, files, limits, live_output })
    }
}

/// A part's length. Saturates: a part of 4 GiB is refused as a whole, because the payload is then too large.
pub(super) fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Durations as whole milliseconds.
pub(super) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::protocol) fn serialize<S: Serializer>(
        duration: &Duration,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in crate::protocol) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

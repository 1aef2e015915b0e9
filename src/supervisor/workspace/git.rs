//! The only place that starts git.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// Bytes of git's standard error that are kept: enough for its last message.
const STDERR_BYTES: usize = 8 * 1024;

/// Configuration given to every command. It outranks every file, so it also holds in a repository that is not ours.
const CONFIGURATION: [(&str, &str); 6] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
];

/// The git program (2.39 or later).
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    search_path: OsString,
    mark: Option<(&'static str, OsString)>,
}

impl Git {
    /// Finds `git` on a search path of the form of `PATH`; relative entries are skipped.
    ///
    /// # Errors
    ///
    /// [`GitError::Missing`] when no entry holds an executable file of that name.
    pub fn find(search_path: &OsStr) -> Result<Self, GitError> {
        std::env::split_paths(search_path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("git"))
            .find(|candidate| is_executable(candidate))
            .map(|program| Self { program, search_path: search_path.to_owned(), mark: None })
            .ok_or(GitError::Missing)
    }

    /// The same git with a variable that marks its processes, so that they can be found when their parent was killed.
    #[must_use]
    pub fn marked(self, name: &'static str, value: impl Into<OsString>) -> Self {
        Self { mark: Some((name, value.into())), ..self }
    }

    /// A git command inside a repository of ours.
    pub(super) fn private(&self, git_dir: &Path, subcommand: &'static str) -> Invocation {
        let mut invocation = self.bare(subcommand);
        invocation.command.current_dir(git_dir).env("GIT_DIR", git_dir);
        invocation.command.arg(subcommand);
        invocation
    }

    /// A git command in a repository of the user's, found from `directory` upwards and whoever owns it.
    pub(super) fn within(&self, directory: &Path, subcommand: &'static str) -> Invocation {
        let mut invocation = self.bare(subcommand);
        invocation.command.arg("-C").arg(directory).arg(subcommand);
        invocation.config("safe.directory", "*")
    }

    /// A git command that belongs to no repository.
    pub(super) fn elsewhere(&self, subcommand: &'static str) -> Invocation {
        let mut invocation = self.bare(subcommand);
        // A path that is no repository, so that none is looked for.
        invocation.command.current_dir("/").env("GIT_DIR", "/dev/null").arg(subcommand);
        invocation
    }

    fn bare(&self, subcommand: &'static str) -> Invocation {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .envs(self.mark.iter().map(|(name, value)| (name, value)))
            .env("PATH", &self.search_path)
            .env("LC_ALL", "C")
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // Set and empty: no protocol at all, whatever a configuration file allows.
            .env("GIT_ALLOW_PROTOCOL", "")
            .kill_on_drop(true)
            // Ctrl-C at a terminal must end the caller's future, not git under its hands.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let configuration = CONFIGURATION.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        Invocation { subcommand, command, configuration }
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// One git command that is about to run. Dropping the future of any of its methods ends the process.
pub(super) struct Invocation {
    subcommand: &'static str,
    command: Command,
    configuration: Vec<(OsString, OsString)>,
}

impl Invocation {
    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(super) fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of git's own; also the seam for credentials (`GIT_ASKPASS`).
    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn config(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.configuration.push((key.into(), value.into()));
        self
    }

    pub(super) fn input(mut self, file: File) -> Self {
        self.command.stdin(file);
        self
    }

    /// Runs to the end and gives the whole standard output.
    pub(super) async fn output(self, limit: usize) -> Result<Vec<u8>, GitError> {
        let subcommand = self.subcommand;
        let captured = self.capture(limit).await?;
        if captured.complete { Ok(captured.bytes) } else { Err(GitError::TooMuchOutput { subcommand }) }
    }

    /// Runs to the end, or until more than `limit` bytes of standard output arrived.
    pub(super) async fn capture(mut self, limit: usize) -> Result<Captured, GitError> {
        self.command.env("GIT_CONFIG_COUNT", self.configuration.len().to_string());
        for (index, (key, value)) in self.configuration.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{index}"), key);
            self.command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        let subcommand = self.subcommand;
        let mut child = self.command.spawn().map_err(|source| GitError::Start { source })?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let talk = |source| GitError::Talk { subcommand, source };
        let (mut bytes, stderr) =
            tokio::try_join!(read_up_to(stdout, limit), read_tail(stderr)).map_err(talk)?;
        if bytes.len() > limit {
            child.kill().await.map_err(talk)?;
            bytes.truncate(limit);
            return Ok(Captured { bytes, complete: false });
        }
        let status = child.wait().await.map_err(talk)?;
        if status.success() {
            return Ok(Captured { bytes, complete: true });
        }
        Err(GitError::Failed { subcommand, status, stderr })
    }
}

/// What a command wrote to its standard output.
pub(super) struct Captured {
    pub(super) bytes: Vec<u8>,
    /// False when the command was ended because it wrote more than the limit; `bytes` then is its beginning.
    pub(super) complete: bool,
}

/// Reads one byte more than `limit` at most, then closes the pipe, which ends a writer that has more to say.
async fn read_up_to(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(limit as u64 + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

async fn read_tail(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<Stderr> {
    let mut tail = Vec::new();
    if let Some(mut pipe) = pipe {
        while pipe.read_buf(&mut tail).await? > 0 {
            let surplus = tail.len().saturating_sub(STDERR_BYTES);
            tail.drain(..surplus);
        }
    }
    Ok(Stderr(tail))
}

/// The tail of git's standard error. It may quote addresses, paths and content, so it shows itself to nobody by
/// accident; what is shown on purpose goes through the redactor.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Stderr(Vec<u8>);

impl Stderr {
    /// The bytes as git wrote them: not redacted.
    #[must_use]
    pub fn unredacted(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stderr({} bytes)", self.0.len())
    }
}

/// Why a git command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No git program on the search path.
    #[error("no git program on the search path")]
    Missing,
    /// The operating system refused to start it.
    #[error("git could not be started")]
    Start {
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Its pipes broke.
    #[error("git {subcommand} could not be read from")]
    Talk {
        /// The command.
        subcommand: &'static str,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// It ended with a failure.
    #[error("git {subcommand} failed with {status}")]
    Failed {
        /// The command.
        subcommand: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it said; not part of the message.
        stderr: Stderr,
    },
    /// It wrote more than any sound answer has.
    #[error("git {subcommand} wrote too much")]
    TooMuchOutput {
        /// The command.
        subcommand: &'static str,
    },
    /// Its answer is not of the documented form.
    #[error("git {subcommand} gave an answer of another form")]
    Malformed {
        /// The command.
        subcommand: &'static str,
    },
}

impl GitError {
    /// Whether git ran and said no, as opposed to not having run properly.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Failed { status, .. } if status.code().is_some())
    }
}

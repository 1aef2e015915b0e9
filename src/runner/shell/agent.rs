//! The one program: its start, its pipes and its private files.

use std::ffi::{CString, NulError, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::Pid;

use super::sys;
use crate::protocol::{Launch, LaunchFile, Stdin, SystemCode};

/// A started program.
#[derive(Debug)]
pub(super) struct Agent {
    /// Its process id, which is also its group's.
    pub(super) pid: Pid,
    pub(super) stdin: Option<Feed>,
    pub(super) stdout: Option<std::fs::File>,
    pub(super) stderr: Option<std::fs::File>,
    /// Removed when this is dropped.
    _files: PrivateFiles,
}

/// Starts the program of a launch.
///
/// # Errors
/// The platform's name for the reason. Nothing runs then and no file is left.
pub(super) fn start(launch: Launch) -> Result<Agent, SystemCode> {
    try_start(launch).map_err(|error| system_code(&error))
}

fn try_start(launch: Launch) -> io::Result<Agent> {
    let files = PrivateFiles::create(launch.files)?;
    let mut command = Command::new(&launch.program);
    command
        .current_dir(&launch.working_directory)
        .stdin(match launch.stdin {
            Stdin::Closed => Stdio::null(),
            Stdin::Bytes(_) => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let program = c_string(launch.program.into_os_string())?;
    let argv = launch.argv.into_iter().map(c_string).collect::<Result<_, _>>()?;
    let environment = launch.environment.into_iter().map(variable).collect::<Result<_, _>>()?;
    sys::exec_as_leader(&mut command, Pid::this(), program, argv, environment);

    let mut child = command.spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    // An error from here on would leave the program running, so these become "not read" instead. None is known to occur.
    let stdin = match (child.stdin.take(), launch.stdin) {
        (Some(pipe), Stdin::Bytes(bytes)) => unblocked(pipe.into()).map(|pipe| Feed { pipe, bytes, fed: 0 }),
        _ => None,
    };
    let stdout = child.stdout.take().and_then(|pipe| unblocked(pipe.into()));
    let stderr = child.stderr.take().and_then(|pipe| unblocked(pipe.into()));
    Ok(Agent { pid, stdin, stdout, stderr, _files: files })
}

fn variable((name, value): (OsString, OsString)) -> Result<CString, NulError> {
    let mut text = name;
    text.push("=");
    text.push(value);
    c_string(text)
}

fn c_string(text: OsString) -> Result<CString, NulError> {
    CString::new(text.into_vec())
}

fn unblocked(pipe: OwnedFd) -> Option<std::fs::File> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).ok().map(|_| pipe.into())
}

/// The platform's name for an error, such as `ENOENT`.
fn system_code(error: &io::Error) -> SystemCode {
    let name = error.raw_os_error().map(|number| format!("{:?}", Errno::from_raw(number)));
    name.and_then(|name| SystemCode::try_from(name).ok()).unwrap_or_else(SystemCode::unknown)
}

/// Reads once from a pipe that doesn't block.
///
/// `None`: nothing is there now. `Some(0)`: the stream is over.
pub(super) fn read_once(pipe: &mut std::fs::File, buffer: &mut [u8]) -> Option<usize> {
    match pipe.read(buffer) {
        Ok(count) => Some(count),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        Err(_) => Some(0),
    }
}

/// Bytes on their way into the program's standard input.
pub(super) struct Feed {
    pipe: std::fs::File,
    bytes: Vec<u8>,
    fed: usize,
}

impl Feed {
    /// Writes what the pipe takes now. `false`: all is written, or nobody reads any more.
    pub(super) fn advance(&mut self) -> bool {
        loop {
            let Some(rest @ [_, ..]) = self.bytes.get(self.fed..) else { return false };
            match self.pipe.write(rest) {
                Ok(count) => self.fed += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

impl AsFd for Feed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Hides the prompt.
impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("left", &(self.bytes.len() - self.fed)).finish_non_exhaustive()
    }
}

/// Files that exist as long as this does.
#[derive(Debug, Default)]
struct PrivateFiles(Vec<PathBuf>);

impl PrivateFiles {
    fn create(files: Vec<LaunchFile>) -> io::Result<Self> {
        let mut created = Self::default();
        for LaunchFile { path, content } in files {
            // `create_new` follows no symbolic link and opens nothing that is there already.
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            created.0.push(path);
            file.write_all(&content)?;
        }
        Ok(created)
    }
}

impl Drop for PrivateFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // The agent may have removed or moved it.
            let _ = std::fs::remove_file(path);
        }
    }
}

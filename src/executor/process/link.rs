//! Starting the runner and accepting its one connection.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::directory::Directory;
use super::sweep::{MARKER, Mark};
use crate::core::plan::RunId;
use crate::protocol::Token;
use crate::supervisor::Runner;

/// The socket's name in the folder of its run.
const SOCKET: &str = "runner.sock";

/// The runner's process. Dropping it kills the runner, and with the runner everything of the agent's.
pub(super) struct RunnerProcess {
    child: oneshot::Receiver<Child>,
}

impl RunnerProcess {
    /// Waits until the runner is gone.
    pub(super) async fn reap(&mut self) {
        if let Ok(mut child) = (&mut self.child).await {
            // It ends with its connection. An error means that there is nothing left to wait for.
            let _ = child.wait().await;
        }
    }
}

/// Starts the runner when the returned future is first polled; the future gives its connection.
pub(super) fn start(
    executable: &Path,
    directory: &Directory,
    run: &RunId,
) -> (RunnerProcess, impl Future<Output = io::Result<Runner<UnixStream>>> + use<>) {
    let (sender, child) = oneshot::channel();
    let (executable, folder, mark) = (executable.to_owned(), directory.root().to_owned(), Mark::of_run(run));
    (RunnerProcess { child }, connect(executable, folder, mark, sender))
}

async fn connect(
    executable: PathBuf,
    folder: PathBuf,
    mark: Mark,
    started: oneshot::Sender<Child>,
) -> io::Result<Runner<UnixStream>> {
    // The path of a socket has 107 bytes at most and a home may be deeper: both sides name it from its folder.
    let opened = File::open(&folder)?;
    let listener = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd()))?;
    let token = random_token()?;
    let mut child = Command::new(executable)
        .arg("runner")
        .arg("--socket")
        .arg(SOCKET)
        .current_dir(&folder)
        .env_clear()
        .env(MARKER, OsString::from(mark))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A terminal's Ctrl-C is for us: we end the agent and say why. The runner would take it for an eviction.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    // Until it is accepted there can be no agent, so dropping this future simply kills the runner.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(token.as_bytes()).await?;
    }
    let (link, _) = listener.accept().await?;
    // One runner only: nobody can connect any more.
    drop(listener);
    std::fs::remove_file(folder.join(SOCKET))?;
    let runner = Runner::accept(link, &token).await?;
    // The receiver lives as long as the session; if it is gone, dropping the child ends it.
    let _ = started.send(child);
    Ok(runner)
}

fn random_token() -> io::Result<Token> {
    let mut bytes = [0; Token::BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(Token::from_bytes(bytes))
}

//! The real binary, started by a person's account.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Account, wait};

/// The real binary.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_caisson");

/// Where programs are found: the one thing that a test takes from its environment.
#[expect(clippy::disallowed_methods, reason = "git and a shell have to be found somewhere")]
pub fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// A command line that isn't started yet.
pub struct Caisson {
    pub(super) command: Command,
    stdin: Vec<u8>,
}

impl Caisson {
    pub fn new(account: &Account) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", account.home())
            .env("XDG_CONFIG_HOME", account.config())
            .env("XDG_STATE_HOME", account.state())
            .current_dir(account.path(""));
        Self { command, stdin: Vec::new() }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Starts it. Its standard input is what was given, then its end.
    pub fn start(mut self) -> Running {
        let mut child =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = self.stdin;
        // In a thread of its own, since nobody may read it.
        std::thread::spawn(move || {
            let _ = stdin.write_all(&bytes);
        });
        let stdout = Collected::of(child.stdout.take().unwrap());
        let stderr = Collected::of(child.stderr.take().unwrap());
        Running { child, stdout, stderr }
    }

    /// Runs it to its end.
    pub fn run(self) -> Finished {
        self.start().finish()
    }
}

/// What a stream has said so far.
#[derive(Clone, Default)]
pub struct Collected(Arc<Mutex<(Vec<u8>, bool)>>);

impl Collected {
    pub fn of(mut stream: impl Read + Send + 'static) -> Self {
        let collected = Self::default();
        let sink = collected.clone();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let count = stream.read(&mut buffer).unwrap_or(0);
                let mut state = sink.0.lock().unwrap();
                state.0.extend_from_slice(&buffer[..count]);
                if count == 0 {
                    state.1 = true;
                    return;
                }
            }
        });
        collected
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().0.clone()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    pub fn is_over(&self) -> bool {
        self.0.lock().unwrap().1
    }
}

/// A command that runs.
pub struct Running {
    pub child: Child,
    pub stdout: Collected,
    pub stderr: Collected,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until standard error has said something.
    pub fn until_told(&self, what: &str) {
        wait::until(what, || self.dump(), || self.stderr.text().contains(what));
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.pid()).unwrap()), signal).unwrap();
    }

    /// Waits for the end, also of both streams.
    pub fn finish(mut self) -> Finished {
        let mut status = None;
        let what = format!("caisson ({}) to end", self.pid());
        wait::until(
            &what,
            || format!("{}\n{}", self.stderr.text(), self.stdout.text()),
            || {
                status = self.child.try_wait().unwrap();
                status.is_some() && self.stdout.is_over() && self.stderr.is_over()
            },
        );
        Finished { status: status.unwrap(), stdout: self.stdout.bytes(), stderr: self.stderr.bytes() }
    }

    pub fn dump(&self) -> String {
        format!("--- stderr\n{}\n--- stdout\n{}", self.stderr.text(), self.stdout.text())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a command ended and what it said.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Checks the exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "signal {:?}\n{}", self.status.signal(), self.dump());
        self
    }

    /// Checks that standard error says something.
    #[track_caller]
    pub fn tells(self, what: &str) -> Self {
        assert!(self.err().contains(what), "nothing of {what:?}\n{}", self.dump());
        self
    }

    pub fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub fn err(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}", self.dump()))
    }

    /// The result in it; null where there is none.
    #[track_caller]
    pub fn result(&self) -> Value {
        self.json()["status"]["result"].clone()
    }

    /// The digest that was printed.
    #[track_caller]
    pub fn digest(&self) -> String {
        let text = self.err();
        let digest = text.split_whitespace().find(|word| word.starts_with("v1:"));
        digest.unwrap_or_else(|| panic!("no digest\n{}", self.dump())).to_owned()
    }

    pub fn dump(&self) -> String {
        let short = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(8192)]).into_owned();
        format!("--- stderr\n{}\n--- stdout\n{}", short(&self.stderr), short(&self.stdout))
    }
}

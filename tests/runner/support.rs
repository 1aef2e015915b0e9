//! A supervisor for one runner, and agents made of `sh`.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use caisson::protocol::{
    Decoder, ExecReport, Launch, Limits, Record, Stdin, Stop, StopReason, Stream, ToRunner, ToSupervisor,
    Token, VERSION,
};
use tempfile::TempDir;

/// Longer than anything takes that works, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) const TOKEN: [u8; 32] = *b"one token, known to the two only";

pub(crate) struct Supervisor {
    pub(crate) directory: TempDir,
    pub(crate) runner: Child,
    stream: Option<UnixStream>,
    decoder: Decoder<ToSupervisor>,
    unread: Vec<u8>,
}

/// An [`ToSupervisor::Exited`] record, and the live output before it.
pub(crate) struct Finished {
    pub(crate) report: ExecReport,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Finished {
    pub(crate) fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

impl Supervisor {
    /// Starts the real runner and accepts its hello.
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(adjust: impl FnOnce(&mut Command)) -> Self {
        Self::start_program(Path::new(env!("CARGO_BIN_EXE_caisson")), TempDir::new().unwrap(), adjust)
    }

    pub(crate) fn start_program(
        program: &Path,
        directory: TempDir,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut command = Command::new(program);
        command.arg("runner").arg("--socket").arg(&socket).stdin(Stdio::piped());
        adjust(&mut command);
        let mut runner = command.spawn().unwrap();
        runner.stdin.take().unwrap().write_all(&TOKEN).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut supervisor =
            Self { directory, runner, stream: Some(stream), decoder: Decoder::default(), unread: Vec::new() };
        match supervisor.receive() {
            Some(ToSupervisor::Hello { version: VERSION, token, .. }) => {
                assert!(token.matches(&Token::from_bytes(TOKEN)));
            }
            other => panic!("no hello: {other:?}"),
        }
        supervisor
    }

    pub(crate) fn runner_pid(&self) -> u32 {
        self.runner.id()
    }

    pub(crate) fn send(&mut self, record: &ToRunner) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes).unwrap();
        self.stream.as_mut().unwrap().write_all(&bytes).unwrap();
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn launch(&mut self, launch: &Launch) {
        self.send(&ToRunner::Launch(Box::new(launch.clone())));
    }

    pub(crate) fn stop(&mut self, reason: StopReason, grace: Duration) {
        self.send(&ToRunner::Stop(Stop { reason, grace }));
    }

    /// Closes the connection, as a supervisor that dies.
    pub(crate) fn vanish(&mut self) {
        self.stream = None;
    }

    /// The next record; `None` at the end of the stream.
    pub(crate) fn receive(&mut self) -> Option<ToSupervisor> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut rest = self.unread.as_slice();
            let record = self.decoder.decode(&mut rest).unwrap();
            self.unread = rest.to_vec();
            if record.is_some() {
                return record;
            }
            let count = self.stream.as_mut().unwrap().read(&mut buffer).expect("a record in time");
            if count == 0 {
                assert!(self.decoder.is_between_records());
                return None;
            }
            self.unread.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads live output of one stream until it contains `marker`.
    pub(crate) fn read_until(&mut self, stream: Stream, marker: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(marker) {
            match self.receive() {
                Some(ToSupervisor::Output { stream: from, bytes }) if from == stream => seen.extend(bytes),
                Some(ToSupervisor::Output { .. } | ToSupervisor::Started { .. }) => {}
                other => panic!("no {marker:?} but {other:?}"),
            }
        }
        String::from_utf8(seen).unwrap()
    }

    /// Reads up to the report, checks that it is the only and last record, and that the runner ends well.
    pub(crate) fn finish(&mut self) -> Finished {
        loop {
            match self.receive() {
                Some(ToSupervisor::Exited { report, stdout, stderr }) => {
                    assert!(self.receive().is_none(), "nothing follows the report");
                    assert_eq!(self.runner_exit().code(), Some(0));
                    return Finished { report, stdout, stderr };
                }
                Some(ToSupervisor::Started { .. } | ToSupervisor::Output { .. }) => {}
                other => panic!("no report but {other:?}"),
            }
        }
    }

    /// Waits for the runner to end.
    pub(crate) fn runner_exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the runner to end", || {
            status = self.runner.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

/// A test that fails must not leave its processes behind.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stream = None;
        let _ = self.runner.kill();
        let _ = self.runner.wait();
    }
}

/// Launches in a new runner and waits for the report.
pub(crate) fn run(launch: &Launch) -> Finished {
    let mut supervisor = Supervisor::start();
    supervisor.launch(launch);
    supervisor.finish()
}

/// An agent that is a shell script, with arguments `$1`, `$2` …
pub(crate) fn sh(script: &str) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        argv: ["sh", "-c", script, "agent"].map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        working_directory: "/".into(),
        stdin: Stdin::Closed,
        files: Vec::new(),
        limits: Limits {
            timeout: PATIENCE,
            grace: Duration::from_secs(5),
            max_output_bytes: 1 << 20,
            processes: None,
        },
        live_output: false,
    }
}

/// The same with live output, which tells a test how far the agent is.
pub(crate) fn live_sh(script: &str) -> Launch {
    Launch { live_output: true, ..sh(script) }
}

/// Waits for a condition, looking every few milliseconds.
#[expect(clippy::disallowed_methods, reason = "a bound on waiting for a condition")]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Whether a process exists and isn't a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(')').map(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X'])))
        .unwrap_or(false)
}

/// The numbers on lines `NAME PID` of an agent's output.
pub(crate) fn pid_after(output: &str, name: &str) -> u32 {
    let line = output.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{output}"));
    line.trim().parse().unwrap()
}

/// A field of `/proc/PID/status` in KiB.
pub(crate) fn status_kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

pub(crate) fn path_in(directory: &TempDir, name: &str) -> PathBuf {
    directory.path().join(name)
}

//! Ending what a run left: every process that carries the run's mark in its environment.
//!
//! The runner ends the agent's whole tree by itself. This is for the case that the runner was killed: the mark is inherited by
//! every descendant, whatever group, session or parent it has. A process that replaced its own environment isn't found.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that marks an agent's processes with the UID of their run.
pub const MARKER: &str = "CAISSON_RUN";

/// Rounds of looking and killing: each ends everything that exists, so a second one finds only what was forked meanwhile.
const ROUNDS: u32 = 200;
/// Time for the kernel to take killed processes away.
const PAUSE: Duration = Duration::from_millis(10);

/// Kills every process with the mark of the run `uid`, and returns how many there were once none is left.
///
/// # Errors
/// When some process can't be killed, or is still there after two seconds.
pub fn end_marked(uid: &str) -> io::Result<usize> {
    let mut ended = std::collections::BTreeSet::new();
    for round in 0..ROUNDS {
        let found = marked(uid)?;
        if found.is_empty() {
            return Ok(ended.len());
        }
        for pid in found {
            match kill(pid, Signal::SIGKILL) {
                Ok(()) => ended.insert(pid.as_raw()),
                Err(Errno::ESRCH) => false,
                Err(error) => return Err(error.into()),
            };
        }
        if round > 0 {
            pause();
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

#[expect(clippy::disallowed_methods, reason = "the end of a process that isn't our child can only be polled")]
fn pause() {
    std::thread::sleep(PAUSE);
}

fn marked(uid: &str) -> io::Result<Vec<Pid>> {
    let mark = format!("{MARKER}={uid}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(entry) = entry else { continue };
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if carries(&entry.path(), mark.as_bytes()) {
            found.push(Pid::from_raw(pid));
        }
    }
    Ok(found)
}

/// Whether the process has the mark. One that vanished, or is a zombie, has an empty or no environment.
fn carries(process: &Path, mark: &[u8]) -> bool {
    fs::read(process.join("environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark))
}

//! Ending what a run left: every process that carries the run's mark in its environment.
//!
//! The runner ends the agent's whole tree by itself. This is for the case that the runner was killed: the mark is inherited by
//! every descendant, whatever group, session or parent it has. A process that replaced its own environment isn't found.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::core::plan::RunId;

/// The variable that marks an agent's processes with their run.
pub const MARKER: &str = "CAISSON_RUN";

/// What to look for: the processes of one run, or of every run of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    value: String,
    /// Whether the value is only the beginning of what processes carry.
    prefix: bool,
}

impl Mark {
    /// The processes of one attempt.
    pub fn of_run(id: &RunId) -> Self {
        Self { value: format!("{}/{}", id.uid, id.attempt), prefix: false }
    }

    /// The processes of every attempt of the task `uid`.
    pub fn of_task(uid: &str) -> Self {
        Self { value: format!("{uid}/"), prefix: true }
    }

    fn is_in(&self, entry: &[u8]) -> bool {
        let value = entry.strip_prefix(MARKER.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        let rest = value.and_then(|value| value.strip_prefix(self.value.as_bytes()));
        rest.is_some_and(|rest| self.prefix || rest.is_empty())
    }

    /// Kills every process with this mark, and returns how many there were once none is left.
    ///
    /// # Errors
    /// When some process can't be killed, or is still there after two seconds.
    pub fn end_all(&self) -> io::Result<usize> {
        let mut ended = std::collections::BTreeSet::new();
        for round in 0..ROUNDS {
            let found = self.processes()?;
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

    /// The processes that carry this mark. One that vanished, or is a zombie, has an empty or no environment.
    ///
    /// # Errors
    /// When the table of processes can't be read.
    pub fn processes(&self) -> io::Result<Vec<Pid>> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let Ok(entry) = entry else { continue };
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|entry| self.is_in(entry)) {
                found.push(Pid::from_raw(pid));
            }
        }
        Ok(found)
    }
}

/// What the runner and the agent find in the variable.
impl From<Mark> for OsString {
    fn from(mark: Mark) -> Self {
        mark.value.into()
    }
}

/// Rounds of looking and killing: each ends everything that exists, so a second one finds only what was forked meanwhile.
const ROUNDS: u32 = 200;
/// Time for the kernel to take killed processes away.
const PAUSE: Duration = Duration::from_millis(10);

#[expect(clippy::disallowed_methods, reason = "the end of a process that isn't our child can only be polled")]
fn pause() {
    std::thread::sleep(PAUSE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_run_or_of_every_run_of_a_task() {
        let run = Mark::of_run(&RunId { uid: "a".to_owned(), attempt: 1 });
        let task = Mark::of_task("a");
        // entry, whether it is the run's, whether it is the task's
        let table = [
            ("CAISSON_RUN=a/1", true, true),
            ("CAISSON_RUN=a/10", false, true),
            ("CAISSON_RUN=a/2", false, true),
            ("CAISSON_RUN=ab/1", false, false),
            ("CAISSON_RUN=a", false, false),
            ("CAISSON_RUNS=a/1", false, false),
            ("X=CAISSON_RUN=a/1", false, false),
        ];
        for (entry, of_run, of_task) in table {
            assert_eq!(
                (run.is_in(entry.as_bytes()), task.is_in(entry.as_bytes())),
                (of_run, of_task),
                "{entry}"
            );
        }
    }
}

//! Everything that the agent started, wherever it went.
//!
//! The runner is process 1 or a child subreaper, so whatever loses its parent becomes the runner's own child. That gives
//! two facts to rely on: "no children" means that nothing of the agent is left, and a child's process id can't be
//! reused before the runner itself reaps it. So a sweep kills children only, again and again, and never the wrong process.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use crate::protocol::Exit;

/// What a look for ended children found.
#[derive(Debug)]
pub(super) enum Reaped {
    /// This one had ended, and is reaped.
    Child(Pid, Exit),
    /// There are children, all alive.
    NoneEnded,
    /// There is no child at all.
    NoChildren,
}

/// Reaps one child that has ended.
///
/// Through `rustix`, because `nix` reaps a child that a real-time signal killed but then says only `EINVAL`.
pub(super) fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let pid = Pid::from_raw(pid.as_raw_nonzero().get());
                if let Some(code) = status.exit_status() {
                    return Reaped::Child(pid, Exit::with_code(code));
                }
                if let Some(signal) = status.terminating_signal() {
                    return Reaped::Child(pid, Exit::by_signal(signal));
                }
            }
            Ok(None) => return Reaped::NoneEnded,
            Err(Errno::INTR) => {}
            Err(_) => return Reaped::NoChildren,
        }
    }
}

/// Sends a signal to the agent's group while its leader isn't reaped, so that the number can't be another's.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    // A group that is gone is what was wanted, and whether it worked is seen by waiting.
    let _ = killpg(leader, signal);
    if signal == Signal::SIGTERM {
        // A stopped process acts on SIGTERM only once it continues.
        let _ = killpg(leader, Signal::SIGCONT);
    }
}

/// Kills every child of the runner; as process 1, everything there is.
pub(super) fn kill_children() {
    let runner = Pid::this();
    if runner.as_raw() == 1 {
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        return;
    }
    let mut children = Vec::new();
    children_of(runner, &mut children);
    for child in children {
        let _ = kill(child, Signal::SIGKILL);
    }
}

/// How many processes the runner's tree has below it, counted up to one more than `most`.
pub(super) fn count_descendants(most: u32) -> u32 {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    children_of(Pid::this(), &mut found);
    let mut next = 0;
    while let Some(parent) = found.get(next).copied()
        && found.len() <= most
    {
        next += 1;
        children_of(parent, &mut found);
    }
    u32::try_from(found.len()).unwrap_or(u32::MAX)
}

/// Appends the children of all threads of a process, as far as they can be seen.
fn children_of(parent: Pid, found: &mut Vec<Pid>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return };
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(parse_pid)),
            // A thread that just ended is no reason to look at every process.
            Err(_) if !Path::new("/proc/thread-self/children").exists() => {
                return children_by_scan(parent, found);
            }
            Err(_) => {}
        }
    }
}

/// The same for kernels built without `CONFIG_PROC_CHILDREN`: looks at the parent of every process.
fn children_by_scan(parent: Pid, found: &mut Vec<Pid>) {
    let Ok(processes) = fs::read_dir("/proc") else { return };
    for entry in processes.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(parse_pid) else { continue };
        let is_child = fs::read_to_string(entry.path().join("stat"))
            .is_ok_and(|stat| parent_in_stat(&stat) == Some(parent));
        if is_child {
            found.push(pid);
        }
    }
}

/// The parent in `/proc/PID/stat`: the second field after the name, which is in parentheses and may contain anything.
fn parent_in_stat(stat: &str) -> Option<Pid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1).and_then(parse_pid)
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_process_name() {
        assert_eq!(parent_in_stat("12 (sh) S 7 12 12 0"), Some(Pid::from_raw(7)));
        assert_eq!(parent_in_stat("12 (a) S 9 (b) R 7 12"), Some(Pid::from_raw(7)));
        assert_eq!(parent_in_stat("12 (sh"), None);
        assert_eq!(parent_in_stat(""), None);
    }

    #[test]
    fn both_ways_of_finding_children_agree() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let (mut listed, mut scanned) = (Vec::new(), Vec::new());
        children_of(Pid::this(), &mut listed);
        children_by_scan(Pid::this(), &mut scanned);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.contains(&pid) && scanned.contains(&pid), "{listed:?} {scanned:?}");
    }
}

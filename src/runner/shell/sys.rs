//! The system calls that have no safe wrapper, each behind a safe function.
#![expect(
    unsafe_code,
    reason = "fork, exec and process-wide signal and descriptor tables have no safe interface"
)]

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, execve, getppid, setsid};

/// Gives every signal its default disposition, for the runner and so for what it starts.
///
/// An ignored signal stays ignored over `exec`: `nohup` or a shell's background job would reach the agent, and an
/// ignored SIGCHLD would let the kernel reap the agent before its exit code is read. SIGPIPE stays ignored here; the
/// standard library restores it in the child.
pub(super) fn restore_signals() {
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: setting a default disposition runs no code of ours. SIGKILL, SIGSTOP and the C library's own
        // signals refuse it, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Makes every descriptor but the standard three close on exec, whoever opened it.
///
/// # Errors
/// The kernel is older than 5.11 and `/proc` isn't readable either.
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: only flags of descriptors change; no descriptor is closed or created.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return Ok(());
    }
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<libc::c_int>().ok());
        if let Some(descriptor) = number.filter(|descriptor| *descriptor > 2) {
            // SAFETY: as above; a descriptor that is closed by now only gives an error.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

/// Lets `command` execute exactly this program, as the leader of a new session, tied to the life of `runner`.
///
/// The standard library would use `execvp`, which hands a file without a known format to `/bin/sh`.
pub(super) fn exec_as_leader(
    command: &mut Command,
    runner: Pid,
    program: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
) {
    // SAFETY: the closure runs between fork and exec. The runner has one thread, so no lock is held by a thread that
    // doesn't exist in the child, and allocating (as `execve`'s wrapper does) is sound.
    unsafe {
        command.pre_exec(move || {
            // The runner takes its signals by descriptor and so blocks them; a mask outlives exec.
            SigSet::empty().thread_set_mask()?;
            setsid()?;
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != runner {
                // The runner died before the line above took effect.
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            match execve(&program, &argv, &environment)? {}
        });
    }
}

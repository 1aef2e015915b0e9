//! What the runner does to itself before it does anything for anyone.

use std::io;

use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::error::RunnerError;
use super::sys;

/// Something that a signal told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// At least one child ended.
    ChildEnded,
    /// Someone wants the runner to end.
    Interrupted,
}

/// The signals that the runner takes, as a descriptor.
#[derive(Debug)]
pub(super) struct Signals(SignalFd);

/// Protects the runner from its agent and makes it the parent of whatever the agent abandons.
///
/// Not dumpable: other processes of the same user can't read its memory or environment, nor attach to it. No core
/// files and no new privileges, which also hold for what it starts.
pub(super) fn prepare() -> Result<Signals, RunnerError> {
    let step = |step| move |source: io::Error| RunnerError::Prepare { step, source };
    let errno = |step| move |errno: nix::Error| RunnerError::Prepare { step, source: errno.into() };
    sys::close_on_exec().map_err(step("close descriptors on exec"))?;
    sys::restore_signals();
    let signals = Signals::block().map_err(errno("take signals"))?;
    prctl::set_dumpable(false).map_err(errno("become undumpable"))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(errno("forbid core files"))?;
    prctl::set_no_new_privs().map_err(errno("renounce privileges"))?;
    if Pid::this().as_raw() != 1 {
        prctl::set_child_subreaper(true).map_err(errno("become a subreaper"))?;
    }
    Ok(signals)
}

impl Signals {
    fn block() -> nix::Result<Self> {
        let mask = SigSet::from_iter([Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
        mask.thread_block()?;
        SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map(Self)
    }

    /// The next signal, if one is there.
    pub(super) fn take(&self) -> Option<Told> {
        let info = self.0.read_signal().ok()??;
        let is_child = i32::try_from(info.ssi_signo).is_ok_and(|signal| signal == libc::SIGCHLD);
        Some(if is_child { Told::ChildEnded } else { Told::Interrupted })
    }
}

impl std::os::fd::AsFd for Signals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

//! Process 1 of the agent: starts the CLI, bounds it, reports it.
//!
//! [`machine`] decides, [`tail`] keeps the end of the output, and the shell around them does what is decided: a thin,
//! single-threaded poll loop over one socket, two pipes and the signals. No thread and no async runtime, so that the
//! whole process stays small and `fork` stays simple.
//!
//! # Guarantees
//! - At most one program is started, with exactly the given environment, no inherited descriptor, default signal
//!   dispositions and no way to gain privileges. It is never looked up and never passes through a shell.
//! - When the runner has reported, everything that the program started is gone, whether or not it left the process
//!   group or the session; if it can't be ended, the report says so.
//! - Losing the supervisor ends all of it too. If the runner itself is killed, the kernel kills the program.
//!
//! # Caveats
//! - Where the runner isn't process 1, a SIGKILL to the runner spares what the program started: those processes are
//!   inherited by the next subreaper or by the system's init.
//! - The process limit is checked a few times a second. It ends a growing tree; it doesn't refuse a single fork.

pub mod machine;
mod shell;
pub mod tail;

use std::path::PathBuf;
use std::process::ExitCode;

/// How to reach the supervisor: the arguments of `caisson runner`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Unix socket on which the supervisor listens
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// File that holds the 32 bytes of the token; without it they are read from standard input
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Runs the runner until its agent is over or its supervisor is gone.
///
/// The code is 0 after a delivered report or an ordered end, and 1 otherwise, with one line on standard error.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    match shell::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::complain(&error);
            ExitCode::FAILURE
        }
    }
}

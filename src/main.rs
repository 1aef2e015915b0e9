//! The caisson binary.

use std::process::ExitCode;

use caisson::runner;
use clap::Parser as _;

#[derive(clap::Parser)]
enum Command {
    /// Run one agent for a supervisor
    #[command(hide = true)]
    Runner(runner::Arguments),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Runner(arguments) => runner::main(&arguments),
    }
}

//! The command line: parse, wire, print. Rendering is pure and snapshot-tested.

mod args;
mod catalog;
mod definitions;
mod documents;
mod exit;
mod explain;
mod generate;
mod home;
mod leftovers;
mod logging;
mod render;
mod run;
mod terminal;
mod validate;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
pub use exit::Exit;
use terminal::Terminal;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let terminal = Terminal::of_process();
    match cli.command {
        // These are parts of a run, without an environment of their own.
        Command::Runner(arguments) => return crate::runner::main(&arguments),
        Command::Evaluate { parent } => return crate::supervisor::output::worker::main(parent),
        _ => logging::start(terminal),
    }
    match cli.command {
        Command::Runner(_) | Command::Evaluate { .. } => ExitCode::FAILURE,
        Command::Run(arguments) => run::main(*arguments, terminal).into(),
        Command::Validate(arguments) => validate::main(&arguments, terminal).into(),
        Command::Definitions(arguments) => definitions::main(&arguments, terminal).into(),
        Command::Explain(arguments) => explain::main(&arguments, terminal).into(),
        Command::Crd => generate::crds(terminal).into(),
        Command::Completions(arguments) => generate::completions(&arguments).into(),
        Command::Man(arguments) => generate::man(&arguments, terminal).into(),
    }
}

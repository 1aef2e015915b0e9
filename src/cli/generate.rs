//! What is generated from the types: custom resource definitions, completions, manual pages.

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs, CrdArgs, ManArgs};
use super::exit::Exit;
use super::terminal::Terminal;

pub(super) fn crd(_: &CrdArgs, terminal: &Terminal) -> Exit {
    terminal.print(&crate::api::crd::manifests());
    Exit::Done
}

pub(super) fn completions(arguments: &CompletionsArgs) -> Exit {
    clap_complete::generate(arguments.shell, &mut Cli::command(), "caisson", &mut std::io::stdout().lock());
    Exit::Done
}

pub(super) fn man(arguments: &ManArgs, terminal: &Terminal) -> Exit {
    let written = match &arguments.directory {
        Some(directory) => clap_mangen::generate_to(Cli::command(), directory),
        None => clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout().lock()),
    };
    match written {
        Ok(()) => Exit::Done,
        Err(error) => {
            terminal.complain(&error);
            Exit::Failed
        }
    }
}

//! What is generated from the types: custom resource definitions, completions, manual pages.

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::exit::Exit;
use super::terminal::Terminal;
use crate::api::crd;

pub(super) fn crds(terminal: Terminal) -> Exit {
    for definition in crd::crds() {
        match crd::yaml(&definition) {
            Ok(yaml) => terminal.print(&format!("---\n{yaml}")),
            Err(error) => {
                terminal.complain(&error);
                return Exit::Failed;
            }
        }
    }
    Exit::Done
}

pub(super) fn completions(arguments: &CompletionsArgs) -> Exit {
    clap_complete::generate(arguments.shell, &mut Cli::command(), "caisson", &mut std::io::stdout().lock());
    Exit::Done
}

pub(super) fn man(arguments: &ManArgs, terminal: Terminal) -> Exit {
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

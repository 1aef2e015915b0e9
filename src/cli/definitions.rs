//! `caisson definitions`: what can be used by name.

use super::args::DefinitionsArgs;
use super::catalog::{Catalog, CatalogError, Entry};
use super::exit::Exit;
use super::home::Home;
use super::leftovers;
use super::render;
use super::terminal::Terminal;

pub(super) fn main(arguments: &DefinitionsArgs, terminal: Terminal) -> Exit {
    let home = Home::of_process();
    leftovers::clean_up(&home, terminal);
    let catalog = Catalog::new(home.definitions);
    if let Some(name) = &arguments.name {
        return show(&catalog, name, terminal);
    }
    let entries: Vec<(String, Result<Entry, CatalogError>)> =
        catalog.names().into_iter().map(|name| (name.clone(), catalog.find(&name))).collect();
    terminal.print(&render::definitions(&entries));
    Exit::Done
}

fn show(catalog: &Catalog, name: &str, terminal: Terminal) -> Exit {
    match catalog.find(name) {
        Ok(entry) => {
            terminal.print(&render::yaml(&entry.definition));
            Exit::Done
        }
        Err(error) => {
            complain(&error, terminal);
            Exit::Invalid
        }
    }
}

/// Tells why a definition can't be used, with every problem.
pub(super) fn complain(error: &CatalogError, terminal: Terminal) {
    terminal.complain(error);
    if let CatalogError::Invalid { problems, .. } = error {
        terminal.tell(&render::problems(problems));
    }
}

//! `caisson explain`: what a failure code means.

use super::args::ExplainArgs;
use super::exit::Exit;
use super::render;
use super::terminal::Terminal;
use crate::api::Code;

pub(super) fn main(arguments: &ExplainArgs, terminal: &Terminal) -> Exit {
    match arguments.code.as_deref() {
        None => {
            terminal.print(&render::codes());
            Exit::Done
        }
        Some(name) => match Code::from_name(name) {
            Some(code) => {
                terminal.print(&render::code(code));
                Exit::Done
            }
            None => {
                terminal.tell("error: no such code; caisson explain lists all\n");
                Exit::Invalid
            }
        },
    }
}

//! `caisson explain`: what a failure code means.

use super::args::ExplainArgs;
use super::exit::Exit;
use super::render;
use super::terminal::Terminal;
use crate::api::Code;

pub(super) fn main(arguments: &ExplainArgs, terminal: Terminal) -> Exit {
    let Some(name) = arguments.code.as_deref() else {
        terminal.print(&render::codes());
        return Exit::Done;
    };
    if let Some(code) = Code::from_name(name) {
        terminal.print(&render::code(code));
        Exit::Done
    } else {
        terminal.tell("error: no such code; caisson explain lists all\n");
        Exit::Invalid
    }
}

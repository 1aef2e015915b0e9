//! What a `caisson` that was killed left behind: the next command removes it and says so.

use super::home::Home;
use super::terminal::Terminal;
use crate::controller::local::{Journal, Leftover};

/// Ends and removes what dead runs of this user left. What can't be removed is told, and keeps nobody from working.
pub(super) fn clean_up(home: &Home, terminal: Terminal) {
    let Some(state) = home.state.clone() else { return };
    match Journal::new(state).clean_up() {
        Err(error) => terminal.complain(&error),
        Ok(leftovers) => {
            for leftover in leftovers {
                match leftover {
                    Ok(leftover) => terminal.tell(&told(&leftover)),
                    Err(error) => terminal.complain(&error),
                }
            }
        }
    }
}

fn told(leftover: &Leftover) -> String {
    let what = leftover.record.as_ref().map_or_else(
        || "a run that had not begun".to_owned(),
        |record| {
            let fate =
                if record.granted { "lost: its agent may have run" } else { "its agent was never started" };
            format!(
                "the run of {} ({}, {}) was left behind by a caisson that ended: {fate}",
                record.task,
                record.definition,
                record.started_at.strftime("%Y-%m-%d %H:%M:%SZ")
            )
        },
    );
    let processes = match leftover.processes {
        0 => String::new(),
        1 => ", 1 process ended".to_owned(),
        count => format!(", {count} processes ended"),
    };
    format!("cleaned up: {what}{processes}\n")
}

//! What people should know about a workspace and no field says.

use std::path::PathBuf;

use super::workspace::{Incomplete, Note, Prepared, WorkspaceDiff};
use crate::redact::{Redacted, Redactor};

/// Paths that one note names; the rest is counted.
const NAMED: usize = 5;

/// About the workspace as it was made.
pub(super) fn of_workspace(prepared: &Prepared, redactor: &Redactor) -> Vec<Redacted> {
    prepared.notes.iter().map(|note| redactor.text(&workspace_note(note))).collect()
}

fn workspace_note(note: &Note) -> String {
    match note {
        Note::SubmodulesLeftEmpty { paths } => format!("submodules are left empty: {}", names(paths)),
        Note::UncommittedChanges { tracked, untracked } => {
            format!(
                "not in the workspace: {tracked} changed and {untracked} untracked files that are not committed"
            )
        }
        _ => "whether the repository has uncommitted changes is not known".to_owned(),
    }
}

/// About what the agent left.
pub(super) fn of_change(change: &WorkspaceDiff, redactor: &Redactor) -> Vec<Redacted> {
    let mut notes = Vec::new();
    if !change.nested_repositories.is_empty() {
        notes.push(format!(
            "nested repositories are left out of the diff: {}",
            names(&change.nested_repositories)
        ));
    }
    if !change.oversized.is_empty() {
        let paths: Vec<PathBuf> = change.oversized.iter().map(|(path, _)| path.clone()).collect();
        notes.push(format!("too large for the diff: {}", names(&paths)));
    }
    if !change.skipped.is_empty() {
        let paths: Vec<PathBuf> = change.skipped.iter().map(|(path, _)| path.clone()).collect();
        notes.push(format!("neither file nor link, or not readable: {}", names(&paths)));
    }
    notes.extend(change.incomplete.iter().filter_map(|reason| incomplete(*reason)).map(str::to_owned));
    notes.iter().map(|note| redactor.text(note)).collect()
}

fn incomplete(reason: Incomplete) -> Option<&'static str> {
    match reason {
        Incomplete::PatchBytes | Incomplete::ContentBytes => Some("the diff is cut: the change is too large"),
        Incomplete::Entries | Incomplete::Depth => {
            Some("the diff is cut: the tree has too many entries or levels")
        }
        // The files themselves are named.
        Incomplete::FileBytes | Incomplete::Unreadable => None,
    }
}

/// Paths as one line: a name can hold anything, so each is quoted and escaped.
#[expect(clippy::unnecessary_debug_formatting, reason = "the quotes and escapes are what is wanted")]
fn names(paths: &[PathBuf]) -> String {
    let named: Vec<String> = paths.iter().take(NAMED).map(|path| format!("{path:?}")).collect();
    let more = paths.len().saturating_sub(NAMED);
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

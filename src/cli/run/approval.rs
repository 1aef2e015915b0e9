//! A local approval is the caller's own.

use crate::core::decide::Facts;

/// Whether the task may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Approved,
    Needed,
}

/// Whether the caller approves: by the exact digest, by saying yes to anything, or by answering the question.
pub(super) fn decide(facts: &Facts, digest: Option<&str>, yes: bool, ask: impl FnOnce() -> bool) -> Decision {
    let approved = match digest {
        Some(digest) => digest == facts.digest,
        None => !facts.approval_required || yes || ask(),
    };
    if approved { Decision::Approved } else { Decision::Needed }
}

/// How to approve what would run.
pub(super) fn how(digest: &str, named: Option<&str>) -> String {
    let what = if named.is_some() { "what would run is not what the digest names" } else { "not approved" };
    format!(
        "{what}; nothing was started\nto approve exactly this, repeat the command with\n  --approve {digest}\n"
    )
}

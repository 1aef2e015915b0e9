//! The throwaway workspace: prepare it, say what the agent changed, apply that elsewhere.
//!
//! **The tree an agent leaves is hostile input.** The invariants, and where each one lives:
//!
//! - Git is started in [`git`] only, with a cleared environment, no hooks, no configuration but our own, and no
//!   protocol that the step does not need.
//! - Git never runs over the agent's tree once the agent may have touched it. [`diff`] walks the tree itself
//!   (`tree`, by directory descriptors, following nothing), hashes what it finds (`object`), and hands git only a
//!   stream of content (`stream`) for a repository of our own. The agent's `.git` is never read, so it may be
//!   missing, replaced or full of traps.
//! - The tree is *raw*: no end-of-line conversion, filter, identifier expansion or re-encoding, neither on checkout
//!   nor in the diff. A large-file pointer stays a pointer.
//! - The source repository is never written, except by [`apply`], which the user asks for.
//!
//! # Decisions
//!
//! - **Ignored files** are those that `git add --all` would leave out: the `.gitignore` files of the tree *as the
//!   agent left it* decide, so that an agent that adds a build directory and ignores it behaves as a person would.
//!   Files of the base commit are never ignored. Nobody can hide a change so: an ignored file is not delivered either.
//! - **Nested repositories** are reported and left out, except for files that the base commit already has below
//!   them: a planted `.git` directory must not hide a change. They are compared as plain bytes, like all others.
//! - **A hard link** is an ordinary file with readable content, wherever its other names are: the agent could as well
//!   have copied it.
//! - **Empty directories** do not exist in git and are in no diff.
//! - **`depth`** bounds what is fetched; a local source is not fetched but borrowed from, so it has no effect there.
//!
//! # Caveats
//!
//! A workspace of a local source borrows objects from the source repository: it must not be pruned meanwhile. When the
//! agent's own git stores content that the source already has, git refreshes the time stamp of that object file there,
//! as it does in every repository that borrows; nothing that is done here does, and content never changes.
//! [`Layout::private`] must be out of the agent's reach; where it is not (same user, no sandbox), the commands used
//! here still start no program that a planted configuration could name.

mod apply;
mod base;
mod compare;
mod diff;
mod error;
mod fetch;
mod git;
mod head;
mod ignored;
mod local;
mod names;
mod object;
mod obstacles;
mod prepare;
mod skeleton;
mod stream;
mod tree;

#[cfg(test)]
mod tests;

pub use apply::{Applied, ApplyError, apply};
pub use diff::{ChangeKind, DiffLimits, FileChange, Incomplete, SkipReason, Totals, WorkspaceDiff, diff};
pub use error::WorkspaceError;
pub use git::{Git, GitError, Stderr};
pub use head::head;
pub use object::ObjectId;
pub use prepare::{Layout, Note, Prepared, Repository, Source, prepare};

//! Applies a diff to the user's own repository: the only place that writes to it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::diff::WorkspaceDiff;
use super::git::{Git, GitError, Invocation};
use super::names::means_git_dir;
use super::obstacles::are_obstructed;
use super::stream::rewound;

/// Bytes of an answer: a path, or the names of the configured filters.
const ANSWER_BYTES: usize = 1 << 20;

/// A diff that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// Files that were changed.
    pub files: usize,
}

/// Why a diff was not applied. Except after [`ApplyError::Interrupted`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The patch does not hold all changes, so applying it would leave something else than the agent did.
    #[error("the diff is incomplete")]
    Incomplete,
    /// The target is not in a git working tree.
    #[error("the target is not a git working tree")]
    NotAWorkTree,
    /// A path leads out of the working tree or into a `.git`.
    #[error("the diff names a path that must not be written")]
    UnsafePath,
    /// The target's files are not as the diff expects: changed, missing, in the way, or behind a symbolic link.
    #[error("the diff does not apply any more")]
    DoesNotApply {
        /// What git says about it, not part of the message; `None` when something is in the way of a new file.
        #[source]
        source: Option<GitError>,
    },
    /// All was checked, but writing failed, for example because the disk is full: some files may be changed.
    #[error("applying the diff was interrupted")]
    Interrupted {
        /// What happened.
        #[source]
        source: GitError,
    },
    /// A git command could not run.
    #[error("a git command failed")]
    Git {
        /// What happened.
        #[source]
        source: GitError,
    },
    /// The patch could not be stored for git, or the target not be looked at.
    #[error("could not prepare applying the diff")]
    Io {
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The async runtime shut down.
    #[error("the work was interrupted")]
    Shutdown,
}

/// Applies a diff to the working tree that `repository` is in. Its index and `HEAD` stay as they are.
///
/// # Guarantees
///
/// All or nothing, as far as git is: everything is checked before the first file is written. Uncommitted changes of
/// other lines are kept. Once writing has begun it is finished even when the future is dropped. The line ending and
/// encoding attributes of the target are honoured; its configured filters, monitors and hooks do not run, so a file
/// that a filter rewrites in the working tree counts as changed.
///
/// # Errors
///
/// See [`ApplyError`].
pub async fn apply(git: &Git, repository: &Path, diff: &WorkspaceDiff) -> Result<Applied, ApplyError> {
    if !diff.is_complete() {
        return Err(ApplyError::Incomplete);
    }
    if !diff.files.iter().all(|file| is_safe(&file.path)) {
        return Err(ApplyError::UnsafePath);
    }
    if diff.patch.is_empty() {
        return Ok(Applied { files: 0 });
    }
    let target = Target::find(git, repository).await?;
    target.run(git, &diff.patch, Step::Check).await.map_err(refused)?.map_err(refused_by_git)?;
    if are_obstructed(&target.root, &diff.files).map_err(refused)? {
        return Err(ApplyError::DoesNotApply { source: None });
    }
    let (git, patch) = (git.clone(), diff.patch.clone());
    // In a task of its own, which goes on when this future is dropped.
    let writing = tokio::spawn(async move { target.run(&git, &patch, Step::Write).await });
    let written = writing.await.map_err(|_| ApplyError::Shutdown)?;
    written.map_err(refused)?.map_err(|source| ApplyError::Interrupted { source })?;
    Ok(Applied { files: diff.files.len() })
}

fn refused(source: std::io::Error) -> ApplyError {
    ApplyError::Io { source }
}

fn refused_by_git(source: GitError) -> ApplyError {
    if source.is_refusal() {
        ApplyError::DoesNotApply { source: Some(source) }
    } else {
        ApplyError::Git { source }
    }
}

/// Git refuses such paths too; asking here gives the reason a name of its own.
fn is_safe(path: &Path) -> bool {
    let plain = |component| matches!(component, Component::Normal(name) if !means_git_dir(name.as_bytes()));
    path.components().all(plain)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Check,
    Write,
}

/// The working tree, and what keeps its filters from running.
struct Target {
    root: PathBuf,
    overrides: Vec<(OsString, &'static str)>,
}

impl Target {
    async fn find(git: &Git, repository: &Path) -> Result<Self, ApplyError> {
        let path = std::path::absolute(repository).map_err(refused)?;
        let root = git.within(&path, "rev-parse").arg("--show-toplevel").output(ANSWER_BYTES).await;
        let mut root = root.map_err(|source| {
            if source.is_refusal() { ApplyError::NotAWorkTree } else { ApplyError::Git { source } }
        })?;
        if root.last() == Some(&b'\n') {
            root.pop();
        }
        let root = PathBuf::from(OsString::from_vec(root));
        let listing = git
            .within(&root, "config")
            .args(["-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"])
            .output(ANSWER_BYTES)
            .await;
        let listing = match listing {
            Ok(listing) => listing,
            // How git says that there is none.
            Err(error) if error.is_refusal() => Vec::new(),
            Err(source) => return Err(ApplyError::Git { source }),
        };
        let overrides = listing.split(|&byte| byte == 0).filter(|key| !key.is_empty()).map(without).collect();
        Ok(Self { root, overrides })
    }

    /// Runs git on the whole patch. From a file, so that git can never see only a part of it.
    async fn run(&self, git: &Git, patch: &[u8], step: Step) -> std::io::Result<Result<(), GitError>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(patch)?;
        let mut apply = git
            .within(&self.root, "apply")
            .args(["--whitespace=nowarn", "--binary", "-p1"])
            .config("apply.ignoreWhitespace", "no")
            .config("apply.whitespace", "nowarn");
        if step == Step::Check {
            apply = apply.arg("--check");
        }
        let apply =
            self.overrides.iter().fold(apply, |apply, (key, value)| Invocation::config(apply, key, *value));
        Ok(apply.arg("-").input(rewound(file)?).output(ANSWER_BYTES).await.map(drop))
    }
}

fn without(key: &[u8]) -> (OsString, &'static str) {
    (OsStr::from_bytes(key).to_owned(), if key.ends_with(b".required") { "false" } else { "" })
}

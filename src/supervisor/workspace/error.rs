//! What can go wrong with a workspace.

use super::git::GitError;

/// Why a workspace could not be prepared or compared. The task fails with `workspace-failed`; the
/// [`system_code`](Self::system_code) tells the cases apart. No message quotes a path, an address or git's output.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A git command could not run, or failed where it never should.
    #[error("a git command failed")]
    Git {
        /// What happened.
        #[source]
        source: GitError,
    },
    /// The local source is not inside a git repository.
    #[error("the source is not a git repository")]
    NotARepository,
    /// The source has no commit yet, so nothing can be checked out.
    #[error("the source repository has no commit yet")]
    NoCommit,
    /// The address is not one of `https://` without credentials in it.
    #[error("the repository address is not an https address without credentials")]
    AddressRefused,
    /// The revision names no commit of the source.
    #[error("the revision was not found in the source repository")]
    RevisionNotFound,
    /// The source could not be fetched.
    #[error("the repository could not be fetched")]
    CloneFailed {
        /// What happened.
        #[source]
        source: GitError,
    },
    /// The commit could not be written out, for example because objects are missing (a partial clone) or because
    /// the tree holds names that git refuses.
    #[error("the commit could not be checked out")]
    CheckoutFailed {
        /// What happened.
        #[source]
        source: GitError,
    },
    /// The subdirectory is absolute, leads upwards or into `.git`.
    #[error("the subdirectory is not a plain relative path")]
    SubdirectoryInvalid,
    /// The commit has no such directory.
    #[error("the subdirectory does not exist in the commit")]
    SubdirectoryMissing,
    /// A component of the subdirectory is a symbolic link, which could lead anywhere.
    #[error("the subdirectory leads through a symbolic link")]
    SubdirectorySymlink,
    /// The directory for the workspace already holds something.
    #[error("the workspace directory is not empty")]
    NotEmpty,
    /// The workspace directory is gone, or is another one than was prepared.
    #[error("the workspace directory was replaced")]
    Replaced,
    /// A file operation of our own failed.
    #[error("could not {action}")]
    Io {
        /// What was tried, as the rest of the sentence "could not …".
        action: &'static str,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The blocking part was ended by the shutdown of the async runtime.
    #[error("the work was interrupted")]
    Interrupted,
}

impl WorkspaceError {
    /// The stable system code of a failed task's status, of the form `^[A-Z][A-Z0-9_]{0,31}$`.
    #[must_use]
    pub fn system_code(&self) -> &'static str {
        match self {
            Self::Git { source: GitError::Missing } => "GIT_MISSING",
            Self::Git { .. } => "GIT_FAILED",
            Self::NotARepository => "NOT_A_REPOSITORY",
            Self::NoCommit => "NO_COMMIT",
            Self::AddressRefused => "ADDRESS_REFUSED",
            Self::RevisionNotFound => "REVISION_NOT_FOUND",
            Self::CloneFailed { .. } => "CLONE_FAILED",
            Self::CheckoutFailed { .. } => "CHECKOUT_FAILED",
            Self::SubdirectoryInvalid => "SUBDIRECTORY_INVALID",
            Self::SubdirectoryMissing => "SUBDIRECTORY_MISSING",
            Self::SubdirectorySymlink => "SUBDIRECTORY_SYMLINK",
            Self::NotEmpty => "WORKSPACE_NOT_EMPTY",
            Self::Replaced => "WORKSPACE_REPLACED",
            Self::Io { .. } => "WORKSPACE_IO",
            Self::Interrupted => "INTERRUPTED",
        }
    }

    pub(super) fn git(source: GitError) -> Self {
        Self::Git { source }
    }

    pub(super) fn io(action: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

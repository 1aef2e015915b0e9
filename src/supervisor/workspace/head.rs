//! Where a repository of the user's stands, so that exactly that can be approved.

use std::path::Path;

use super::error::WorkspaceError;
use super::git::Git;
use super::local::LocalSource;
use super::object::ObjectId;

/// The commit that `HEAD` of the local repository at `path` names now.
///
/// # Errors
///
/// [`WorkspaceError::NotARepository`] or [`WorkspaceError::NoCommit`], or a failure of git.
pub async fn head(git: &Git, path: &Path) -> Result<ObjectId, WorkspaceError> {
    LocalSource::inspect(git, path, None).await.map(|source| source.base)
}

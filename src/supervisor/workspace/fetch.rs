//! A source elsewhere: one commit of it, fetched into the private repository.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::WorkspaceError;
use super::git::{Git, GitError, Invocation};
use super::names::is_ref_name;
use super::object::ObjectId;
use super::skeleton::Skeleton;

/// Where the fetched commit is kept.
const BASE: &str = "refs/caisson/base";

/// Bytes of the answer to a question about two references.
const ANSWER_BYTES: usize = 1 << 20;

/// The address of a repository and the one protocol that may be spoken with it.
pub(super) struct Remote<'a> {
    address: &'a OsStr,
    protocol: &'static str,
}

/// A fetched commit.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) base: ObjectId,
    pub(super) branch: Option<OsString>,
}

impl<'a> Remote<'a> {
    /// Accepts `https://HOST/…`. User information is refused: credentials have their own way, and an address is shown.
    pub(super) fn https(address: &'a str) -> Result<Self, WorkspaceError> {
        let rest = address.strip_prefix("https://").ok_or(WorkspaceError::AddressRefused)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let plain = address.chars().all(|c| c.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !plain {
            return Err(WorkspaceError::AddressRefused);
        }
        Ok(Self { address: OsStr::new(address), protocol: "https" })
    }

    /// A repository on this machine, fetched as if it were elsewhere.
    #[cfg(test)]
    pub(super) fn file(address: &'a str) -> Self {
        Self { address: OsStr::new(address), protocol: "file" }
    }

    /// Fetches a branch, a tag or a full commit name (`HEAD` without one) into a new private repository.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError::RevisionNotFound`] when the remote answers but has no such branch or tag,
    /// [`WorkspaceError::CloneFailed`] when it does not answer or does not give the commit.
    pub(super) async fn fetch(
        &self,
        git: &Git,
        revision: Option<&str>,
        depth: Option<u32>,
        repository: &Path,
    ) -> Result<Fetched, WorkspaceError> {
        let failed = |source| match source {
            GitError::Missing | GitError::Start { .. } => WorkspaceError::Git { source },
            source => WorkspaceError::CloneFailed { source },
        };
        let commit = revision.and_then(|revision| ObjectId::from_hex(revision.as_bytes()));
        let wanted = match (commit, revision) {
            (Some(commit), _) => Wanted { id: commit, name: commit.to_string().into(), branch: None },
            (None, revision) => {
                let advertised = self.advertised(git, revision).await?.map_err(failed)?;
                pick(&advertised, revision).ok_or(WorkspaceError::RevisionNotFound)?
            }
        };
        Skeleton::private(wanted.id.format()).create(repository)?;
        let mut refspec = wanted.name;
        refspec.push(":");
        refspec.push(BASE);
        let mut fetch =
            self.allow(git.private(repository, "fetch")).args(["--quiet", "--no-tags", "--force"]);
        fetch = fetch.args(["--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance"]);
        if let Some(depth) = depth {
            fetch = fetch.arg(format!("--depth={depth}"));
        }
        fetch
            .arg("--end-of-options")
            .arg(self.address)
            .arg(refspec)
            .output(ANSWER_BYTES)
            .await
            .map_err(failed)?;
        let verify = git.private(repository, "rev-parse").args(["--verify", "--quiet", "--end-of-options"]);
        let answer = verify.arg(format!("{BASE}^{{commit}}")).output(ANSWER_BYTES).await;
        let base = answer.ok().and_then(|answer| ObjectId::from_hex(answer.trim_ascii_end()));
        Ok(Fetched { base: base.ok_or(WorkspaceError::RevisionNotFound)?, branch: wanted.branch })
    }

    /// What the remote says about the revision's possible names.
    async fn advertised(
        &self,
        git: &Git,
        revision: Option<&str>,
    ) -> Result<Result<Vec<u8>, GitError>, WorkspaceError> {
        let names = match revision {
            None => vec!["HEAD".to_owned()],
            Some(name) if is_ref_name(name) => {
                vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")]
            }
            Some(_) => return Err(WorkspaceError::RevisionNotFound),
        };
        let mut list =
            self.allow(git.elsewhere("ls-remote")).args(["--quiet", "--symref", "--end-of-options"]);
        list = list.arg(self.address);
        for name in names {
            list = list.arg(name);
        }
        Ok(list.output(ANSWER_BYTES).await)
    }

    fn allow(&self, invocation: Invocation) -> Invocation {
        invocation.env("GIT_ALLOW_PROTOCOL", self.protocol)
    }
}

/// What to ask the remote for.
struct Wanted {
    id: ObjectId,
    name: OsString,
    branch: Option<OsString>,
}

/// Picks from the lines `ID TAB NAME` and `ref: NAME TAB HEAD`. A pattern also matches longer names that end in it,
/// so names are compared whole; a branch goes before a tag.
fn pick(advertised: &[u8], revision: Option<&str>) -> Option<Wanted> {
    let lines = || {
        advertised.split(|&byte| byte == b'\n').filter_map(|line| {
            let tab = line.iter().position(|&byte| byte == b'\t')?;
            Some((line.get(..tab)?, line.get(tab + 1..)?))
        })
    };
    let id = |name: &[u8]| lines().find_map(|(id, n)| (n == name).then(|| ObjectId::from_hex(id)).flatten());
    let owned = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let Some(revision) = revision else {
        let branch =
            lines().find_map(|(target, name)| (name == b"HEAD").then(|| target.strip_prefix(b"ref: "))?);
        let branch = branch.filter(|branch| branch.starts_with(b"refs/heads/")).map(owned);
        return Some(Wanted { id: id(b"HEAD")?, name: "HEAD".into(), branch });
    };
    let branch = format!("refs/heads/{revision}");
    if let Some(id) = id(branch.as_bytes()) {
        return Some(Wanted { id, name: branch.clone().into(), branch: Some(branch.into()) });
    }
    let tag = format!("refs/tags/{revision}");
    Some(Wanted { id: id(tag.as_bytes())?, name: tag.into(), branch: None })
}

//! A source on this machine: what git knows about it, without writing to it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::error::WorkspaceError;
use super::git::{Git, GitError, Invocation};
use super::object::{ObjectFormat, ObjectId};

/// Bytes of a single answer: a path, an object name or a reference name.
const ANSWER_BYTES: usize = 64 * 1024;

/// Bytes of the list of uncommitted files.
const STATUS_BYTES: usize = 64 << 20;

/// A repository of the user's at one commit.
#[derive(Debug)]
pub(super) struct LocalSource {
    pub(super) base: ObjectId,
    /// The full name of the branch that the revision names.
    pub(super) branch: Option<OsString>,
    /// Whether this is what `HEAD` names, asked for as such or by its full commit name.
    pub(super) is_head: bool,
    pub(super) shallow: Option<Vec<u8>>,
    pub(super) exclude: Option<Vec<u8>>,
    pub(super) objects: PathBuf,
    /// The working tree with the index that belongs to it; a bare repository has none.
    pub(super) work_tree: Option<WorkTree>,
}

#[derive(Debug)]
pub(super) struct WorkTree {
    pub(super) root: PathBuf,
    /// Where the source path is below the root.
    pub(super) prefix: PathBuf,
    index: PathBuf,
}

impl LocalSource {
    /// Finds the repository that `path` is in, be it a working tree, a linked one, a submodule or bare.
    pub(super) async fn inspect(
        git: &Git,
        path: &Path,
        revision: Option<&OsStr>,
    ) -> Result<Self, WorkspaceError> {
        let path = std::path::absolute(path).map_err(|_| WorkspaceError::NotARepository)?;
        // No process can be given these.
        if path.as_os_str().as_bytes().contains(&0) {
            return Err(WorkspaceError::NotARepository);
        }
        if revision.is_some_and(|revision| revision.as_bytes().contains(&0)) {
            return Err(WorkspaceError::RevisionNotFound);
        }
        let format = ask(rev_parse(git, &path).arg("--show-object-format")).await.map_err(|error| {
            if error.is_refusal() { WorkspaceError::NotARepository } else { WorkspaceError::git(error) }
        })?;
        if ObjectFormat::from_name(format.as_bytes()).is_none() {
            return Err(WorkspaceError::git(GitError::Malformed { subcommand: "rev-parse" }));
        }
        let (base, branch, common, git_dir, root, prefix) = tokio::try_join!(
            resolve(git, &path, revision),
            branch(git, &path, revision),
            ask(rev_parse(git, &path).args(["--path-format=absolute", "--git-common-dir"])),
            ask(rev_parse(git, &path).arg("--absolute-git-dir")),
            optional(rev_parse(git, &path).arg("--show-toplevel")),
            optional(rev_parse(git, &path).arg("--show-prefix")),
        )
        .map_err(WorkspaceError::git)?;
        let missing =
            || if revision.is_some() { WorkspaceError::RevisionNotFound } else { WorkspaceError::NoCommit };
        let base = base.ok_or_else(missing)?;
        let mut named = Named { branch, is_head: revision.is_none() };
        if revision.is_some_and(|revision| revision.as_bytes() == base.to_string().as_bytes()) {
            named = named.or_head(git, &path, &base).await.map_err(WorkspaceError::git)?;
        }
        let common = PathBuf::from(common);
        let read = WorkspaceError::io("read the source repository");
        Ok(Self {
            base,
            branch: named.branch,
            is_head: named.is_head,
            shallow: read_optional(&common.join("shallow")).map_err(&read)?,
            exclude: read_optional(&common.join("info/exclude")).map_err(&read)?,
            objects: common.join("objects"),
            work_tree: root.map(|root| WorkTree {
                root: root.into(),
                prefix: prefix.unwrap_or_default().into(),
                index: Path::new(&git_dir).join("index"),
            }),
        })
    }
}

/// What a revision stands for besides its commit.
struct Named {
    branch: Option<OsString>,
    is_head: bool,
}

impl Named {
    /// A commit that was pinned while `HEAD` named it still means `HEAD` as long as that names it.
    async fn or_head(self, git: &Git, path: &Path, base: &ObjectId) -> Result<Self, GitError> {
        let (head, branch) = tokio::try_join!(resolve(git, path, None), branch(git, path, None))?;
        let is_head = head.as_ref() == Some(base);
        Ok(if is_head { Self { branch, is_head } } else { self })
    }
}

impl WorkTree {
    /// Counts tracked files that differ from the private repository's `HEAD`, and untracked ones.
    ///
    /// Git runs with the private repository, so that neither the user's filters nor a monitor of theirs is started,
    /// and with their index, which it does not write.
    pub(super) async fn uncommitted(&self, git: &Git, repository: &Path) -> Result<(usize, usize), GitError> {
        let listing = git
            .private(repository, "status")
            .env("GIT_WORK_TREE", &self.root)
            .env("GIT_INDEX_FILE", &self.index)
            .args([
                "--porcelain=v1",
                "-z",
                "--untracked-files=normal",
                "--ignore-submodules=all",
                "--no-renames",
            ])
            .output(STATUS_BYTES)
            .await?;
        let records = || listing.split(|&byte| byte == 0).filter(|record| !record.is_empty());
        let untracked = records().filter(|record| record.starts_with(b"??")).count();
        Ok((records().count() - untracked, untracked))
    }
}

fn rev_parse(git: &Git, path: &Path) -> Invocation {
    git.within(path, "rev-parse")
}

/// The commit that a revision names, whatever characters it begins with.
async fn resolve(git: &Git, path: &Path, revision: Option<&OsStr>) -> Result<Option<ObjectId>, GitError> {
    let mut expression = revision.unwrap_or(OsStr::new("HEAD")).to_owned();
    expression.push("^{commit}");
    let verify = rev_parse(git, path).args(["--verify", "--quiet", "--end-of-options"]).arg(expression);
    let Some(answer) = optional(verify).await? else { return Ok(None) };
    ObjectId::from_hex(answer.as_bytes()).map(Some).ok_or(GitError::Malformed { subcommand: "rev-parse" })
}

async fn branch(git: &Git, path: &Path, revision: Option<&OsStr>) -> Result<Option<OsString>, GitError> {
    let name = match revision {
        None => optional(git.within(path, "symbolic-ref").args(["--quiet", "HEAD"])).await?,
        Some(revision) => {
            let mut branch = OsString::from("refs/heads/");
            branch.push(revision);
            // The revision may name something else first, such as a tag; then the commit is not the branch's.
            let full = rev_parse(git, path).args([
                "--verify",
                "--quiet",
                "--symbolic-full-name",
                "--end-of-options",
            ]);
            optional(full.arg(revision)).await?.filter(|name| *name == branch)
        }
    };
    Ok(name.filter(|name| name.as_bytes().starts_with(b"refs/heads/")))
}

/// One answer, without the newline that ends it; a path may contain others.
async fn ask(invocation: Invocation) -> Result<OsString, GitError> {
    let mut answer = invocation.output(ANSWER_BYTES).await?;
    if answer.last() == Some(&b'\n') {
        answer.pop();
    }
    Ok(OsString::from_vec(answer))
}

/// Like [`ask`], where a refusal means that there is none.
async fn optional(invocation: Invocation) -> Result<Option<OsString>, GitError> {
    match ask(invocation).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_refusal() => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

//! Makes the workspace: a raw checkout of one commit with a `.git` for the agent, and a private repository to compare
//! with afterwards.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use super::base::BaseTree;
use super::error::WorkspaceError;
use super::fetch::Remote;
use super::git::{Git, GitError};
use super::local::{LocalSource, WorkTree};
use super::names::means_git_dir;
use super::object::{Mode, ObjectFormat, ObjectId};
use super::skeleton::{Head, Skeleton};
use super::tree::{Directory, Identity, Kind};

/// Where a source repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repository {
    /// An `https://` address without user information.
    Https(String),
    /// A directory of this machine, in a working tree or a bare repository.
    Local(PathBuf),
}

/// The content that a workspace starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The repository.
    pub repository: Repository,
    /// A branch, a tag or a full commit name; from a local repository anything that names a commit. `None` is `HEAD`.
    pub revision: Option<String>,
    /// Commits of history that are fetched. A local repository is not fetched from, so there it has no effect.
    pub depth: Option<u32>,
    /// The agent's working directory, relative to the root of the repository. `None` is the root, or the directory
    /// below it that [`Repository::Local`] named.
    pub subdirectory: Option<String>,
}

/// The two directories of a run. Both are created, or must be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The agent's tree.
    pub workspace: PathBuf,
    /// For the supervisor alone; out of the agent's reach.
    pub private: PathBuf,
}

impl Layout {
    /// The pristine repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.private.join("repository.git")
    }
}

/// A workspace that is ready.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The commit that was checked out; `None` in a workspace that began empty.
    pub base: Option<ObjectId>,
    /// Where the agent starts.
    pub directory: PathBuf,
    /// What a person should know about it.
    pub notes: Vec<Note>,
    pub(super) format: ObjectFormat,
    pub(super) root: Identity,
}

/// Something that the workspace does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The directories of these submodules are empty.
    SubmodulesLeftEmpty {
        /// Relative to the root of the repository.
        paths: Vec<PathBuf>,
    },
    /// The source's working tree has changes that the commit, and so the workspace, does not have.
    UncommittedChanges {
        /// Tracked files that differ from the commit.
        tracked: usize,
        /// Untracked files and directories that are not ignored; a directory counts once.
        untracked: usize,
    },
    /// Whether the source has uncommitted changes could not be found out.
    UncommittedUnknown,
}

/// Makes the workspace of a run.
///
/// # Guarantees
///
/// Writes only below the two directories of `layout`. Runs no hook and no filter, copies no configuration, and leaves
/// every file byte for byte as the commit has it. Dropping the future ends git; the directories are then the caller's
/// to remove, as they are after an error.
///
/// # Errors
///
/// See [`WorkspaceError`]; [`WorkspaceError::system_code`] is what a task's status says.
pub async fn prepare(
    git: &Git,
    source: Option<&Source>,
    layout: &Layout,
) -> Result<Prepared, WorkspaceError> {
    make_empty(&layout.workspace)?;
    make_empty(&layout.private)?;
    let workspace = Directory::open(&layout.workspace).map_err(WorkspaceError::io("open the workspace"))?;
    let root = workspace.identity().map_err(WorkspaceError::io("open the workspace"))?;
    let Some(source) = source else {
        let directory = layout.workspace.clone();
        return Ok(Prepared {
            base: None,
            directory,
            notes: Vec::new(),
            format: ObjectFormat::default(),
            root,
        });
    };
    let revision = source.revision.as_deref();
    let (base, mut notes, prefix) = match &source.repository {
        Repository::Local(path) => borrow(git, path, revision, layout).await?,
        Repository::Https(address) => {
            let remote = Remote::https(address)?;
            let (base, notes) = copy(git, &remote, revision, source.depth, layout).await?;
            (base, notes, PathBuf::new())
        }
    };
    notes.retain(|note| !matches!(note, Note::SubmodulesLeftEmpty { paths } if paths.is_empty()));
    let below = source.subdirectory.as_ref().map_or(prefix, PathBuf::from);
    let directory = subdirectory(workspace, &layout.workspace, &below)?;
    Ok(Prepared { base: Some(base), directory, notes, format: base.format(), root })
}

/// A workspace that borrows the objects of a local repository.
async fn borrow(
    git: &Git,
    path: &Path,
    revision: Option<&str>,
    layout: &Layout,
) -> Result<(ObjectId, Vec<Note>, PathBuf), WorkspaceError> {
    let source = LocalSource::inspect(git, path, revision.map(OsStr::new)).await?;
    let format = source.base.format();
    let repository = layout.repository();
    Skeleton::private(format)
        .head(&source.base)
        .borrowing(&source.objects)
        .shallow(source.shallow.as_deref())
        .exclude(source.exclude.as_deref())
        .create(&repository)?;
    // Whoever names another revision did not ask for the working tree.
    let compared = source.work_tree.as_ref().filter(|_| source.is_head);
    let (submodules, uncommitted) = tokio::try_join!(
        check_out(git, &repository, &source.base, layout),
        note_uncommitted(git, &repository, compared)
    )?;
    let head = Head { commit: &source.base, branch: source.branch.as_deref() };
    let agent =
        Skeleton::for_agent(format, head).borrowing(&source.objects).shallow(source.shallow.as_deref());
    give_to_agent(&agent, layout)?;
    let notes = [submodules].into_iter().chain(uncommitted).collect();
    Ok((source.base, notes, source.work_tree.map(|tree| tree.prefix).unwrap_or_default()))
}

/// A workspace with its own copy of everything, so that the agent cannot reach the private repository.
pub(super) async fn copy(
    git: &Git,
    remote: &Remote<'_>,
    revision: Option<&str>,
    depth: Option<u32>,
    layout: &Layout,
) -> Result<(ObjectId, Vec<Note>), WorkspaceError> {
    let repository = layout.repository();
    let fetched = remote.fetch(git, revision, depth, &repository).await?;
    let submodules = check_out(git, &repository, &fetched.base, layout).await?;
    let shallow = fs::read(repository.join("shallow")).ok();
    let head = Head { commit: &fetched.base, branch: fetched.branch.as_deref() };
    let agent = Skeleton::for_agent(fetched.base.format(), head).shallow(shallow.as_deref());
    give_to_agent(&agent, layout)?;
    let objects = (repository.join("objects"), layout.workspace.join(".git/objects"));
    let copied = tokio::task::spawn_blocking(move || copy_tree(&objects.0, &objects.1)).await;
    copied.map_err(|_| WorkspaceError::Interrupted)?.map_err(WorkspaceError::io("copy the objects"))?;
    Ok((fetched.base, vec![submodules]))
}

/// Writes the commit out as it is, and lists its submodules.
async fn check_out(
    git: &Git,
    repository: &Path,
    base: &ObjectId,
    layout: &Layout,
) -> Result<Note, WorkspaceError> {
    let failed = |source| WorkspaceError::CheckoutFailed { source };
    let write = git
        .private(repository, "read-tree")
        .env("GIT_WORK_TREE", &layout.workspace)
        .args(["-m", "-u"])
        .arg(base.to_string())
        .output(1024);
    let (_, tree) = tokio::try_join!(write, BaseTree::read(git, repository, base)).map_err(failed)?;
    let submodules = tree.entries().iter().filter(|entry| entry.mode == Mode::Submodule);
    let paths = submodules.map(|entry| OsStr::from_bytes(&entry.path).into()).collect();
    Ok(Note::SubmodulesLeftEmpty { paths })
}

async fn note_uncommitted(
    git: &Git,
    repository: &Path,
    tree: Option<&WorkTree>,
) -> Result<Option<Note>, WorkspaceError> {
    let Some(tree) = tree else { return Ok(None) };
    match tree.uncommitted(git, repository).await {
        Ok((0, 0)) => Ok(None),
        Ok((tracked, untracked)) => Ok(Some(Note::UncommittedChanges { tracked, untracked })),
        // An index that only its own repository can read, for example a split one.
        Err(GitError::Failed { .. }) => Ok(Some(Note::UncommittedUnknown)),
        Err(source) => Err(WorkspaceError::git(source)),
    }
}

/// The agent's `.git`, with an index that already knows the files, so that git need not read them again.
fn give_to_agent(skeleton: &Skeleton<'_>, layout: &Layout) -> Result<(), WorkspaceError> {
    let git_dir = layout.workspace.join(".git");
    skeleton.create(&git_dir)?;
    match fs::copy(layout.repository().join("index"), git_dir.join("index")) {
        Ok(_) => Ok(()),
        Err(source) => Err(WorkspaceError::Io { action: "copy the index", source }),
    }
}

/// Creates a directory for its owner alone, or accepts one without entries.
fn make_empty(directory: &Path) -> Result<(), WorkspaceError> {
    let create = WorkspaceError::io("create the workspace");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(&create)?;
    match fs::read_dir(directory).map_err(&create)?.next() {
        None => Ok(()),
        Some(_) => Err(WorkspaceError::NotEmpty),
    }
}

/// The directory that the agent starts in, reached without following a symbolic link of the commit.
fn subdirectory(mut directory: Directory, workspace: &Path, below: &Path) -> Result<PathBuf, WorkspaceError> {
    let mut path = workspace.to_owned();
    for component in below.components() {
        let name = match component {
            Component::Normal(name) if !means_git_dir(name.as_bytes()) => name,
            Component::CurDir => continue,
            _ => return Err(WorkspaceError::SubdirectoryInvalid),
        };
        path.push(name);
        let name = CString::new(name.as_bytes()).map_err(|_| WorkspaceError::SubdirectoryInvalid)?;
        directory = match (directory.kind(&name), directory.child(&name)) {
            (Ok(Kind::Symlink), _) => return Err(WorkspaceError::SubdirectorySymlink),
            (Ok(Kind::Directory), Ok(child)) => child,
            (Ok(Kind::Directory), Err(source)) => {
                return Err(WorkspaceError::Io { action: "open the subdirectory", source });
            }
            (Err(source), _) if source.raw_os_error() != Some(Errno::ENOENT as i32) => {
                return Err(WorkspaceError::Io { action: "open the subdirectory", source });
            }
            _ => return Err(WorkspaceError::SubdirectoryMissing),
        };
    }
    Ok(path)
}

/// Copies plain files and directories; never links, so that the copies share nothing.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

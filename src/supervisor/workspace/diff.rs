//! What the agent changed, as git would say it, without running git over the agent's tree.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::base::BaseTree;
use super::compare::{Comparison, compare};
use super::error::WorkspaceError;
use super::git::{Git, GitError, Invocation};
use super::prepare::{Layout, Prepared};
use super::skeleton::Skeleton;
use super::stream::{ContentStream, RESULT, rewound};
use super::tree::Directory;

/// Bounds of a diff. None of them makes it fail: what does not fit is left out and said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLimits {
    /// Bytes of one file whose content is looked at. Default: 16 MiB.
    pub file_bytes: u64,
    /// Bytes of the patch, which is cut between files. Default: 8 MiB.
    pub patch_bytes: usize,
    /// Bytes of all new content, paths included. Default: 256 MiB.
    pub content_bytes: u64,
    /// Directory entries that are visited. Default: 1,000,000.
    pub entries: usize,
    /// Directories inside each other that are entered; each holds a descriptor. Default: 128.
    pub depth: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            file_bytes: 16 << 20,
            patch_bytes: 8 << 20,
            content_bytes: 256 << 20,
            entries: 1_000_000,
            depth: 128,
        }
    }
}

/// The difference between the base commit (or nothing) and the agent's tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceDiff {
    /// The changed files, sorted by the bytes of their paths.
    pub files: Vec<FileChange>,
    /// Sums over all changed files.
    pub totals: Totals,
    /// What `git apply` takes, with binary content and full object names. Untrusted output.
    pub patch: Vec<u8>,
    /// Why the patch does not say everything; empty when it does.
    pub incomplete: BTreeSet<Incomplete>,
    /// Changed files whose content was too large, with their size in bytes. They are not in `files`.
    pub oversized: Vec<(PathBuf, u64)>,
    /// Directories with a repository of their own, which a diff cannot hold.
    pub nested_repositories: Vec<PathBuf>,
    /// Entries that a diff cannot hold, or that could not be read.
    pub skipped: Vec<(PathBuf, SkipReason)>,
    /// Untracked files and directories that `.gitignore` files leave out; a directory counts once.
    pub ignored: u64,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the root of the repository; any bytes but NUL.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
    /// Lines added; 0 for binary content.
    pub insertions: u64,
    /// Lines removed; 0 for binary content.
    pub deletions: u64,
    /// Whether the content, old or new, is not text.
    pub binary: bool,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content changed, and maybe its executable bit.
    Modified,
    /// Only its executable bit changed.
    ModeChanged,
    /// It changed between a file, a symbolic link and a submodule.
    TypeChanged,
}

/// Sums over a diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Changed files, the oversized ones included.
    pub files: u64,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

/// Why a patch does not say everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incomplete {
    /// The patch was cut at [`DiffLimits::patch_bytes`].
    PatchBytes,
    /// A changed file is larger than [`DiffLimits::file_bytes`].
    FileBytes,
    /// The changes are larger than [`DiffLimits::content_bytes`].
    ContentBytes,
    /// The tree has more than [`DiffLimits::entries`].
    Entries,
    /// The tree is deeper than [`DiffLimits::depth`].
    Depth,
    /// Something could not be read, or changed while it was.
    Unreadable,
}

/// Why an entry is in no diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// A name that is `.git` on some file system; git refuses it.
    ReservedName,
    /// It could not be read, or was not looked at because a limit was reached.
    Unreadable,
}

impl WorkspaceDiff {
    /// Whether the patch says everything that a patch can say.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Whether the tree is the base commit's, as far as a diff goes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.oversized.is_empty()
    }
}

/// Compares the agent's tree with its base commit.
///
/// # Guarantees
///
/// Runs nothing that the tree names, reads nothing outside of it, follows no symbolic link, and reads no `.git`. It
/// may be called while the agent runs (a file that changes meanwhile is seen as it was at one moment or makes the
/// result incomplete), but not twice at the same time for one workspace. Dropping the future ends all of it.
///
/// # Errors
///
/// [`WorkspaceError::Replaced`] when the workspace directory is not the prepared one; otherwise only failures of git
/// or the disk.
pub async fn diff(
    git: &Git,
    prepared: &Prepared,
    layout: &Layout,
    limits: &DiffLimits,
) -> Result<WorkspaceDiff, WorkspaceError> {
    let repository = layout.repository();
    let base = match &prepared.base {
        Some(commit) => BaseTree::read(git, &repository, commit).await.map_err(WorkspaceError::git)?,
        None => BaseTree::default(),
    };
    let (mut found, stream) = walk(prepared, layout, limits, base).await?;
    let mut diff = WorkspaceDiff {
        nested_repositories: std::mem::take(&mut found.nested),
        oversized: std::mem::take(&mut found.oversized),
        skipped: std::mem::take(&mut found.skipped),
        ignored: found.ignored,
        incomplete: std::mem::take(&mut found.incomplete),
        ..WorkspaceDiff::default()
    };
    if !found.changes.is_empty() {
        if prepared.base.is_none() {
            Skeleton::private(prepared.format).create(&repository)?;
        }
        import(git, &repository, stream).await.map_err(WorkspaceError::git)?;
        let (counts, patch) = tokio::try_join!(
            count(git, &repository, prepared),
            render(git, &repository, prepared, limits.patch_bytes)
        )
        .map_err(WorkspaceError::git)?;
        diff.files = files(&found, &counts);
        diff.incomplete.extend(patch.cut.then_some(Incomplete::PatchBytes));
        diff.patch = patch.bytes;
    }
    diff.totals = totals(&diff);
    Ok(diff)
}

/// Walks the tree on a blocking thread, which ends soon after this future is dropped.
async fn walk(
    prepared: &Prepared,
    layout: &Layout,
    limits: &DiffLimits,
    base: BaseTree,
) -> Result<(Comparison, File), WorkspaceError> {
    let cancelled = CancelOnDrop::default();
    let flag = Arc::clone(&cancelled.0);
    let (workspace, private) = (layout.workspace.clone(), layout.private.clone());
    let (identity, commit, format) = (prepared.root, prepared.base, prepared.format);
    let limits = limits.clone();
    let walk = move || {
        let root = Directory::open(&workspace).map_err(|_| WorkspaceError::Replaced)?;
        if root.identity().map_err(|_| WorkspaceError::Replaced)? != identity {
            return Err(WorkspaceError::Replaced);
        }
        let spool = tempfile::tempfile_in(&private).map_err(WorkspaceError::io("create a temporary file"))?;
        let mut stream = ContentStream::new(spool);
        let found = compare(root, &base, format, &limits, &mut stream, &flag)?;
        let edits = found.changes.iter().map(|(path, change)| (path.as_slice(), &change.edit));
        let written = stream.commit(commit.as_ref(), edits).and_then(rewound);
        Ok((found, written.map_err(WorkspaceError::io("write the changed content"))?))
    };
    tokio::task::spawn_blocking(walk).await.map_err(|_| WorkspaceError::Interrupted)?
}

/// Tells a blocking thread that nobody waits for it any more.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn import(git: &Git, repository: &Path, stream: File) -> Result<(), GitError> {
    git.private(repository, "fast-import")
        // A stream without `done` at its end is refused as cut. Forced, because an earlier diff left its result.
        .args(["--quiet", "--done", "--force", "--depth=0", "--date-format=raw"])
        .config("pack.compression", "1")
        // Keep everything in one pack, however little it is.
        .config("fastimport.unpackLimit", "0")
        .input(stream)
        .output(1024)
        .await
        .map(drop)
}

/// A comparison of the base tree with the imported one. It sees no attributes but the neutral ones of the private
/// repository, and no configuration but ours.
fn diff_tree(git: &Git, repository: &Path) -> Invocation {
    git.private(repository, "diff-tree").args(["-r", "--no-renames", "--no-ext-diff", "--no-textconv"])
}

fn sides(prepared: &Prepared) -> (String, &'static str) {
    let base =
        prepared.base.map_or_else(|| prepared.format.empty_tree().to_owned(), |commit| commit.to_string());
    (base, RESULT)
}

/// Lines added and removed; `None` for binary content.
type Counts = HashMap<PathBuf, Option<(u64, u64)>>;

/// Bytes of counts that are accepted; the content limit keeps real ones below this.
const COUNT_BYTES: usize = 512 << 20;

async fn count(git: &Git, repository: &Path, prepared: &Prepared) -> Result<Counts, GitError> {
    let (from, to) = sides(prepared);
    let listing =
        diff_tree(git, repository).args(["-z", "--numstat"]).arg(from).arg(to).output(COUNT_BYTES).await?;
    parse_counts(&listing).ok_or(GitError::Malformed { subcommand: "diff-tree" })
}

/// Parses records of the form `ADDED TAB REMOVED TAB PATH NUL`, where both numbers are `-` for binary content.
fn parse_counts(listing: &[u8]) -> Option<Counts> {
    let parse = |record: &[u8]| {
        let mut fields = record.splitn(3, |&byte| byte == b'\t');
        let mut number = || Some(std::str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok());
        let (added, removed) = (number()?, number()?);
        let path = PathBuf::from(std::ffi::OsString::from_vec(fields.next()?.to_vec()));
        Some((path, added.zip(removed)))
    };
    listing.split(|&byte| byte == 0).filter(|record| !record.is_empty()).map(parse).collect()
}

struct Patch {
    bytes: Vec<u8>,
    cut: bool,
}

async fn render(git: &Git, repository: &Path, prepared: &Prepared, limit: usize) -> Result<Patch, GitError> {
    let (from, to) = sides(prepared);
    let captured = diff_tree(git, repository)
        .args(["-p", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"])
        .arg(from)
        .arg(to)
        .capture(limit)
        .await?;
    let cut = !captured.complete;
    Ok(Patch { bytes: if cut { up_to_last_file(captured.bytes) } else { captured.bytes }, cut })
}

/// Drops the last file of a patch that was cut somewhere inside it.
///
/// No other line can begin so: content lines begin with a blank, a sign or a backslash, and those of a binary patch
/// have no blank after four letters.
fn up_to_last_file(mut patch: Vec<u8>) -> Vec<u8> {
    const HEADER: &[u8] = b"\ndiff --git ";
    let start =
        patch.windows(HEADER.len()).rposition(|window| window == HEADER).map_or(0, |before| before + 1);
    patch.truncate(start);
    patch
}

fn files(found: &Comparison, counts: &Counts) -> Vec<FileChange> {
    let change = |path: &[u8], kind| {
        let path = PathBuf::from(OsStr::from_bytes(path));
        let lines = counts.get(&path).copied().unwrap_or(Some((0, 0)));
        let (insertions, deletions) = lines.unwrap_or_default();
        FileChange { path, kind, insertions, deletions, binary: lines.is_none() }
    };
    found.changes.iter().map(|(path, found)| change(path, found.kind)).collect()
}

fn totals(diff: &WorkspaceDiff) -> Totals {
    Totals {
        files: (diff.files.len() + diff.oversized.len()) as u64,
        insertions: diff.files.iter().map(|file| file.insertions).sum(),
        deletions: diff.files.iter().map(|file| file.deletions).sum(),
    }
}

//! The tree of the base commit, as a sorted list of its files.

use std::path::Path;

use super::git::{Git, GitError};
use super::object::{Mode, ObjectId};

/// Bytes of `ls-tree` output that are accepted: some four million files.
const LISTING_BYTES: usize = 512 * 1024 * 1024;

/// One file, symbolic link or submodule of the base commit.
#[derive(Debug)]
pub(super) struct BaseEntry {
    pub(super) path: Box<[u8]>,
    pub(super) mode: Mode,
    pub(super) id: ObjectId,
}

/// All entries, sorted by the bytes of their full path.
#[derive(Debug, Default)]
pub(super) struct BaseTree {
    entries: Vec<BaseEntry>,
}

impl BaseTree {
    /// Lists a commit of a repository of ours.
    pub(super) async fn read(git: &Git, git_dir: &Path, commit: &ObjectId) -> Result<Self, GitError> {
        let listing = git
            .private(git_dir, "ls-tree")
            .args(["-r", "-z", "--full-tree"])
            .arg(commit.to_string())
            .output(LISTING_BYTES)
            .await?;
        Self::parse(&listing).ok_or(GitError::Malformed { subcommand: "ls-tree" })
    }

    /// Parses records of the form `MODE SP TYPE SP ID TAB PATH NUL`.
    fn parse(listing: &[u8]) -> Option<Self> {
        let mut entries: Vec<_> = listing
            .split(|&byte| byte == 0)
            .filter(|record| !record.is_empty())
            .map(parse_record)
            .collect::<Option<_>>()?;
        // Git lists directories where `name/` sorts, which is this very order; a malformed tree need not.
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Some(Self { entries })
    }

    pub(super) fn entries(&self) -> &[BaseEntry] {
        &self.entries
    }

    /// The entry at exactly this path, with its index.
    pub(super) fn find(&self, path: &[u8]) -> Option<(usize, &BaseEntry)> {
        let index = self.entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok()?;
        Some((index, self.entries.get(index)?))
    }

    /// Whether anything of the base lies below a directory.
    pub(super) fn has_below(&self, directory: &[u8]) -> bool {
        let prefix = [directory, b"/"].concat();
        let start = self.entries.partition_point(|entry| *entry.path < *prefix);
        self.entries.get(start).is_some_and(|entry| entry.path.starts_with(&prefix))
    }

    /// The indices of everything below a directory.
    pub(super) fn below(&self, directory: &[u8]) -> std::ops::Range<usize> {
        let prefix = [directory, b"/"].concat();
        let start = self.entries.partition_point(|entry| *entry.path < *prefix);
        let inside =
            self.entries.iter().skip(start).take_while(|entry| entry.path.starts_with(&prefix)).count();
        start..start + inside
    }
}

fn parse_record(record: &[u8]) -> Option<BaseEntry> {
    let tab = record.iter().position(|&byte| byte == b'\t')?;
    let (head, path) = record.split_at_checked(tab)?;
    let mut fields = head.split(|&byte| byte == b' ');
    let (mode, _kind, id) = (fields.next()?, fields.next()?, fields.next()?);
    Some(BaseEntry {
        path: path.get(1..)?.into(),
        mode: Mode::from_octal(mode)?,
        id: ObjectId::from_hex(id)?,
    })
}

//! Compares the agent's tree with the base commit. Blocking; reads files as data and runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::base::{BaseEntry, BaseTree};
use super::diff::{ChangeKind, DiffLimits, Incomplete, SkipReason};
use super::error::WorkspaceError;
use super::ignored::IgnoreStack;
use super::names::means_git_dir;
use super::object::{BlobHasher, Mode, ObjectFormat, blob_id};
use super::stream::{Content, ContentStream, Edit};
use super::tree::{Directory, Entry, Kind, RegularFile};

/// Bytes that a listed path costs of the content limit beside its own length, so that memory stays bounded.
const RECORD_BYTES: u64 = 64;

/// Bytes of over-sized files of the base that are hashed to learn whether they changed; more count as changed.
const HASHED_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// One difference from the base.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) kind: ChangeKind,
    pub(super) edit: Edit,
}

/// What a comparison found.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) changes: BTreeMap<Vec<u8>, Change>,
    pub(super) nested: Vec<PathBuf>,
    pub(super) oversized: Vec<(PathBuf, u64)>,
    pub(super) skipped: Vec<(PathBuf, SkipReason)>,
    pub(super) ignored: u64,
    pub(super) incomplete: BTreeSet<Incomplete>,
}

/// Which entries of a directory take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// Only what the base has: inside an ignored directory or a nested repository.
    Tracked,
}

/// Why an entry's comparison stopped.
enum Stop {
    /// The caller lost interest.
    Cancelled,
    /// The content stream could not be written.
    Stream(io::Error),
}

impl From<Stop> for WorkspaceError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Interrupted,
            Stop::Stream(source) => Self::Io { action: "write the changed content", source },
        }
    }
}

/// Walks `root` and writes what changed to `stream`.
///
/// # Errors
///
/// [`WorkspaceError::Io`] when the stream cannot be written, [`WorkspaceError::Interrupted`] when `cancelled` is set
/// meanwhile. What cannot be read of the tree is no error but makes the comparison incomplete.
pub(super) fn compare<W: Write>(
    root: Directory,
    base: &BaseTree,
    format: ObjectFormat,
    limits: &DiffLimits,
    stream: &mut ContentStream<W>,
    cancelled: &AtomicBool,
) -> Result<Comparison, WorkspaceError> {
    let mut walk = Walk {
        base,
        format,
        limits,
        stream,
        cancelled,
        found: Comparison::default(),
        seen: vec![false; base.entries().len()],
        ignore: IgnoreStack::default(),
        path: Vec::new(),
        entries_left: limits.entries,
        content_left: limits.content_bytes,
        hashed_left: HASHED_BYTES,
    };
    walk.directory(root, Scope::All, 0)?;
    walk.deletions();
    Ok(walk.found)
}

struct Walk<'a, W: Write> {
    base: &'a BaseTree,
    format: ObjectFormat,
    limits: &'a DiffLimits,
    stream: &'a mut ContentStream<W>,
    cancelled: &'a AtomicBool,
    found: Comparison,
    /// Which entries of the base are known to exist still, or cannot be known about.
    seen: Vec<bool>,
    ignore: IgnoreStack,
    path: Vec<u8>,
    entries_left: usize,
    content_left: u64,
    hashed_left: u64,
}

impl<W: Write> Walk<'_, W> {
    fn directory(&mut self, mut directory: Directory, scope: Scope, depth: usize) -> Result<(), Stop> {
        let Ok((entries, more)) = directory.entries(self.entries_left) else {
            self.unknown_below(Incomplete::Unreadable);
            return Ok(());
        };
        self.entries_left -= entries.len();
        if more {
            self.unknown_below(Incomplete::Entries);
        }
        let mut scope = scope;
        if depth > 0 && entries.iter().any(|entry| entry.name.to_bytes() == b".git") {
            self.record(|found, path| found.nested.push(path));
            scope = Scope::Tracked;
            if !self.base.has_below(&self.path) {
                return Ok(());
            }
        }
        let heeded = scope == Scope::All && self.read_ignore_file(&directory, &entries);
        for entry in &entries {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Stop::Cancelled);
            }
            if depth == 0 && entry.name.to_bytes() == b".git" {
                continue;
            }
            let length = self.path.len();
            if length > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(entry.name.to_bytes());
            self.entry(&directory, entry, scope, depth)?;
            self.path.truncate(length);
        }
        if heeded {
            self.ignore.pop();
        }
        Ok(())
    }

    fn read_ignore_file(&mut self, directory: &Directory, entries: &[Entry]) -> bool {
        let name = c".gitignore";
        let present =
            entries.iter().any(|entry| entry.kind == Kind::Regular && entry.name.as_c_str() == name);
        let limit = self.ignore.remaining();
        let Some(content) = present.then(|| directory.file(name)).and_then(|opened| match opened {
            Ok(Some(file)) => file.read_at_most(limit as u64).ok().flatten(),
            _ => None,
        }) else {
            return false;
        };
        self.ignore.push(&self.path, &content);
        true
    }

    fn entry(
        &mut self,
        directory: &Directory,
        entry: &Entry,
        scope: Scope,
        depth: usize,
    ) -> Result<(), Stop> {
        if means_git_dir(entry.name.to_bytes()) {
            self.record(|found, path| found.skipped.push((path, SkipReason::ReservedName)));
            return Ok(());
        }
        match entry.kind {
            Kind::Directory => self.subdirectory(directory, &entry.name, scope, depth)?,
            Kind::Regular | Kind::Symlink => {
                let tracked = self.base.find(&self.path);
                if tracked.is_none() && self.is_left_out(scope, false) {
                    return Ok(());
                }
                if let Some((index, _)) = tracked {
                    self.mark_seen(index);
                }
                let tracked = tracked.map(|(_, entry)| entry);
                if entry.kind == Kind::Symlink {
                    self.symlink(directory, &entry.name, tracked)?;
                } else {
                    self.regular(directory, &entry.name, tracked)?;
                }
            }
            Kind::Fifo => self.skip(scope, SkipReason::Fifo),
            Kind::Socket => self.skip(scope, SkipReason::Socket),
            Kind::Device => self.skip(scope, SkipReason::Device),
        }
        Ok(())
    }

    fn subdirectory(
        &mut self,
        parent: &Directory,
        name: &CStr,
        scope: Scope,
        depth: usize,
    ) -> Result<(), Stop> {
        if let Some((index, BaseEntry { mode: Mode::Submodule, .. })) = self.base.find(&self.path) {
            self.mark_seen(index);
            let empty =
                parent.child(name).and_then(|mut child| child.entries(1)).is_ok_and(|(e, _)| e.is_empty());
            if !empty {
                self.record(|found, path| found.nested.push(path));
            }
            return Ok(());
        }
        let scope = if self.is_left_out(scope, true) { Scope::Tracked } else { scope };
        if scope == Scope::Tracked && !self.base.has_below(&self.path) {
            return Ok(());
        }
        if depth >= self.limits.depth {
            self.unknown_below(Incomplete::Depth);
            return Ok(());
        }
        let Ok(child) = parent.child(name) else {
            self.unknown_below(Incomplete::Unreadable);
            return Ok(());
        };
        self.directory(child, scope, depth + 1)
    }

    fn regular(
        &mut self,
        directory: &Directory,
        name: &CStr,
        tracked: Option<&BaseEntry>,
    ) -> Result<(), Stop> {
        let Ok(Some(file)) = directory.file(name) else {
            self.unreadable();
            return Ok(());
        };
        let mode = Mode::of_file(file.executable);
        let size = file.size;
        if size > self.limits.file_bytes {
            return self.oversized(file, mode, tracked);
        }
        match file.read_at_most(self.limits.file_bytes) {
            Ok(Some(content)) => self.content(mode, &content, tracked),
            // It grew while it was read.
            Ok(None) => {
                self.list_oversized(size.max(self.limits.file_bytes + 1));
                Ok(())
            }
            Err(_) => {
                self.unreadable();
                Ok(())
            }
        }
    }

    fn symlink(
        &mut self,
        directory: &Directory,
        name: &CStr,
        tracked: Option<&BaseEntry>,
    ) -> Result<(), Stop> {
        let Ok(target) = directory.link(name) else {
            self.unreadable();
            return Ok(());
        };
        self.content(Mode::Symlink, &target, tracked)
    }

    /// Compares content that is in memory, and writes it to the stream when the base does not have it here.
    fn content(&mut self, mode: Mode, content: &[u8], tracked: Option<&BaseEntry>) -> Result<(), Stop> {
        let id = blob_id(self.format, content);
        let existing = tracked.filter(|entry| entry.id == id && entry.mode != Mode::Submodule);
        if existing.is_some_and(|entry| entry.mode == mode) {
            return Ok(());
        }
        if existing.is_none() && !self.afford(content.len() as u64) {
            self.list_oversized(content.len() as u64);
            return Ok(());
        }
        let content = match existing {
            Some(entry) => Content::Existing(entry.id),
            None => self.stream.blob(content).map_err(Stop::Stream)?,
        };
        self.put(tracked, mode, content);
        Ok(())
    }

    /// A file over the limit is read only when the base has one here, to learn whether it is the same.
    fn oversized(&mut self, file: RegularFile, mode: Mode, tracked: Option<&BaseEntry>) -> Result<(), Stop> {
        let size = file.size;
        if let Some(entry) = tracked.filter(|entry| entry.mode.is_file() && size <= self.hashed_left) {
            self.hashed_left -= size;
            if self.hashes_to(file, entry)? {
                if entry.mode != mode {
                    self.put(tracked, mode, Content::Existing(entry.id));
                }
                return Ok(());
            }
        }
        self.list_oversized(size);
        Ok(())
    }

    fn hashes_to(
        &self,
        RegularFile { mut file, size, .. }: RegularFile,
        entry: &BaseEntry,
    ) -> Result<bool, Stop> {
        let mut hasher = BlobHasher::new(self.format, size);
        let mut buffer = vec![0; 256 * 1024];
        let mut left = size;
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Stop::Cancelled);
            }
            match file.read(&mut buffer) {
                Ok(0) => return Ok(left == 0 && hasher.finish() == entry.id),
                Ok(length) => {
                    let Some(rest) = left.checked_sub(length as u64) else { return Ok(false) };
                    left = rest;
                    hasher.update(buffer.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(false),
            }
        }
    }

    fn put(&mut self, tracked: Option<&BaseEntry>, mode: Mode, content: Content) {
        let kind = match tracked {
            None => ChangeKind::Added,
            Some(entry) if !entry.mode.is_same_type(mode) => ChangeKind::TypeChanged,
            Some(entry) if content == Content::Existing(entry.id) => ChangeKind::ModeChanged,
            Some(_) => ChangeKind::Modified,
        };
        self.change(kind, Edit::Put { mode, content });
    }

    /// Records what became of the current path.
    fn change(&mut self, kind: ChangeKind, edit: Edit) {
        if self.afford(self.path.len() as u64 + RECORD_BYTES) {
            self.found.changes.insert(self.path.clone(), Change { kind, edit });
        }
    }

    fn deletions(&mut self) {
        let gone: Vec<&BaseEntry> = self
            .base
            .entries()
            .iter()
            .zip(&self.seen)
            .filter(|(_, seen)| !**seen)
            .map(|(entry, _)| entry)
            .collect();
        for entry in gone {
            self.path = entry.path.to_vec();
            self.change(ChangeKind::Deleted, Edit::Delete);
        }
    }

    fn is_left_out(&mut self, scope: Scope, is_directory: bool) -> bool {
        if scope == Scope::Tracked {
            return true;
        }
        let ignored = self.ignore.ignores(&self.path, is_directory);
        self.found.ignored += u64::from(ignored);
        ignored
    }

    fn skip(&mut self, scope: Scope, reason: SkipReason) {
        if scope == Scope::All {
            self.record(|found, path| found.skipped.push((path, reason)));
        }
    }

    fn unreadable(&mut self) {
        self.found.incomplete.insert(Incomplete::Unreadable);
        self.record(|found, path| found.skipped.push((path, SkipReason::Unreadable)));
    }

    fn list_oversized(&mut self, size: u64) {
        let reason =
            if size > self.limits.file_bytes { Incomplete::FileBytes } else { Incomplete::ContentBytes };
        self.found.incomplete.insert(reason);
        self.record(|found, path| found.oversized.push((path, size)));
    }

    /// Nothing can be said about what the base has below the current directory, so none of it counts as deleted.
    fn unknown_below(&mut self, reason: Incomplete) {
        self.found.incomplete.insert(reason);
        let below = if self.path.is_empty() { 0..self.seen.len() } else { self.base.below(&self.path) };
        if let Some(unknown) = self.seen.get_mut(below) {
            unknown.fill(true);
        }
        if !self.path.is_empty() {
            self.record(|found, path| found.skipped.push((path, SkipReason::Unreadable)));
        }
    }

    fn mark_seen(&mut self, index: usize) {
        if let Some(seen) = self.seen.get_mut(index) {
            *seen = true;
        }
    }

    /// Adds the current path to one of the lists, as long as memory for lists is left.
    fn record(&mut self, add: impl FnOnce(&mut Comparison, PathBuf)) {
        if self.afford(self.path.len() as u64 + RECORD_BYTES) {
            add(&mut self.found, PathBuf::from(OsStr::from_bytes(&self.path)));
        }
    }

    fn afford(&mut self, bytes: u64) -> bool {
        let rest = self.content_left.checked_sub(bytes);
        match rest {
            Some(rest) => self.content_left = rest,
            None => {
                self.found.incomplete.insert(Incomplete::ContentBytes);
            }
        }
        rest.is_some()
    }
}

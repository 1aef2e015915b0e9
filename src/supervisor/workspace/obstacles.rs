//! What `git apply --check` overlooks: a file where the patch needs a directory, and a directory where it needs a
//! file. Git would notice while writing, with half of the patch applied (*seen* with git 2.39).

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::diff::{ChangeKind, FileChange};

/// Whether something in the working tree at `root` is in the way of a file that the changes create.
pub(super) fn are_obstructed(root: &Path, changes: &[FileChange]) -> io::Result<bool> {
    let deleted = changes.iter().filter(|change| change.kind == ChangeKind::Deleted);
    let tree = WorkTree { root, deleted: deleted.map(|change| change.path.as_path()).collect() };
    for change in changes.iter().filter(|change| change.kind != ChangeKind::Deleted) {
        if tree.obstructs(&change.path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

struct WorkTree<'a> {
    root: &'a Path,
    /// Files that are gone before the first one is created.
    deleted: HashSet<&'a Path>,
}

impl WorkTree<'_> {
    fn obstructs(&self, path: &Path) -> io::Result<bool> {
        for parent in path.ancestors().skip(1) {
            match self.root.join(parent).symlink_metadata() {
                Ok(metadata) if metadata.is_dir() => break,
                Ok(_) => return Ok(!self.deleted.contains(parent)),
                Err(error) if is_absence(&error) => {}
                Err(error) => return Err(error),
            }
        }
        match self.root.join(path).symlink_metadata() {
            // Git removes an empty directory itself, but only one.
            Ok(metadata) if metadata.is_dir() => {
                let is_empty = fs::read_dir(self.root.join(path))?.next().is_none();
                Ok(!is_empty && !self.vanishes(path)?)
            }
            Ok(_) => Ok(false),
            Err(error) if is_absence(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a directory is removed with the files that the patch deletes, which must be all that it has.
    fn vanishes(&self, directory: &Path) -> io::Result<bool> {
        let mut has_entries = false;
        for entry in fs::read_dir(self.root.join(directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            has_entries = true;
            let goes = if entry.file_type()?.is_dir() {
                self.vanishes(&path)?
            } else {
                self.deleted.contains(&*path)
            };
            if !goes {
                return Ok(false);
            }
        }
        Ok(has_entries)
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

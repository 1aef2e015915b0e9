//! Which untracked files are left out, by the `.gitignore` files of the tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Bytes of all `.gitignore` files of a tree together whose patterns are heeded, since each one costs a compiled
/// expression. Ignoring less only makes the diff longer.
pub(super) const PATTERN_BYTES: usize = 1024 * 1024;

/// The `.gitignore` files of the directories from the root to the one being walked.
#[derive(Default)]
pub(super) struct IgnoreStack {
    files: Vec<IgnoreFile>,
    read: usize,
}

struct IgnoreFile {
    /// Bytes of the path of its directory, with the slash that follows it.
    prefix: usize,
    patterns: Gitignore,
}

impl IgnoreStack {
    /// Adds the `.gitignore` of a directory (given without a slash at its end; empty for the root).
    pub(super) fn push(&mut self, directory: &[u8], content: &[u8]) {
        self.read = self.read.saturating_add(content.len());
        let patterns = if self.read <= PATTERN_BYTES { parse(content) } else { Gitignore::empty() };
        let prefix = if directory.is_empty() { 0 } else { directory.len() + 1 };
        self.files.push(IgnoreFile { prefix, patterns });
    }

    pub(super) fn pop(&mut self) {
        self.files.pop();
    }

    /// Bytes that may still be read.
    pub(super) fn remaining(&self) -> usize {
        PATTERN_BYTES.saturating_sub(self.read)
    }

    /// Whether an untracked path is left out; the closest file that says anything about it decides.
    pub(super) fn ignores(&self, path: &[u8], is_directory: bool) -> bool {
        for file in self.files.iter().rev() {
            let inside = Path::new(OsStr::from_bytes(path.get(file.prefix..).unwrap_or_default()));
            match file.patterns.matched(inside, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// A line that is no pattern, or too costly a one, says nothing; neither does one that is not UTF-8.
fn parse(content: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(".");
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for line in content.split(|&byte| byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

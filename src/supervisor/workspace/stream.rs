//! The changes as a `git fast-import` stream: content first, then one commit on top of the base.
//!
//! The stream goes to a file and is complete before git starts, so that git sees all of it or nothing, and the walk
//! over the agent's tree never waits for git.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use super::names::quote;
use super::object::{Mode, ObjectId};

/// The reference that the result is stored under, in the private repository.
pub(super) const RESULT: &str = "refs/caisson/result";

/// Content that a path can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Written by this stream.
    Mark(u64),
    /// Present before.
    Existing(ObjectId),
}

/// What the commit does to one path.
#[derive(Debug)]
pub(super) enum Edit {
    Put { mode: Mode, content: Content },
    Delete,
}

/// Writes the content part.
pub(super) struct ContentStream<W: Write> {
    to: BufWriter<W>,
    marks: u64,
}

impl<W: Write> ContentStream<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to: BufWriter::with_capacity(256 * 1024, to), marks: 0 }
    }

    pub(super) fn blob(&mut self, content: &[u8]) -> io::Result<Content> {
        self.marks += 1;
        write!(self.to, "blob\nmark :{}\ndata {}\n", self.marks, content.len())?;
        self.to.write_all(content)?;
        self.to.write_all(b"\n")?;
        Ok(Content::Mark(self.marks))
    }

    /// Writes the commit. Deletions come first, because a path may change from a directory to a file or back.
    pub(super) fn commit<'a>(
        mut self,
        base: Option<&ObjectId>,
        edits: impl Iterator<Item = (&'a [u8], &'a Edit)> + Clone,
    ) -> io::Result<W> {
        // The commit is a vehicle for its tree; a fixed time makes the same tree the same commit.
        write!(self.to, "commit {RESULT}\ncommitter caisson <> 0 +0000\ndata 0\n")?;
        if let Some(base) = base {
            writeln!(self.to, "from {base}")?;
        }
        for (path, edit) in edits.clone() {
            if matches!(edit, Edit::Delete) {
                self.line(b"D ", path)?;
            }
        }
        for (path, edit) in edits {
            if let Edit::Put { mode, content } = edit {
                let mode = mode.as_octal();
                match content {
                    Content::Mark(mark) => write!(self.to, "M {mode} :{mark} ")?,
                    Content::Existing(id) => write!(self.to, "M {mode} {id} ")?,
                }
                self.line(b"", path)?;
            }
        }
        self.to.write_all(b"done\n")?;
        self.to.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn line(&mut self, command: &[u8], path: &[u8]) -> io::Result<()> {
        self.to.write_all(command)?;
        self.to.write_all(&quote(path))?;
        self.to.write_all(b"\n")
    }
}

/// Makes a written file readable from its beginning.
pub(super) fn rewound(mut file: File) -> io::Result<File> {
    file.rewind()?;
    Ok(file)
}

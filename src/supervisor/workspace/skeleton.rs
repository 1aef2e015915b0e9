//! Writes the few files that make an empty repository, so that no template, hook or default of git's takes part.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::WorkspaceError;
use super::names::quote;
use super::object::{ObjectFormat, ObjectId};

/// Attributes that outrank every `.gitattributes` and make git treat content as it is. `-` unsets where git takes
/// that as "no"; `!` (unspecified) is for the rest: `-diff` would make every file binary, and a re-encoding cannot be
/// switched off by `-`.
const RAW_ATTRIBUTES: &str =
    "* -text !eol !crlf -ident -filter !working-tree-encoding !diff !merge !whitespace\n";

/// A repository to be.
pub(super) struct Skeleton<'a> {
    format: ObjectFormat,
    bare: bool,
    /// Object directories of other repositories to borrow from.
    alternates: Vec<&'a Path>,
    /// The `shallow` file of the repository that is borrowed from.
    shallow: Option<&'a [u8]>,
    exclude: Option<&'a [u8]>,
    head: Option<Head<'a>>,
}

/// Where a repository's `HEAD` is.
pub(super) struct Head<'a> {
    pub(super) commit: &'a ObjectId,
    /// The full name of the branch; `None` is a detached `HEAD`.
    pub(super) branch: Option<&'a OsStr>,
}

impl<'a> Skeleton<'a> {
    /// The supervisor's own repository, without a working tree.
    pub(super) fn private(format: ObjectFormat) -> Self {
        Self { format, bare: true, alternates: Vec::new(), shallow: None, exclude: None, head: None }
    }

    /// The agent's `.git`.
    pub(super) fn for_agent(format: ObjectFormat, head: Head<'a>) -> Self {
        Self { bare: false, head: Some(head), ..Self::private(format) }
    }

    pub(super) fn head(self, commit: &'a ObjectId) -> Self {
        Self { head: Some(Head { commit, branch: None }), ..self }
    }

    pub(super) fn borrowing(mut self, objects: &'a Path) -> Self {
        self.alternates.push(objects);
        self
    }

    pub(super) fn shallow(self, shallow: Option<&'a [u8]>) -> Self {
        Self { shallow, ..self }
    }

    pub(super) fn exclude(self, exclude: Option<&'a [u8]>) -> Self {
        Self { exclude, ..self }
    }

    /// Writes it; a repository that is there already is completed, not emptied.
    pub(super) fn create(&self, directory: &Path) -> Result<(), WorkspaceError> {
        self.write(directory).map_err(WorkspaceError::io("create a repository"))
    }

    fn write(&self, directory: &Path) -> io::Result<()> {
        for subdirectory in ["objects/info", "refs", "info"] {
            fs::create_dir_all(directory.join(subdirectory))?;
        }
        fs::write(directory.join("config"), self.config())?;
        fs::write(directory.join("info/attributes"), RAW_ATTRIBUTES)?;
        if !self.alternates.is_empty() {
            let lines =
                self.alternates.iter().flat_map(|path| [quote(path.as_os_str().as_bytes()), b"\n".to_vec()]);
            fs::write(directory.join("objects/info/alternates"), lines.collect::<Vec<_>>().concat())?;
        }
        if let Some(shallow) = self.shallow {
            fs::write(directory.join("shallow"), shallow)?;
        }
        if let Some(exclude) = self.exclude {
            fs::write(directory.join("info/exclude"), exclude)?;
        }
        self.write_head(directory)
    }

    fn write_head(&self, directory: &Path) -> io::Result<()> {
        let head = directory.join("HEAD");
        match &self.head {
            None => fs::write(head, "ref: refs/heads/main\n"),
            Some(Head { commit, branch: None }) => fs::write(head, format!("{commit}\n")),
            Some(Head { commit, branch: Some(branch) }) => {
                // In one packed file, because a name is no path there.
                let line = [commit.to_string().as_bytes(), b" ", branch.as_bytes(), b"\n"].concat();
                fs::write(directory.join("packed-refs"), line)?;
                fs::write(head, [b"ref: ", branch.as_bytes(), b"\n"].concat())
            }
        }
    }

    fn config(&self) -> String {
        let core = format!("[core]\n\tfilemode = true\n\tbare = {}\n\tautocrlf = false\n", self.bare);
        match self.format {
            ObjectFormat::Sha1 => format!("{core}\trepositoryformatversion = 0\n"),
            ObjectFormat::Sha256 => {
                format!("{core}\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n")
            }
        }
    }
}

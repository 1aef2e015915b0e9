//! What an executor offers to a run's supervisor.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::workspace::{Git, Layout};

/// What an executor offers to a run's supervisor.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The agent's tree and our private repository.
    pub layout: Layout,
    /// The agent's home directory: private, empty, writable.
    pub home: PathBuf,
    /// Its directory for temporary files.
    pub temporary: PathBuf,
    /// Directory that only caisson writes to, for a prompt that is delivered by file.
    pub prompts: PathBuf,
    /// Where programs are found.
    pub programs: Programs,
    /// Variables that every agent of this executor has besides `HOME`, `TMPDIR` and `LANG`.
    pub environment: Vec<(OsString, OsString)>,
    /// Git.
    pub git: Git,
    /// This program, which also evaluates output.
    pub executable: PathBuf,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
}

/// Where an executor looks for the program that a definition names.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// Directories, in order. A bare name is the first executable file of that name; an absolute path is taken as it is.
    pub directories: Vec<PathBuf>,
}

impl Programs {
    pub(super) fn find(&self, binary: &str) -> Option<PathBuf> {
        let absolute = Path::new(binary);
        if absolute.is_absolute() {
            return Some(absolute.to_owned());
        }
        self.directories.iter().map(|directory| directory.join(binary)).find(|path| is_program(path))
    }
}

fn is_program(path: &Path) -> bool {
    path.is_absolute()
        && std::fs::metadata(path)
            .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

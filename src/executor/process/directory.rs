//! The folder of one run: workspace, private repository, home, temporary files. Nobody else may look into it.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::core::plan::RunId;
use crate::supervisor::workspace::Layout;

/// Folder of one attempt, below the folder of its run.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Makes `RUNS/UID/ATTEMPT` with everything in it, for its owner alone.
    pub(super) fn create(runs: &Path, id: &RunId, bundled: Option<&(&str, &str)>) -> io::Result<Self> {
        let directory = Self { root: runs.join(&id.uid).join(id.attempt.to_string()) };
        match directory.fill(bundled) {
            Ok(()) => Ok(directory),
            Err(error) => {
                // Half a folder would be in the way of the next try. The first error is the one to tell.
                let _ = directory.remove();
                Err(error)
            }
        }
    }

    fn fill(&self, bundled: Option<&(&str, &str)>) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700).recursive(true);
        for path in [self.home(), self.temporary(), self.prompts(), self.programs()] {
            builder.create(path)?;
        }
        if let Some((name, script)) = bundled {
            let path = self.programs().join(name);
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o700)
                .open(path)?
                .write_all(script.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn layout(&self) -> Layout {
        Layout { workspace: self.root.join("workspace"), private: self.root.join("private") }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(super) fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    /// Folder of the agents that come with this program.
    pub(super) fn programs(&self) -> PathBuf {
        self.root.join("bin")
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove_tree(&self.root)
    }
}

/// Removes a tree that its owner may have closed to themselves, as agents and build tools do. Symbolic links are removed, never
/// followed; one that doesn't exist is removed already.
///
/// # Errors
/// When something of it is left.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(root)?;
            fs::remove_dir_all(root)
        }
        other => other,
    }
}

fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

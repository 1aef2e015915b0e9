//! Repositories, workspaces and what is in them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::supervisor::workspace::{
    DiffLimits, FileChange, Git, Layout, Prepared, Repository, Source, WorkspaceDiff, WorkspaceError, diff,
    prepare,
};

/// The git that the tests and the code under test use.
pub(super) fn git() -> Git {
    Git::find(OsStr::new("/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin")).expect("git is installed")
}

/// A directory for one test, removed at its end.
pub(super) struct Sandbox {
    directory: TempDir,
}

impl Sandbox {
    pub(super) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub(super) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn layout(&self) -> Layout {
        Layout { workspace: self.path("run/workspace"), private: self.path("run/private") }
    }

    /// A repository with one commit of these files, on branch `main`.
    pub(super) fn repository(&self, files: &[(&str, &str)]) -> Tree {
        let tree = Tree::init(self.path("source"), &[]);
        for (path, content) in files {
            tree.write(path, content);
        }
        tree.commit();
        tree
    }

    /// Prepares the workspace from `source` and gives it to the agent.
    pub(super) async fn run(&self, source: &Path) -> Run {
        self.try_run(Some(local(source))).await.unwrap()
    }

    pub(super) async fn try_run(&self, source: Option<Source>) -> Result<Run, WorkspaceError> {
        let layout = self.layout();
        let prepared = prepare(&git(), source.as_ref(), &layout).await?;
        let tree = Tree { root: layout.workspace.clone() };
        Ok(Run { layout, prepared, tree })
    }
}

/// A local source at its `HEAD`.
pub(super) fn local(path: &Path) -> Source {
    Source { repository: Repository::Local(path.to_owned()), revision: None, depth: None, subdirectory: None }
}

/// A prepared workspace.
pub(super) struct Run {
    pub(super) layout: Layout,
    pub(super) prepared: Prepared,
    pub(super) tree: Tree,
}

impl Run {
    pub(super) async fn diff(&self) -> WorkspaceDiff {
        self.diff_within(&DiffLimits::default()).await
    }

    pub(super) async fn diff_within(&self, limits: &DiffLimits) -> WorkspaceDiff {
        self.try_diff(limits).await.unwrap()
    }

    pub(super) async fn try_diff(&self, limits: &DiffLimits) -> Result<WorkspaceDiff, WorkspaceError> {
        diff(&git(), &self.prepared, &self.layout, limits).await
    }
}

/// A directory that a test works in, usually a working tree.
pub(super) struct Tree {
    pub(super) root: PathBuf,
}

impl Tree {
    pub(super) fn init(root: PathBuf, options: &[&str]) -> Self {
        fs::create_dir_all(&root).unwrap();
        let tree = Self { root };
        tree.git(&[&["init", "--quiet", "--initial-branch=main"], options].concat());
        tree
    }

    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(path)).unwrap();
    }

    pub(super) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.symlink_metadata().unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    pub(super) fn make_executable(&self, path: impl AsRef<Path>) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs git as a person would, with their hooks, filters and monitors; fails the test when git fails.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let output = self.try_git(arguments);
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(super) fn try_git(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("git");
        for (name, value) in [("NAME", "A Person"), ("EMAIL", "person@example.invalid")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "protocol.file.allow=always", "-c", "advice.addEmbeddedRepo=false"]);
        command.args(arguments).current_dir(&self.root).output().unwrap()
    }

    /// Commits everything and gives the commit's name.
    pub(super) fn commit(&self) -> String {
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// All files outside of `.git`: what a commit could hold of them.
    pub(super) fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = snapshot(&self.root);
        files.retain(|path, _| !path.starts_with(".git"));
        files.into_iter().filter_map(|(path, entry)| Some((path, entry.committed?))).collect()
    }
}

/// Writes a program that leaves `mark` when it runs, and gives its command line.
pub(super) fn trap(mark: &Path) -> String {
    let script = mark.with_extension("sh");
    fs::write(&script, format!("#!/bin/sh\n: > '{}'\ncat 2>/dev/null\nexit 0\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().to_owned()
}

/// One entry of a [`snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Kind, executable bit and content, for what a commit can hold.
    pub(super) committed: Option<String>,
    mode: u32,
    modified: (i64, i64),
}

/// Everything below a directory, to be compared with a later snapshot.
pub(super) fn snapshot(root: &Path) -> BTreeMap<PathBuf, Recorded> {
    let mut entries = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let kind = metadata.file_type();
            let committed = if kind.is_dir() {
                directories.push(path.clone());
                None
            } else if kind.is_symlink() {
                Some(format!("link {:?}", fs::read_link(&path).unwrap()))
            } else if kind.is_fifo() || kind.is_socket() {
                None
            } else {
                let content = fs::read(&path).unwrap();
                Some(format!("file {} {}", metadata.mode() & 0o100, content.escape_ascii()))
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let relative = path.strip_prefix(root).unwrap().to_owned();
            entries.insert(relative, Recorded { committed, mode: metadata.mode(), modified });
        }
    }
    entries
}

/// The changes in one line each: kind, path, lines added and removed.
pub(super) fn summary(diff: &WorkspaceDiff) -> Vec<String> {
    let line = |file: &FileChange| {
        let path = file.path.as_os_str().as_bytes().escape_ascii().to_string();
        if file.binary {
            return format!("{:?} {path} binary", file.kind);
        }
        format!("{:?} {path} +{} -{}", file.kind, file.insertions, file.deletions)
    };
    diff.files.iter().map(line).collect()
}

pub(super) fn patch_text(diff: &WorkspaceDiff) -> String {
    String::from_utf8_lossy(&diff.patch).into_owned()
}

//! Repositories of a person's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A git repository with a working tree.
pub struct Repo {
    path: PathBuf,
}

impl Repo {
    /// A new repository without a commit.
    pub fn init(path: PathBuf) -> Self {
        fs::create_dir_all(&path).unwrap();
        let repo = Self { path };
        repo.git(["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    /// A repository with one commit of one file, `README.md`.
    pub fn new(path: PathBuf) -> Self {
        Self::init(path).write("README.md", "one\ntwo\nthree\n").commit()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn commit(self) -> Self {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--message=a commit"]);
        self
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    /// Runs git in it, without any configuration but the repository's own.
    pub fn git<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        git(&self.path, arguments)
    }

    /// Every file of it with mode and content, `.git` included.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let facts = |path: PathBuf| {
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_file() {
                fs::read(&path).unwrap()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                Vec::new()
            };
            (path, (metadata.permissions().mode(), content))
        };
        super::account::tree(&self.path).into_iter().map(facts).collect()
    }
}

/// Runs git in a folder and returns what it says.
pub fn git<S: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = S>) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .env_clear()
        .env("PATH", super::command::search_path())
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("HOME", "/nonexistent")])
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.org")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

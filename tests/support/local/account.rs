//! A person's account: a home with nothing in it, definitions and agents of their own, and a state directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{command::Caisson, process, wait};

/// Folders in a temporary directory. Nothing of the caller's environment but `PATH` gets in.
pub struct Account {
    root: TempDir,
}

impl Account {
    pub fn new() -> Self {
        let account = Self { root: TempDir::new().unwrap() };
        for path in [account.home(), account.definitions(), account.state(), account.path("")] {
            fs::create_dir_all(path).unwrap();
        }
        account
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn config(&self) -> PathBuf {
        self.root().join("config")
    }

    pub fn definitions(&self) -> PathBuf {
        self.config().join("caisson/definitions")
    }

    /// `XDG_STATE_HOME`.
    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// A place that is none of caisson's business, for what a test and its agent tell each other.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join("outside").join(name)
    }

    /// Writes a file there.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// An agent of the person's own: a definition with these further lines in its `spec`, and its program beside it.
    pub fn agent(&self, name: &str, spec: &str, script: &str) {
        let manifest = definition(name, spec);
        fs::write(self.definitions().join(format!("{name}.yaml")), manifest).unwrap();
        write_program(&self.definitions().join(format!("{name}.sh")), script);
    }

    /// `caisson` with these arguments, as this person.
    pub fn caisson<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Caisson {
        Caisson::new(self).args(arguments)
    }

    /// `caisson run --yes --output json` of an agent, with the prompt given by file.
    pub fn run(&self, agent: &str, prompt: &str) -> Caisson {
        let file = self.file("prompt", prompt);
        self.caisson(["run", "--yes", "--output=json", "--definition", agent, "--prompt-file"]).arg(file)
    }

    /// The folders of runs that exist.
    pub fn runs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join("caisson/runs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Everything that could explain a failure.
    pub fn dump(&self) -> String {
        let runs: Vec<_> = self.runs().iter().flat_map(|run| tree(run)).collect();
        let notes: Vec<_> = tree(&self.path(""))
            .into_iter()
            .filter(|path| fs::metadata(path).is_ok_and(|facts| facts.len() < 4096 && facts.is_file()))
            .map(|path| format!("{}: {:?}", path.display(), fs::read_to_string(&path).unwrap_or_default()))
            .collect();
        format!("processes: {:#?}\nruns: {runs:#?}\nnotes: {notes:#?}", process::of(self.root()))
    }

    /// No process of the account and no file of a run is left.
    pub fn assert_nothing_left(&self) {
        wait::until("every process to be gone", || self.dump(), || process::of(self.root()).is_empty());
        assert!(self.runs().is_empty(), "files of a run are left\n{}", self.dump());
    }
}

/// A test that fails must not leave its processes behind.
impl Drop for Account {
    fn drop(&mut self) {
        for process in process::of(self.root.path()) {
            if let Ok(pid) = i32::try_from(process.pid) {
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
        }
    }
}

/// The manifest of a definition whose program is `NAME.sh`.
pub fn definition(name: &str, spec: &str) -> String {
    manifest("AgentCliDefinition", name, &format!("version: \"1\"\nbinary: {name}.sh\n{spec}"))
}

/// The manifest of a task with these lines in its `spec`.
pub fn task(name: &str, spec: &str) -> String {
    manifest("AgentCliTask", name, spec)
}

fn manifest(kind: &str, name: &str, spec: &str) -> String {
    let spec = spec.trim_end().replace('\n', "\n  ");
    format!("apiVersion: caisson.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n  {spec}\n")
}

/// A shell script as a program.
pub fn write_program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every path below `root`, without following links.
pub fn tree(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
            found.extend(fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    found
}

//! The state directory: which local runs exist, which of them were granted, and what dead ones left.
//!
//! `runs/UID/` holds a run's lock, its record and its executor's files. The lock is held by the `caisson` that runs it, so a run
//! whose lock is free is dead. Records hold nothing secret.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::api::AgentCliTask;
use crate::executor::process;

/// The runs of one user on this machine.
#[derive(Debug, Clone)]
pub struct Journal {
    root: PathBuf,
}

/// What the journal knows of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// Name of the task.
    pub task: String,
    /// Name of its definition.
    pub definition: String,
    /// The executor that runs it.
    pub executor: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Whether its agent may have been started.
    pub granted: bool,
}

impl RunRecord {
    pub(super) fn new(task: &AgentCliTask, executor: &str, now: Timestamp) -> Self {
        Self {
            task: task.metadata.name.clone().unwrap_or_default(),
            definition: task.spec.definition.name.clone(),
            executor: executor.to_owned(),
            started_at: now,
            granted: false,
        }
    }
}

/// A dead run that was cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its record; absent when it died before it had one.
    pub record: Option<RunRecord>,
    /// Processes that were still alive.
    pub processes: usize,
}

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("can't use {path}")]
pub struct JournalError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A run in the journal. Its lock is held until it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    journal: Journal,
    directory: PathBuf,
    record: RunRecord,
    _lock: Flock<File>,
}

impl Journal {
    /// The journal below `root`, which is made when it is first needed.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder that holds a folder for each run.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Records that a run exists, before anything of it does.
    pub(super) fn begin(&self, uid: &str, record: RunRecord) -> Result<Entry, JournalError> {
        private_folder(&self.runs())?;
        // The journal's own lock: a run that has a folder and no lock yet must not be taken for a dead one.
        let _journal = self.lock(FlockArg::LockExclusive)?;
        let directory = self.runs().join(uid);
        private_folder(&directory)?;
        let lock = lock(&directory.join("lock"), FlockArg::LockExclusiveNonblock)?;
        let entry = Entry { journal: self.clone(), directory, record, _lock: lock };
        entry.write()?;
        Ok(entry)
    }

    /// Ends and removes what dead runs left, and says for each what that was, or why something of it is still there. Runs that
    /// are alive are left alone.
    ///
    /// # Errors
    /// When the journal as a whole can't be used.
    pub fn clean_up(&self) -> Result<Vec<Result<Leftover, JournalError>>, JournalError> {
        let runs = match fs::read_dir(self.runs()) {
            Ok(runs) => runs,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(JournalError { path: self.runs(), source }),
        };
        let _journal = self.lock(FlockArg::LockExclusive)?;
        let mut leftovers = Vec::new();
        for run in runs.flatten() {
            let directory = run.path();
            match lock(&directory.join("lock"), FlockArg::LockExclusiveNonblock) {
                Ok(_dead) => leftovers.push(remove_dead(&directory)),
                Err(error) if error.source.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => leftovers.push(Err(error)),
            }
        }
        Ok(leftovers)
    }

    fn lock(&self, how: FlockArg) -> Result<Flock<File>, JournalError> {
        lock(&self.root.join("lock"), how)
    }
}

fn remove_dead(directory: &Path) -> Result<Leftover, JournalError> {
    let failed = |source| JournalError { path: directory.to_owned(), source };
    let record =
        fs::read(directory.join("record.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let uid = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let processes = process::sweep::Mark::of_task(uid).end_all().map_err(failed)?;
    // The record goes last: as long as something is left, the next command still knows of what.
    for entry in fs::read_dir(directory).map_err(failed)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            process::remove_tree(&entry.path()).map_err(failed)?;
        }
    }
    process::remove_tree(directory).map_err(failed)?;
    Ok(Leftover { record, processes })
}

impl Entry {
    /// Records that the agent is about to start. It is on disk when this returns.
    pub(super) fn granted(&mut self) -> Result<(), JournalError> {
        self.record.granted = true;
        self.write()
    }

    /// Forgets the run, which is over and leaves nothing.
    pub(super) fn finish(self) -> Result<(), JournalError> {
        // Whoever looks for dead runs meanwhile would make the lock's file anew while its folder goes.
        let _journal = self.journal.lock(FlockArg::LockExclusive)?;
        process::remove_tree(&self.directory)
            .map_err(|source| JournalError { path: self.directory.clone(), source })
    }

    /// Whole or not at all: a new file takes the old one's place once it is on disk.
    fn write(&self) -> Result<(), JournalError> {
        let (new, path) = (self.directory.join("record.new"), self.directory.join("record.json"));
        let written = || -> io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec(&self.record)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        written().map_err(|source| JournalError { path: path.clone(), source })
    }
}

fn private_folder(path: &Path) -> Result<(), JournalError> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(|source| JournalError { path: path.to_owned(), source })
}

fn lock(path: &Path, how: FlockArg) -> Result<Flock<File>, JournalError> {
    let failed = |source: io::Error| JournalError { path: path.to_owned(), source };
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).map_err(failed)?;
    Flock::lock(file, how).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => failed(io::ErrorKind::WouldBlock.into()),
        errno => failed(errno.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tempfile::TempDir;

    use super::*;

    fn cleaned(journal: &Journal) -> Vec<Leftover> {
        journal.clean_up().unwrap().into_iter().map(Result::unwrap).collect()
    }

    fn record() -> RunRecord {
        RunRecord {
            task: "task".to_owned(),
            definition: "agent".to_owned(),
            executor: "fake".to_owned(),
            started_at: Timestamp::UNIX_EPOCH,
            granted: false,
        }
    }

    #[test]
    fn a_run_is_dead_once_nobody_holds_it() {
        let root = TempDir::new().unwrap();
        let journal = Journal::new(root.path().to_owned());
        let mut entry = journal.begin("a", record()).unwrap();
        entry.granted().unwrap();
        assert_eq!(cleaned(&journal), [], "a run that is alive is left alone");
        assert_eq!(journal.begin("a", record()).unwrap_err().source.kind(), io::ErrorKind::WouldBlock);
        drop(entry);
        let granted = RunRecord { granted: true, ..record() };
        assert_eq!(cleaned(&journal), [Leftover { record: Some(granted), processes: 0 }]);
        assert_eq!(cleaned(&journal), []);
        assert!(!journal.runs().join("a").exists());
    }

    #[test]
    fn a_record_that_can_not_be_written_is_no_grant() {
        let root = TempDir::new().unwrap();
        let journal = Journal::new(root.path().to_owned());
        let mut entry = journal.begin("a", record()).unwrap();
        // A folder in the place of the next record.
        fs::create_dir(journal.runs().join("a/record.new")).unwrap();
        assert!(entry.granted().is_err());
    }

    #[test]
    fn runs_come_and_go_while_others_clean_up() {
        let root = TempDir::new().unwrap();
        let journal = Journal::new(root.path().to_owned());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let cleaner = scope.spawn(|| {
                let mut found = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    found.extend(cleaned(&journal));
                }
                found
            });
            let outcomes: Vec<_> = (0..300)
                .map(|number| journal.begin(&number.to_string(), record()).and_then(Entry::finish))
                .collect();
            over.store(true, Ordering::Relaxed);
            assert_eq!(cleaner.join().unwrap(), [], "nothing that was alive was taken for dead");
            for outcome in outcomes {
                outcome.unwrap();
            }
        });
    }
}

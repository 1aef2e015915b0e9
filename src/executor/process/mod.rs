//! The agent as a process of this machine: for a person's own tasks, without any isolation from their account.
//!
//! The supervisor runs inside this process. It starts `caisson runner` as a child, which starts the agent, collects what leaves
//! the agent's process group and ends with its connection. What an operating system without containers can't hold is said in
//! [`UNSUPPORTED`].

mod directory;
mod link;
pub mod sweep;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Executor, ExecutorError};
use crate::core::decide::RunState;
use crate::core::plan::{RunId, RunSpec, Unsupported};
use crate::protocol::{Stop, StopReason};
use crate::supervisor::control::Control;
use crate::supervisor::workspace::Git;
use crate::supervisor::{Programs, Sandbox, StopSignal, StopSwitch, stop_channel, supervise};
use directory::Directory;
pub use directory::remove_tree;

/// What a process of the caller's own account can't be held to.
pub const UNSUPPORTED: &[Unsupported] = &[
    Unsupported::Cpu,
    Unsupported::Memory,
    Unsupported::EphemeralStorage,
    Unsupported::Egress,
    Unsupported::Filesystem,
    Unsupported::Isolation,
    Unsupported::RepositoryCredentials,
    Unsupported::Delivery,
    Unsupported::IdempotencyKey,
    Unsupported::Quota,
];

/// What the executor needs to know of this machine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder for the runs; each gets one of its own in it.
    pub runs: PathBuf,
    /// This program, which is also the runner.
    pub executable: PathBuf,
    /// Git.
    pub git: Git,
    /// The agents' `PATH`.
    pub search_path: OsString,
    /// Folders that are searched for an agent's program before `PATH`.
    pub programs: Vec<PathBuf>,
    /// Agents that come with this program, as name and script; they are found before all others.
    pub bundled: &'static [(&'static str, &'static str)],
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
}

/// Runs agents as processes of this machine.
pub struct ProcessExecutor {
    settings: Settings,
    control: Arc<dyn Control>,
    runs: Mutex<HashMap<RunId, Arc<Run>>>,
    changed: watch::Sender<u64>,
}

struct Run {
    state: watch::Receiver<RunState>,
    stop: StopSwitch,
    directory: Directory,
    /// Whether the run is removed. Held while it is being removed, so that a second removal waits for the first.
    removed: tokio::sync::Mutex<bool>,
}

impl ProcessExecutor {
    /// An executor whose supervisors answer to `control`.
    pub fn new(settings: Settings, control: Arc<dyn Control>) -> Self {
        Self { settings, control, runs: Mutex::default(), changed: watch::Sender::new(0) }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, id: &RunId) -> Option<Arc<Run>> {
        self.runs().get(id).map(Arc::clone)
    }

    fn start(&self, spec: &RunSpec, directory: Directory) -> Run {
        let (state_sender, state) = watch::channel(RunState::Starting);
        let (stop, stop_signal) = stop_channel(self.settings.grace);
        let session = Session {
            spec: spec.clone(),
            settings: self.settings.clone(),
            directory: directory.clone(),
            control: Arc::clone(&self.control),
            stage: Stage { state: state_sender, changed: self.changed.clone() },
        };
        tokio::spawn(session.run(stop_signal));
        Run { state, stop, directory, removed: tokio::sync::Mutex::new(false) }
    }
}

#[async_trait]
impl Executor for ProcessExecutor {
    fn name(&self) -> &'static str {
        "process"
    }

    fn unsupported(&self) -> &[Unsupported] {
        UNSUPPORTED
    }

    async fn ensure(&self, spec: &RunSpec) -> Result<(), ExecutorError> {
        let mut runs = self.runs();
        if !runs.contains_key(&spec.id) {
            let bundled = self.settings.bundled.iter().find(|(name, _)| *name == spec.release.binary);
            let directory = Directory::create(&self.settings.runs, &spec.id, bundled)
                .map_err(|source| ExecutorError::Unavailable { executor: "process", source })?;
            runs.insert(spec.id.clone(), Arc::new(self.start(spec, directory)));
            self.changed.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    async fn observe(&self, id: &RunId) -> Result<RunState, ExecutorError> {
        Ok(self.run(id).map_or(RunState::Absent, |run| *run.state.borrow()))
    }

    async fn stop(&self, id: &RunId, reason: StopReason, grace: Duration) -> Result<(), ExecutorError> {
        if let Some(run) = self.run(id) {
            run.stop.ask(Stop { reason, grace });
        }
        Ok(())
    }

    async fn remove(&self, id: &RunId) -> Result<(), ExecutorError> {
        let Some(run) = self.run(id) else { return Ok(()) };
        run.stop.ask(Stop { reason: StopReason::Interrupted, grace: Duration::ZERO });
        // The session says so however it ends, so an error would mean the same.
        let _ = run.state.clone().wait_for(|state| *state == RunState::Ended).await;
        let mut removed = run.removed.lock().await;
        if *removed {
            return Ok(());
        }
        let (mark, directory) = (sweep::Mark::of_run(id), run.directory.clone());
        let removal = tokio::task::spawn_blocking(move || {
            mark.end_all()?;
            directory.remove()
        });
        let outcome = removal.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        outcome.map_err(|source| ExecutorError::Leftover { id: id.clone(), source })?;
        *removed = true;
        self.runs().remove(id);
        self.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// One run's supervisor, as a task of this process.
struct Session {
    spec: RunSpec,
    settings: Settings,
    directory: Directory,
    control: Arc<dyn Control>,
    stage: Stage,
}

/// Where a session tells its state. It says that the session ended however that happens: also by a panic.
struct Stage {
    state: watch::Sender<RunState>,
    changed: watch::Sender<u64>,
}

impl Stage {
    fn announce(&self, state: RunState) {
        self.state.send_replace(state);
        self.changed.send_modify(|count| *count += 1);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.announce(RunState::Ended);
    }
}

impl Session {
    /// The report comes before the end of the session, and so before its state says that it ended.
    async fn run(self, mut stop: StopSignal) {
        let sandbox = self.sandbox();
        let (mut child, connection) = link::start(&self.settings.executable, &self.directory, &self.spec.id);
        let announce = |state| self.stage.announce(state);
        let control = self.control.as_ref();
        let report =
            Box::pin(supervise(&self.spec, &sandbox, connection, control, &announce, &mut stop)).await;
        // Its connection is closed now, so it ends; waiting for it leaves no zombie.
        child.reap().await;
        control.report(&self.spec.id, report).await;
    }

    fn sandbox(&self) -> Sandbox {
        let search = std::env::split_paths(&self.settings.search_path);
        Sandbox {
            layout: self.directory.layout(),
            home: self.directory.home(),
            temporary: self.directory.temporary(),
            prompts: self.directory.prompts(),
            programs: Programs {
                directories: [self.directory.programs()]
                    .into_iter()
                    .chain(self.settings.programs.iter().cloned())
                    .chain(search)
                    .collect(),
            },
            environment: vec![
                ("PATH".into(), self.settings.search_path.clone()),
                (sweep::MARKER.into(), sweep::Mark::of_run(&self.spec.id).into()),
            ],
            git: self.settings.git.clone().marked(sweep::MARKER, sweep::Mark::of_run(&self.spec.id)),
            executable: self.settings.executable.clone(),
            grace: self.settings.grace,
        }
    }
}

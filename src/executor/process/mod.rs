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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Executor, ExecutorError};
use crate::core::decide::RunState;
use crate::core::plan::{RunId, RunSpec, Unsupported};
use crate::protocol::StopReason;
use crate::supervisor::control::Control;
use crate::supervisor::workspace::Git;
use crate::supervisor::{Programs, Sandbox, supervise};
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
    runs: Mutex<HashMap<RunId, Run>>,
    changed: watch::Sender<u64>,
}

struct Run {
    state: watch::Receiver<RunState>,
    stop: watch::Sender<Option<StopReason>>,
    session: Option<JoinHandle<()>>,
    directory: Directory,
}

impl ProcessExecutor {
    /// An executor whose supervisors answer to `control`.
    pub fn new(settings: Settings, control: Arc<dyn Control>) -> Self {
        Self { settings, control, runs: Mutex::default(), changed: watch::Sender::new(0) }
    }

    fn runs(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, spec: &RunSpec, directory: Directory) -> Run {
        let (state_sender, state) = watch::channel(RunState::Starting);
        let (stop, stop_receiver) = watch::channel(None);
        let session = Session {
            spec: spec.clone(),
            settings: self.settings.clone(),
            directory: directory.clone(),
            control: Arc::clone(&self.control),
            state: state_sender,
            stop: stop_receiver,
            changed: self.changed.clone(),
        };
        Run { state, stop, session: Some(tokio::spawn(session.run())), directory }
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
            runs.insert(spec.id.clone(), self.start(spec, directory));
        }
        Ok(())
    }

    async fn observe(&self, id: &RunId) -> Result<RunState, ExecutorError> {
        Ok(self.runs().get(id).map_or(RunState::Absent, |run| *run.state.borrow()))
    }

    async fn stop(&self, id: &RunId, reason: StopReason, _grace: Duration) -> Result<(), ExecutorError> {
        if let Some(run) = self.runs().get(id) {
            // The first reason counts.
            run.stop.send_if_modified(|stop| {
                stop.replace(reason).is_none_or(|first| {
                    *stop = Some(first);
                    false
                })
            });
        }
        Ok(())
    }

    async fn remove(&self, id: &RunId) -> Result<(), ExecutorError> {
        self.stop(id, StopReason::Interrupted, Duration::ZERO).await?;
        let session = self.runs().get_mut(id).and_then(|run| run.session.take());
        if let Some(session) = session {
            // A session that panicked has reported nothing; what is left of it is removed all the same.
            let _ = session.await;
        }
        let Some(directory) = self.runs().get(id).map(|run| run.directory.clone()) else { return Ok(()) };
        let marker = id.uid.clone();
        let removal = tokio::task::spawn_blocking(move || {
            sweep::end_marked(&marker)?;
            directory.remove()
        });
        let removed = removal.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        removed.map_err(|source| ExecutorError::Leftover { id: id.clone(), source })?;
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
    state: watch::Sender<RunState>,
    stop: watch::Receiver<Option<StopReason>>,
    changed: watch::Sender<u64>,
}

impl Session {
    async fn run(mut self) {
        let sandbox = self.sandbox();
        let (mut child, connection) =
            link::start(&self.settings.executable, &self.directory, &self.spec.id.uid);
        let announce = |state| {
            self.state.send_replace(state);
            self.changed.send_modify(|count| *count += 1);
        };
        let report = Box::pin(supervise(
            &self.spec,
            &sandbox,
            connection,
            self.control.as_ref(),
            &announce,
            &mut self.stop,
        ))
        .await;
        // Its connection is closed now, so it ends; waiting for it leaves no zombie.
        child.reap().await;
        self.control.report(&self.spec.id, report).await;
        announce(RunState::Ended);
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
                (sweep::MARKER.into(), self.spec.id.uid.clone().into()),
            ],
            git: self.settings.git.clone().marked(sweep::MARKER, &self.spec.id.uid),
            executable: self.settings.executable.clone(),
            grace: self.settings.grace,
        }
    }
}

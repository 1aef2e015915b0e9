//! The executor of real processes: agents are shell scripts that sign a list outside of their sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use caisson::core::plan::RunId;
use caisson::executor::Executor;
use caisson::executor::process::sweep::Mark;
use caisson::executor::process::{ProcessExecutor, Settings};
use caisson::supervisor::control::Control;
use caisson::supervisor::workspace::Git;
use tempfile::TempDir;

use crate::agents::Agent;
use crate::stage::PATIENCE;
use crate::subjects::Subject;

const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub struct Process {
    executor: Arc<ProcessExecutor>,
    /// `programs`, `starts` and `runs`.
    root: TempDir,
}

impl Process {
    fn starts_file(&self, uid: &str) -> PathBuf {
        self.root.path().join("starts").join(uid)
    }
}

impl Subject for Process {
    const NAME: &'static str = "process";

    fn new(control: Arc<dyn Control>) -> Self {
        let root = TempDir::new().unwrap();
        for name in ["programs", "starts"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let settings = Settings {
            runs: root.path().join("runs"),
            executable: env!("CARGO_BIN_EXE_caisson").into(),
            git: Git::find(SEARCH_PATH.as_ref()).unwrap(),
            search_path: SEARCH_PATH.into(),
            programs: vec![root.path().join("programs")],
            bundled: &[],
            // A stop that comes with a grace of its own must not wait for this one.
            grace: 2 * PATIENCE,
        };
        Self { executor: Arc::new(ProcessExecutor::new(settings, control)), root }
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::clone(&self.executor) as Arc<dyn Executor>
    }

    fn program(&self, uid: &str, agent: &Agent) -> String {
        let act = match agent {
            Agent::Exit(code) => format!("exit {code}"),
            Agent::DieBySignal => "kill -KILL $$".to_owned(),
            Agent::Print(text) => format!("printf '%s' '{text}'"),
            Agent::WriteFile(name) => format!("echo line > '{name}'"),
            Agent::WaitUntilStopped | Agent::IgnoreSigterm => "while :; do sleep 1000; done".to_owned(),
        };
        let deaf = if *agent == Agent::IgnoreSigterm { "trap '' TERM\n" } else { "" };
        let starts = self.starts_file(uid);
        let script = format!("#!/bin/sh\n{deaf}echo \"$CAISSON_RUN\" >> '{}'\n{act}\n", starts.display());
        let name = format!("agent-{uid}");
        let path = self.root.path().join("programs").join(&name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        name
    }

    fn starts(&self, run: &RunId) -> usize {
        let signed = fs::read_to_string(self.starts_file(&run.uid)).unwrap_or_default();
        signed.lines().filter(|line| *line == format!("{}/{}", run.uid, run.attempt)).count()
    }

    fn remains(&self, run: &RunId) -> Vec<String> {
        let processes = Mark::of_run(run).processes().unwrap();
        let directory = self.root.path().join("runs").join(&run.uid).join(run.attempt.to_string());
        let mut remains: Vec<String> = processes.iter().map(|pid| format!("process {pid}")).collect();
        remains.extend(directory.exists().then(|| directory.display().to_string()));
        remains
    }
}

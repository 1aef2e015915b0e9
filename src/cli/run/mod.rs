//! `caisson run`: one task on this machine, through every gate.

mod approval;
mod inputs;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use self::approval::Decision;
use self::inputs::{InputError, Request};
use self::progress::Progress;
use super::args::{OutputForm, RunArgs};
use super::catalog::DEMO_AGENT;
use super::exit::Exit;
use super::home::Home;
use super::leftovers;
use super::render::{self, Colours};
use super::terminal::Terminal;
use crate::api::{AgentCliTask, Code};
use crate::controller::local::{Finished, GRACE, Journal, LocalError, LocalRun, Signals};
use crate::core::decide::{Facts, Gate, Judgement};
use crate::executor::process::{ProcessExecutor, Settings};
use crate::supervisor::workspace::{self, ApplyError, Git, WorkspaceDiff};

pub(super) fn main(arguments: RunArgs, terminal: Terminal) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal.complain(&error);
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(Run { arguments, terminal, home: Home::of_process() }.run());
    exit.unwrap_or_else(|error| {
        complain(&error, terminal);
        error.exit()
    })
}

/// Why a run could not be carried out. A task that fails is no error.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Input(InputError),
    #[error("neither XDG_STATE_HOME nor HOME is set, so there is no place for the run's files")]
    NoStateDirectory,
    #[error("can't prepare the run")]
    Prepare(#[source] std::io::Error),
    #[error("the run broke off")]
    Local(#[source] LocalError),
}

impl RunError {
    fn exit(&self) -> Exit {
        match self {
            Self::Input(_) => Exit::Invalid,
            _ => Exit::Failed,
        }
    }
}

fn complain(error: &RunError, terminal: Terminal) {
    terminal.complain(error);
    if let RunError::Input(error) = error {
        terminal.tell(&render::problems(error.problems()));
    }
}

struct Run {
    arguments: RunArgs,
    terminal: Terminal,
    home: Home,
}

impl Run {
    async fn run(self) -> Result<Exit, RunError> {
        let state = self.home.state.clone().ok_or(RunError::NoStateDirectory)?;
        leftovers::clean_up(&self.home, self.terminal);
        let journal = Journal::new(state);
        let git = Git::find(&self.home.search_path).map_err(|_| RunError::Input(InputError::NoGit))?;
        let Request { mut run, programs } =
            inputs::request(&self.arguments, &self.home, &git).await.map_err(RunError::Input)?;
        let Judgement { gate, facts } = run.judge();
        match (gate, facts) {
            (Gate::Refused(refusal), _) => {
                run.settle();
                self.terminal.tell(&format!(
                    "error: {}: {}\n",
                    refusal.failure.code,
                    refusal.failure.code.message()
                ));
                self.terminal.tell(&render::problems(&refusal.problems));
                self.print_machine(&run.task);
                return Ok(Exit::Invalid);
            }
            (Gate::DryRun, Some(facts)) => {
                run.settle();
                self.terminal.tell(&self.preview(&run, &facts));
                self.print(&Finished { task: run.task, notes: Vec::new(), change: None }, 0.0);
                return Ok(Exit::Done);
            }
            (_, Some(facts)) => {
                if let Some(secret) = run.missing_secret() {
                    let code = Code::SourceMissing;
                    let hint = format!("set the environment variable {} to run this definition", secret.name);
                    self.terminal.tell(&format!("error: {code}: {hint}\n"));
                    return Ok(Exit::Invalid);
                }
                match self.approve(&mut run, &facts) {
                    Decision::Approved => {}
                    Decision::Needed => {
                        run.settle();
                        self.print_machine(&run.task);
                        return Ok(Exit::ApprovalNeeded);
                    }
                }
            }
            (_, None) => return Ok(Exit::Invalid),
        }
        self.execute(run, &journal, git, programs).await
    }

    fn preview(&self, run: &LocalRun, facts: &Facts) -> String {
        let name = run.task.metadata.name.as_deref().unwrap_or_default();
        let definition = format!("{} {}", facts.definition.name, facts.definition.release.version);
        render::preview(name, &definition, &facts.preview, &facts.digest, Colours(self.terminal.lively))
    }

    fn approve(&self, run: &mut LocalRun, facts: &Facts) -> Decision {
        let ask = || {
            self.terminal.tell(&self.preview(run, facts));
            self.terminal.interactive && self.terminal.confirm("Run exactly this? [y/N] ")
        };
        let decision = approval::decide(facts, self.arguments.approve.as_deref(), self.arguments.yes, ask);
        match decision {
            Decision::Approved => run.approve(&facts.digest, &self.home.user),
            Decision::Needed => {
                self.terminal.tell(&approval::how(&facts.digest, self.arguments.approve.as_deref()));
            }
        }
        decision
    }

    async fn execute(
        &self,
        run: LocalRun,
        journal: &Journal,
        git: Git,
        programs: Vec<PathBuf>,
    ) -> Result<Exit, RunError> {
        // What the runner leaves when it is killed becomes our child, so that it can be found and ended.
        nix::sys::prctl::set_child_subreaper(true).map_err(|error| RunError::Prepare(error.into()))?;
        let settings = Settings {
            runs: journal.runs(),
            executable: std::env::current_exe().map_err(RunError::Prepare)?,
            git: git.clone(),
            search_path: self.home.search_path.clone(),
            programs,
            bundled: &[DEMO_AGENT],
            grace: GRACE,
        };
        let (interrupt, interrupted) = watch::channel(false);
        let listener = tokio::spawn(listen(signals().map_err(RunError::Prepare)?, interrupt));
        let mut progress = Progress::new(self.terminal, self.arguments.follow);
        let executor = |control| -> Arc<dyn crate::executor::Executor> {
            Arc::new(ProcessExecutor::new(settings, control))
        };
        let finished =
            run.execute(journal, executor, Signals { interrupted: interrupted.clone() }, &mut progress).await;
        listener.abort();
        let seconds = progress.finish();
        let finished = finished.map_err(RunError::Local)?;
        self.print(&finished, seconds);
        if *interrupted.borrow() {
            self.terminal.tell("interrupted: the agent was ended and its workspace removed\n");
            return Ok(Exit::Interrupted);
        }
        let succeeded = finished
            .task
            .status
            .as_ref()
            .and_then(|status| status.result.as_ref())
            .is_some_and(|result| result.code.is_none());
        if !succeeded {
            return Ok(Exit::Failed);
        }
        match (&self.arguments.workspace, &finished.change) {
            (Some(target), Some(change)) if self.arguments.apply => {
                Ok(self.apply(&git, target, &finished, change).await)
            }
            _ => Ok(Exit::Done),
        }
    }

    async fn apply(&self, git: &Git, target: &Path, finished: &Finished, change: &WorkspaceDiff) -> Exit {
        let diff = finished.task.status.as_ref().and_then(|status| status.result.as_ref()?.diff.as_ref());
        if diff.is_some_and(|diff| diff.redacted) {
            let code = Code::SecretInDelivery;
            self.terminal.tell(&format!("not applied: {code}: {}\n", code.message()));
            return Exit::Failed;
        }
        match workspace::apply(git, target, change).await {
            Ok(applied) => {
                let files = applied.files;
                self.terminal.tell(&format!(
                    "applied to {}: {files} file{}\n",
                    target.display(),
                    if files == 1 { "" } else { "s" }
                ));
                Exit::Done
            }
            Err(error) => {
                self.terminal.tell(&format!("not applied: {}: {error}\n", Code::DeliveryFailed));
                if matches!(error, ApplyError::DoesNotApply { .. }) {
                    self.terminal
                        .tell("nothing was changed: the files are not what they were when the task began\n");
                }
                Exit::Failed
            }
        }
    }

    fn print(&self, finished: &Finished, seconds: f64) {
        match self.arguments.output {
            OutputForm::Human => {
                let colours = Colours(self.terminal.colour);
                self.terminal.print(&render::human(&finished.task, &finished.notes, seconds, colours));
            }
            form => self.terminal.print(&render::machine(&finished.task, form)),
        }
    }

    fn print_machine(&self, task: &AgentCliTask) {
        if self.arguments.output != OutputForm::Human {
            self.terminal.print(&render::machine(task, self.arguments.output));
        }
    }
}

/// Ctrl-C, a closed terminal and a polite kill. From here on they are ours, so this comes before anything exists.
fn signals() -> std::io::Result<[Signal; 3]> {
    Ok([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?])
}

/// They all mean: end the agent, remove the workspace, then go.
async fn listen([mut first, mut second, mut third]: [Signal; 3], interrupt: watch::Sender<bool>) {
    loop {
        tokio::select! {
            _ = first.recv() => {}
            _ = second.recv() => {}
            _ = third.recv() => {}
        }
        interrupt.send_replace(true);
    }
}

/// The present time, for the controller.
#[expect(clippy::disallowed_methods, reason = "the shell is where time comes from")]
fn now() -> Timestamp {
    Timestamp::now()
}

//! What only the executor of real processes can be put through: its parts are killed, or panic.

use std::sync::Arc;

use async_trait::async_trait;
use caisson::api::Code;
use caisson::core::decide::RunState;
use caisson::core::outcome::Outcome;
use caisson::core::plan::RunId;
use caisson::executor::process::sweep::Mark;
use caisson::protocol::Stream;
use caisson::redact::Redacted;
use caisson::supervisor::Report;
use caisson::supervisor::control::{Control, Ready};
use nix::sys::signal::{Signal, kill};

use crate::agents::Agent;
use crate::director::{Answer, Director};
use crate::stage::{self, Run, Stage, eventually};
use crate::subjects::process::Process;

/// A control that breaks off whatever asks it.
struct Broken;

#[async_trait]
impl Control for Broken {
    async fn launch(&self, _run: &RunId, _ready: Ready) -> Answer {
        panic!("on purpose")
    }

    async fn report(&self, _run: &RunId, _report: Report) {
        panic!("on purpose")
    }

    fn live(&self, _run: &RunId, _stream: Stream, _text: Redacted) {}
}

fn kill_runner(run: &Run) {
    let processes = Mark::of_run(run.id()).processes().unwrap();
    let is_runner = |pid: &nix::unistd::Pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "caisson\n")
    };
    let runner = processes.into_iter().find(is_runner).expect("a runner");
    kill(runner, Signal::SIGKILL).unwrap();
}

fn failure(outcome: Outcome) -> (Code, Option<String>) {
    let failure = outcome.failure.expect("a failure");
    (failure.code, failure.system_code.map(String::from))
}

#[test]
fn a_session_that_panics_has_ended_and_can_be_removed() {
    stage::run(|_: Stage<Process>| async {
        let stage = Stage::<Process>::with(Arc::new(Broken), Arc::new(Director::default()));
        let run = stage.task(&Agent::Exit(0));
        stage.ensure(&run).await;
        stage.until(&run, RunState::Ended).await;
        stage.remove(&run).await;
        stage.assert_gone(&run).await;
        assert_eq!(stage.starts(&run), 0);
    });
}

#[test]
fn losing_the_executor_ends_its_agents() {
    stage::run(|stage: Stage<Process>| async {
        let run = stage.started(&Agent::WaitUntilStopped).await;
        let Stage { subject, director, executor } = stage;
        drop((subject, executor));
        eventually("the last report", async || !director.reports(run.id()).is_empty()).await;
        assert_eq!(Mark::of_run(run.id()).processes().unwrap(), []);
    });
}

#[test]
fn a_runner_that_is_killed_before_the_grant_starts_nothing() {
    stage::run(|stage: Stage<Process>| async move {
        let run = stage.task(&Agent::Exit(0));
        stage.ensure(&run).await;
        stage.until_asked(&run).await;
        kill_runner(&run);
        let outcome = stage.outcome(&run).await;
        assert_eq!(failure(outcome), (Code::RuntimeUnavailable, Some("RUNNER_LOST".to_owned())));
        assert_eq!(stage.starts(&run), 0);
    });
}

#[test]
fn a_runner_that_is_killed_with_its_agent_is_lost_and_leaves_nothing() {
    stage::run(|stage: Stage<Process>| async move {
        let run = stage.started(&Agent::WaitUntilStopped).await;
        kill_runner(&run);
        let outcome = stage.outcome(&run).await;
        assert_eq!(failure(outcome), (Code::Lost, Some("RUNNER_LOST".to_owned())));
        stage.remove(&run).await;
        stage.assert_gone(&run).await;
    });
}

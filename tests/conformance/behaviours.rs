//! What every executor does, as functions over any of them.

use std::collections::BTreeSet;
use std::time::Duration;

use caisson::api::{Code, TerminationMethod};
use caisson::core::decide::RunState;
use caisson::core::outcome::{End, Execution, Failure, Outcome};
use caisson::protocol::{StopReason, SystemCode};
use tokio::time::Instant;

use crate::agents::Agent;
use crate::stage::{PATIENCE, Stage, eventually};
use crate::subjects::Subject;

/// A grace that nothing waits for.
const LONG: Duration = Duration::from_hours(1);

fn execution(outcome: &Outcome) -> &Execution {
    outcome.execution.as_ref().unwrap_or_else(|| panic!("an agent was started: {outcome:?}"))
}

fn failure(outcome: &Outcome) -> &Failure {
    assert_eq!(outcome.execution, None, "no agent was started");
    outcome.failure.as_ref().expect("a failure before the start")
}

pub async fn ensure_is_idempotent<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::WaitUntilStopped).await;
    stage.ensure(&run).await;
    stage.ensure(&run).await;
    stage.stop(&run, StopReason::Cancelled, LONG).await;
    stage.outcome(&run).await;
    assert_eq!((stage.director.launches(run.id()), stage.starts(&run)), (1, 1));
}

pub async fn ensure_at_the_same_time_is_one_run<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    stage.grant(&run);
    tokio::join!(stage.ensure(&run), stage.ensure(&run), stage.ensure(&run), stage.ensure(&run));
    stage.outcome(&run).await;
    assert_eq!((stage.director.launches(run.id()), stage.starts(&run)), (1, 1));
}

pub async fn ensure_after_the_end_starts_nothing<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::Exit(0)).await;
    stage.outcome(&run).await;
    stage.ensure(&run).await;
    assert_eq!(stage.state(&run).await, RunState::Ended);
    assert_eq!((stage.director.launches(run.id()), stage.starts(&run)), (1, 1));
}

pub async fn an_unknown_run_is_absent<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    stage.assert_gone(&run).await;
}

pub async fn states_go_from_starting_to_running_to_ended<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::WaitUntilStopped);
    stage.ensure(&run).await;
    assert_eq!(stage.state(&run).await, RunState::Starting);
    stage.until_asked(&run).await;
    assert_eq!(stage.state(&run).await, RunState::Starting, "while it waits for the answer");
    stage.grant(&run);
    stage.until_started(&run).await;
    assert_eq!(stage.state(&run).await, RunState::Running);
    stage.stop(&run, StopReason::Cancelled, LONG).await;
    stage.outcome(&run).await;
}

pub async fn every_change_of_state_is_told<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::WaitUntilStopped);
    let mut changes = stage.executor.watch();
    let told = async |changes: &mut tokio::sync::watch::Receiver<u64>, state: RunState| {
        let waiting = tokio::time::timeout(PATIENCE, async {
            // The change comes first, so a state that was seen before it isn't enough.
            loop {
                changes.changed().await.unwrap();
                if stage.state(&run).await == state {
                    return;
                }
            }
        });
        assert!(waiting.await.is_ok(), "{state:?} is not told");
    };
    stage.ensure(&run).await;
    told(&mut changes, RunState::Starting).await;
    stage.until_asked(&run).await;
    stage.grant(&run);
    told(&mut changes, RunState::Running).await;
    stage.stop(&run, StopReason::Cancelled, LONG).await;
    told(&mut changes, RunState::Ended).await;
    stage.remove(&run).await;
    told(&mut changes, RunState::Absent).await;
}

pub async fn what_is_unsupported_is_said_once<S: Subject>(stage: Stage<S>) {
    let unsupported = stage.executor.unsupported();
    let names: BTreeSet<&str> = unsupported.iter().map(|what| what.name()).collect();
    assert_eq!(names.len(), unsupported.len(), "each once");
    assert_eq!(stage.executor.unsupported(), unsupported, "it doesn't change");
    assert_eq!(stage.executor.name(), S::NAME);
}

pub async fn no_agent_starts_before_the_answer<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    stage.ensure(&run).await;
    stage.until_asked(&run).await;
    assert_eq!(stage.starts(&run), 0);
    stage.grant(&run);
    stage.outcome(&run).await;
    assert_eq!(stage.starts(&run), 1);
}

pub async fn a_refused_run_starts_no_agent<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    let refusal = Failure { code: Code::DefinitionDrifted, system_code: SystemCode::new("ON_PURPOSE") };
    stage.director.answer(run.id(), Err(refusal.clone()));
    stage.ensure(&run).await;
    let outcome = stage.outcome(&run).await;
    assert_eq!(failure(&outcome), &refusal);
    assert_eq!((stage.director.launches(run.id()), stage.starts(&run)), (1, 0), "a refusal is final");
}

pub async fn without_an_answer_no_agent_starts<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    stage.ensure(&run).await;
    stage.until_asked(&run).await;
    stage.remove(&run).await;
    // Too late.
    stage.grant(&run);
    stage.assert_gone(&run).await;
    assert_eq!(stage.starts(&run), 0);
}

pub async fn the_outcome_is_reported_once_and_before_the_end<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::Exit(0)).await;
    stage.outcome(&run).await;
    stage.remove(&run).await;
    stage.only_report(&run);
    let states = stage.director.states_at_report();
    assert!(!states.contains(&RunState::Ended) && !states.contains(&RunState::Absent), "{states:?}");
}

pub async fn exit_codes_are_in_the_outcome<S: Subject>(stage: Stage<S>) {
    for code in [0, 1, 42, 255] {
        let run = stage.started(&Agent::Exit(code)).await;
        let outcome = stage.outcome(&run).await;
        assert_eq!((execution(&outcome).end, execution(&outcome).exit_code), (End::Exited, Some(code)));
        assert_eq!((execution(&outcome).termination_method, outcome.failure), (None, None));
    }
}

pub async fn a_signal_is_exit_code_minus_one<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::DieBySignal).await;
    let outcome = stage.outcome(&run).await;
    assert_eq!((execution(&outcome).end, execution(&outcome).exit_code), (End::Exited, Some(-1)));
}

pub async fn what_is_printed_is_in_the_outcome<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::Print("all done")).await;
    let outcome = stage.outcome(&run).await;
    assert_eq!(execution(&outcome).stdout.bytes, 8);
    let reading = outcome.reading.expect("a reading");
    assert_eq!(reading.text.expect("a text").as_str(), "all done");
    assert_eq!((reading.parsed, reading.failed, reading.text_truncated), (true, false, false));
    assert_eq!(stage.director.live(run.id()), "", "nobody asked for it");
}

pub async fn what_is_printed_is_shown_live<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Print("all done")).live();
    stage.begin(&run).await;
    stage.outcome(&run).await;
    assert_eq!(stage.director.live(run.id()), "all done");
}

pub async fn what_is_written_is_in_the_outcome<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::WriteFile("new file")).await;
    let diff = stage.outcome(&run).await.diff.expect("a diff");
    assert_eq!((diff.files, diff.insertions, diff.deletions), (1, 1, 0));
}

pub async fn the_deadline_ends_the_agent<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::WaitUntilStopped).deadline(1);
    stage.begin(&run).await;
    let outcome = stage.outcome(&run).await;
    assert_eq!((execution(&outcome).end, execution(&outcome).exit_code), (End::TimedOut, Some(-1)));
    assert_eq!(execution(&outcome).termination_method, Some(TerminationMethod::Sigterm));
}

pub async fn a_stop_before_the_answer_starts_no_agent<S: Subject>(stage: Stage<S>) {
    for (reason, code) in
        [(StopReason::Cancelled, Code::Cancelled), (StopReason::Retired, Code::DefinitionRetired)]
    {
        let run = stage.task(&Agent::Exit(0));
        stage.ensure(&run).await;
        stage.until_asked(&run).await;
        stage.stop(&run, reason, LONG).await;
        // Even if the answer comes at the same moment.
        stage.grant(&run);
        let outcome = stage.outcome(&run).await;
        assert_eq!((failure(&outcome).code, stage.starts(&run)), (code, 0));
    }
}

pub async fn a_stop_ends_the_agent<S: Subject>(stage: Stage<S>) {
    for (reason, end) in [
        (StopReason::Cancelled, End::Cancelled),
        (StopReason::Retired, End::Retired),
        (StopReason::Interrupted, End::Interrupted),
        (StopReason::ControlLost, End::ControlLost),
    ] {
        let run = stage.started(&Agent::WaitUntilStopped).await;
        stage.stop(&run, reason, LONG).await;
        let outcome = stage.outcome(&run).await;
        assert_eq!((execution(&outcome).end, execution(&outcome).exit_code), (end, Some(-1)));
        assert_eq!(execution(&outcome).termination_method, Some(TerminationMethod::Sigterm));
    }
}

pub async fn a_stop_after_the_end_changes_nothing<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::Exit(0)).await;
    stage.outcome(&run).await;
    stage.stop(&run, StopReason::Cancelled, Duration::ZERO).await;
    assert_eq!(stage.state(&run).await, RunState::Ended);
    stage.remove(&run).await;
    assert_eq!(execution(&stage.only_report(&run)).end, End::Exited);
}

pub async fn a_stop_of_an_unknown_run_is_fine<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    stage.stop(&run, StopReason::Cancelled, LONG).await;
    // Nothing remembers it.
    stage.begin(&run).await;
    assert_eq!(execution(&stage.outcome(&run).await).end, End::Exited);
}

pub async fn the_first_reason_counts<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::WaitUntilStopped).await;
    stage.stop(&run, StopReason::Retired, LONG).await;
    stage.stop(&run, StopReason::Cancelled, LONG).await;
    stage.remove(&run).await;
    assert_eq!(execution(&stage.only_report(&run)).end, End::Retired);
}

pub async fn an_agent_that_ignores_sigterm_is_killed_after_the_grace<S: Subject>(stage: Stage<S>) {
    let grace = Duration::from_millis(300);
    let run = stage.started(&Agent::IgnoreSigterm).await;
    let asked = Instant::now();
    stage.stop(&run, StopReason::Cancelled, grace).await;
    let outcome = stage.outcome(&run).await;
    assert!(asked.elapsed() >= grace, "it had its grace");
    assert_eq!((execution(&outcome).end, execution(&outcome).exit_code), (End::Cancelled, Some(-1)));
    assert_eq!(execution(&outcome).termination_method, Some(TerminationMethod::Sigkill));
}

pub async fn a_later_stop_can_shorten_the_grace<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::IgnoreSigterm).await;
    stage.stop(&run, StopReason::Cancelled, LONG).await;
    stage.stop(&run, StopReason::Interrupted, Duration::from_millis(1)).await;
    let outcome = stage.outcome(&run).await;
    assert_eq!(execution(&outcome).end, End::Cancelled);
    assert_eq!(execution(&outcome).termination_method, Some(TerminationMethod::Sigkill));
}

pub async fn remove_ends_a_running_agent_and_leaves_nothing<S: Subject>(stage: Stage<S>) {
    for agent in [Agent::WaitUntilStopped, Agent::IgnoreSigterm] {
        let run = stage.started(&agent).await;
        assert_ne!(stage.subject.remains(run.id()), Vec::<String>::new(), "the world can tell");
        stage.remove(&run).await;
        stage.assert_gone(&run).await;
        assert_eq!(execution(&stage.only_report(&run)).end, End::Interrupted);
    }
}

pub async fn remove_ends_a_run_that_waits_for_its_answer<S: Subject>(stage: Stage<S>) {
    let run = stage.task(&Agent::Exit(0));
    stage.ensure(&run).await;
    stage.until_asked(&run).await;
    stage.remove(&run).await;
    stage.assert_gone(&run).await;
    assert_eq!(failure(&stage.only_report(&run)).code, Code::Evicted);
}

pub async fn remove_after_the_end_leaves_nothing<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::WriteFile("new file")).await;
    stage.outcome(&run).await;
    stage.remove(&run).await;
    stage.assert_gone(&run).await;
}

pub async fn remove_twice_is_fine<S: Subject>(stage: Stage<S>) {
    let unknown = stage.task(&Agent::Exit(0));
    stage.remove(&unknown).await;
    let run = stage.started(&Agent::Exit(0)).await;
    stage.remove(&run).await;
    stage.remove(&run).await;
    stage.assert_gone(&run).await;
}

pub async fn remove_at_the_same_time_waits_for_the_end<S: Subject>(stage: Stage<S>) {
    let run = stage.started(&Agent::IgnoreSigterm).await;
    let remove = async || {
        stage.remove(&run).await;
        stage.assert_gone(&run).await;
        stage.only_report(&run);
    };
    tokio::join!(remove(), remove(), remove());
    assert_eq!(
        execution(&stage.only_report(&run)).end,
        End::Interrupted,
        "no removal went before the report"
    );
}

pub async fn a_removed_run_can_be_made_anew<S: Subject>(stage: Stage<S>) {
    // As a controller does that lost a sandbox before the grant.
    let run = stage.task(&Agent::Exit(0));
    stage.ensure(&run).await;
    stage.until_asked(&run).await;
    stage.remove(&run).await;
    stage.begin(&run).await;
    eventually("the second end", async || stage.director.reports(run.id()).len() == 2).await;
    assert_eq!((stage.director.launches(run.id()), stage.starts(&run)), (2, 1));
}

pub async fn runs_side_by_side_do_not_disturb_each_other<S: Subject>(stage: Stage<S>) {
    let steady = stage.started(&Agent::WaitUntilStopped).await;
    let failing = stage.started(&Agent::Exit(3)).await;
    let stubborn = stage.started(&Agent::IgnoreSigterm).await;
    assert_eq!(execution(&stage.outcome(&failing).await).exit_code, Some(3));
    stage.remove(&stubborn).await;
    stage.remove(&failing).await;
    assert_eq!(stage.state(&steady).await, RunState::Running);
    stage.stop(&steady, StopReason::Cancelled, LONG).await;
    let outcome = stage.outcome(&steady).await;
    assert_eq!(execution(&outcome).termination_method, Some(TerminationMethod::Sigterm));
    assert_eq!((stage.starts(&steady), stage.starts(&failing), stage.starts(&stubborn)), (1, 1, 1));
}

pub async fn attempts_of_one_task_are_apart<S: Subject>(stage: Stage<S>) {
    let first = stage.started(&Agent::WaitUntilStopped).await;
    let second = first.attempt(2);
    stage.begin(&second).await;
    stage.until_started(&second).await;
    stage.remove(&first).await;
    stage.assert_gone(&first).await;
    assert_eq!(stage.state(&second).await, RunState::Running);
    stage.stop(&second, StopReason::Cancelled, LONG).await;
    let outcome = stage.outcome(&second).await;
    assert_eq!(execution(&outcome).end, End::Cancelled, "the end of the first didn't end it");
    assert_eq!((stage.starts(&first), stage.starts(&second)), (1, 1));
    stage.remove(&second).await;
    stage.assert_gone(&second).await;
}

//! The controller over the executor in memory: whatever goes wrong, at most one agent starts, and the task ends.

use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::api::{AgentCliTaskStatus, TaskResult};
use crate::core::decide::{Approvals, MAX_ATTEMPTS};
use crate::core::validate::Origin;
use crate::executor::fake::{FakeExecutor, Fault, Injection, Lasts, Script};

const UID: &str = "5f0c1e6a7d3b4c2e9a8f1b2c3d4e5f60";
/// On the paused clock: longer than any run that ends.
const PATIENCE: Duration = Duration::from_hours(24);

/// One run and what is to happen to it.
#[derive(Debug, Clone, Default)]
struct Case {
    script: Script,
    faults: Vec<Injection>,
    /// At which status the caller interrupts, counted from 1.
    interrupt_at: Option<usize>,
}

/// What became of it.
struct Ended {
    finished: Finished,
    statuses: Vec<AgentCliTaskStatus>,
    executor: FakeExecutor,
    state_directory: TempDir,
}

impl Case {
    fn fault(injection: Injection) -> Self {
        Self { faults: vec![injection], ..Self::default() }
    }

    fn run(self) -> Ended {
        self.run_in(TempDir::new().unwrap())
    }

    fn run_in(self, state_directory: TempDir) -> Ended {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (interrupt, interrupted) = watch::channel(false);
            let mut recorder = Recorder { statuses: Vec::new(), interrupt, interrupt_at: self.interrupt_at };
            let journal = Journal::new(state_directory.path().to_owned());
            let mut fake = None;
            let executor = |control: Arc<dyn Control>| -> Arc<dyn Executor> {
                let executor = FakeExecutor::new(control);
                executor.script(UID, self.script.clone());
                self.faults.iter().cloned().for_each(|fault| executor.inject(fault));
                fake = Some(executor.clone());
                Arc::new(executor)
            };
            let execution = local_run().execute(&journal, executor, Signals { interrupted }, &mut recorder);
            let finished =
                tokio::time::timeout(PATIENCE, execution).await.expect("the run ends").expect("a journal");
            let ended =
                Ended { finished, statuses: recorder.statuses, executor: fake.unwrap(), state_directory };
            ended.check();
            ended
        })
    }
}

impl Ended {
    fn result(&self) -> &TaskResult {
        self.statuses.last().unwrap().result.as_ref().unwrap()
    }

    fn code(&self) -> Option<Code> {
        self.result().code
    }

    fn launch(&self) -> Option<&crate::api::Launch> {
        self.statuses.last().unwrap().launch.as_ref()
    }

    fn attempts(&self) -> i64 {
        self.launch().map_or(0, |launch| launch.attempt)
    }

    fn leftover_is_told(&self) -> bool {
        self.finished.notes.iter().any(|note| note.as_str().contains("is left"))
    }

    fn is_in_journal(&self) -> bool {
        self.state_directory.path().join("runs").join(UID).exists()
    }

    /// What holds for every run.
    fn check(&self) {
        let starts = self.executor.starts(UID);
        let granted = self.launch().is_some_and(|launch| launch.grant.is_some());
        assert!(starts <= 1, "{starts} agents were started");
        assert!(starts == 0 || granted, "an agent was started without a grant");
        assert!(self.code().is_some() || starts == 1, "a success without an agent");
        assert!(self.code() != Some(Code::Lost) || granted, "lost without a grant");
        assert!(self.attempts() <= MAX_ATTEMPTS, "{} attempts", self.attempts());
        assert_eq!(
            self.leftover_is_told(),
            self.is_in_journal(),
            "a leftover is told and stays in the journal"
        );
        assert!(
            self.leftover_is_told() || self.executor.sandboxes().is_empty(),
            "a leftover that isn't told"
        );
        assert_eq!(self.finished.task.status.as_ref(), self.statuses.last());
        assert_legal(&self.statuses);
    }
}

struct Recorder {
    statuses: Vec<AgentCliTaskStatus>,
    interrupt: watch::Sender<bool>,
    interrupt_at: Option<usize>,
}

impl Observer for Recorder {
    fn status(&mut self, task: &AgentCliTask) {
        self.statuses.extend(task.status.clone());
        if self.interrupt_at == Some(self.statuses.len()) {
            self.interrupt.send_replace(true);
        }
    }

    fn live(&mut self, _live: Live) {}
}

fn local_run() -> LocalRun {
    let spec = json!({"version": "1", "binary": "agent", "output": {"format": "Text"}});
    let definition = AgentCliDefinition::new("agent", serde_json::from_value(spec).unwrap());
    let spec = json!({"definition": {"name": "agent"}, "prompt": "do it", "workspace": {},
        "limits": {"timeout": "30s"}});
    let mut task = AgentCliTask::new("task", serde_json::from_value(spec).unwrap());
    task.metadata.uid = Some(UID.to_owned());
    let mut run = LocalRun {
        task,
        definition,
        prompt: inline_prompt(Some("do it".to_owned())),
        installation: Installation {
            origin: Origin::Local,
            approvals: Approvals::Own,
            unsupported: Vec::new(),
        },
        secrets: Secrets::default(),
        clock: || Timestamp::from_second(1_800_000_000).unwrap(),
    };
    let digest = run.judge().facts.expect("a task that fits its definition").digest;
    run.approve(&digest, "me");
    run
}

/// Every status may follow the one before, by the rules that the API server holds.
fn assert_legal(statuses: &[AgentCliTaskStatus]) {
    let mut values: Vec<Value> =
        statuses.iter().map(|status| serde_json::to_value(status).unwrap()).collect();
    values.dedup();
    let olds = std::iter::once(None).chain(values.iter().map(Some));
    for (new, old) in values.iter().zip(olds) {
        if let Err(errors) = step(new, old) {
            panic!("{errors}\n{}\n{new:#}", old.unwrap_or(&Value::Null));
        }
    }
}

fn step(new: &Value, old: Option<&Value>) -> Result<(), kube_cel::ValidationErrors> {
    static SCHEMA: OnceLock<kube_cel::CompiledSchema> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let crd = serde_json::to_value(<AgentCliTask as kube::CustomResourceExt>::crd()).unwrap();
        let status = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status").unwrap();
        kube_cel::compile_schema(status)
    });
    kube_cel::Validator::new().validate_compiled(schema, new, old)
}

#[test]
fn the_rules_that_are_asked_do_hold() {
    let ended = Case::default().run();
    let last = serde_json::to_value(ended.statuses.last().unwrap()).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut changed = last.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    assert!(step(&last, Some(&last)).is_ok());
    assert!(step(&with("/launch/attempt", json!(2)), Some(&last)).is_err());
    assert!(step(&with("/launch/grant/instance", json!("another")), Some(&last)).is_err());
    assert!(step(&with("/finishedAt", json!("2031-01-01T00:00:00Z")), Some(&last)).is_err());
}

#[test]
fn every_fault_has_its_end() {
    use Code::{ExecFailed, Lost, RuntimeUnavailable};
    let of = Injection::of;
    // fault, code, agents started, attempts
    let table = [
        (of(Fault::EnsureFails), Some(RuntimeUnavailable), 0, 1),
        (of(Fault::EnsureAmbiguous), None, 1, 1),
        (of(Fault::ObserveFails).times(5), None, 1, 1),
        (of(Fault::EventLost).always(), None, 1, 1),
        (of(Fault::VanishesBeforeGrant), None, 1, 2),
        (of(Fault::VanishesBeforeGrant).times(2), None, 1, 3),
        (of(Fault::VanishesBeforeGrant).always(), Some(ExecFailed), 0, MAX_ATTEMPTS),
        (of(Fault::DiesBeforeGrant), None, 1, 2),
        (of(Fault::DiesBeforeGrant).always(), Some(ExecFailed), 0, MAX_ATTEMPTS),
        (of(Fault::VanishesAtGrant), Some(Lost), 0, 1),
        (of(Fault::VanishesAfterStart), Some(Lost), 1, 1),
        (of(Fault::LaunchTwice), None, 1, 1),
        (of(Fault::OutcomeLost), Some(Lost), 1, 1),
        (of(Fault::OutcomeTwice), None, 1, 1),
        (of(Fault::RemoveFails).times(2), None, 1, 1),
    ];
    for (fault, code, starts, attempts) in table {
        let ended = Case::fault(fault.clone()).run();
        let found = (ended.code(), ended.executor.starts(UID), ended.attempts(), ended.leftover_is_told());
        assert_eq!(found, (code, starts, attempts, false), "{fault:?}");
    }
}

#[test]
fn a_sandbox_that_comes_up_behind_an_error_is_not_left_behind() {
    // Nobody answers whether it exists, so the task ends; it exists all the same.
    let faults = vec![Injection::of(Fault::EnsureAmbiguous), Injection::of(Fault::ObserveFails)];
    let ended = Case { faults, ..Case::default() }.run();
    assert_eq!((ended.code(), ended.executor.starts(UID)), (Some(Code::RuntimeUnavailable), 0));
    assert!(ended.executor.sandboxes().is_empty());
}

#[test]
fn an_old_answer_of_the_executor_never_starts_a_second_agent() {
    for times in 1..20 {
        let case = Case::fault(Injection::of(Fault::ObserveStale).times(times));
        assert!(matches!(case.run().code(), None | Some(Code::ExecFailed | Code::Lost)), "{times}");
    }
}

#[test]
fn an_attempt_that_was_given_up_gets_no_grant_and_is_not_heard() {
    // It is believed to be gone, can't be removed, and asks.
    let faults = vec![Injection::of(Fault::ObserveStale), Injection::of(Fault::RemoveFails)];
    let ended = Case { faults, ..Case::default() }.run();
    assert_eq!((ended.code(), ended.attempts()), (None, 2));
    let starts_of = |attempt| ended.executor.starts_of(&RunId { uid: UID.to_owned(), attempt });
    assert_eq!((starts_of(1), starts_of(2)), (0, 1));
}

#[test]
fn what_can_not_be_removed_is_told_and_the_result_is_kept() {
    let script = Script { says: "all done".to_owned(), ..Script::default() };
    let faults = vec![Injection::of(Fault::RemoveFails).always()];
    let ended = Case { script, faults, ..Case::default() }.run();
    assert_eq!(ended.result().text.as_ref().map(Redacted::as_str), Some("all done"));
    assert!(ended.leftover_is_told());
    assert_eq!(ended.executor.sandboxes().len(), 1);
}

#[test]
fn an_interrupt_ends_the_run_at_every_step() {
    let working = Script { lasts: Lasts::UntilStopped, ..Script::default() };
    let stubborn = Script { ignores_sigterm: true, ..working.clone() };
    for script in [working, stubborn] {
        for interrupt_at in 1..=4 {
            let case = Case { script: script.clone(), interrupt_at: Some(interrupt_at), ..Case::default() };
            let ended = case.run();
            // The deadline is the only other end of these agents.
            assert_eq!(ended.code(), Some(Code::Cancelled), "at {interrupt_at}");
            assert!(ended.statuses.last().unwrap().cancel.is_some());
        }
    }
}

#[test]
fn an_interrupt_before_the_grant_starts_nothing() {
    let ended = Case { interrupt_at: Some(1), ..Case::default() }.run();
    assert_eq!((ended.code(), ended.executor.starts(UID)), (Some(Code::Cancelled), 0));
}

#[test]
fn a_stop_that_fails_is_asked_for_again() {
    let script = Script { lasts: Lasts::UntilStopped, ..Script::default() };
    let faults = vec![Injection::of(Fault::StopFails).times(3)];
    let ended = Case { script, faults, interrupt_at: Some(3) }.run();
    assert_eq!((ended.code(), ended.executor.starts(UID)), (Some(Code::Cancelled), 1));
}

#[test]
fn a_run_without_a_record_does_not_begin() {
    let state_directory = TempDir::new().unwrap();
    std::fs::write(state_directory.path().join("runs"), "a file where the folder should be").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (_interrupt, interrupted) = watch::channel(false);
    let mut fake = None;
    let executor = |control: Arc<dyn Control>| -> Arc<dyn Executor> {
        let executor = FakeExecutor::new(control);
        fake = Some(executor.clone());
        Arc::new(executor)
    };
    let (interrupt, _) = watch::channel(false);
    let mut recorder = Recorder { statuses: Vec::new(), interrupt, interrupt_at: None };
    let journal = Journal::new(state_directory.path().to_owned());
    let execution = local_run().execute(&journal, executor, Signals { interrupted }, &mut recorder);
    assert!(matches!(runtime.block_on(execution), Err(LocalError::Journal { .. })));
    assert!(fake.unwrap().sandboxes().is_empty());
}

#[test]
fn an_agent_runs_into_its_deadline() {
    let script = Script { lasts: Lasts::UntilStopped, ignores_sigterm: true, ..Script::default() };
    let ended = Case { script, ..Case::default() }.run();
    assert_eq!(ended.code(), Some(Code::Timeout));
    assert_eq!(ended.result().termination_method, Some(crate::api::TerminationMethod::Sigkill));
}

fn injection() -> impl Strategy<Value = Injection> {
    (proptest::sample::select(Fault::ALL), 0_usize..4, 1_usize..5)
        .prop_map(|(fault, after, times)| Injection::of(fault).after(after).times(times))
}

fn script() -> impl Strategy<Value = Script> {
    let lasts = prop_oneof![
        (0_u64..20).prop_map(|seconds| Lasts::For(Duration::from_secs(seconds))),
        Just(Lasts::UntilStopped)
    ];
    (lasts, -1..3, any::<bool>(), any::<bool>()).prop_map(|(lasts, exit_code, ignores_sigterm, fails)| {
        Script { lasts, exit_code, ignores_sigterm, fails, ..Script::default() }
    })
}

proptest! {
    #[test]
    fn whatever_goes_wrong_the_run_ends_and_at_most_one_agent_starts(
        script in script(),
        faults in proptest::collection::vec(injection(), 0..6),
        interrupt_at in proptest::option::of(1_usize..8),
    ) {
        Case { script, faults, interrupt_at }.run();
    }
}

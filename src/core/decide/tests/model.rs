//! Random histories in a small world: sandboxes that come, go, ask and report; people who approve, cancel and change their mind;
//! controllers that crash between a status and its actions.
//!
//! Whatever happens, at most one grant is given, statuses obey the API server's rules, the end is final, and there is one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::api::crd;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// One pass; a crash leaves all but the first so many actions undone.
    Decide {
        done: usize,
    },
    /// A supervisor, of any attempt that is up, asks for the grant.
    Ask {
        attempt: i64,
    },
    /// The agent of the granted sandbox ends, or fails.
    AgentEnds {
        exit_code: i32,
    },
    /// A supervisor without a grant reports why it can't start.
    FailsBeforeStart {
        attempt: i64,
        retryable: bool,
    },
    /// A supervisor breaks the protocol: it reports an end without a grant.
    Lies {
        attempt: i64,
    },
    /// The sandbox ends without a word, or vanishes.
    Dies {
        attempt: i64,
    },
    Vanishes {
        attempt: i64,
    },
    Approve,
    Withdraw,
    Reject,
    Cancel,
    Retire,
    ChangeDefinition,
    ChangePrompt,
    Wait {
        seconds: i64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let attempt = || 1..=MAX_ATTEMPTS;
    prop_oneof![
        12 => (0_usize..3).prop_map(|done| Event::Decide { done }),
        6 => attempt().prop_map(|attempt| Event::Ask { attempt }),
        3 => prop::sample::select(vec![0, 1, -1]).prop_map(|exit_code| Event::AgentEnds { exit_code }),
        2 => (attempt(), any::<bool>()).prop_map(|(attempt, retryable)| Event::FailsBeforeStart { attempt, retryable }),
        1 => attempt().prop_map(|attempt| Event::Lies { attempt }),
        2 => attempt().prop_map(|attempt| Event::Dies { attempt }),
        1 => attempt().prop_map(|attempt| Event::Vanishes { attempt }),
        4 => Just(Event::Approve),
        1 => Just(Event::Withdraw),
        1 => Just(Event::Reject),
        1 => Just(Event::Cancel),
        1 => Just(Event::Retire),
        1 => Just(Event::ChangeDefinition),
        1 => Just(Event::ChangePrompt),
        3 => prop::sample::select(vec![1, 60, 1_000, 90_000]).prop_map(|seconds| Event::Wait { seconds }),
    ]
}

#[derive(Clone, Default)]
struct Sandbox {
    run: RunState,
    granted: bool,
    outcome: Option<Outcome>,
}

/// The world and what must have been true of it so far.
struct Model {
    world: World,
    sandboxes: BTreeMap<i64, Sandbox>,
    grants: usize,
    ended: Option<AgentCliTaskStatus>,
}

static RULES: LazyLock<kube_cel::CompiledSchema> = LazyLock::new(|| {
    let schema = crd::of::<AgentCliTask>().spec.versions.remove(0).schema.unwrap().open_api_v3_schema;
    kube_cel::compile_schema(&serde_json::to_value(schema).unwrap())
});

impl Model {
    fn new(world: World) -> Self {
        Self { world, sandboxes: BTreeMap::new(), grants: 0, ended: None }
    }

    fn observe(&mut self) {
        let present = self.sandboxes.get(&run_id(&self.world.task).attempt).cloned().unwrap_or_default();
        self.world.observed = Observed { run: present.run, outcome: present.outcome };
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Decide { done } => self.decide(done),
            Event::Ask { attempt } => self.ask(attempt),
            Event::AgentEnds { exit_code } => self.agent_ends(exit_code),
            Event::FailsBeforeStart { attempt, retryable } => {
                let code = if retryable { Code::WorkspaceFailed } else { Code::SourceMissing };
                self.report(attempt, &Outcome::before_start(code, None));
            }
            Event::Lies { attempt } => self.report(attempt, &succeeded()),
            Event::Dies { attempt } => {
                if let Some(sandbox) = self.sandboxes.get_mut(&attempt) {
                    sandbox.run = RunState::Ended;
                }
            }
            Event::Vanishes { attempt } => {
                self.sandboxes.remove(&attempt);
            }
            Event::Approve => {
                if let Some(facts) = self.world.judge().facts {
                    self.world = self.world.clone().annotate(APPROVED_DIGEST, &facts.digest);
                    self.world = self.world.clone().annotate(APPROVED_BY, "bob");
                }
            }
            Event::Withdraw => {
                self.world.task.metadata.annotations.as_mut().unwrap().remove(APPROVED_DIGEST);
            }
            Event::Reject => self.world = self.world.clone().rejected(),
            Event::Cancel => self.world = self.world.clone().cancelled(),
            Event::Retire => self.world = self.world.clone().retired(),
            Event::ChangeDefinition => {
                self.world.definition.as_mut().unwrap().spec.arguments.push("-v".to_owned());
            }
            Event::ChangePrompt => {
                self.world.prompt = PromptState::Present(Prompt::new("another".to_owned()).unwrap());
            }
            Event::Wait { seconds } => self.world = self.world.clone().later(seconds),
        }
    }

    fn decide(&mut self, done: usize) {
        self.observe();
        let before = self.world.task.clone();
        let plan = self.world.step();
        self.check_write(&before);
        if let Some(ended) = &self.ended {
            assert_eq!(&plan.status, ended, "the end is final");
        }
        if plan.status.finished_at.is_some() {
            assert_eq!(plan.wake_at, None);
            self.ended = Some(plan.status.clone());
        }
        let attempt = plan.status.launch.as_ref().map_or(1, |launch| launch.attempt);
        assert!(attempt <= MAX_ATTEMPTS);
        self.check_again(&plan);
        plan.actions.iter().take(done).for_each(|action| self.carry_out(action));
    }

    /// A pass that finds its own status written says the same, and does nothing that it didn't want before.
    fn check_again(&mut self, plan: &Plan) {
        self.observe();
        let again = decide(&self.world.inputs(), &self.world.observed, self.world.now);
        assert_eq!(again.status, plan.status);
        assert!(again.actions.iter().all(|action| plan.actions.contains(action)), "{again:?} after {plan:?}");
    }

    /// The API server's rules on a status, old and new.
    fn check_write(&self, before: &AgentCliTask) {
        let value = |task: &AgentCliTask| serde_json::to_value(task).unwrap();
        let (old, new) = (value(before), value(&self.world.task));
        let outcome = kube_cel::Validator::new().validate_compiled(&RULES, &new, Some(&old));
        assert!(outcome.is_ok(), "{outcome:?}\n{old:#}\n{new:#}");
    }

    fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Ensure(spec) => {
                assert!(self.ended.is_none(), "nothing is brought up after the end");
                let sandbox = self.sandboxes.entry(spec.id.attempt).or_default();
                if sandbox.run == RunState::Absent {
                    sandbox.run = RunState::Starting;
                }
            }
            Action::Stop(id, _) => {
                let sandbox = self.sandboxes.get_mut(&id.attempt).expect("only what is there is stopped");
                sandbox.run = RunState::Ended;
            }
            Action::Remove(id) => {
                self.sandboxes.remove(&id.attempt);
            }
        }
    }

    fn ask(&mut self, attempt: i64) {
        let present = run_id(&self.world.task).attempt;
        let Some(sandbox) = self.sandboxes.get_mut(&attempt) else { return };
        // The channel refuses former attempts before it asks for the gates.
        if sandbox.run == RunState::Ended || sandbox.outcome.is_some() || attempt != present {
            return;
        }
        let before = self.world.task.clone();
        let Ok(facts) = self.world.grant() else { return };
        self.grants += 1;
        assert_eq!(self.grants, 1, "one grant, ever");
        assert!(self.ended.is_none());
        assert_eq!(Some(&facts.digest), self.world.status().digest.as_ref());
        let annotations = self.world.task.metadata.annotations.as_ref().unwrap();
        assert_eq!(annotations.get(APPROVED_DIGEST), Some(&facts.digest), "approved exactly");
        sandbox.granted = true;
        sandbox.run = RunState::Running;
        self.check_write(&before);
    }

    fn agent_ends(&mut self, exit_code: i32) {
        for sandbox in self.sandboxes.values_mut().filter(|sandbox| sandbox.granted) {
            if sandbox.run == RunState::Running {
                let mut outcome = succeeded();
                outcome.execution.as_mut().unwrap().exit_code = Some(exit_code);
                *sandbox = Sandbox { run: RunState::Ended, granted: true, outcome: Some(outcome) };
            }
        }
    }

    fn report(&mut self, attempt: i64, outcome: &Outcome) {
        if let Some(sandbox) = self.sandboxes.get_mut(&attempt)
            && sandbox.run == RunState::Starting
        {
            sandbox.outcome.get_or_insert_with(|| outcome.clone());
            sandbox.run = RunState::Ended;
        }
    }

    /// Nobody does anything any more; only time passes, and plans are carried out.
    fn settle(&mut self) {
        for _ in 0..30 {
            self.decide(usize::MAX);
            self.observe();
            let plan = decide(&self.world.inputs(), &self.world.observed, self.world.now);
            if self.ended.is_some() && plan.actions.is_empty() {
                return;
            }
            if let Some(wake_at) = plan.wake_at {
                self.world.now = self.world.now.max(wake_at);
            }
        }
        panic!("no end in sight: {:#?}", self.world.status());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_history_keeps_the_promises_and_ends(events in prop::collection::vec(event(), 0..40)) {
        let mut model = Model::new(World::new());
        for event in events {
            model.apply(event);
        }
        model.settle();
        prop_assert!(model.sandboxes.keys().all(|attempt| *attempt != run_id(&model.world.task).attempt));
    }
}

#[test]
fn the_straight_path_is_one_of_the_histories() {
    let mut model = Model::new(World::new());
    let decide = Event::Decide { done: usize::MAX };
    for event in
        [decide, Event::Approve, decide, Event::Ask { attempt: 1 }, decide, Event::AgentEnds { exit_code: 0 }]
    {
        model.apply(event);
    }
    model.settle();
    assert_eq!((end(model.world.status()), model.grants), ("ok", 1));
}

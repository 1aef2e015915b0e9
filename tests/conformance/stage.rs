//! One test's world: a subject, its director, and waiting for conditions.

use std::sync::Arc;
use std::time::Duration;

use caisson::api::{AgentCliDefinitionSpec, AgentCliTaskSpec, LogMode, Release};
use caisson::core::command::{self, Prompt};
use caisson::core::decide::RunState;
use caisson::core::limits;
use caisson::core::outcome::Outcome;
use caisson::core::plan::{RunId, RunSpec};
use caisson::executor::Executor;
use caisson::protocol::StopReason;
use caisson::supervisor::control::{Control, Order};
use serde_json::json;

use crate::agents::Agent;
use crate::director::Director;
use crate::subjects::Subject;

/// Longer than anything takes that works, on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks at something that tells no changes.
const TICK: Duration = Duration::from_millis(5);

/// Runs one behaviour of one subject.
pub fn run<S: Subject, F: Future<Output = ()>>(behaviour: impl FnOnce(Stage<S>) -> F) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(S::PAUSED).build().unwrap();
    // The last resort, where what waits is the executor itself.
    let ending = runtime
        .block_on(async { tokio::time::timeout(PATIENCE + PATIENCE / 2, behaviour(Stage::new())).await });
    assert!(ending.is_ok(), "the executor doesn't answer");
}

pub struct Stage<S> {
    pub subject: S,
    pub director: Arc<Director>,
    pub executor: Arc<dyn Executor>,
}

/// One run of one agent.
#[derive(Clone)]
pub struct Run {
    pub spec: RunSpec,
    pub order: Order,
}

impl Run {
    pub fn id(&self) -> &RunId {
        &self.spec.id
    }

    /// Another attempt of the same task.
    pub fn attempt(&self, attempt: i64) -> Self {
        let id = RunId { attempt, ..self.spec.id.clone() };
        Self { spec: RunSpec { id, ..self.spec.clone() }, order: self.order.clone() }
    }

    /// The same with live output.
    pub fn live(mut self) -> Self {
        self.spec.logs = LogMode::Redacted;
        self.order.logs = LogMode::Redacted;
        self
    }

    /// The same with a deadline of so many seconds.
    pub fn deadline(mut self, seconds: i64) -> Self {
        let timeout = caisson::api::Duration::from_seconds(seconds);
        self.spec.limits.timeout = timeout;
        self.order.limits.timeout = timeout;
        self
    }
}

impl<S: Subject> Stage<S> {
    fn new() -> Self {
        let director = Arc::new(Director::default());
        Self::with(Arc::clone(&director) as Arc<dyn Control>, director)
    }

    /// A stage whose supervisors answer to somebody else.
    pub fn with(control: Arc<dyn Control>, director: Arc<Director>) -> Self {
        let subject = S::new(control);
        let executor = subject.executor();
        director.watch(&executor);
        Self { subject, director, executor }
    }

    /// A first attempt of a new task, which doesn't exist yet.
    pub fn task(&self, agent: &Agent) -> Run {
        let uid = uuid::Uuid::new_v4().simple().to_string();
        let binary = self.subject.program(&uid, agent);
        let rules: AgentCliDefinitionSpec =
            serde_json::from_value(json!({"version": "1", "binary": binary})).unwrap();
        let wish: AgentCliTaskSpec =
            serde_json::from_value(json!({"definition": {"name": "agent"}, "workspace": {}})).unwrap();
        let prompt = Prompt::new("do it".to_owned()).unwrap();
        let command = command::build(&wish, &rules, &prompt).unwrap();
        let limits = limits::effective(&wish.limits, &rules.limits).unwrap();
        let spec = RunSpec {
            id: RunId { uid, attempt: 1 },
            release: Release { version: rules.version, image: None, binary: rules.binary },
            limits,
            hosts: Vec::new(),
            environment: Vec::new(),
            workspace: wish.workspace,
            logs: LogMode::None,
            pod: None,
        };
        let (environment, output) = (Vec::new(), rules.output);
        let order = Order { command, prompt, environment, output, limits, logs: LogMode::None };
        Run { spec, order }
    }

    pub async fn ensure(&self, run: &Run) {
        self.executor.ensure(&run.spec).await.unwrap();
    }

    pub fn grant(&self, run: &Run) {
        self.director.answer(run.id(), Ok(run.order.clone()));
    }

    /// Brings up a run with its grant.
    pub async fn begin(&self, run: &Run) {
        self.grant(run);
        self.ensure(run).await;
    }

    /// Brings up a run, and waits until its agent was seen to start.
    pub async fn started(&self, agent: &Agent) -> Run {
        let run = self.task(agent);
        self.begin(&run).await;
        self.until_started(&run).await;
        run
    }

    /// Waits for the end of a run, and takes its only report.
    pub async fn outcome(&self, run: &Run) -> Outcome {
        self.until(run, RunState::Ended).await;
        self.only_report(run)
    }

    pub fn only_report(&self, run: &Run) -> Outcome {
        let mut reports = self.director.reports(run.id());
        assert_eq!(reports.len(), 1, "reports");
        reports.remove(0)
    }

    pub async fn state(&self, run: &Run) -> RunState {
        self.executor.observe(run.id()).await.unwrap()
    }

    pub fn starts(&self, run: &Run) -> usize {
        self.subject.starts(run.id())
    }

    pub async fn stop(&self, run: &Run, reason: StopReason, grace: Duration) {
        self.executor.stop(run.id(), reason, grace).await.unwrap();
    }

    pub async fn remove(&self, run: &Run) {
        self.executor.remove(run.id()).await.unwrap();
    }

    /// Nothing of the run is left, as far as anyone can tell.
    pub async fn assert_gone(&self, run: &Run) {
        assert_eq!(self.state(run).await, RunState::Absent);
        assert_eq!(self.subject.remains(run.id()), Vec::<String>::new());
    }

    pub async fn until(&self, run: &Run, state: RunState) {
        eventually(&format!("state {state:?}"), async || self.state(run).await == state).await;
    }

    pub async fn until_asked(&self, run: &Run) {
        eventually("the request for the grant", async || self.director.launches(run.id()) > 0).await;
    }

    pub async fn until_started(&self, run: &Run) {
        eventually("the start of the agent", async || self.starts(run) > 0).await;
    }
}

/// Waits for a condition.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waiting = tokio::time::timeout(PATIENCE, async {
        let mut ticks = tokio::time::interval(TICK);
        while !condition().await {
            ticks.tick().await;
        }
    });
    assert!(waiting.await.is_ok(), "waited in vain for {what}");
}

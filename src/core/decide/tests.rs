//! Decisions as sentences over data. [`World`] is a task with everything that is known about it.

mod gates;
mod grants;
mod launched;
mod model;
mod pruning;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;
use crate::api::{
    APPROVED_BY, APPROVED_DIGEST, AgentCliDefinition, Condition, Grant, REJECTED_BY, StreamFacts,
};
use crate::core::command::Prompt;
use crate::core::fixtures;
use crate::core::outcome::{End, Execution, Reading};
use crate::core::plan::Unsupported;
use crate::core::validate::{Origin, Problem};
use crate::protocol::{StopReason, SystemCode};

/// 2026-01-01T00:00:00Z, when the fixture's task was created.
const CREATED: i64 = 1_767_225_600;

#[derive(Clone)]
struct World {
    task: AgentCliTask,
    definition: Option<AgentCliDefinition>,
    prompt: PromptState,
    installation: Installation,
    observed: Observed,
    now: Timestamp,
}

impl World {
    /// The full task and definition of the fixtures, a minute after the task was created. Nobody has approved it.
    fn new() -> Self {
        let task = fixtures::task(fixtures::yaml(fixtures::TASK));
        let prompt = task.spec.prompt.clone().unwrap();
        Self {
            task,
            definition: Some(fixtures::definition(fixtures::yaml(fixtures::DEFINITION))),
            prompt: PromptState::Present(Prompt::new(prompt).unwrap()),
            installation: Installation {
                origin: Origin::Cluster,
                approvals: Approvals::Policies,
                unsupported: Vec::new(),
            },
            observed: Observed::default(),
            now: Timestamp::from_second(CREATED + 60).unwrap(),
        }
    }

    /// The same with the task's and the definition's manifests changed by merge patches.
    fn patched(task: &Value, definition: &Value) -> Self {
        let patched = |text, patch| {
            let mut value = fixtures::yaml(text);
            fixtures::merge(&mut value, patch);
            value
        };
        let mut world = Self::new();
        world.task = fixtures::task(patched(fixtures::TASK, task));
        world.definition = Some(fixtures::definition(patched(fixtures::DEFINITION, definition)));
        world
    }

    /// A task whose definition needs no approval.
    fn unattended() -> Self {
        Self::patched(&json!({}), &json!({"spec": {"requiresApproval": false}}))
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            task: &self.task,
            definition: self.definition.as_ref(),
            prompt: &self.prompt,
            installation: &self.installation,
        }
    }

    fn judge(&self) -> Judgement {
        judge(&self.inputs(), self.now)
    }

    fn digest(&self) -> String {
        self.judge().facts.expect("the task fits its definition").digest
    }

    /// Decides and writes the plan's status, as a controller does.
    fn step(&mut self) -> Plan {
        let plan = decide(&self.inputs(), &self.observed, self.now);
        self.task.status = Some(plan.status.clone());
        plan
    }

    fn annotate(mut self, name: &str, value: &str) -> Self {
        let annotations = self.task.metadata.annotations.get_or_insert_default();
        annotations.insert(name.to_owned(), value.to_owned());
        self
    }

    fn approved(self) -> Self {
        let digest = self.digest();
        self.annotate(APPROVED_DIGEST, &digest).annotate(APPROVED_BY, "bob")
    }

    fn withdrawn(mut self) -> Self {
        self.task.metadata.annotations.as_mut().unwrap().remove(APPROVED_DIGEST);
        self
    }

    fn cancelled(self) -> Self {
        self.annotate(CANCEL, "true")
    }

    fn rejected(self) -> Self {
        self.annotate(REJECTED_BY, "bob")
    }

    fn retired(mut self) -> Self {
        self.definition.as_mut().unwrap().spec.retired = true;
        self
    }

    fn later(mut self, seconds: i64) -> Self {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).unwrap();
        self
    }

    fn seen(mut self, run: RunState) -> Self {
        self.observed.run = run;
        self
    }

    fn reported(mut self, outcome: Outcome) -> Self {
        self.observed.outcome = Some(outcome);
        self
    }

    /// Approved, and its first attempt decided.
    fn launched() -> Self {
        let mut world = Self::new().approved();
        world.step();
        assert!(world.status().launch.is_some());
        world
    }

    /// Launched, up, and granted.
    fn granted() -> Self {
        let mut world = Self::launched().seen(RunState::Starting);
        world.step();
        world.grant().expect("every gate is open");
        world.seen(RunState::Running)
    }

    /// Asks for the grant and records it.
    fn grant(&mut self) -> Result<Facts, Refusal> {
        let facts = grant(&self.inputs(), self.now)?;
        let at = Time(self.now);
        let launch = self.task.status.as_mut().unwrap().launch.as_mut().unwrap();
        launch.grant = Some(Grant { pod_uid: "pod".to_owned(), instance: "one".to_owned(), at });
        Ok(facts)
    }

    fn status(&self) -> &AgentCliTaskStatus {
        self.task.status.as_ref().expect("decided at least once")
    }
}

/// A plan's actions as words.
fn actions(plan: &Plan) -> Vec<String> {
    let word = |action: &Action| match action {
        Action::Ensure(spec) => format!("ensure {}", spec.id.attempt),
        Action::Stop(id, reason) => format!("stop {} {reason:?}", id.attempt),
        Action::Remove(id) => format!("remove {}", id.attempt),
    };
    plan.actions.iter().map(word).collect()
}

/// `Validated=True Valid`, or nothing.
fn condition(status: &AgentCliTaskStatus, kind: ConditionType) -> String {
    let found: Vec<&Condition> =
        status.conditions.iter().filter(|condition| condition.kind == kind).collect();
    assert!(found.len() <= 1, "{kind} stands twice");
    found.first().map(|one| format!("{}={} {}", one.kind, one.status, one.reason)).unwrap_or_default()
}

/// The result's code: `-` while there is no result, `ok` for a success.
fn end(status: &AgentCliTaskStatus) -> &'static str {
    match &status.result {
        None => "-",
        Some(result) => result.code.map_or("ok", Code::name),
    }
}

fn succeeded() -> Outcome {
    let execution = Execution {
        end: End::Exited,
        exit_code: Some(0),
        system_code: None,
        termination_method: None,
        stdout: StreamFacts::default(),
        stderr: StreamFacts::default(),
        duration_ms: 1,
    };
    let reading = Reading { parsed: true, ..Reading::default() };
    Outcome { execution: Some(execution), reading: Some(reading), ..Outcome::default() }
}

//! The gates, in order. The same function is asked at every pass and once more at the grant.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::api::{
    APPROVED_BY, APPROVED_DIGEST, AgentCliDefinition, AgentCliDefinitionSpec, AgentCliTask, AgentCliTaskSpec,
    CREATED_BY, Code, ConditionType, DefinitionRef, EffectiveLimits, Preview, REJECTED_BY, Reason, Release,
};
use crate::core::command::{self, Command, Prompt};
use crate::core::digest::{self, LOCAL_UID, Subject};
use crate::core::outcome::Failure;
use crate::core::plan::{RunId, RunSpec, Unsupported};
use crate::core::validate::{self, Origin, Problem};
use crate::core::{contract, limits};
use crate::protocol::SystemCode;
use crate::redact::{Redacted, Redactor};

/// Most bytes of problems in a condition's message: what a person reads at once, and far below what the schema takes.
const MAX_PROBLEM_BYTES: usize = 8 * 1024;

/// Everything that the gates look at.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The task.
    pub task: &'a AgentCliTask,
    /// Its definition, if one of that name exists.
    pub definition: Option<&'a AgentCliDefinition>,
    /// Its prompt.
    pub prompt: &'a PromptState,
    /// Where this runs.
    pub installation: &'a Installation,
}

/// A task's prompt, wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptState {
    /// It is known.
    Present(Prompt),
    /// Its source doesn't exist.
    Missing,
    /// It contains a NUL character.
    Invalid,
}

/// What this installation is and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Where tasks come from.
    pub origin: Origin,
    /// What approvals rest on.
    pub approvals: Approvals,
    /// What the executor can't enforce.
    pub unsupported: Vec<Unsupported>,
}

/// What approvals rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvals {
    /// The caller's own word, in a local run.
    Own,
    /// An annotation that admission policies guard.
    Policies,
    /// An annotation that nothing guards, by an explicit choice of whoever installed it.
    AnnotationOnly,
}

/// How far a task gets, and what is known of it on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The first gate that is closed.
    pub gate: Gate,
    /// What would run, once the task and its definition are known to fit.
    pub facts: Option<Facts>,
}

/// The first closed gate.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// The task ends here.
    Refused(Refusal),
    /// A dry run ends here, successfully.
    DryRun,
    /// A person has to act.
    WaitForApproval {
        /// Whether an approval of something else is there.
        stale: bool,
        /// When waiting ends.
        expires: Option<Timestamp>,
    },
    /// None is closed.
    Open,
}

/// Why a task ends at a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What the result says.
    pub failure: Failure,
    /// The condition that tells it.
    pub gate: ConditionType,
    /// Every problem found.
    pub problems: Vec<Problem>,
}

impl Refusal {
    /// A refusal that its code explains.
    pub fn of(code: Code) -> Self {
        let gate = match code {
            Code::ApprovalRejected | Code::ApprovalExpired | Code::Cancelled => ConditionType::Approved,
            _ => ConditionType::Validated,
        };
        Self { failure: Failure { code, system_code: None }, gate, problems: Vec::new() }
    }

    fn with(code: Code, problems: Vec<Problem>) -> Self {
        Self { problems, ..Self::of(code) }
    }

    /// The code's message and every problem, for a condition. Problems quote no values.
    pub fn message(&self) -> Redacted {
        let mut shown = String::new();
        for (index, problem) in self.problems.iter().map(ToString::to_string).enumerate() {
            if shown.len() + problem.len() > MAX_PROBLEM_BYTES {
                // Writing to a String can't fail.
                let _ = write!(shown, "; and {} more", self.problems.len().saturating_sub(index));
                break;
            }
            shown.push_str(if index == 0 { "" } else { "; " });
            shown.push_str(&problem);
        }
        let separator = if shown.is_empty() { "" } else { ": " };
        Redactor::without_secrets().text(&format!("{}{separator}{shown}", self.failure.code.message()))
    }
}

/// What would run.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What an approval must name.
    pub digest: String,
    /// The definition as it was found.
    pub definition: DefinitionRef,
    /// What a reviewer sees.
    pub preview: Preview,
    /// The command line.
    pub command: Command,
    /// What the sandbox must offer; its id is the caller's to fill in.
    pub run: RunSpec,
    /// Whether someone has to approve: the definition demands it, or did when the task was first looked at.
    pub approval_required: bool,
    /// Who approved this digest.
    pub approved_by: Option<String>,
    /// What approvals rest on.
    pub approvals: Approvals,
    /// Whether egress is only declared.
    pub egress_unenforced: bool,
}

impl Facts {
    /// The reason and message of `Approved=True`.
    pub(super) fn approval_reason(&self) -> (Reason, &'static str) {
        match (self.approval_required, self.approvals) {
            (false, _) => (Reason::NotRequired, "the definition needs no approval"),
            (true, Approvals::Own) => (Reason::SelfApproved, "approved by the caller of this local run"),
            (true, Approvals::Policies) => (Reason::Approved, "approved"),
            (true, Approvals::AnnotationOnly) => {
                (Reason::Approved, "approved by an annotation that no policy guards")
            }
        }
    }
}

/// How far the task gets now.
pub fn judge(inputs: &Inputs<'_>, now: Timestamp) -> Judgement {
    let facts = match facts(inputs) {
        Ok(facts) => facts,
        Err(refusal) => return Judgement { gate: Gate::Refused(refusal), facts: None },
    };
    let gate = if inputs.task.spec.dry_run == Some(true) {
        Gate::DryRun
    } else {
        approval(inputs.task, &facts, now)
    };
    Judgement { gate, facts: Some(facts) }
}

/// The gates before any decision of a person: the definition, then whether task and definition fit.
fn facts(inputs: &Inputs<'_>) -> Result<Facts, Refusal> {
    let Inputs { task, installation, .. } = *inputs;
    let definition = inputs.definition.ok_or_else(|| Refusal::of(Code::DefinitionNotFound))?;
    let (spec, rules) = (&task.spec, &definition.spec);
    let problems = validate::definition(rules);
    if !problems.is_empty() {
        return Err(Refusal::with(Code::DefinitionInvalid, problems));
    }
    if guard!("definition-retired", rules.retired) {
        return Err(Refusal::of(Code::DefinitionRetired));
    }
    let contract_hash = contract::hash(rules);
    matches_pins(spec, &rules.version, &contract_hash)?;
    in_cluster(rules, installation.origin)?;
    let problems = validate::task(spec, rules, installation.origin);
    if !problems.is_empty() {
        return Err(Refusal::with(Code::InvalidTask, problems));
    }
    supported(inputs, definition)?;
    let prompt = prompt(inputs.prompt)?;
    let command = command::build(spec, rules, prompt).map_err(|_| Refusal::of(Code::PromptTooLarge))?;
    let limits = limits::effective(&spec.limits, &rules.limits)
        .map_err(|problems| Refusal::with(Code::InvalidTask, problems))?;
    let release =
        Release { version: rules.version.clone(), image: rules.image.clone(), binary: rules.binary.clone() };
    let run = run_spec(task, definition, limits, &release);
    let preview = preview(task, &command, &run, prompt, &installation.unsupported);
    let digest = digest_of(task, installation.origin, prompt, &contract_hash, &release);
    let approved_by = approved_by(task, &digest, installation.approvals);
    let definition = DefinitionRef {
        name: spec.definition.name.clone(),
        uid: definition.metadata.uid.clone().unwrap_or_default(),
        generation: definition.metadata.generation.unwrap_or(0),
        contract_hash,
        release,
    };
    let egress_unenforced = installation.unsupported.contains(&Unsupported::Egress);
    let approval_required = rules.requires_approval || already_required(task);
    let approvals = installation.approvals;
    Ok(Facts {
        digest,
        definition,
        preview,
        command,
        run,
        approval_required,
        approved_by,
        approvals,
        egress_unenforced,
    })
}

/// The pin that pins nothing: where pins must be stated, it says that none is wanted.
const ANY: &str = "any";

fn matches_pins(spec: &AgentCliTaskSpec, version: &str, contract_hash: &str) -> Result<(), Refusal> {
    let wanted = &spec.definition;
    let other = |wanted: Option<&str>, found| wanted.is_some_and(|wanted| wanted != ANY && wanted != found);
    if other(wanted.version.as_deref(), version) || other(wanted.contract_hash.as_deref(), contract_hash) {
        return Err(Refusal::of(Code::DefinitionMismatch));
    }
    Ok(())
}

/// What a definition may leave out for local runs only. Which namespaces a selector allows is decided where their labels are known;
/// without one, none is.
fn in_cluster(rules: &AgentCliDefinitionSpec, origin: Origin) -> Result<(), Refusal> {
    if origin == Origin::Local {
        return Ok(());
    }
    if rules.image.is_none() {
        let problem = Problem::new(".spec.image", "is required in a cluster");
        return Err(Refusal::with(Code::DefinitionInvalid, vec![problem]));
    }
    if rules.allowed_namespaces.is_none() {
        return Err(Refusal::of(Code::NamespaceNotAllowed));
    }
    Ok(())
}

/// What can't be had here at all, whoever approves it. What is merely not enforced in a local run is shown in the preview instead.
fn supported(inputs: &Inputs<'_>, definition: &AgentCliDefinition) -> Result<(), Refusal> {
    let (spec, rules) = (&inputs.task.spec, &definition.spec);
    let local = inputs.installation.origin == Origin::Local;
    let lacking = |what: &Unsupported| inputs.installation.unsupported.contains(what);
    let git_secret = spec.workspace.git.as_ref().is_some_and(|git| git.secret_ref.is_some());
    let demands = [
        (Unsupported::IdempotencyKey, ".spec.idempotencyKey", spec.idempotency_key.is_some()),
        (Unsupported::Delivery, ".spec.delivery", spec.delivery.is_some()),
        (Unsupported::RepositoryCredentials, ".spec.workspace.git.secretRef", git_secret),
        (
            Unsupported::Quota,
            ".spec.definition",
            !local && (rules.rate_limit.is_some() || rules.max_concurrent.is_some()),
        ),
    ];
    let problems: Vec<Problem> = demands
        .into_iter()
        .filter(|(what, _, demanded)| *demanded && lacking(what))
        .map(|(what, path, _)| Problem::new(path, format!("{} is not supported here", what.name())))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Refusal::with(Code::Unsupported, problems)) }
}

fn prompt(state: &PromptState) -> Result<&Prompt, Refusal> {
    match state {
        PromptState::Present(prompt) => Ok(prompt),
        PromptState::Missing => {
            let failure = Failure { code: Code::SourceMissing, system_code: SystemCode::new("PROMPT") };
            Err(Refusal { failure, ..Refusal::of(Code::SourceMissing) })
        }
        PromptState::Invalid => {
            let problem = Problem::new(".spec.prompt", "must not contain a NUL character");
            Err(Refusal::with(Code::InvalidTask, vec![problem]))
        }
    }
}

fn run_spec(
    task: &AgentCliTask,
    definition: &AgentCliDefinition,
    limits: EffectiveLimits,
    release: &Release,
) -> RunSpec {
    let mut hosts = [definition.spec.egress.hosts.as_slice(), task.spec.egress.hosts.as_slice()].concat();
    hosts.sort();
    hosts.dedup();
    RunSpec {
        id: RunId { uid: task.metadata.uid.clone().unwrap_or_default(), attempt: 0 },
        release: release.clone(),
        limits,
        hosts,
        environment: definition.spec.environment.clone(),
        workspace: task.spec.workspace.clone(),
        logs: definition.spec.logs,
        pod: definition.spec.pod.clone(),
    }
}

fn preview(
    task: &AgentCliTask,
    command: &Command,
    run: &RunSpec,
    prompt: &Prompt,
    unsupported: &[Unsupported],
) -> Preview {
    let git = task.spec.workspace.git.as_ref();
    let mounted =
        run.environment.iter().filter_map(|variable| Some(variable.secret_key_ref.as_ref()?.name.clone()));
    let git_secret = git.and_then(|git| Some(git.secret_ref.as_ref()?.name.clone()));
    let delivery_secret =
        task.spec.delivery.as_ref().and_then(|delivery| Some(delivery.secret_ref.as_ref()?.name.clone()));
    let mut secret_names: Vec<String> = mounted.chain(git_secret).chain(delivery_secret).collect();
    secret_names.sort();
    secret_names.dedup();
    Preview {
        command: command.display().clone(),
        image: run.release.image.clone(),
        repository: git.map(|git| git.repository.clone()),
        revision: git.map(|git| git.revision.clone()),
        limits: run.limits,
        hosts: run.hosts.clone(),
        secret_names,
        prompt_sha256: prompt.sha256(),
        prompt_bytes: i64::try_from(prompt.bytes()).unwrap_or(i64::MAX),
        not_enforced: unenforced(run, unsupported),
    }
}

/// What this run's limits say and the executor can't hold. What can't be had at all is refused instead.
fn unenforced(run: &RunSpec, unsupported: &[Unsupported]) -> Vec<String> {
    use Unsupported::{Cpu, Egress, EphemeralStorage, Filesystem, Isolation, Memory};
    let isolated =
        run.pod.as_ref().is_some_and(|pod| pod.runtime_class_name.is_some() || pod.host_users.is_some());
    let relevant = |what: &&Unsupported| match what {
        Cpu | Memory | EphemeralStorage | Egress | Filesystem => true,
        Isolation => isolated,
        _ => false,
    };
    unsupported.iter().filter(relevant).map(|what| what.name().to_owned()).collect()
}

fn digest_of(
    task: &AgentCliTask,
    origin: Origin,
    prompt: &Prompt,
    contract_hash: &str,
    release: &Release,
) -> String {
    let uid = match origin {
        Origin::Local => LOCAL_UID,
        Origin::Cluster => task.metadata.uid.as_deref().unwrap_or_default(),
    };
    digest::digest(&Subject {
        uid,
        namespace: task.metadata.namespace.as_deref().unwrap_or_default(),
        name: task.metadata.name.as_deref().unwrap_or_default(),
        spec: &task.spec,
        prompt_sha256: &prompt.sha256(),
        contract_hash,
        release,
    })
}

fn annotation<'a>(task: &'a AgentCliTask, name: &str) -> Option<&'a str> {
    task.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Who approved exactly this digest. The policies say that the approver is the requester and not the creating identity; what they
/// would have refused doesn't count here either.
fn approved_by(task: &AgentCliTask, digest: &str, approvals: Approvals) -> Option<String> {
    let by = annotation(task, APPROVED_BY).unwrap_or_default();
    let legal =
        approvals != Approvals::Policies || !by.is_empty() && annotation(task, CREATED_BY) != Some(by);
    if guard!("approval-exact-digest", annotation(task, APPROVED_DIGEST)? != digest) {
        return None;
    }
    legal.then(|| by.to_owned())
}

/// Once a task has been told that it needs an approval, a definition that stops asking for one doesn't let it pass.
fn already_required(task: &AgentCliTask) -> bool {
    let approval = task.status.as_ref().and_then(|status| status.approval.as_ref());
    approval.is_some_and(|approval| approval.required)
}

fn approval(task: &AgentCliTask, facts: &Facts, now: Timestamp) -> Gate {
    if guard!("approval-rejected", annotation(task, REJECTED_BY).is_some()) {
        return Gate::Refused(Refusal::of(Code::ApprovalRejected));
    }
    if !facts.approval_required || facts.approved_by.is_some() {
        return Gate::Open;
    }
    let created = task.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let timeout = task.spec.approval_timeout.map(crate::api::Duration::seconds);
    let expires = created.zip(timeout).and_then(|(created, timeout)| {
        Timestamp::from_second(created.as_second().saturating_add(timeout)).ok()
    });
    if guard!("approval-expired", expires.is_some_and(|expires| now >= expires)) {
        return Gate::Refused(Refusal::of(Code::ApprovalExpired));
    }
    let stale = annotation(task, APPROVED_DIGEST).is_some_and(|named| named != facts.digest);
    Gate::WaitForApproval { stale, expires }
}

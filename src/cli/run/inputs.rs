//! From the command line to a task, its definition and its prompt.

use std::path::{Path, PathBuf};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::now;
use crate::api::{
    API_VERSION, AgentCliDefinition, AgentCliTask, AgentCliTaskSpec, DefinitionSelector, GitSource, Limits,
    LogMode, OptionKind, TaskEgress, Workspace,
};
use crate::cli::args::RunArgs;
use crate::cli::catalog::{Catalog, CatalogError, Entry, Origin as Source};
use crate::cli::documents::{self, ReadError};
use crate::cli::home::Home;
use crate::controller::local::{LocalRun, Secrets, inline_prompt};
use crate::core::decide::{Approvals, Installation, PromptState};
use crate::core::validate::{Document, Origin, Problem, document};
use crate::executor::process::UNSUPPORTED;
use crate::supervisor::workspace::{self, Git, WorkspaceError};

/// Everything that a run is made of.
pub(super) struct Request {
    pub(super) run: LocalRun,
    /// Folders whose programs the definition may name before those of `PATH`.
    pub(super) programs: Vec<PathBuf>,
}

/// Why the command line describes no task.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error("git is needed and not on PATH")]
    NoGit,
    #[error(transparent)]
    Read(ReadError),
    #[error("{path} is invalid")]
    Invalid { path: PathBuf, problems: Vec<Problem> },
    #[error("the command line describes no valid task")]
    Arguments { problems: Vec<Problem> },
    #[error("{path} holds {count} tasks; exactly one is run")]
    NotOneTask { path: PathBuf, count: usize },
    #[error(transparent)]
    Definition(CatalogError),
    #[error("the task asks for the definition {wanted:?}, and --definition names {given:?}")]
    OtherDefinition { wanted: String, given: String },
    #[error("--prompt or --prompt-file is needed")]
    NoPrompt,
    #[error("--option must be NAME=VALUE")]
    OptionForm,
    #[error("promptFrom names a config map, which only a cluster has; use --definition and --prompt-file")]
    PromptFrom,
    #[error("the task names a repository of its own, so --workspace can't be used")]
    TwoWorkspaces,
    #[error("can't use {path} as a workspace")]
    Workspace {
        path: PathBuf,
        #[source]
        source: WorkspaceError,
    },
    #[error("{path} is not UTF-8, so it can't be part of what is approved")]
    PathNotUtf8 { path: PathBuf },
}

impl InputError {
    /// Every problem of an invalid manifest.
    pub(super) fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid { problems, .. }
            | Self::Arguments { problems }
            | Self::Definition(CatalogError::Invalid { problems, .. }) => problems,
            _ => &[],
        }
    }
}

/// Reads what the command line names.
pub(super) async fn request(arguments: &RunArgs, home: &Home, git: &Git) -> Result<Request, InputError> {
    let manifest = arguments.task.as_deref().map(Manifest::read).transpose()?;
    let catalog = Catalog::new(home.definitions.clone());
    let entry = definition(arguments, manifest.as_ref(), &catalog)?;
    let prompt = prompt(arguments, manifest.as_ref())?;
    let mut spec = match &manifest {
        Some(manifest) => manifest.task.spec.clone(),
        None => bare_spec(&entry.definition),
    };
    // The text is with the prompt; the spec that is hashed keeps it, as a cluster's does.
    if let (PromptState::Present(prompt), None) = (&prompt, &manifest) {
        spec.prompt = Some(prompt.as_str().to_owned());
    }
    overrides(&mut spec, arguments, &entry.definition)?;
    check_schema(&spec)?;
    if let Some(directory) = &arguments.workspace {
        if spec.workspace.git.is_some() {
            return Err(InputError::TwoWorkspaces);
        }
        spec.workspace.git = Some(local_source(directory, git).await?);
    }
    let name = manifest
        .and_then(|manifest| manifest.task.metadata.name)
        .unwrap_or_else(|| spec.definition.name.clone());
    let programs = entry.programs().into_iter().collect();
    let mut definition = entry.definition;
    if arguments.follow {
        definition.spec.logs = LogMode::Redacted;
    }
    let run = LocalRun {
        task: task(name, spec),
        definition,
        prompt,
        installation: Installation {
            origin: Origin::Local,
            approvals: Approvals::Own,
            unsupported: UNSUPPORTED.to_vec(),
        },
        secrets: Secrets::from_environment(std::env::vars_os()),
        clock: now,
    };
    Ok(Request { run, programs })
}

/// A file with one task, and perhaps its definition.
struct Manifest {
    path: PathBuf,
    task: AgentCliTask,
    definitions: Vec<AgentCliDefinition>,
}

impl Manifest {
    fn read(path: &Path) -> Result<Self, InputError> {
        let (mut tasks, mut definitions, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        for document in documents::read(path).map_err(InputError::Read)? {
            match document {
                Ok(Document::Task(task)) => tasks.push(task),
                Ok(Document::Definition(definition)) => definitions.push(definition),
                Err(found) => problems.extend(found),
            }
        }
        let path = path.to_owned();
        if !problems.is_empty() {
            return Err(InputError::Invalid { path, problems });
        }
        match <[AgentCliTask; 1]>::try_from(tasks) {
            Ok([task]) => Ok(Self { path, task, definitions }),
            Err(tasks) => Err(InputError::NotOneTask { path, count: tasks.len() }),
        }
    }
}

fn definition(
    arguments: &RunArgs,
    manifest: Option<&Manifest>,
    catalog: &Catalog,
) -> Result<Entry, InputError> {
    let wanted = manifest.map(|manifest| manifest.task.spec.definition.name.as_str());
    if let Some(given) = &arguments.definition {
        let entry = catalog.find(given).map_err(InputError::Definition)?;
        let name = entry.definition.metadata.name.clone().unwrap_or_default();
        return match wanted {
            Some(wanted) if wanted != name => {
                Err(InputError::OtherDefinition { wanted: wanted.to_owned(), given: name })
            }
            _ => Ok(entry),
        };
    }
    let wanted = wanted.unwrap_or_default();
    let beside = manifest.and_then(|manifest| {
        let found = manifest
            .definitions
            .iter()
            .find(|definition| definition.metadata.name.as_deref() == Some(wanted))?;
        Some(Entry { definition: found.clone(), origin: Source::File(manifest.path.clone()) })
    });
    beside.map_or_else(|| catalog.find(wanted).map_err(InputError::Definition), Ok)
}

fn prompt(arguments: &RunArgs, manifest: Option<&Manifest>) -> Result<PromptState, InputError> {
    if let Some(manifest) = manifest {
        let spec = &manifest.task.spec;
        return if spec.prompt_from.is_some() {
            Err(InputError::PromptFrom)
        } else {
            Ok(inline_prompt(spec.prompt.clone()))
        };
    }
    let text = match (&arguments.prompt, &arguments.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => documents::text(file).map_err(InputError::Read)?,
        (None, None) => return Err(InputError::NoPrompt),
    };
    Ok(inline_prompt(Some(text)))
}

fn bare_spec(definition: &AgentCliDefinition) -> AgentCliTaskSpec {
    AgentCliTaskSpec {
        definition: DefinitionSelector {
            name: definition.metadata.name.clone().unwrap_or_default(),
            version: None,
            contract_hash: None,
        },
        // A prompt that can't be used leaves an empty one, and its state refuses the task.
        prompt: Some(String::new()),
        prompt_from: None,
        model: None,
        options: std::collections::BTreeMap::new(),
        workspace: Workspace::default(),
        delivery: None,
        limits: Limits::default(),
        egress: TaskEgress::default(),
        dry_run: None,
        idempotency_key: None,
        approval_timeout: None,
        ttl_after_finished: None,
    }
}

fn overrides(
    spec: &mut AgentCliTaskSpec,
    arguments: &RunArgs,
    definition: &AgentCliDefinition,
) -> Result<(), InputError> {
    if let Some(model) = &arguments.model {
        spec.model = Some(model.clone());
    }
    if arguments.dry_run {
        spec.dry_run = Some(true);
    }
    if let Some(timeout) = arguments.timeout {
        spec.limits.timeout = Some(timeout);
    }
    for option in &arguments.options {
        let (name, text) = option.split_once('=').ok_or(InputError::OptionForm)?;
        let kind = definition
            .spec
            .options
            .iter()
            .find(|option| option.name == name)
            .map(|option| option.schema.kind);
        spec.options.insert(name.to_owned(), option_value(kind, text));
    }
    Ok(())
}

/// What a flag says obeys the schema like what a manifest says. Called before the workspace is filled in, since only the command
/// line may name a folder of this machine.
fn check_schema(spec: &AgentCliTaskSpec) -> Result<(), InputError> {
    let manifest = json!({
        "apiVersion": API_VERSION, "kind": "AgentCliTask", "metadata": {"name": spec.definition.name}, "spec": spec,
    });
    document(manifest).map(drop).map_err(|problems| InputError::Arguments { problems })
}

/// Text that isn't of the declared type stays text, so that validation says what is wrong with it.
fn option_value(kind: Option<OptionKind>, text: &str) -> Value {
    let typed = match kind {
        Some(OptionKind::Integer) => text.parse::<i64>().ok().map(Value::from),
        Some(OptionKind::Boolean) => text.parse::<bool>().ok().map(Value::from),
        Some(OptionKind::String) | None => None,
    };
    typed.unwrap_or_else(|| Value::from(text))
}

/// The repository at its present commit, so that exactly this commit is approved.
async fn local_source(directory: &Path, git: &Git) -> Result<GitSource, InputError> {
    let failed = |source| InputError::Workspace { path: directory.to_owned(), source };
    let path = std::path::absolute(directory)
        .map_err(|source| failed(WorkspaceError::Io { action: "resolve the path", source }))?;
    let commit = workspace::head(git, &path).await.map_err(failed)?;
    let text = path.to_str().ok_or_else(|| InputError::PathNotUtf8 { path: path.clone() })?;
    Ok(GitSource {
        repository: format!("file://{text}"),
        revision: commit.to_string(),
        depth: None,
        subdirectory: None,
        secret_ref: None,
    })
}

fn task(name: String, spec: AgentCliTaskSpec) -> AgentCliTask {
    AgentCliTask {
        metadata: ObjectMeta {
            name: Some(name),
            uid: Some(uuid::Uuid::new_v4().simple().to_string()),
            creation_timestamp: Some(Time(now())),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

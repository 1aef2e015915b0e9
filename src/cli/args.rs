//! What the command line understands.

#![expect(clippy::doc_markdown, reason = "doc comments are help texts for a terminal")]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::api::Duration;

/// Runs coding-agent CLIs as bounded, approved, at-most-once tasks.
// None of the types that hold what a task is made of can be shown by `Debug`.
#[derive(Parser)]
#[command(name = "caisson", version, propagate_version = true, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Run a task on this machine, through every gate.
    Run(Box<RunArgs>),
    /// Check manifests of tasks and definitions.
    Validate(ValidateArgs),
    /// List the definitions that can be used by name, or show one.
    Definitions(DefinitionsArgs),
    /// Say what a failure code means and what to do about it.
    Explain(ExplainArgs),
    /// Print the custom resource definitions.
    Crd,
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder.
    Man(ManArgs),
    /// Internal: starts one agent and reports how it ended.
    #[command(hide = true)]
    Runner(crate::runner::Arguments),
    /// Internal: evaluates a definition's output programs.
    #[command(hide = true, name = crate::supervisor::output::worker::SUBCOMMAND)]
    Evaluate {
        /// Process that waits for the answer.
        parent: u32,
    },
}

const RUN_HELP: &str = "\
Exit codes:
  0    done
  1    the task failed; the code says why (caisson explain CODE)
  2    the input is invalid; nothing was started
  3    an approval is needed; the digest is printed, nothing was started
  130  interrupted: the agent was ended and its workspace removed

Environment:
  CAISSON_LOG  log what caisson does to standard error, such as debug or trace; never a text

Examples:
  caisson run --definition demo --prompt '- [ ] say hello'
  caisson run --definition claude-code --prompt-file task.md --workspace . --apply
  caisson run task.yaml --output json --approve v1:…";

#[derive(Args)]
#[command(after_help = RUN_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(super) struct RunArgs {
    /// Manifest of an AgentCliTask; it may hold the AgentCliDefinition too. `-` reads standard input.
    #[arg(value_name = "TASK.yaml", required_unless_present = "definition")]
    pub(super) task: Option<PathBuf>,
    /// Definition: the name of a known one, or a manifest's path.
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) definition: Option<String>,
    /// What the agent is asked to do. Other users of this machine can see it in the list of processes: use
    /// --prompt-file where that matters.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompt_file", "task"], allow_hyphen_values = true)]
    pub(super) prompt: Option<String>,
    /// File with what the agent is asked to do; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(super) prompt_file: Option<PathBuf>,
    /// Work on a copy of the git repository in DIR at its HEAD. DIR itself is not touched.
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Apply the resulting diff to DIR afterwards, if the task succeeded.
    #[arg(long, requires = "workspace")]
    pub(super) apply: bool,
    /// Model, where the definition allows a choice.
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Option that the definition declares; may be repeated.
    // Split later: clap would quote the value in its message.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub(super) options: Vec<String>,
    /// Show what would run and end there.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Approve exactly this digest; anything else is not run.
    #[arg(long, value_name = "DIGEST", conflicts_with = "yes")]
    pub(super) approve: Option<String>,
    /// Approve whatever would run, without looking.
    #[arg(long)]
    pub(super) yes: bool,
    /// Longest time for the agent, such as 90s or 15m.
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<Duration>,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: OutputForm,
    /// Show what the agent writes, redacted, while it runs.
    #[arg(long)]
    pub(super) follow: bool,
}

/// Form of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputForm {
    /// For people.
    #[default]
    Human,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// Manifests; `-` reads standard input. A task is also checked against its definition, if that is known.
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: OutputForm,
}

#[derive(Debug, Args)]
pub(super) struct DefinitionsArgs {
    /// Show this definition as YAML: a start for one of your own.
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The code, such as nonzero-exit. None: list all.
    #[arg(value_name = "CODE")]
    pub(super) code: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Folder to write one page a command into.
    #[arg(value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
}

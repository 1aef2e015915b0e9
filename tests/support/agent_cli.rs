//! Starts an agent CLI as a shipped definition says, without Caisson: the argument vector of the definition, the prompt
//! after `--`, standard input closed, and an environment that holds what the definition declares and nothing else.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cel::{Context, Program};
use serde_json::{Map, Value};

/// A definition from `definitions/`, with what a test adds to it.
pub(crate) struct AgentCli {
    definition: Value,
    key: String,
}

/// What a CLI left behind.
pub(crate) struct Finished {
    /// The exit code, -1 if a signal ended it.
    pub(crate) code: i32,
    /// All of standard output.
    pub(crate) stdout: String,
    /// All of standard error.
    pub(crate) stderr: String,
}

impl Finished {
    /// Itself, if the CLI exited with 0; a panic that shows its output otherwise.
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

/// What a definition's output programs make of a CLI's output.
#[derive(Debug, PartialEq)]
pub(crate) struct Reading {
    /// The program `text`.
    pub(crate) text: String,
    /// The program `failed`.
    pub(crate) failed: bool,
    /// The programs of `usage`, by name.
    pub(crate) usage: Map<String, Value>,
}

/// The three directories that a run gets: the workspace and a HOME and TMPDIR of its own.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    /// Three empty directories.
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary directory"));
        for name in ["workspace", "home", "tmp"] {
            fs::create_dir(place.0.path().join(name)).expect("an empty directory takes another");
        }
        place
    }

    /// Where the CLI works.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.0.path().join("workspace")
    }

    /// A path next to the three directories.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl AgentCli {
    /// The definition `definitions/NAME.yaml`. `key` takes the place of whatever secret it refers to.
    pub(crate) fn shipped(name: &str, key: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("definitions/{name}.yaml"));
        let text = fs::read_to_string(path).expect("the definition is shipped");
        Self {
            definition: serde_saphyr::from_str(&text).expect("the definition is YAML"),
            key: key.to_owned(),
        }
    }

    /// Adds literal environment variables.
    pub(crate) fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let list = self.definition["spec"]["environment"].as_array_mut().expect("a list");
        list.extend(
            variables.into_iter().map(|(name, value)| serde_json::json!({"name": name, "value": value})),
        );
        self
    }

    /// Adds arguments before the prompt.
    pub(crate) fn arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        let list = self.definition["spec"]["arguments"].as_array_mut().expect("a list");
        list.extend(arguments.into_iter().map(Value::String));
        self
    }

    /// Takes an argument of the definition away.
    pub(crate) fn without(mut self, argument: &str) -> Self {
        let list = self.definition["spec"]["arguments"].as_array_mut().expect("a list");
        let before = list.len();
        list.retain(|known| known != argument);
        assert_eq!(list.len() + 1, before, "{argument} is an argument of the definition");
        self
    }

    /// The definition as a manifest for `caisson run --definition FILE`; JSON is YAML.
    pub(crate) fn manifest(&self) -> String {
        self.definition.to_string()
    }

    /// The program's name and its arguments, the prompt last.
    pub(crate) fn command_line(&self, prompt: &str) -> Vec<String> {
        let spec = &self.definition["spec"];
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let arguments = spec["arguments"].as_array().expect("a list").iter().map(text);
        let ending = ["--".to_owned(), prompt.to_owned()];
        std::iter::once(text(&spec["binary"])).chain(arguments).chain(ending).collect()
    }

    /// The variables that the definition declares, with the key in place of each secret.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let list = self.definition["spec"]["environment"].as_array().expect("a list");
        let pair = |variable: &Value| {
            let value = variable["value"].as_str().unwrap_or(&self.key);
            (variable["name"].as_str().expect("a string").to_owned(), value.to_owned())
        };
        list.iter().map(pair).collect()
    }

    /// Starts the CLI in a process group of its own.
    pub(crate) fn start(&self, place: &Place, prompt: &str) -> Child {
        let line = self.command_line(prompt);
        let mut command = Command::new(bin_directory().join(&line[0]));
        command.args(&line[1..]).current_dir(place.workspace());
        command.env_clear().env("PATH", search_path()).env("LANG", "C.UTF-8");
        command.env("HOME", place.beside("home")).env("TMPDIR", place.beside("tmp"));
        command.envs(self.variables());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command.spawn().expect("the CLI starts")
    }

    /// Runs the CLI to its end.
    pub(crate) fn run(&self, place: &Place, prompt: &str) -> Finished {
        let output = self.start(place, prompt).wait_with_output().expect("the CLI's output can be read");
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("the output is text"),
            stderr: String::from_utf8(output.stderr).expect("the diagnostics are text"),
        }
    }

    /// Evaluates the definition's output programs over a CLI's output.
    ///
    /// # Panics
    /// If the output isn't of the declared format, or a program doesn't compile, fails or has the wrong type.
    pub(crate) fn read(&self, stdout: &str) -> Reading {
        let output = &self.definition["spec"]["output"];
        let mut context = Context::default();
        if output["format"] == "JsonLines" {
            let events: Vec<Value> =
                stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
            context.add_variable("events", events).expect("events become CEL values");
        } else {
            let envelope: Value = serde_json::from_str(stdout).expect("the output is JSON");
            context.add_variable("out", envelope).expect("an envelope becomes a CEL value");
        }
        let evaluate = |program: &Value| -> Value {
            let program =
                Program::compile(program.as_str().expect("a string")).expect("the program compiles");
            program.execute(&context).expect("the program runs").json().expect("the result is data")
        };
        let usage = output["usage"].as_object().expect("an object");
        Reading {
            text: evaluate(&output["text"]).as_str().expect("a string").to_owned(),
            failed: evaluate(&output["failed"]).as_bool().expect("a boolean"),
            usage: usage.iter().map(|(name, program)| (name.clone(), evaluate(program))).collect(),
        }
    }
}

/// Where `claude` and `codex` are: where `./test` installed them, else installed now.
#[expect(clippy::disallowed_methods, reason = "where programs are is the machine's to say")]
pub(crate) fn bin_directory() -> PathBuf {
    let directory = std::env::var_os("CAISSON_TEST_AGENTS")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("agents"), PathBuf::from);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/install");
    let status = Command::new(script).arg(&directory).status().expect("a shell starts");
    assert!(status.success(), "the agent CLIs can't be installed");
    directory.join("node_modules/.bin")
}

/// The tests' own PATH with the CLIs in front.
pub(crate) fn path_with_agents() -> std::ffi::OsString {
    let own = search_path();
    let directories = std::iter::once(bin_directory()).chain(std::env::split_paths(&own));
    std::env::join_paths(directories).expect("no directory's name has a colon")
}

/// The tests' own PATH: Codex's launcher needs `node`, and both use the system's tools.
#[expect(clippy::disallowed_methods, reason = "where programs are is the machine's to say")]
fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

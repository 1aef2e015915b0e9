//! The real CLIs through `caisson run`: every gate, the runner, the output programs, the diff and the redaction, against a
//! scripted model API.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::agent_cli::{AgentCli, path_with_agents};
use crate::support::model_api::{ModelApi, Request, Turn};
use crate::support::netns::loopback_only;

const KEY: &str = "test-key-0123456789abcdef";

/// Which CLI a test runs.
#[derive(Clone, Copy)]
enum Cli {
    ClaudeCode,
    Codex,
}

impl Cli {
    fn definition(self, api: &ModelApi) -> String {
        match self {
            Self::ClaudeCode => {
                AgentCli::shipped("claude-code", KEY).environment(api.claude_code_environment()).manifest()
            }
            Self::Codex => AgentCli::shipped("codex", KEY).arguments(api.codex_arguments()).manifest(),
        }
    }

    const fn key_variable(self) -> &'static str {
        match self {
            Self::ClaudeCode => "ANTHROPIC_API_KEY",
            Self::Codex => "CODEX_API_KEY",
        }
    }
}

/// A person's account with a repository in it.
struct Person(tempfile::TempDir);

/// How `caisson run --output json` ended.
struct Ended {
    exit: i32,
    status: Value,
    output: Output,
}

impl Ended {
    fn result(&self) -> &Value {
        &self.status["status"]["result"]
    }

    fn is(&self, exit: i32, code: Option<&str>) {
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.result()["code"].as_str(), code, "{:#}\n{stderr}", self.status);
        assert_eq!(self.exit, exit, "{stderr}");
    }
}

impl Person {
    fn new() -> Self {
        let person = Self(tempfile::tempdir().expect("a temporary directory"));
        fs::create_dir(person.repository()).expect("an empty directory takes another");
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
            let status =
                Command::new("git").args(identity).args(arguments).current_dir(person.repository()).status();
            assert!(status.expect("git starts").success());
        };
        fs::write(person.repository().join("README.md"), "# Test\n").expect("a file can be written");
        git(&["init", "--quiet"]);
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message=start"]);
        person
    }

    fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, cli: Cli, api: &ModelApi, prompt: &str, more: &[&str]) -> Ended {
        let (definition, prompt_file) = (self.path("agent.yaml"), self.path("prompt"));
        fs::write(&definition, cli.definition(api)).expect("a file can be written");
        fs::write(&prompt_file, prompt).expect("a file can be written");
        let output = Command::new(env!("CARGO_BIN_EXE_caisson"))
            .args(["run", "--output=json", "--yes", "--definition"])
            .arg(&definition)
            .arg("--prompt-file")
            .arg(&prompt_file)
            .arg("--workspace")
            .arg(self.repository())
            .args(more)
            .env_clear()
            .env("PATH", path_with_agents())
            .env("HOME", self.0.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env(cli.key_variable(), KEY)
            .stdin(Stdio::null())
            .output()
            .expect("caisson starts");
        let status = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr))
        });
        let left: Vec<_> =
            fs::read_dir(self.path("state/caisson/runs")).expect("the journal is there").collect();
        assert!(left.is_empty(), "nothing of a run is left");
        for (surface, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            assert!(!contains(bytes, KEY.as_bytes()), "the key is on {surface}");
        }
        Ended { exit: output.status.code().unwrap_or(-1), status, output }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn lists(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A tool call that writes a file, then a text: the diff, the text and the usage are in the result, and `--apply` brings
/// the file home.
fn writes_a_file(cli: Cli, write: Turn) {
    let person = Person::new();
    let ended = loopback_only(|| {
        let api = ModelApi::start([write.usage(11, 7), Turn::text("wrote it").usage(13, 5)]);
        person.run(cli, &api, "- [ ] write hello.txt", &["--apply"])
    });
    ended.is(0, None);
    let result = ended.result();
    assert_eq!(result["text"], "wrote it");
    assert_eq!(result["diff"]["files"], 1, "{result:#}");
    let patch = result["diff"]["patch"].as_str().unwrap_or_default();
    assert!(patch.contains("+++ b/hello.txt\n") && patch.contains("\n+hello from the model\n"), "{patch}");
    assert!(result["usage"]["inputTokens"].as_i64().is_some_and(|tokens| tokens > 0), "{result:#}");
    assert!(result["usage"]["outputTokens"].as_i64().is_some_and(|tokens| tokens > 0), "{result:#}");
    assert_eq!(lists(&person.repository()), [".git", "README.md", "hello.txt"]);
}

#[test]
fn claude_code_writes_a_file() {
    writes_a_file(Cli::ClaudeCode, Turn::write("hello.txt", "hello from the model\n"));
}

#[test]
fn codex_writes_a_file() {
    writes_a_file(Cli::Codex, Turn::command("echo 'hello from the model' >hello.txt"));
}

/// A prompt that looks like flags or a subcommand arrives as it is.
fn takes_any_prompt(cli: Cli) {
    let person = Person::new();
    for prompt in ["--version\n--help", "- [ ] do x", "resume"] {
        let (ended, asked) = loopback_only(|| {
            let api = ModelApi::start([Turn::text("ok")]);
            let ended = person.run(cli, &api, prompt, &[]);
            let asked: Vec<String> = api.model_requests().iter().flat_map(Request::user_texts).collect();
            (ended, asked)
        });
        ended.is(0, None);
        assert!(asked.iter().any(|text| text == prompt), "{prompt:?} is not among {asked:?}");
        assert_eq!(ended.result()["diff"]["files"], 0);
    }
}

#[test]
fn claude_code_takes_any_prompt() {
    takes_any_prompt(Cli::ClaudeCode);
}

#[test]
fn codex_takes_any_prompt() {
    takes_any_prompt(Cli::Codex);
}

/// Errors of the API and turns that fail are the agent's own report.
fn reports_errors(cli: Cli) {
    let person = Person::new();
    let turns = [
        ("500", Turn::status(500)),
        ("529", Turn::status(529)),
        ("401", Turn::status(401)),
        ("a failed turn", Turn::failed()),
        ("a cut stream", Turn::cut()),
    ];
    for (what, turn) in turns {
        let ended = loopback_only(|| {
            let api = ModelApi::start([turn]);
            person.run(cli, &api, "do it", &[])
        });
        assert_eq!(ended.result()["text"], Value::Null, "{what}: a failed agent's text is not shown");
        ended.is(1, Some("agent-reported-error"));
    }
}

#[test]
fn claude_code_reports_errors() {
    reports_errors(Cli::ClaudeCode);
}

#[test]
fn codex_reports_errors() {
    reports_errors(Cli::Codex);
}

/// A stream that stalls ends with the deadline, and what was written until then is still reported.
fn stalls(cli: Cli, write: Turn) {
    let person = Person::new();
    let ended = loopback_only(|| {
        let api = ModelApi::start([write, Turn::stall()]);
        person.run(cli, &api, "do it", &["--timeout=8s"])
    });
    ended.is(1, Some("timeout"));
    let result = ended.result();
    assert_eq!(result["timeout"], true);
    assert!(result["terminationMethod"].is_string(), "{result:#}");
    assert_eq!(result["diff"]["files"], 1, "{result:#}");
}

#[test]
fn claude_code_stalls() {
    stalls(Cli::ClaudeCode, Turn::write("hello.txt", "hello\n"));
}

#[test]
fn codex_stalls() {
    stalls(Cli::Codex, Turn::command("echo hello >hello.txt"));
}

#[test]
fn claude_code_counts_a_denied_tool() {
    let person = Person::new();
    let ended = loopback_only(|| {
        let api =
            ModelApi::start([Turn::command("touch /etc/from-an-agent"), Turn::text("was not allowed to")]);
        person.run(Cli::ClaudeCode, &api, "touch it", &[])
    });
    ended.is(0, None);
    assert_eq!(ended.result()["usage"]["denials"], 1, "{:#}", ended.status);
    assert_eq!(ended.result()["diff"]["files"], 0);
}

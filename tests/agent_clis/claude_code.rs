//! Claude Code under `definitions/claude-code.yaml`.

use std::fs;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::json;

use crate::envelopes::record;
use crate::support::agent_cli::{AgentCli, Finished, Place};
use crate::support::model_api::{ModelApi, Turn};
use crate::support::netns::loopback_only;

const KEY: &str = "sk-ant-planted-for-this-test";

pub(crate) fn claude_code(api: &ModelApi) -> AgentCli {
    AgentCli::shipped("claude-code", KEY).environment(api.claude_code_environment())
}

/// Runs one prompt against one script in an empty workspace.
fn run(name: &str, script: impl IntoIterator<Item = Turn> + Send) -> Finished {
    loopback_only(|| {
        let (api, place) = (ModelApi::start(script), Place::new());
        let finished = claude_code(&api).run(&place, "do it");
        record(&format!("claude-code/{name}.json"), &finished.stdout, &place);
        finished
    })
}

#[test]
fn a_text_is_the_result() {
    let finished = run("success", [Turn::text("Done.").usage(100, 7)]).succeeded();
    let reading = AgentCli::shipped("claude-code", KEY).read(&finished.stdout);
    assert_eq!((reading.text.as_str(), reading.failed), ("Done.", false));
    assert_eq!(reading.usage["inputTokens"], 100);
    assert_eq!(reading.usage["outputTokens"], 7);
    assert_eq!(reading.usage["turns"], 1);
    assert_eq!(reading.usage["denials"], 0);
    assert!(reading.usage["costUsd"].as_str().is_some_and(|cost| cost.parse::<f64>().is_ok()));
}

#[test]
fn a_file_is_written_in_the_workspace() {
    loopback_only(|| {
        let api = ModelApi::start([Turn::write("hello.txt", "hello\n"), Turn::text("Done.")]);
        let place = Place::new();
        claude_code(&api).run(&place, "do it").succeeded();
        assert_eq!(fs::read_to_string(place.workspace().join("hello.txt")).expect("written"), "hello\n");
    });
}

#[test]
fn every_prompt_arrives_byte_for_byte() {
    loopback_only(|| {
        let prompts = [
            "- [ ] do x",
            "--version",
            "-p",
            "mcp",
            "---\ntitle: x\n---\nbody",
            "a\r\nb\tü \n",
            "/init-like text",
            "!ls",
        ];
        for prompt in prompts {
            let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
            claude_code(&api).run(&place, prompt).succeeded();
            let sent = &api.model_requests()[0];
            assert!(
                sent.user_texts().iter().any(|text| text == prompt),
                "{prompt:?}: {:?}",
                sent.user_texts()
            );
            assert_eq!(sent.header("x-api-key"), Some(KEY));
        }
    });
}

#[test]
fn a_prompt_that_names_a_skill_stays_what_it_is() {
    loopback_only(|| {
        let texts = |cli: &dyn Fn(&ModelApi) -> AgentCli| {
            let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
            cli(&api).run(&place, "/review").succeeded();
            api.model_requests()[0].user_texts()
        };
        let prompt = "/review".to_owned();
        assert!(texts(&claude_code).contains(&prompt));
        let replaced = texts(&|api| claude_code(api).without("--disable-slash-commands"));
        assert!(!replaced.contains(&prompt), "without the flag the skill's text is sent: {replaced:?}");
    });
}

#[test]
fn a_prompt_that_is_a_command_of_the_cli_has_failed() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
        let finished = claude_code(&api).run(&place, "/help").succeeded();
        record("claude-code/local-command.json", &finished.stdout, &place);
        assert!(AgentCli::shipped("claude-code", KEY).read(&finished.stdout).failed);
        assert!(api.model_requests().is_empty());
    });
}

#[test]
fn nothing_but_the_model_is_asked() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
        claude_code(&api).run(&place, "do it");
        assert_eq!(api.requests().len(), 1, "{:?}", api.requests());
    });
}

#[test]
fn a_denied_tool_is_counted_and_exits_with_0() {
    let finished =
        run("denial", [Turn::command("touch /etc/from-an-agent"), Turn::text("Done.")]).succeeded();
    let reading = AgentCli::shipped("claude-code", KEY).read(&finished.stdout);
    assert!(!reading.failed);
    assert_eq!(reading.usage["denials"], 1);
    assert!(!fs::exists("/etc/from-an-agent").expect("readable"));
}

#[test]
fn refusals_are_errors_with_subtype_success_and_exit_with_1() {
    for status in [401, 500, 529] {
        let finished = run(&format!("status-{status}"), [Turn::status(status)]);
        assert_eq!(finished.code, 1, "{status}");
        let reading = AgentCli::shipped("claude-code", KEY).read(&finished.stdout);
        assert!(reading.failed, "{status}");
        let envelope: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
        assert_eq!(envelope["subtype"], "success");
        assert_eq!(envelope["is_error"], true);
        assert_eq!(envelope["api_error_status"], json!(status));
    }
}

#[test]
fn a_failed_turn_and_a_cut_stream_have_failed() {
    for (name, turn) in [("failed", Turn::failed()), ("cut", Turn::cut())] {
        let finished = run(name, [turn]);
        assert_eq!(finished.code, 1, "{name}");
        assert!(AgentCli::shipped("claude-code", KEY).read(&finished.stdout).failed, "{name}");
    }
}

#[test]
fn a_refusal_that_passes_is_retried() {
    let finished = run("recovered", [Turn::status(500), Turn::text("Done.")]).succeeded();
    assert!(!AgentCli::shipped("claude-code", KEY).read(&finished.stdout).failed);
}

#[test]
fn too_many_turns_have_no_result() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::command("echo on")]), Place::new());
        let finished = claude_code(&api).arguments(["--max-turns=1".to_owned()]).run(&place, "do it");
        record("claude-code/max-turns.json", &finished.stdout, &place);
        assert_eq!(finished.code, 1);
        let reading = AgentCli::shipped("claude-code", KEY).read(&finished.stdout);
        assert_eq!((reading.text.as_str(), reading.failed), ("Reached maximum number of turns (1)", true));
    });
}

#[test]
fn a_stalled_stream_waits_until_the_cli_is_ended() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::stall()]), Place::new());
        let mut child = claude_code(&api).start(&place, "do it");
        api.wait_for_requests(1);
        assert_eq!(child.try_wait().expect("a child"), None);
        let group = Pid::from_raw(child.id().try_into().expect("a process id"));
        killpg(group, Signal::SIGTERM).expect("the group exists");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(143));
        assert_eq!(output.stdout, b"");
    });
}

//! Codex under `definitions/codex.yaml`.

use std::fs;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::envelopes::record;
use crate::support::agent_cli::{AgentCli, Finished, Place};
use crate::support::model_api::{ModelApi, Turn};
use crate::support::netns::loopback_only;

const KEY: &str = "sk-planted-for-this-test";

pub(crate) fn codex(api: &ModelApi) -> AgentCli {
    AgentCli::shipped("codex", KEY).arguments(api.codex_arguments())
}

/// Runs one prompt against one script in an empty workspace.
fn run(name: &str, script: impl IntoIterator<Item = Turn> + Send) -> Finished {
    loopback_only(|| {
        let (api, place) = (ModelApi::start(script), Place::new());
        let finished = codex(&api).run(&place, "do it");
        record(&format!("codex/{name}.jsonl"), &finished.stdout, &place);
        finished
    })
}

#[test]
fn the_last_message_is_the_result() {
    let finished = run("success", [Turn::text("Done.").usage(100, 7)]).succeeded();
    let reading = AgentCli::shipped("codex", KEY).read(&finished.stdout);
    assert_eq!((reading.text.as_str(), reading.failed), ("Done.", false));
    assert_eq!(reading.usage["inputTokens"], 100);
    assert_eq!(reading.usage["outputTokens"], 7);
    assert!(reading.usage["sessionId"].is_string());
}

#[test]
fn a_file_is_written_in_the_workspace() {
    loopback_only(|| {
        let api = ModelApi::start([
            Turn::write("hello.txt", "hello\n"),
            Turn::command("echo by shell > shell.txt"),
            Turn::text("Done."),
        ]);
        let place = Place::new();
        let finished = codex(&api).run(&place, "do it").succeeded();
        record("codex/tools.jsonl", &finished.stdout, &place);
        assert_eq!(fs::read_to_string(place.workspace().join("hello.txt")).expect("written"), "hello\n");
        assert_eq!(fs::read_to_string(place.workspace().join("shell.txt")).expect("written"), "by shell\n");
    });
}

#[test]
fn every_prompt_arrives_byte_for_byte() {
    loopback_only(|| {
        let prompts = [
            "- [ ] do x",
            "--version",
            "resume",
            "help",
            "---\ntitle: x\n---\nbody",
            "a\r\nb\tü \n",
            "/init",
            "!ls",
            "",
        ];
        for prompt in prompts {
            let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
            codex(&api).run(&place, prompt).succeeded();
            let sent = &api.model_requests()[0];
            assert!(
                sent.user_texts().iter().any(|text| text == prompt),
                "{prompt:?}: {:?}",
                sent.user_texts()
            );
            assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        }
    });
}

#[test]
fn a_prompt_of_one_dash_means_standard_input_and_fails() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
        assert_eq!(codex(&api).run(&place, "-").code, 1);
        assert!(api.model_requests().is_empty());
    });
}

#[test]
fn nothing_but_the_model_is_asked() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::text("Done.")]), Place::new());
        AgentCli::shipped("codex", KEY)
            .arguments(api.codex_arguments_with_retries())
            .run(&place, "do it")
            .succeeded();
        let asked: Vec<_> =
            api.requests().into_iter().map(|sent| format!("{} {}", sent.method, sent.path)).collect();
        assert_eq!(asked, ["GET /v1/responses", "POST /v1/responses"]);
    });
}

#[test]
fn the_sandbox_denies_other_places_the_network_and_the_key() {
    loopback_only(|| {
        let place = Place::new();
        let elsewhere = place.beside("elsewhere");
        let script = format!(
            "touch {}; env | grep -c {KEY}; (: > /dev/tcp/127.0.0.1/1) 2>&1; true",
            elsewhere.display()
        );
        let api = ModelApi::start([Turn::command(&script), Turn::text("Done.")]);
        let finished = codex(&api).run(&place, "do it").succeeded();
        record("codex/sandbox-denial.jsonl", &finished.stdout, &place);
        // The agent is told, and the run as a whole still succeeds.
        assert!(!AgentCli::shipped("codex", KEY).read(&finished.stdout).failed);
        assert!(!elsewhere.exists());
        let told = api.model_requests()[1].json()["input"].to_string();
        assert!(told.contains("Read-only file system"), "{told}");
        assert!(told.contains("Output:\\ntouch"), "{told}");
        assert!(told.contains("\\n0\\n"), "the command sees no key: {told}");
        assert!(told.contains("Operation not permitted"), "{told}");
    });
}

#[test]
fn refusals_failed_turns_and_cut_streams_have_failed() {
    let cases = [
        ("status-401", Turn::status(401)),
        ("status-500", Turn::status(500)),
        ("status-529", Turn::status(529)),
        ("failed", Turn::failed()),
        ("cut", Turn::cut()),
    ];
    for (name, turn) in cases {
        let finished = run(name, [turn]);
        assert_eq!(finished.code, 1, "{name}");
        let reading = AgentCli::shipped("codex", KEY).read(&finished.stdout);
        assert!(reading.failed, "{name}");
        assert_eq!(reading.text, "", "{name}");
        assert!(reading.usage["inputTokens"].is_null(), "{name}");
    }
}

#[test]
fn an_error_that_passes_is_not_a_failure() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::status(401), Turn::text("Done.")]), Place::new());
        let finished = AgentCli::shipped("codex", KEY)
            .arguments(api.codex_arguments_with_retries())
            .run(&place, "do it")
            .succeeded();
        record("codex/recovered.jsonl", &finished.stdout, &place);
        assert!(finished.stdout.contains(r#"{"type":"error""#), "{}", finished.stdout);
        assert!(!AgentCli::shipped("codex", KEY).read(&finished.stdout).failed);
    });
}

#[test]
fn an_unreachable_api_fails_the_turn() {
    loopback_only(|| {
        let gone = ModelApi::start([Turn::text("Done.")]);
        let (arguments, place) = (gone.codex_arguments(), Place::new());
        drop(gone);
        let finished = AgentCli::shipped("codex", KEY).arguments(arguments).run(&place, "do it");
        assert_eq!(finished.code, 1);
        assert!(AgentCli::shipped("codex", KEY).read(&finished.stdout).failed);
    });
}

#[test]
fn a_stalled_stream_waits_until_the_cli_is_ended() {
    loopback_only(|| {
        let (api, place) = (ModelApi::start([Turn::stall()]), Place::new());
        let mut child = codex(&api).start(&place, "do it");
        api.wait_for_requests(1);
        assert_eq!(child.try_wait().expect("a child"), None);
        let group = Pid::from_raw(child.id().try_into().expect("a process id"));
        killpg(group, Signal::SIGKILL).expect("the group exists");
        let output = child.wait_with_output().expect("it ends");
        let stdout = String::from_utf8(output.stdout).expect("text");
        record("codex/stalled.jsonl", &stdout, &place);
        // No terminal event: a stream that broke off.
        assert!(AgentCli::shipped("codex", KEY).read(&stdout).failed);
    });
}

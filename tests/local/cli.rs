//! What the commands print and how they exit.

use crate::support::account::definition;
use crate::support::{Account, Finished};

/// An agent that says `done`.
fn account() -> Account {
    let account = Account::new();
    account.agent("says-done", "", "echo done");
    account
}

/// Standard output with everything that differs between runs and machines replaced.
fn stable(finished: &Finished) -> String {
    let replace = |text: String, pattern: &str, by: &str| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, by).into_owned()
    };
    let text = replace(finished.out(), r"\d+\.\d s\b", "0.0 s");
    let text = replace(text, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]");
    let text = replace(text, "by: .*", "by: [user]");
    let text = replace(text, r#"(uid"?: "?)[0-9a-f]{32}"#, "${1}[uid]");
    replace(text, r#"(instance"?: "?)[0-9a-f]{32}"#, "${1}[uid]")
}

#[test]
fn every_command_has_a_help_text_and_a_version() {
    let account = Account::new();
    for command in ["run", "validate", "definitions", "explain", "crd", "completions", "man"]
        .map(|name| vec![name])
        .into_iter()
        .chain([vec![]])
    {
        let help = account.caisson(command.iter().copied().chain(["--help"])).run().exits(0);
        assert!(help.out().contains("Usage:"), "{}", help.dump());
        let version = account.caisson(command.iter().copied().chain(["--version"])).run().exits(0);
        assert!(version.out().contains(env!("CARGO_PKG_VERSION")), "{}", version.dump());
    }
    let help = account.caisson(["run", "--help"]).run().exits(0).out();
    for code in ["0 ", "1 ", "2 ", "3 ", "130 "] {
        assert!(help.contains(&format!("\n  {code}")), "exit code {code} isn't in the help\n{help}");
    }
    let words: Vec<_> = help.split_whitespace().collect();
    assert!(
        words.join(" ").contains("can see it in the list of processes"),
        "what --prompt shows is not said"
    );
    assert!(!account.caisson(["--help"]).run().out().contains("runner"), "internal commands are hidden");
}

#[test]
fn a_command_line_that_makes_no_sense_exits_2() {
    let account = account();
    for arguments in [
        &[][..],
        &["fly"],
        &["run"],
        &["run", "--definition"],
        &["run", "--definition=says-done", "--prompt=x", "--output=xml"],
        &["run", "--definition=says-done", "--prompt=x", "--timeout=fast"],
        &["run", "--definition=says-done", "--prompt=x", "--option=novalue"],
        &["run", "--definition=says-done", "--prompt=x", "--prompt-file=y"],
        &["run", "--definition=says-done", "--prompt=x", "--apply"],
        &["run", "--definition=says-done", "--prompt=x", "--approve=v1:0", "--yes"],
        &["run", "task.yaml", "--prompt=x"],
        &["completions", "tcsh"],
    ] {
        account.caisson(arguments).run().exits(2);
    }
    account.assert_nothing_left();
}

#[test]
fn a_task_that_succeeds_exits_0_and_one_that_fails_exits_1() {
    let account = account();
    account.agent("fails", "", "echo failed; exit 7");
    let done = account.run("says-done", "x").run().exits(0);
    assert_eq!(done.result()["text"], "done\n");
    let failed = account.run("fails", "x").run().exits(1);
    assert_eq!(failed.result()["code"], "nonzero-exit");
    assert_eq!(failed.result()["exitCode"], 7);
    account.assert_nothing_left();
}

#[test]
fn a_person_reads_the_result() {
    let account = account();
    account.agent(
        "tells-all",
        "output:\n  format: Json\n  text: out.result\n  usage: {inputTokens: out.input, outputTokens: out.out, costUsd: out.cost, turns: out.turns, denials: out.denials}",
        "echo new >a.txt; echo '{\"result\":\"all well\",\"input\":1200,\"out\":34,\"cost\":0.05,\"turns\":3,\"denials\":1}'",
    );
    let human = |agent: &str| {
        account.caisson(["run", "--yes", "--definition", agent, "--prompt-file=-"]).stdin("a prompt").run()
    };
    insta::assert_snapshot!("done", stable(&human("says-done").exits(0)));
    insta::assert_snapshot!("tells_all", stable(&human("tells-all").exits(0)));
    account.agent("fails", "", "exit 7");
    insta::assert_snapshot!("fails", stable(&human("fails").exits(1)));
}

#[test]
fn a_program_reads_the_same_result_without_the_prompt() {
    let account = account();
    let prompt = "planted-prompt-5f2c";
    let json = account.run("says-done", prompt).run().exits(0);
    let yaml = account
        .caisson(["run", "--yes", "--output=yaml", "--definition=says-done", "--prompt-file=-"])
        .stdin(prompt)
        .run()
        .exits(0);
    assert!(!json.dump().contains(prompt) && !yaml.dump().contains(prompt));
    let (json, text) = (json.json(), stable(&yaml));
    let value: serde_json::Value = serde_saphyr::from_str(&yaml.out()).unwrap();
    for path in ["/kind", "/metadata/name", "/status/digest", "/status/result", "/status/preview"] {
        assert_eq!(json.pointer(path), value.pointer(path), "{path}");
        assert!(json.pointer(path).is_some(), "{path}");
    }
    assert!(json.get("spec").is_none(), "the spec holds the prompt");
    insta::assert_snapshot!("machine", text);
}

#[test]
fn a_dry_run_shows_the_command_and_starts_nothing() {
    let account = account();
    let mark = account.path("started");
    account.agent(
        "marks",
        "arguments: [--plain]\nmodelFlag: --model\noptions: [{name: level, flag: --level, schema: {type: integer}}, {name: loud, flag: --loud, schema: {type: boolean}}]",
        &format!("echo started >{}", mark.display()),
    );
    let run = |form: &str| {
        account
            .caisson([
                "run",
                "--dry-run",
                "--definition=marks",
                "--prompt-file=-",
                "--model=m-1",
                "--option=level=3",
            ])
            .args(["--option=loud=true", form])
            .stdin("twelve bytes")
            .run()
            .exits(0)
    };
    let human = run("--output=human");
    insta::assert_snapshot!("dry_run", stable(&human));
    insta::assert_snapshot!("dry_run_preview", human.err());
    let result = run("--output=json").result();
    assert_eq!((&result["simulated"], &result["exitCode"]), (&true.into(), &0.into()));
    assert!(!mark.exists());
    account.assert_nothing_left();
}

#[test]
fn options_the_model_and_the_timeout_reach_the_agent() {
    let account = account();
    let heard = account.path("heard");
    account.agent(
        "listens",
        "modelFlag: --model\noptions:\n  - {name: level, flag: --level, schema: {type: integer, minimum: 1, maximum: 5}}\n  - {name: loud, flag: --loud, schema: {type: boolean}}\n  - {name: quiet, flag: --quiet, schema: {type: boolean}}\n  - {name: name, flag: --name, schema: {type: string}}",
        &format!("for word; do printf '%s\\n' \"$word\"; done >{}", heard.display()),
    );
    let finished = account
        .run("listens", "the prompt")
        .args(["--model=m-1", "--option", "level=3", "--option=loud=true", "--option=quiet=false"])
        .args(["--option", "name=--level=9 and = more", "--timeout=90s"])
        .run()
        .exits(0);
    let words = "--level=3\n--loud\n--name=--level=9 and = more\n--model=m-1\n--\nthe prompt\n";
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), words);
    assert_eq!(finished.json()["status"]["preview"]["limits"]["timeout"], "1m30s");
    for (wrong, path) in [
        ("--option=level=6", ".spec.options.level: must be at most 5"),
        ("--option=level=three", ".spec.options.level: must be a whole number"),
        ("--option=loud=yes", ".spec.options.loud: must be true or false"),
        ("--option=pitch=1", ".spec.options.pitch: no such option"),
        ("--timeout=2h", ".spec.limits.timeout: must be from 1s to 1h"),
        ("--model=-x y", ".spec.model"),
    ] {
        account.run("listens", "x").arg(wrong).run().exits(2).tells(path);
    }
}

#[test]
fn the_definitions_are_listed_and_shown() {
    let account = account();
    std::fs::write(account.definitions().join("broken.yaml"), "kind: Other").unwrap();
    let list = account.caisson(["definitions"]).run().exits(0);
    for name in ["claude-code", "codex", "demo", "says-done"] {
        assert!(list.out().lines().any(|line| line.starts_with(name)), "{}", list.dump());
    }
    let broken = list.out().lines().find(|line| line.starts_with("broken")).unwrap().to_owned();
    assert!(broken.contains("invalid"), "{broken}");
    let shown = account.caisson(["definitions", "demo"]).run().exits(0);
    insta::assert_snapshot!("definition_demo", shown.out());
    // What is shown is a start for one of your own: it is valid as it stands.
    let file = account.file("own.yaml", shown.out());
    account.caisson(["validate"]).arg(file).run().exits(0);
    account.caisson(["definitions", "nothing"]).run().exits(2).tells("no definition is called");
}

#[test]
fn every_code_is_explained() {
    let account = Account::new();
    let list = account.caisson(["explain"]).run().exits(0).out();
    insta::assert_snapshot!("codes", list);
    for code in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let text = account.caisson(["explain", code]).run().exits(0).out();
        assert!(text.contains("category:") && text.contains("retryable:"), "{text}");
    }
    insta::assert_snapshot!("code", account.caisson(["explain", "lost"]).run().exits(0).out());
    account.caisson(["explain", "nonsense"]).run().exits(2).tells("no such code");
}

#[test]
fn manifests_are_validated_with_every_problem_at_once() {
    let account = account();
    let good = account.file("good.yaml", definition("good", "description: fine"));
    let bad = account.file(
        "bad.yaml",
        definition("bad", "colour: red\npromptDelivery: {stdin: {}, pipe: {}}")
            + "---\napiVersion: caisson.dev/v1alpha1\nkind: AgentCliTask\nmetadata: {name: t}\nspec:\n  definition: {name: says-done}\n  prompt: x\n  limits: {timeouts: 3s}\n",
    );
    account.caisson(["validate"]).arg(&good).run().exits(0);
    let finished = account.caisson(["validate"]).args([&good, &bad]).run().exits(2);
    let text = finished.out().replace(&account.path("").display().to_string(), "");
    insta::assert_snapshot!("validate", text);
    let json = account.caisson(["validate", "--output=json"]).args([&good, &bad]).run().exits(2).json();
    assert_eq!(json.as_array().unwrap().len(), 3);
    let yaml = account.caisson(["validate", "--output=yaml"]).args([&good, &bad]).run().exits(2);
    assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&yaml.out()).unwrap(), json);
    account.caisson(["validate", "missing.yaml"]).run().exits(2).tells("can't read missing.yaml");
    let piped = account.caisson(["validate", "-"]).stdin("{").run().exits(2);
    piped.tells("is not YAML");
}

#[test]
fn what_is_generated_is_for_the_tools_that_read_it() {
    let account = Account::new();
    let crds = account.caisson(["crd"]).run().exits(0).out();
    let crds: Vec<serde_json::Value> = serde_saphyr::from_multiple(&crds).unwrap();
    let names: Vec<_> = crds.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["agentclitasks.caisson.dev", "agentclidefinitions.caisson.dev"]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = account.caisson(["completions", shell]).run().exits(0).out();
        assert!(script.contains("caisson") && script.contains("definitions"), "{shell}");
    }
    let bash = account.file("completions.bash", account.caisson(["completions", "bash"]).run().out());
    let checked = std::process::Command::new("bash").arg("-n").arg(bash).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert!(account.caisson(["man"]).run().exits(0).out().contains(".TH caisson 1"));
    let pages = account.path("man");
    std::fs::create_dir(&pages).unwrap();
    account.caisson(["man"]).arg(&pages).run().exits(0);
    assert!(pages.join("caisson-run.1").exists() && !pages.join("caisson-runner.1").exists());
}

#[test]
fn a_reader_that_has_gone_away_is_no_failure() {
    let account = account();
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(crate::support::command::PROGRAM);
    let status = command.arg("crd").env_clear().env("HOME", account.home()).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let account = account();
    let piped = account.run("says-done", "x").env("TERM", "xterm-256color").run().exits(0);
    assert!(!piped.stdout.contains(&0x1b) && !piped.stderr.contains(&0x1b));
}

#[test]
fn logs_are_written_when_they_are_asked_for() {
    let account = account();
    let quiet = account.run("says-done", "x").run().exits(0);
    assert!(!quiet.err().contains("DEBUG"), "{}", quiet.dump());
    let debug = account.run("says-done", "x").env("CAISSON_LOG", "debug").run().exits(0);
    let uid = debug.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    for event in [
        "bringing up the sandbox",
        "the grant was asked for",
        "the agent was started",
        "the agent has ended",
        "the task is over",
    ] {
        let line = debug.err().lines().find(|line| line.contains(event)).map(str::to_owned);
        assert!(line.is_some_and(|line| line.contains(&uid)), "{event}\n{}", debug.dump());
    }
    assert!(!debug.err().contains("TRACE"));
    let part = account.run("says-done", "x").env("CAISSON_LOG", "caisson::supervisor=trace").run().exits(0);
    assert!(part.err().contains("caisson::supervisor") && !part.err().contains("caisson::controller"));
    let wrong = account.run("says-done", "x").env("CAISSON_LOG", "=nonsense=").run().exits(0);
    wrong.tells("CAISSON_LOG is not a filter");
    let foreign = account.run("says-done", "x").env("CAISSON_LOG", "trace").run().exits(0);
    let own = |line: &str| line.contains(" caisson::");
    let logged =
        foreign.err().lines().filter(|line| line.contains("TRACE") || line.contains("DEBUG")).all(own);
    assert!(logged, "{}", foreign.dump());
}

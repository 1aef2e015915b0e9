//! Input that describes no task is refused with its reason and exit code 2, before anything starts.

use std::fs;

use crate::support::account::{definition, task, write_program};
use crate::support::{Account, Repo};

fn account() -> Account {
    let account = Account::new();
    account.agent("says-done", "", "echo done");
    account
}

#[test]
fn a_task_file_runs_with_its_definition_beside_it_or_known_by_name() {
    let account = account();
    let by_name = account.file("task.yaml", task("job", "definition: {name: says-done}\nprompt: x"));
    let finished = account.caisson(["run", "--yes", "--output=json"]).arg(&by_name).run().exits(0);
    assert_eq!(finished.json()["metadata"]["name"], "job");
    let text = definition("beside", "") + "---\n" + &task("job", "definition: {name: beside}\nprompt: x");
    fs::create_dir(account.path("folder")).unwrap();
    write_program(&account.path("folder/beside.sh"), "echo beside");
    fs::write(account.path("folder/task.yaml"), &text).unwrap();
    // The program is found beside the file, wherever the caller is.
    let finished = account.caisson(["run", "--yes", "--output=json", "folder/task.yaml"]).run().exits(0);
    assert_eq!(finished.result()["text"], "beside\n");
    let finished = account
        .caisson(["run", "--yes", "--output=json", "task.yaml"])
        .directory(&account.path("folder"))
        .run()
        .exits(0);
    assert_eq!(finished.result()["text"], "beside\n");
    // A file on standard input has no folder of its own but the caller's.
    account.caisson(["run", "--yes", "-"]).directory(&account.path("folder")).stdin(text).run().exits(0);
}

#[test]
fn flags_override_a_task_file() {
    let account = account();
    let file = account.file(
        "task.yaml",
        task("job", "definition: {name: says-done}\nprompt: x\nlimits: {timeout: 5m}\ndryRun: true"),
    );
    let json = account.caisson(["run", "--output=json", "--timeout=7m"]).arg(&file).run().exits(0).json();
    assert_eq!(json["status"]["preview"]["limits"]["timeout"], "7m");
    assert_eq!(json["status"]["result"]["simulated"], true);
}

#[test]
fn an_unknown_field_is_refused_with_its_path() {
    let account = account();
    for (spec, path) in [
        ("definition: {name: says-done}\nprompt: x\ndryrun: true", ".spec.dryrun: unknown field"),
        (
            "definition: {name: says-done, versions: '1'}\nprompt: x",
            ".spec.definition.versions: unknown field",
        ),
        (
            "definition: {name: says-done}\nprompt: x\nlimits: {resources: {cpus: 1}}",
            ".spec.limits.resources.cpus: unknown field",
        ),
    ] {
        let file = account.file("task.yaml", task("job", spec));
        account.caisson(["run", "--yes"]).arg(file).run().exits(2).tells(path);
    }
    let file = account.file("d.yaml", definition("d", "requireApproval: false"));
    let run = account.caisson(["run", "--yes", "--prompt=x", "--definition"]).arg(file).run();
    run.exits(2).tells(".spec.requireApproval: unknown field");
}

#[test]
fn every_input_error_says_what_is_wrong() {
    let account = account();
    let good = task("job", "definition: {name: says-done}\nprompt: x");
    account.file("two.yaml", format!("{good}---\n{good}"));
    account.file("none.yaml", definition("d", ""));
    account.file("empty.yaml", "");
    account.file("scalar.yaml", "hello");
    account.file("text.yaml", "{ not: [yaml");
    account.file("latin1.yaml", b"a: caf\xe9");
    account.file("other.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}");
    account.file("large.yaml", vec![b'#'; (8 << 20) + 1]);
    account.file(
        "from.yaml",
        task("job", "definition: {name: says-done}\npromptFrom: {configMapKeyRef: {name: a, key: b}}"),
    );
    account.file("neither.yaml", task("job", "definition: {name: says-done}"));
    account.file("unknown.yaml", task("job", "definition: {name: nobody}\nprompt: x"));
    account.file("pinned.yaml", task("job", "definition: {name: says-done, version: '2'}\nprompt: x"));
    account.file("keyed.yaml", task("job", "definition: {name: says-done}\nprompt: x\nidempotencyKey: k"));
    account.file(
        "remote.yaml",
        task("job", "definition: {name: says-done}\nprompt: x\nworkspace: {git: {repository: 'https://git.example/a', revision: '0000000000000000000000000000000000000000'}}"),
    );
    account.file("good.yaml", good);
    account.file("retired.yaml", definition("retired", "retired: true"));
    Repo::init(account.path("no-commit"));
    for (arguments, told) in [
        (&["two.yaml"][..], "two.yaml holds 2 tasks; exactly one is run"),
        (&["none.yaml"], "none.yaml holds 0 tasks"),
        (&["empty.yaml"], "empty.yaml holds no object"),
        (&["scalar.yaml"], ".kind: not an AgentCliTask or AgentCliDefinition"),
        (&["text.yaml"], "text.yaml is not YAML (line 1"),
        (&["latin1.yaml"], "latin1.yaml is not UTF-8"),
        (&["other.yaml"], ".kind: not an AgentCliTask or AgentCliDefinition"),
        (&["large.yaml"], "large.yaml is larger than 8 MiB"),
        (&["missing.yaml"], "can't read missing.yaml: No such file"),
        (&["."], "can't read .: Is a directory"),
        (&["from.yaml"], "promptFrom names a config map"),
        (&["neither.yaml"], "exactly one of prompt and promptFrom"),
        (
            &["unknown.yaml"],
            "no definition is called \"nobody\"; there are: says-done, claude-code, codex, demo",
        ),
        (&["pinned.yaml"], "definition-mismatch"),
        (&["keyed.yaml"], ".spec.idempotencyKey: idempotencyKey is not supported here"),
        (&["remote.yaml"], ".spec.workspace.git.repository: is not on the definition's list"),
        (&["remote.yaml", "--workspace=."], "the task names a repository of its own"),
        (
            &["good.yaml", "--definition=demo"],
            "asks for the definition \"says-done\", and --definition names \"demo\"",
        ),
        (&["--definition=says-done"], "--prompt or --prompt-file is needed"),
        (&["--definition=nobody", "--prompt=x"], "no definition is called"),
        (&["--definition=retired.yaml", "--prompt=x"], "definition-retired"),
        (&["--definition=good.yaml", "--prompt=x"], "good.yaml holds no AgentCliDefinition"),
        (&["--definition=missing.yaml", "--prompt=x"], "can't read missing.yaml"),
        (&["--definition=says-done", "--prompt-file=missing"], "can't read missing"),
        (
            &["--definition=says-done", "--prompt=x", "--workspace=missing"],
            "can't use missing as a workspace",
        ),
        (&["--definition=says-done", "--prompt=x", "--workspace=."], "the source is not a git repository"),
        (
            &["--definition=says-done", "--prompt=x", "--workspace=no-commit"],
            "the source repository has no commit yet",
        ),
    ] {
        account.caisson(["run", "--yes"]).args(arguments).run().exits(2).tells(told);
    }
    account.assert_nothing_left();
}

#[test]
fn a_machine_that_lacks_something_says_so() {
    let account = account();
    let run = || account.run("says-done", "x");
    run().env("PATH", account.path("")).run().exits(2).tells("git is needed and not on PATH");
    run()
        .without_env("XDG_STATE_HOME")
        .without_env("HOME")
        .run()
        .exits(1)
        .tells("neither XDG_STATE_HOME nor HOME");
    account.agent("needs-key", "environment: [{name: AGENT_KEY, secretKeyRef: {name: a, key: b}}]", "true");
    account.run("needs-key", "x").run().exits(2).tells("set the environment variable AGENT_KEY");
    account.run("needs-key", "x").env("AGENT_KEY", "").run().exits(2).tells("AGENT_KEY");
    // A relative XDG path is none, as the specification says.
    run().env("XDG_STATE_HOME", "relative").run().exits(0);
    assert!(account.home().join(".local/state/caisson").exists());
    account.assert_nothing_left();
}

#[test]
fn the_prompt_comes_from_a_file_or_from_standard_input() {
    let account = Account::new();
    account.agent("echoes", "promptDelivery: {stdin: {}}", "cat");
    let file = account.file("prompt.md", "from a file\n");
    for (source, stdin, expected) in [
        (file.to_str().unwrap(), "not this", "from a file\n"),
        ("-", "from standard input", "from standard input"),
    ] {
        let caisson = account.caisson([
            "run",
            "--yes",
            "--output=json",
            "--definition=echoes",
            "--prompt-file",
            source,
        ]);
        assert_eq!(caisson.stdin(stdin).run().exits(0).result()["text"], expected);
    }
}

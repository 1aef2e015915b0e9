//! Agents as they behave in the field: what they print, how they end, and what they leave running.

use crate::support::Account;

/// An envelope like Claude Code's.
const ENVELOPE: &str = "output:
  format: Json
  text: out.result
  failed: out.is_error || out.subtype != 'success'
  usage: {turns: out.num_turns, denials: size(out.permission_denials)}";

#[test]
fn one_code_says_how_an_envelope_and_an_exit_code_go_together() {
    let account = Account::new();
    for (name, envelope, exit, code, parsed) in [
        ("success", r#"{"subtype":"success","is_error":false,"result":"ok"}"#, 0, None, true),
        (
            "is-error",
            r#"{"subtype":"success","is_error":true,"result":"no"}"#,
            0,
            Some("agent-reported-error"),
            true,
        ),
        (
            "error-exit",
            r#"{"subtype":"success","is_error":true,"result":"no"}"#,
            1,
            Some("agent-reported-error"),
            true,
        ),
        (
            "late-exit",
            r#"{"subtype":"success","is_error":false,"result":"ok"}"#,
            1,
            Some("nonzero-exit"),
            true,
        ),
        ("no-output", "", 0, Some("parse-output-failed"), false),
        ("no-output-exit", "", 3, Some("nonzero-exit"), false),
        ("no-json", "Segmentation fault", 0, Some("parse-output-failed"), false),
        ("half", r#"{"subtype":"succ"#, 0, Some("parse-output-failed"), false),
        ("two", r#"{"subtype":"success","is_error":false}{}"#, 0, Some("parse-output-failed"), false),
        (
            "wrong-type",
            r#"{"subtype":"success","is_error":"false","result":"ok"}"#,
            0,
            Some("parse-output-failed"),
            false,
        ),
    ] {
        account.agent(name, ENVELOPE, &format!("printf %s '{envelope}'; exit {exit}"));
        let finished = account.run(name, "x").run().exits(i32::from(code.is_some()));
        let result = finished.result();
        assert_eq!(result["code"].as_str(), code, "{name}\n{}", finished.dump());
        assert_eq!(result["outputParsed"], parsed, "{name}\n{}", finished.dump());
        assert_eq!(result["exitCode"], exit, "{name}");
    }
    account.assert_nothing_left();
}

#[test]
fn denied_tool_calls_are_counted() {
    let account = Account::new();
    let envelope = r#"{"subtype":"success","is_error":false,"result":"I could not","num_turns":2,"permission_denials":[{"tool":"Bash"},{"tool":"Write"}]}"#;
    account.agent("denied", ENVELOPE, &format!("echo '{envelope}'"));
    let result = account.run("denied", "x").run().exits(0).result();
    assert_eq!((&result["usage"]["denials"], &result["usage"]["turns"]), (&2.into(), &2.into()));
}

#[test]
fn an_agent_that_never_ends_after_its_result_is_ended_and_its_work_is_reported() {
    let account = Account::new();
    let envelope =
        r#"{"subtype":"success","is_error":false,"result":"ok","num_turns":4,"permission_denials":[]}"#;
    account.agent("lingers", ENVELOPE, &format!("echo work >work.txt; echo '{envelope}'; sleep 600"));
    let result = account.run("lingers", "x").arg("--timeout=1s").run().exits(1).result();
    assert_eq!((&result["code"], &result["timeout"]), (&"timeout".into(), &true.into()));
    assert_eq!((&result["usage"]["turns"], &result["outputParsed"]), (&4.into(), &true.into()));
    assert_eq!((&result["diff"]["files"], &result["terminationMethod"]), (&1.into(), &"Sigterm".into()));
    account.assert_nothing_left();
}

#[test]
fn an_agent_that_ignores_sigterm_is_killed() {
    let account = Account::new();
    account.agent("stubborn", "", "trap '' TERM INT HUP; while :; do sleep 1; done");
    let result = account.run("stubborn", "x").arg("--timeout=1s").run().exits(1).result();
    assert_eq!((&result["code"], &result["terminationMethod"]), (&"timeout".into(), &"Sigkill".into()));
    assert_eq!(result["exitCode"], -1);
    account.assert_nothing_left();
}

#[test]
fn an_end_by_signal_is_exit_code_minus_one() {
    let account = Account::new();
    for signal in ["KILL", "SEGV", "RTMIN"] {
        account.agent("killed", "", &format!("echo partial; kill -{signal} $$"));
        let result = account.run("killed", "x").run().exits(1).result();
        assert_eq!(
            (&result["code"], &result["exitCode"]),
            (&"nonzero-exit".into(), &(-1).into()),
            "{signal}"
        );
    }
}

#[test]
fn nothing_that_an_agent_started_outlives_it() {
    let account = Account::new();
    account.agent(
        "daemonises",
        "",
        "setsid sh -c 'setsid sleep 601 </dev/null >/dev/null 2>&1 & sleep 602' </dev/null >/dev/null 2>&1 &
         (trap '' TERM HUP; sleep 603 &) &
         nohup sleep 604 >/dev/null 2>&1 &
         # Kept open by a process that has left the group: the end of the agent counts, not that of its output.
         setsid sleep 605 &
         echo done",
    );
    let finished = account.run("daemonises", "x").run().exits(0);
    assert_eq!(finished.result()["text"], "done\n");
    account.assert_nothing_left();
}

#[test]
fn more_processes_than_allowed_end_the_run() {
    let account = Account::new();
    account.agent(
        "breeds",
        "limits: {processes: {default: 8, max: 8}}",
        "i=0; while [ $i -lt 40 ]; do sleep 600 & i=$((i+1)); done; wait",
    );
    let result = account.run("breeds", "x").run().exits(1).result();
    assert_eq!((&result["code"], &result["exitCode"]), (&"exec-failed".into(), &(-1).into()), "{result}");
    account.assert_nothing_left();
}

#[test]
fn an_agent_gets_the_declared_environment_and_no_more() {
    let account = Account::new();
    account.agent(
        "shows",
        "environment: [{name: PLAIN, value: a b}, {name: LANG, value: de_DE.UTF-8}, {name: AGENT_KEY, secretKeyRef: {name: a, key: b}}]",
        "cat /proc/$$/environ | tr '\\0' '\\n' | sed -e \"s|$HOME|[home]|\" -e \"s|$TMPDIR|[tmp]|\" | grep -v ^PATH= | sort",
    );
    let finished = account
        .run("shows", "x")
        .env("AGENT_KEY", "a-secret-of-the-callers")
        .env("AGENT_OTHER", "not declared")
        .env("LD_PRELOAD", "")
        .run()
        .exits(0);
    let text = finished.result()["text"].as_str().unwrap().to_owned();
    let names: Vec<_> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(names, ["AGENT_KEY", "CAISSON_RUN", "HOME", "LANG", "PLAIN", "TMPDIR"], "{text}");
    assert!(text.contains("PLAIN=a b\n") && text.contains("LANG=de_DE.UTF-8\n"), "{text}");
    assert!(!text.contains("a-secret"), "{text}");
}

#[test]
fn a_program_that_is_not_there_or_not_a_program_is_told() {
    let account = Account::new();
    account.agent("gone", "", "true");
    std::fs::remove_file(account.definitions().join("gone.sh")).unwrap();
    let result = account.run("gone", "x").run().exits(1).result();
    assert_eq!((&result["code"], &result["systemCode"]), (&"spawn-failed".into(), &"ENOENT".into()));
    account.agent("not-a-program", "", "");
    let program = account.definitions().join("not-a-program.sh");
    std::fs::write(&program, b"\x7fELF nonsense").unwrap();
    let result = account.run("not-a-program", "x").run().exits(1).result();
    assert_eq!((&result["code"], &result["systemCode"]), (&"spawn-failed".into(), &"ENOEXEC".into()));
    account.assert_nothing_left();
}

//! Output of every size and form is kept within its bounds and read within its time.

use crate::support::Account;

const TEXT_OF_JSON: &str = "output: {format: Json, text: out.result}";

#[test]
fn a_line_of_50_megabytes_is_bounded() {
    let account = Account::new();
    let flood = "head -c 50000000 /dev/zero | tr '\\0' x";
    account.agent("one-line", TEXT_OF_JSON, &format!("printf '{{\"result\":\"'; {flood}; printf '\"}}'"));
    let result = account.run("one-line", "x").run().exits(1).result();
    assert_eq!(result["code"], "parse-output-failed");
    assert_eq!(
        (&result["stdout"]["bytes"], &result["stdout"]["truncated"]),
        (&50_000_013.into(), &true.into())
    );
    // A stream of events loses its oldest ones, not its end.
    let spec = "output: {format: JsonLines, text: \"events.filter(e, e.type == 'end')[0].text\", failed: \"!events.exists(e, e.type == 'end')\"}";
    account.agent("events", spec, &format!("{flood}; echo; echo '{{\"type\":\"end\",\"text\":\"well\"}}'"));
    let result = account.run("events", "x").run().exits(0).result();
    assert_eq!((&result["text"], &result["textTruncated"]), (&"well".into(), &true.into()));
}

#[test]
fn a_flood_on_both_streams_is_followed_and_bounded() {
    let account = Account::new();
    account.agent("floods", "", "yes out | head -c 5000000 & yes err | head -c 5000000 >&2; wait; echo end");
    let finished = account.run("floods", "x").arg("--follow").run().exits(0);
    let result = finished.result();
    assert_eq!(
        (&result["stdout"]["bytes"], &result["stderr"]["bytes"]),
        (&5_000_004.into(), &5_000_000.into())
    );
    assert!(result["text"].as_str().unwrap().ends_with("out\nend\n"));
    account.assert_nothing_left();
}

#[test]
fn output_is_never_cut_inside_a_character() {
    let account = Account::new();
    for (cap, expected) in [(0, ""), (1, ""), (2, "é"), (3, "é"), (4, "éé"), (20, "xéééé")] {
        let spec = format!("limits: {{maxOutputBytes: {{default: {cap}, max: {cap}}}}}");
        account.agent("accents", &spec, "printf 'x\\303\\251\\303\\251\\303\\251\\303\\251'");
        let finished = account.run("accents", "x").run().exits(0);
        let result = finished.result();
        let text = result["text"].as_str().unwrap();
        assert!(!text.contains('\u{fffd}'), "{cap}: {text:?}");
        assert!(
            text.ends_with(expected) && text.matches('é').count() == expected.matches('é').count(),
            "{cap}: {text:?}"
        );
        assert_eq!(
            (&result["stdout"]["bytes"], &result["stdout"]["truncated"]),
            (&9.into(), &(cap < 9).into())
        );
        assert_eq!(result["textTruncated"], cap < 9, "{cap}");
    }
}

#[test]
fn output_that_is_not_utf8_is_shown_as_far_as_it_is() {
    let account = Account::new();
    account.agent("latin1", "", "printf 'caf\\351 \\377\\376 end\\n'");
    let result = account.run("latin1", "x").run().exits(0).result();
    let text = result["text"].as_str().unwrap();
    assert!(text.starts_with("caf\u{fffd} ") && text.ends_with(" end\n"), "{text:?}");
}

#[test]
fn what_a_terminal_would_obey_is_taken_out() {
    let account = Account::new();
    account.agent(
        "paints",
        "",
        "printf 'a\\033[31mb\\033]0;title\\007c\\r\\010d\\342\\200\\256e\\n'; printf '\\033[2J' >&2",
    );
    let human =
        account.caisson(["run", "--yes", "--follow", "--definition=paints", "--prompt=x"]).run().exits(0);
    for bytes in [&human.stdout, &human.stderr] {
        assert!(bytes.iter().all(|byte| *byte >= 0x20 || *byte == b'\n'), "{}", human.dump());
        assert!(!String::from_utf8_lossy(bytes).contains('\u{202e}'));
    }
    assert!(human.out().contains("abc\nde\n"), "{}", human.dump());
}

#[test]
fn deep_json_is_unreadable_and_nothing_worse() {
    let account = Account::new();
    account.agent("deep", TEXT_OF_JSON, "head -c 500000 /dev/zero | tr '\\0' '['");
    assert_eq!(account.run("deep", "x").run().exits(1).result()["code"], "parse-output-failed");
    account.agent(
        "nested",
        TEXT_OF_JSON,
        "printf '{\"a\":[[[[[[[[[[[[[[[[[[[[{\"b\":1}]]]]]]]]]]]]]]]]]]]],\"result\":\"ok\"}'",
    );
    assert_eq!(account.run("nested", "x").run().exits(0).result()["text"], "ok");
}

#[test]
fn a_program_that_takes_for_ever_is_ended() {
    let account = Account::new();
    let spec = "output:
  format: Json
  text: \"out.filter(a, out.exists(b, out.exists(c, a + b + c < 0))).size() > 0 ? 'a' : 'b'\"";
    account.agent("endless", spec, "seq -s, 1 5000 | sed -e 's/^/[/' -e 's/$/]/'; echo more >file");
    let result = account.run("endless", "x").run().exits(1).result();
    assert_eq!((&result["code"], &result["diff"]["files"]), (&"parse-output-failed".into(), &1.into()));
    account.assert_nothing_left();
}

#[test]
fn the_status_keeps_within_its_budget() {
    let account = Account::new();
    account.agent(
        "talks",
        "",
        "yes 'a long story' | head -c 300000; yes 'a long file' | head -c 300000 >file",
    );
    let finished = account.run("talks", "x").run().exits(0);
    let result = finished.result();
    assert!(result["text"].as_str().unwrap().len() <= 16 << 10);
    assert!(result["diff"]["patch"].as_str().unwrap().len() <= 12 << 10);
    assert_eq!((&result["textTruncated"], &result["diff"]["truncated"]), (&true.into(), &true.into()));
    assert!(finished.stdout.len() < 64 << 10);
}

#[test]
fn live_output_is_shown_while_the_agent_runs() {
    let account = Account::new();
    let go = account.path("go");
    account.agent(
        "speaks",
        "",
        &format!(
            "echo first; echo second >&2; while [ ! -e {} ]; do sleep 0.01; done; echo third",
            go.display()
        ),
    );
    let running = account.run("speaks", "x").arg("--follow").start();
    running.until_told("first\n");
    running.until_told("second\n");
    std::fs::write(go, "").unwrap();
    let finished = running.finish().exits(0).tells("third\n");
    assert_eq!(finished.result()["text"], "first\nthird\n");
    let quiet = account.run("speaks", "x").run().exits(0);
    assert!(!quiet.err().contains("first"), "only with --follow");
}

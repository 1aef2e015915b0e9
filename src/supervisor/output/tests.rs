//! Reading agents' output: formats, programs, cuts.

use serde_json::json;

use super::*;
use crate::api::UsagePrograms;

fn json_output() -> Output {
    Output {
        format: OutputFormat::Json,
        text: Some("out.result".into()),
        failed: Some("out.is_error || out.subtype != 'success'".into()),
        usage: Some(UsagePrograms {
            input_tokens: Some("out.usage.input_tokens".into()),
            cost_usd: Some("out.total_cost_usd".into()),
            denials: Some("size(out.permission_denials)".into()),
            turns: Some("out.missing.field".into()),
            ..UsagePrograms::default()
        }),
    }
}

fn lines_output() -> Output {
    Output {
        format: OutputFormat::JsonLines,
        text: Some(
            "events.filter(e, e.type == 'text')[size(events.filter(e, e.type == 'text')) - 1].text".into(),
        ),
        failed: Some("!events.exists(e, e.type == 'done')".into()),
        usage: None,
    }
}

#[test]
fn an_envelope_gives_text_failure_and_usage() {
    let envelope = json!({
        "result": "ok", "is_error": false, "subtype": "success", "usage": {"input_tokens": 12},
        "total_cost_usd": 0.0125, "permission_denials": [{}, {}],
    });
    let reading = read(&json_output(), envelope.to_string().as_bytes(), false);
    assert!(reading.parsed && !reading.failed);
    assert_eq!(reading.text.as_deref(), Some("ok"));
    assert_eq!((reading.input_tokens, reading.denials, reading.turns), (Some(12), Some(2), None));
    assert_eq!(reading.cost_usd.as_deref(), Some("0.0125"));
}

#[test]
fn an_error_envelope_needs_no_text() {
    let reading = read(&json_output(), br#"{"is_error":true,"subtype":"success"}"#, false);
    assert!(reading.parsed && reading.failed && reading.text.is_none());
}

#[test]
fn what_the_programs_cannot_read_is_unreadable() {
    for stdout in [
        "",
        "   ",
        "not json",
        "{}",
        r#"{"is_error":"no"}"#,
        r#"{"is_error":false,"subtype":"success"}"#,
        "{} {}",
    ] {
        assert!(!read(&json_output(), stdout.as_bytes(), false).parsed, "{stdout:?}");
    }
    let whole = br#"{"is_error":false,"subtype":"success","result":"ok"}"#;
    assert!(read(&json_output(), whole, false).parsed);
    assert!(
        !read(&json_output(), whole, true).parsed,
        "an envelope whose beginning is cut off is no envelope"
    );
}

#[test]
fn lines_may_be_cut_at_both_ends_only() {
    let text = r#"{"type":"text","text":"a"}"#;
    let table = [
        (format!("{text}\n{{\"type\":\"done\"}}\n"), false, Some("a"), true),
        (format!("{text}\n\n{{\"type\":\"done\"}}"), false, Some("a"), true),
        (format!("pe\":\"x\"}}\n{text}\n{{\"type\":\"done\"}}\n"), true, Some("a"), true),
        (format!("{text}\n{{\"type\":\"done\"}}\n{{\"ty"), false, Some("a"), true),
        (format!("{text}\nwarning\n{{\"type\":\"done\"}}\n"), false, None, false),
        (String::new(), false, None, false),
    ];
    for (stdout, truncated, expected, parsed) in table {
        let reading = read(&lines_output(), stdout.as_bytes(), truncated);
        assert_eq!((reading.text.as_deref(), reading.parsed), (expected, parsed), "{stdout:?}");
    }
    assert!(read(&lines_output(), format!("{text}\n").as_bytes(), false).failed, "no terminal event");
}

#[test]
fn plain_text_is_its_own_result_even_when_it_is_not_utf8() {
    let reading = read(&Output::default(), b"caf\xc3", false);
    assert_eq!(reading.text.as_deref(), Some("caf\u{fffd}"));
    assert!(reading.parsed);
}

#[test]
fn deep_or_hostile_json_does_not_overflow() {
    let deep = "[".repeat(1_000_000);
    assert!(!read(&json_output(), deep.as_bytes(), false).parsed);
}

#[test]
fn costs_are_plain_decimals() {
    for (value, expected) in [
        (json!(0.1), Some("0.1")),
        (json!(3), Some("3")),
        (json!("1.50"), Some("1.50")),
        (json!(1e-7), Some("0.0000001")),
        (json!(-1), None),
        (json!("1e3"), None),
        (json!("$1"), None),
        (json!(null), None),
    ] {
        let subject = Subject::out(&value);
        assert_eq!(Program::compile("out").unwrap().decimal(&subject).as_deref(), expected, "{value}");
    }
}

#[test]
fn a_session_has_a_short_name_and_no_prose() {
    let usage = UsagePrograms { session_id: Some("out".into()), ..UsagePrograms::default() };
    let output = Output { format: OutputFormat::Json, usage: Some(usage), ..Output::default() };
    for (name, shown) in [
        ("7b31c769-9afe-4151-a892-d76b8cef4e35", true),
        ("session.1:2", true),
        ("", false),
        ("do this and that", false),
        ("line\nbreak", false),
        ("a".repeat(65).as_str(), false),
    ] {
        let reading = read(&output, json!(name).to_string().as_bytes(), false);
        assert_eq!(reading.session_id.is_some(), shown, "{name:?}");
    }
}

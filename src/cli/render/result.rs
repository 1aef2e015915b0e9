//! How a task ended.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::args::OutputForm;
use super::{Colours, yaml};
use crate::api::{AgentCliTask, DiffSummary, TaskResult};
use crate::redact::Redacted;

/// The result for a program: the object without its spec, which holds the prompt.
pub(in crate::cli) fn machine(task: &AgentCliTask, form: OutputForm) -> String {
    let object = json!({
        "apiVersion": crate::api::API_VERSION,
        "kind": "AgentCliTask",
        "metadata": {"name": task.metadata.name, "uid": task.metadata.uid},
        "status": task.status,
    });
    match form {
        OutputForm::Yaml => yaml(&object),
        OutputForm::Json | OutputForm::Human => format!("{:#}\n", without_nulls(object)),
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
        for field in fields.values_mut() {
            *field = without_nulls(field.take());
        }
    }
    value
}

/// The result for a person.
pub(in crate::cli) fn human(
    task: &AgentCliTask,
    notes: &[Redacted],
    seconds: f64,
    colours: Colours,
) -> String {
    let result = task.status.as_ref().and_then(|status| status.result.clone()).unwrap_or_default();
    let mut text = headline(&result, seconds, colours);
    if let Some(answer) = &result.text {
        let answer = answer.as_str().trim_end();
        if !answer.is_empty() {
            let _ = write!(text, "\n{answer}\n");
        }
    }
    if result.simulated {
        let _ = writeln!(text, "{}", result.command.as_ref().map(Redacted::as_str).unwrap_or_default());
    }
    if let Some(diff) = &result.diff {
        text.push_str(&changes(diff, colours));
    }
    for note in notes {
        let _ = writeln!(text, "{}", colours.dim(&format!("note: {note}")));
    }
    text
}

fn headline(result: &TaskResult, seconds: f64, colours: Colours) -> String {
    let state = match result.code {
        None if result.simulated => colours.green("dry run"),
        None => colours.green("done"),
        Some(code) => colours.red(&format!("failed: {code}")),
    };
    let mut facts = vec![state];
    if let Some(code) = result.code {
        facts.push(code.message().to_owned());
    }
    facts.extend(result.system_code.clone());
    facts.extend(result.exit_code.filter(|_| !result.simulated).map(|code| format!("exit {code}")));
    if let Some(usage) = &result.usage {
        facts.extend(usage.turns.map(|turns| format!("{turns} turn{}", plural(turns))));
        facts.extend(usage.input_tokens.map(|tokens| format!("{tokens} tokens in")));
        facts.extend(usage.output_tokens.map(|tokens| format!("{tokens} out")));
        facts.extend(usage.cost_usd.clone().map(|cost| format!("{cost} USD")));
        facts.extend(
            usage
                .denials
                .filter(|denials| *denials > 0)
                .map(|denials| format!("{denials} tool call{} denied", plural(denials))),
        );
    }
    if !result.simulated {
        facts.push(format!("{seconds:.1} s"));
    }
    format!("{}\n", facts.join(" · "))
}

fn changes(diff: &DiffSummary, colours: Colours) -> String {
    if diff.files == 0 && diff.patch.is_none() {
        return "\nno changes\n".to_owned();
    }
    let mut text = format!(
        "\n{} file{} changed, {} insertion{}, {} deletion{}{}\n",
        diff.files,
        plural(diff.files),
        diff.insertions,
        plural(diff.insertions),
        diff.deletions,
        plural(diff.deletions),
        if diff.truncated { " (the patch is not whole)" } else { "" }
    );
    let patch = diff.patch.as_ref().map(Redacted::as_str).unwrap_or_default();
    for line in patch.lines() {
        let painted = match line.as_bytes().first() {
            Some(b'+') => colours.green(line),
            Some(b'-') => colours.red(line),
            Some(b'@') => colours.cyan(line),
            _ => line.to_owned(),
        };
        let _ = writeln!(text, "{painted}");
    }
    text
}

fn plural(count: i64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

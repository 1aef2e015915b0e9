//! What an agent's standard output says, by the definition's programs.
//!
//! The output is untrusted and the programs may take long over it, so [`worker`] evaluates them in a process of its own with
//! bounds on time and memory. [`read`] is the pure part that runs there.

mod program;
pub mod worker;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{Output, OutputFormat};
use program::{Program, Subject};

/// Longest name of a session, in bytes; a UUID has 36.
const MAX_NAME: usize = 64;

/// What was found, before redaction: nothing of it may be shown as it is.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawReading {
    /// Whether output of the declared format was found and the programs could read it.
    pub parsed: bool,
    /// Whether the agent itself reports a failure.
    pub failed: bool,
    /// The final text.
    pub text: Option<String>,
    /// Tokens read.
    pub input_tokens: Option<i64>,
    /// Tokens written.
    pub output_tokens: Option<i64>,
    /// Cost in US dollars, a decimal.
    pub cost_usd: Option<String>,
    /// Turns of the conversation.
    pub turns: Option<i64>,
    /// The agent's own name for the session.
    pub session_id: Option<String>,
    /// Tool calls that were denied.
    pub denials: Option<i64>,
}

/// Reads the kept end of standard output.
///
/// `truncated` says that its beginning is missing. Text is always readable; JSON that isn't whole is not; of JSON lines an
/// incomplete first or last one is left out, any other that isn't JSON makes the output unreadable.
pub fn read(output: &Output, stdout: &[u8], truncated: bool) -> RawReading {
    let subject = match output.format {
        OutputFormat::Text => {
            let text = String::from_utf8_lossy(stdout).into_owned();
            return RawReading { parsed: true, text: Some(text), ..RawReading::default() };
        }
        OutputFormat::Json if truncated => None,
        OutputFormat::Json => serde_json::from_slice(stdout).ok().map(|value: Value| Subject::out(&value)),
        OutputFormat::JsonLines => events(stdout, truncated).map(|events| Subject::events(&events)),
    };
    subject.map(|subject| evaluate(output, &subject)).unwrap_or_default()
}

fn events(stdout: &[u8], truncated: bool) -> Option<Vec<Value>> {
    let mut lines: Vec<&[u8]> = stdout.split(|byte| *byte == b'\n').collect();
    // Behind the last newline stands nothing, or a line that was cut when the agent ended.
    let unfinished = lines.pop().unwrap_or_default();
    if truncated && !lines.is_empty() {
        lines.remove(0);
    }
    let blank = |line: &&[u8]| line.iter().all(u8::is_ascii_whitespace);
    let mut events = lines
        .into_iter()
        .filter(|line| !blank(line))
        .map(|line| serde_json::from_slice(line).ok())
        .collect::<Option<Vec<Value>>>()?;
    events.extend(serde_json::from_slice::<Value>(unfinished).ok());
    (!events.is_empty()).then_some(events)
}

fn evaluate(output: &Output, subject: &Subject) -> RawReading {
    let mut reading = RawReading { parsed: true, ..RawReading::default() };
    match output
        .failed
        .as_deref()
        .map(|source| Program::compile(source).and_then(|program| program.boolean(subject)))
    {
        Some(Some(failed)) => reading.failed = failed,
        Some(None) => reading.parsed = false,
        None => {}
    }
    match output
        .text
        .as_deref()
        .map(|source| Program::compile(source).and_then(|program| program.text(subject)))
    {
        Some(Some(text)) => reading.text = Some(text),
        // A failed turn often has no final text.
        Some(None) if !reading.failed => reading.parsed = false,
        Some(None) | None => {}
    }
    if let Some(usage) = &output.usage {
        let program = |source: &Option<String>| source.as_deref().and_then(Program::compile);
        let integer = |source: &Option<String>| program(source).and_then(|program| program.integer(subject));
        reading.input_tokens = integer(&usage.input_tokens);
        reading.output_tokens = integer(&usage.output_tokens);
        reading.turns = integer(&usage.turns);
        reading.denials = integer(&usage.denials);
        reading.cost_usd = program(&usage.cost_usd).and_then(|program| program.decimal(subject));
        reading.session_id =
            program(&usage.session_id).and_then(|program| program.text(subject)).filter(|name| is_name(name));
    }
    reading
}

/// Whether a session's name is one: a failed agent's output is shown nowhere, and this must not become a way around that.
fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}

#[cfg(test)]
mod tests;

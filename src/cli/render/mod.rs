//! Text for people and machines: pure functions of what is to be shown.

mod result;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::catalog::{CatalogError, Entry, Origin};
use crate::api::{Code, Preview};
use crate::core::validate::Problem;

pub(super) use result::{human, machine};

/// Whether text may carry colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colours(pub(super) bool);

impl Colours {
    fn paint(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    fn green(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    fn red(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }

    fn cyan(self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }
}

/// An object as YAML. Ours always have a YAML form.
pub(super) fn yaml(value: &impl Serialize) -> String {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: 100, indent_step: 2 };
    serde_saphyr::to_string_with_options(value, options).unwrap_or_default()
}

/// Problems, one a line.
pub(super) fn problems(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {problem}");
        text
    })
}

/// What would run, as a reviewer sees it.
pub(super) fn preview(
    task: &str,
    definition: &str,
    preview: &Preview,
    digest: &str,
    colours: Colours,
) -> String {
    let mut lines = vec![
        ("task", task.to_owned()),
        ("definition", definition.to_owned()),
        ("command", preview.command.to_string()),
        ("prompt", format!("{} bytes, sha256 {}", preview.prompt_bytes, preview.prompt_sha256)),
    ];
    if let Some(repository) = &preview.repository {
        lines.push((
            "workspace",
            format!("{repository} at {}", preview.revision.as_deref().unwrap_or("HEAD")),
        ));
    } else {
        lines.push(("workspace", "an empty folder".to_owned()));
    }
    let limits = preview.limits;
    lines.push((
        "limits",
        format!(
            "{} · {} processes · {} output · {} cpu · {} memory · {} storage",
            limits.timeout,
            limits.processes,
            limits.max_output_bytes,
            limits.cpu,
            limits.memory,
            limits.ephemeral_storage
        ),
    ));
    if !preview.hosts.is_empty() {
        lines.push(("hosts", preview.hosts.join(", ")));
    }
    if !preview.secret_names.is_empty() {
        lines.push(("secrets", preview.secret_names.join(", ")));
    }
    if !preview.not_enforced.is_empty() {
        lines.push(("not enforced", format!("{} (this executor can't)", preview.not_enforced.join(", "))));
    }
    lines.push(("digest", digest.to_owned()));
    lines.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{} {value}", colours.bold(&format!("{name:<12}")));
        text
    })
}

/// Every code with its message.
pub(super) fn codes() -> String {
    Code::ALL.iter().fold(String::new(), |mut text, code| {
        let _ = writeln!(text, "{:<24} {}", code.name(), code.message());
        text
    })
}

/// One code, explained.
pub(super) fn code(code: Code) -> String {
    let explanation: String =
        code.explanation().lines().map(str::trim).collect::<Vec<_>>().join(" ").replace('`', "");
    format!(
        "{code}: {}\n\n{explanation}\n\ncategory:  {:?}\nretryable: {}\n",
        code.message(),
        code.category(),
        if code.retryable() { "yes" } else { "no" }
    )
}

/// A line a definition.
pub(super) fn definitions(entries: &[(String, Result<Entry, CatalogError>)]) -> String {
    let mut text = format!("{:<16} {:<10} {:<10} DESCRIPTION\n", "NAME", "VERSION", "FROM");
    for (name, entry) in entries {
        let _ = match entry {
            Ok(entry) => {
                let spec = &entry.definition.spec;
                let from = match entry.origin {
                    Origin::BuiltIn => "built in",
                    Origin::File(_) => "yours",
                };
                let description = spec.description.as_deref().unwrap_or("");
                writeln!(text, "{name:<16} {:<10} {from:<10} {description}", spec.version)
            }
            Err(error) => writeln!(text, "{name:<16} {:<10} {:<10} invalid: {error}", "-", "yours"),
        };
    }
    text
}

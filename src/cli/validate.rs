//! `caisson validate`: every problem of every manifest, at once.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::args::{OutputForm, ValidateArgs};
use super::catalog::Catalog;
use super::documents;
use super::exit::Exit;
use super::home::Home;
use super::leftovers;
use super::render;
use super::terminal::Terminal;
use crate::api::AgentCliDefinition;
use crate::core::validate::{self, Document, Origin, Problem};

pub(super) fn main(arguments: &ValidateArgs, terminal: Terminal) -> Exit {
    let home = Home::of_process();
    leftovers::clean_up(&home, terminal);
    let catalog = Catalog::new(home.definitions);
    let mut findings = Vec::new();
    for file in &arguments.files {
        match documents::read(file) {
            Ok(documents) => findings.extend(check(file, documents, &catalog)),
            Err(error) => {
                terminal.complain(&error);
                return Exit::Invalid;
            }
        }
    }
    terminal.print(&text(&findings, arguments.output));
    if findings.iter().all(|finding| finding.problems.is_empty()) { Exit::Done } else { Exit::Invalid }
}

/// What is wrong with one object of one file.
struct Finding {
    file: String,
    object: String,
    problems: Vec<Problem>,
}

fn check(file: &Path, documents: Vec<documents::Checked>, catalog: &Catalog) -> Vec<Finding> {
    let beside: Vec<AgentCliDefinition> = documents
        .iter()
        .filter_map(|document| match document {
            Ok(Document::Definition(definition)) => Some(definition.clone()),
            _ => None,
        })
        .collect();
    let finding = |(index, document): (usize, documents::Checked)| {
        let (object, problems) = match document {
            Err(problems) => (format!("object {}", index + 1), problems),
            Ok(Document::Definition(definition)) => {
                let name = definition.metadata.name.unwrap_or_default();
                (format!("AgentCliDefinition {name}"), validate::definition(&definition.spec))
            }
            Ok(Document::Task(task)) => {
                let wanted = &task.spec.definition.name;
                let known = beside
                    .iter()
                    .find(|definition| definition.metadata.name.as_ref() == Some(wanted))
                    .cloned()
                    .or_else(|| catalog.find(wanted).ok().map(|entry| entry.definition));
                let problems = known
                    .map(|known| validate::task(&task.spec, &known.spec, Origin::Cluster))
                    .unwrap_or_default();
                (format!("AgentCliTask {}", task.metadata.name.unwrap_or_default()), problems)
            }
        };
        Finding { file: file.display().to_string(), object, problems }
    };
    documents.into_iter().enumerate().map(finding).collect()
}

fn text(findings: &[Finding], form: OutputForm) -> String {
    let object = || {
        let list: Vec<_> = findings
            .iter()
            .map(|finding| json!({"file": finding.file, "object": finding.object, "problems": finding.problems}))
            .collect();
        json!(list)
    };
    match form {
        OutputForm::Human => findings.iter().fold(String::new(), |mut text, finding| {
            let verdict = if finding.problems.is_empty() { "valid" } else { "invalid" };
            let _ = writeln!(text, "{}: {}: {verdict}", finding.file, finding.object);
            text.push_str(&render::problems(&finding.problems));
            text
        }),
        OutputForm::Json => format!("{:#}\n", object()),
        OutputForm::Yaml => render::yaml(&object()),
    }
}

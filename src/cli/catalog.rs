//! The definitions that can be used by name: the user's own, then those that are built in.

use std::fs;
use std::path::{Path, PathBuf};

use super::documents::{self, ReadError};
use crate::api::AgentCliDefinition;
use crate::core::validate::{Document, Problem};

/// The definitions that are built in, by name.
pub(super) const BUILT_IN: &[(&str, &str)] = &[
    ("claude-code", include_str!("../../definitions/claude-code.yaml")),
    ("codex", include_str!("../../definitions/codex.yaml")),
    ("demo", include_str!("../../definitions/demo.yaml")),
];

/// The program of the definition `demo`, which needs nothing installed.
pub(super) const DEMO_AGENT: (&str, &str) = ("demo-agent", include_str!("../../examples/demo/agent.sh"));

/// Where a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    BuiltIn,
    File(PathBuf),
}

/// A definition and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) definition: AgentCliDefinition,
    pub(super) origin: Origin,
}

impl Entry {
    /// The folder whose programs the definition may name: its own.
    pub(super) fn programs(&self) -> Option<PathBuf> {
        match &self.origin {
            Origin::File(path) => std::path::absolute(path).ok()?.parent().map(Path::to_owned),
            Origin::BuiltIn => None,
        }
    }
}

/// Why a definition can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CatalogError {
    #[error(transparent)]
    Read(ReadError),
    #[error("{path} holds no AgentCliDefinition")]
    NoDefinition { path: PathBuf },
    #[error("the definition in {path} is invalid")]
    Invalid { path: PathBuf, problems: Vec<Problem> },
    #[error("no definition is called {name:?}; there are: {known}")]
    Unknown { name: String, known: String },
}

/// The definitions of one user.
#[derive(Debug, Clone)]
pub(super) struct Catalog {
    folder: Option<PathBuf>,
}

impl Catalog {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// The definition of that name, or of that file if it is a path.
    pub(super) fn find(&self, name: &str) -> Result<Entry, CatalogError> {
        if name.contains('/')
            || Path::new(name).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            return from_file(Path::new(name));
        }
        if let Some(path) =
            self.own().into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == name))
        {
            return from_file(&path);
        }
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
        built_in.map(|(_, text)| built_in_entry(text)).transpose()?.flatten().ok_or_else(|| {
            CatalogError::Unknown { name: name.chars().take(64).collect(), known: self.names().join(", ") }
        })
    }

    /// Every name, the user's own first.
    pub(super) fn names(&self) -> Vec<String> {
        let own = self.own().into_iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
        let mut names: Vec<String> = own.collect();
        for (name, _) in BUILT_IN {
            if !names.iter().any(|own| own == name) {
                names.push((*name).to_owned());
            }
        }
        names
    }

    /// The user's own manifests, by name.
    fn own(&self) -> Vec<PathBuf> {
        let entries = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let is_manifest = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
        };
        let mut paths: Vec<PathBuf> =
            entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_manifest).collect();
        paths.sort();
        paths
    }
}

fn built_in_entry(text: &str) -> Result<Option<Entry>, CatalogError> {
    let documents = documents::parse(Path::new("built in"), text).map_err(CatalogError::Read)?;
    let definition = first_definition(documents).transpose().ok().flatten();
    Ok(definition.map(|definition| Entry { definition, origin: Origin::BuiltIn }))
}

fn from_file(path: &Path) -> Result<Entry, CatalogError> {
    let documents = documents::read(path).map_err(CatalogError::Read)?;
    match first_definition(documents) {
        Some(Ok(definition)) => Ok(Entry { definition, origin: Origin::File(path.to_owned()) }),
        Some(Err(problems)) => Err(CatalogError::Invalid { path: path.to_owned(), problems }),
        None => Err(CatalogError::NoDefinition { path: path.to_owned() }),
    }
}

fn first_definition(documents: Vec<documents::Checked>) -> Option<Result<AgentCliDefinition, Vec<Problem>>> {
    documents.into_iter().find_map(|document| match document {
        Ok(Document::Definition(definition)) => Some(Ok(definition)),
        Ok(Document::Task(_)) => None,
        Err(problems) => Some(Err(problems)),
    })
}

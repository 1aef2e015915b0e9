//! Reading back text that was redacted before it was stored.

use serde::{Deserialize, Deserializer};

use super::Redacted;

impl Redacted {
    /// Reads a stored text; for `#[serde(deserialize_with)]`, since arbitrary text must not become [`Redacted`] by accident.
    ///
    /// # Errors
    /// When the stored value isn't a string.
    pub fn deserialize_stored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from_status)
    }

    /// The same for an optional text.
    ///
    /// # Errors
    /// When the stored value is neither absent nor a string.
    pub fn deserialize_stored_option<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        Option::<String>::deserialize(deserializer).map(|text| text.map(Self::from_status))
    }

    /// The same for a list.
    ///
    /// # Errors
    /// When the stored value isn't a list of strings.
    pub fn deserialize_stored_list<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Self>, D::Error> {
        Vec::<String>::deserialize(deserializer)
            .map(|texts| texts.into_iter().map(Self::from_status).collect())
    }
}

//! Streaming redaction of known secrets, and the only text type that sinks accept.
//!
//! A [`Redactor`] is made once per task from every secret value in reach. [`Redactor::text`] and
//! [`Redactor::text_stream`] turn anything that a program printed into [`Redacted`] text, which statuses, events and
//! logs take and which nothing else makes. [`Redactor::stream`] redacts bytes and changes nothing else in them.
//! [`Redactor::contains_secret`] and [`Redactor::secret_scan`] tell whether something may leave at all.
//!
//! # Guarantees
//! - A known secret doesn't survive as the value itself, without the white space around it, or (from
//!   [`MIN_LINE_BYTES`] on) as any line of it; nor do these in base64 (standard and URL-safe, padded or not, as part
//!   of a longer base64 text, and by themselves also wrapped at 64 or 76 characters), in hexadecimal,
//!   percent-encoded, or JSON-escaped once or twice. Hexadecimal digits are all lower or all upper case.
//! - Of a value (or line) of more than 128 bytes, each piece of 128 bytes counts as a secret, at fixed offsets.
//! - Credentials of well-known shapes are replaced even when nobody named them: keys of Anthropic, `OpenAI`, GitHub,
//!   GitLab, AWS, Slack, Google, Stripe, npm and age, JSON Web Tokens, `Bearer` and `Authorization` values, armoured
//!   private keys, user and password of URLs.
//! - The result doesn't depend on how a stream is split, and a stream holds back less than 2 KiB.
//! - A replacement can't put a secret together: the marker is chosen so that no needle can share a byte with it.
//! - [`Redacted`] text is redacted, sanitized ([`Sanitizer`]), and redacted again: the first pass sees a secret with
//!   control characters or invalid UTF-8 in it, the second one what was put together by taking such characters out.
//! - Neither errors nor `Debug` show a secret.
//!
//! # Assumptions
//! - The builder is given every secret value. What it doesn't know, only the shapes find.
//! - Secrets aren't ordinary words: one of [`MIN_SECRET_BYTES`] or more replaces itself everywhere.
//!
//! # Caveats
//! A program that holds a secret and means to pass it on, can: reversed, compressed, encrypted, translated, in a hex
//! dump or in base32, in pieces with other text between them, or as a picture. Up to four bits of each end of a secret
//! inside a longer base64 text stay. A part of a line isn't a secret: of `KEY=value` in a multi-line file the value
//! alone isn't known. The remedy for all of these is that the program never holds the key, not a better redactor.
//!
//! Memory isn't zeroed on drop: nor are the buffers of whoever read the secret, or the texts that quote it. What
//! protects the memory of a process that holds secrets is that others can't read it.

mod encode;
mod exact;
mod needles;
mod rules;
mod sanitize;
mod stored;
mod stream;
mod tail;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use needles::{MAX_SECRET_BYTES, MIN_LINE_BYTES, MIN_SECRET_BYTES};
pub use sanitize::Sanitizer;
pub use stream::{RedactStream, SecretScan};
pub use text::{Redacted, TextStream};

use exact::Exact;

/// What stands in place of a secret.
pub const MARKER: &str = MARKERS[0];

/// Markers in order of preference. One is skipped if a needle could overlap with it: a secret that ends in `[` would
/// otherwise be put together again by the marker of what follows it.
const MARKERS: [&str; 6] = [
    "[redacted]",
    "<redacted>",
    "(redacted)",
    "*redacted*",
    "\u{27e6}redacted\u{27e7}",
    "\u{2588}redacted\u{2588}",
];

/// Replaces known secrets and credentials of well-known shapes. Cheap to clone.
#[derive(Clone)]
pub struct Redactor {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` if no secret is known.
    exact: Option<Exact>,
    /// Whether the shapes of well-known credentials are looked for.
    rules: bool,
    marker: &'static str,
}

impl Redactor {
    /// Starts with no secrets.
    #[must_use]
    pub fn builder() -> RedactorBuilder {
        RedactorBuilder { secrets: Vec::new(), rules: true }
    }

    /// A redactor that knows no secret, only the shapes of well-known credentials.
    #[must_use]
    pub fn without_secrets() -> Self {
        Self { inner: Arc::new(Inner { exact: None, rules: true, marker: MARKER }) }
    }

    /// Redacts bytes that arrive in chunks, and leaves all others as they are.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(Arc::clone(&self.inner))
    }

    /// Makes redacted and sanitized text from bytes that arrive in chunks.
    #[must_use]
    pub fn text_stream(&self) -> TextStream {
        TextStream::new(self)
    }

    /// Redacts and sanitizes a text.
    #[must_use]
    pub fn text(&self, text: &str) -> Redacted {
        self.bytes(text.as_bytes())
    }

    /// Redacts and sanitizes bytes; invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Redacted {
        let mut stream = self.text_stream();
        let start = stream.push(bytes);
        stream.finish_after(start)
    }

    /// Whether a known secret occurs in `bytes`, in any of its encodings. Shapes of unknown credentials don't count.
    #[must_use]
    pub fn contains_secret(&self, bytes: &[u8]) -> bool {
        self.inner.exact.as_ref().is_some_and(|exact| exact.occurs(bytes))
    }

    /// As [`contains_secret`](Self::contains_secret), for bytes that arrive in chunks.
    #[must_use]
    pub fn secret_scan(&self) -> SecretScan {
        SecretScan::new(Arc::clone(&self.inner))
    }

    /// What this redactor writes in place of a secret: [`MARKER`], unless a secret could overlap with that.
    #[must_use]
    pub fn marker(&self) -> &'static str {
        self.inner.marker
    }

    /// Most bytes that a [`RedactStream`] holds back between calls: below 2 KiB, whatever the secrets are.
    #[must_use]
    pub fn window(&self) -> usize {
        self.inner.held_back().max(if self.inner.rules { rules::MAX_LOOKAHEAD } else { 0 })
    }
}

impl Inner {
    /// Bytes at the end of a text in which a needle or a rule's literal may have begun.
    fn held_back(&self) -> usize {
        let needle = self.exact.as_ref().map_or(1, Exact::longest);
        let literal = if self.rules { rules::MAX_LITERAL } else { 1 };
        needle.max(literal) - 1
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("rules", &self.inner.rules).finish_non_exhaustive()
    }
}

/// Collects the secrets of a [`Redactor`].
pub struct RedactorBuilder {
    secrets: Vec<(String, Vec<u8>)>,
    rules: bool,
}

impl RedactorBuilder {
    /// Adds a secret. `name` says in errors which one it is, for instance `secret anthropic, key api-key`.
    pub fn secret(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> &mut Self {
        self.secrets.push((name.into(), value.into()));
        self
    }

    /// Leaves credentials alone that are known by their shape only.
    pub fn without_rules(&mut self) -> &mut Self {
        self.rules = false;
        self
    }

    /// Builds the redactor.
    ///
    /// # Errors
    /// If a secret is too short or too long, or if there is no marker that can't be part of a secret. A task that has
    /// such a secret must not start.
    pub fn build(&self) -> Result<Redactor, RedactorError> {
        let mut needles = BTreeSet::new();
        for (name, value) in &self.secrets {
            if value.len() > MAX_SECRET_BYTES {
                return Err(RedactorError::SecretTooLong { name: name.clone() });
            }
            let Some(own) = needles::needles(value) else {
                return Err(RedactorError::SecretTooShort { name: name.clone() });
            };
            needles.extend(own);
        }
        let fits = |marker: &&&str| !needles.iter().any(|needle| overlaps(needle, marker.as_bytes()));
        let marker = MARKERS.iter().find(fits).ok_or(RedactorError::NoMarker)?;
        let exact = Exact::new(needles);
        Ok(Redactor { inner: Arc::new(Inner { exact, rules: self.rules, marker }) })
    }
}

impl std::fmt::Debug for RedactorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.secrets.iter().map(|(name, _)| name).collect();
        f.debug_struct("RedactorBuilder").field("secrets", &names).field("rules", &self.rules).finish()
    }
}

/// Whether an occurrence of `needle` could share a byte with a marker in some text.
fn overlaps(needle: &[u8], marker: &[u8]) -> bool {
    let mut cuts = 1..=marker.len();
    let at_an_end = cuts.any(|cut| {
        let (left, right) = (marker.get(..cut), marker.get(marker.len() - cut..));
        left.is_some_and(|left| needle.ends_with(left))
            || right.is_some_and(|right| needle.starts_with(right))
    });
    let inside = |outer: &[u8], inner: &[u8]| outer.windows(inner.len()).any(|part| part == inner);
    at_an_end || inside(needle, marker) || inside(marker, needle)
}

/// Why a redactor can't be built. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedactorError {
    /// The value would occur by chance.
    #[error("{name} is shorter than {MIN_SECRET_BYTES} bytes, too short to be redacted")]
    SecretTooShort {
        /// Name of the secret.
        name: String,
    },
    /// The value is no credential but a data set.
    #[error("{name} is longer than {MAX_SECRET_BYTES} bytes, too long to be redacted")]
    SecretTooLong {
        /// Name of the secret.
        name: String,
    },
    /// Every marker could become part of a secret.
    #[error("no marker for redacted text differs from every secret")]
    NoMarker,
}

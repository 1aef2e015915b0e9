//! Text that is fit for a status, an event or a log.

use std::fmt;

use serde::Serialize;

use super::{RedactStream, Redactor, Sanitizer};

/// Text without known secrets, control characters and escape sequences: the only text that a status, event or log
/// sink accepts.
///
/// Only a [`Redactor`] makes one from text of unknown origin. There is no way to join two of them, since the two could
/// make up a secret at the seam; redact the joined text instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Redacted(String);

impl Redacted {
    /// Fixed text of the program.
    #[must_use]
    pub fn fixed(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// Text that was redacted before it was stored, as read back from a status.
    #[must_use]
    pub fn from_status(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as a plain string, for a field of an object.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The first characters, `max_bytes` at most, and whether that cuts anything off.
    #[must_use]
    pub fn truncate_end(mut self, max_bytes: usize) -> (Self, bool) {
        let cut = self.0.len() > max_bytes;
        self.0.truncate(self.0.floor_char_boundary(max_bytes));
        (self, cut)
    }

    /// The last characters, `max_bytes` at most, and whether that cuts anything off.
    #[must_use]
    pub fn truncate_start(mut self, max_bytes: usize) -> (Self, bool) {
        let from = self.0.ceil_char_boundary(self.0.len().saturating_sub(max_bytes));
        self.0.drain(..from);
        (self, from > 0)
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for Redacted {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Makes [`Redacted`] text from bytes that arrive in chunks; made by [`Redactor::text_stream`].
///
/// The bytes are redacted, sanitized, and redacted again, for the reason in the [module](super) documentation. What
/// the second pass leaves of a character that it cut in two is dropped: that can't put a secret together, since a
/// marker stands beside it.
///
/// The parts that it returns belong one after the other in the same sink; together they are what
/// [`Redactor::bytes`] returns for all the bytes.
#[derive(Debug)]
pub struct TextStream {
    raw: RedactStream,
    sanitizer: Sanitizer,
    visible: RedactStream,
    /// Output of the passes, kept for their memory.
    scratch: Vec<u8>,
    clean: String,
    /// Output of the last pass, of which an unfinished character stays.
    out: Vec<u8>,
}

impl TextStream {
    pub(super) fn new(redactor: &Redactor) -> Self {
        Self {
            raw: redactor.stream(),
            sanitizer: Sanitizer::default(),
            visible: redactor.stream(),
            scratch: Vec::new(),
            clean: String::new(),
            out: Vec::new(),
        }
    }

    /// Takes the next bytes and returns the text that is decided.
    #[must_use]
    pub fn push(&mut self, chunk: &[u8]) -> Redacted {
        self.raw.push(chunk, &mut self.scratch);
        self.sanitize();
        self.take_text()
    }

    /// Returns everything that no longer depends on what follows, as [`RedactStream::flush`] does.
    #[must_use]
    pub fn flush(&mut self) -> Redacted {
        self.raw.flush(&mut self.scratch);
        self.sanitize();
        self.visible.flush(&mut self.out);
        self.take_text()
    }

    /// Ends the text and returns the rest.
    #[must_use]
    pub fn finish(self) -> Redacted {
        self.finish_after(Redacted::default())
    }

    /// Ends the text and returns all of it, where `start` is what the only push returned.
    pub(super) fn finish_after(mut self, start: Redacted) -> Redacted {
        self.raw.finish(&mut self.scratch);
        self.sanitizer.push(&self.scratch, &mut self.clean);
        self.sanitizer.finish(&mut self.clean);
        self.visible.push(self.clean.as_bytes(), &mut self.out);
        self.visible.finish(&mut self.out);
        let mut text = start.0;
        text.extend(self.out.utf8_chunks().map(|chunk| chunk.valid()));
        Redacted(text)
    }

    /// Number of replacements in the bytes as they came, so far.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.raw.hits()
    }

    /// Passes what the first pass gave on to the second one.
    fn sanitize(&mut self) {
        self.sanitizer.push(&self.scratch, &mut self.clean);
        self.scratch.clear();
        self.visible.push(self.clean.as_bytes(), &mut self.out);
        self.clean.clear();
    }

    /// Takes the complete characters of the output.
    fn take_text(&mut self) -> Redacted {
        let (complete, partial) = super::sanitize::split_partial(&self.out);
        let text = complete.utf8_chunks().map(|chunk| chunk.valid()).collect();
        self.out = partial.to_vec();
        Redacted(text)
    }
}

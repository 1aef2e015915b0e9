//! Redaction of a text that arrives in chunks.

use std::sync::Arc;

use super::rules::{self, Verdict};
use super::tail::Tail;
use super::{Exact, Inner};

/// Most bytes looked at in one go: a larger chunk is taken in parts of this size, so that memory stays bounded.
const BLOCK_BYTES: usize = 64 * 1024;

/// Redacts a text that arrives in chunks; made by [`Redactor::stream`](super::Redactor::stream).
///
/// # Guarantees
/// - All output together depends on all input together, not on how it was split nor on calls of
///   [`flush`](Self::flush).
/// - Every byte of every occurrence of a needle is replaced, also where occurrences overlap. Occurrences that overlap
///   or touch become one marker.
/// - The output contains no needle, also none that is put together by a replacement: the marker was chosen so that no
///   needle can overlap with it.
/// - Between calls at most [`Redactor::window`](super::Redactor::window) bytes are held back.
///
/// # Caveats
/// A replacement may cut a character of several bytes in two where a secret isn't UTF-8.
pub struct RedactStream {
    redactor: Arc<Inner>,
    /// Input that isn't decided yet, after up to [`rules::LOOKBEHIND`] bytes that are.
    text: Vec<u8>,
    /// Everything in `text` before this is decided and emitted.
    done: usize,
    /// Secret parts of `text` that end after `done`.
    spans: Vec<Span>,
    /// Matches that go on beyond the end of `text`.
    tails: Vec<Tail>,
    /// Whether the last byte that was decided is secret, so that its marker stands at the end of the output.
    inside: bool,
    hits: u64,
}

/// Bytes of the text that are secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    from: usize,
    end: usize,
}

/// How much to decide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Everything but the window: cheap.
    Window,
    /// Everything that no longer depends on what follows.
    Settled,
    /// Everything, since nothing follows.
    End,
}

impl RedactStream {
    pub(super) fn new(redactor: Arc<Inner>) -> Self {
        Self {
            redactor,
            text: Vec::new(),
            done: 0,
            spans: Vec::new(),
            tails: Vec::new(),
            inside: false,
            hits: 0,
        }
    }

    /// Takes the next bytes, and appends to `out` what is decided.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        for block in chunk.chunks(BLOCK_BYTES) {
            let arrived = self.text.len();
            self.text.extend_from_slice(block);
            self.continue_tails(arrived);
            self.decide(Until::Window, out);
        }
    }

    /// Appends to `out` everything that no longer depends on what follows: all but what may be the beginning of a
    /// secret.
    ///
    /// For a live view, when no input has come for a while. Costs more than a push of a few bytes.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.decide(Until::Settled, out);
    }

    /// Ends the text and appends the rest of the output. Returns the number of replacements in all.
    pub fn finish(mut self, out: &mut Vec<u8>) -> u64 {
        self.decide(Until::End, out);
        self.hits
    }

    /// Number of replacements so far.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Bytes that are held back.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.text.len() - self.done
    }

    fn continue_tails(&mut self, arrived: usize) {
        let tails = std::mem::take(&mut self.tails);
        for tail in tails {
            self.run_tail(arrived, arrived, tail);
        }
    }

    /// Adds the secret `from..end` and what `tail` swallows after it.
    fn run_tail(&mut self, from: usize, end: usize, tail: Tail) {
        let (len, open) = tail.run(self.text.get(end..).unwrap_or_default());
        let end = end + len;
        if from < end {
            self.spans.push(Span { from, end });
        }
        if let Some(tail) = open
            && !self.tails.contains(&tail)
        {
            self.tails.push(tail);
        }
    }

    /// Decides which bytes are secret, as far as `until` says, and emits them.
    fn decide(&mut self, until: Until, out: &mut Vec<u8>) {
        let redactor = Arc::clone(&self.redactor);
        let exact = redactor.exact.as_ref();
        let mut limit = match until {
            Until::Window => self.text.len().saturating_sub(redactor.held_back()),
            Until::Settled => self.settled(exact, redactor.rules),
            Until::End => self.text.len(),
        };
        if limit <= self.done {
            return;
        }
        if redactor.rules {
            limit = self.apply_rules(limit, until == Until::End);
        }
        if let Some(exact) = exact {
            let Self { text, spans, done, .. } = self;
            exact.find(text, *done, limit, |from, end| spans.push(Span { from, end }));
        }
        self.emit(limit, out);
    }

    /// The first position that may be the start of a needle or literal whose end hasn't arrived.
    fn settled(&self, exact: Option<&Exact>, rules: bool) -> usize {
        let open = |at: &usize| {
            exact.is_some_and(|exact| exact.look_up(&self.text, *at).open)
                || (rules && rules::may_begin(self.text.get(*at..).unwrap_or_default()))
        };
        let first = self.done.max(self.text.len().saturating_sub(self.redactor.held_back()));
        (first..self.text.len()).find(open).unwrap_or(self.text.len())
    }

    /// Adds the matches of rules that start before `limit`. Returns `limit`, or where a rule needs more text.
    fn apply_rules(&mut self, limit: usize, last: bool) -> usize {
        let mut decided = limit;
        let mut matches = Vec::new();
        rules::find(&self.text, self.done, limit, last, |start, verdict| {
            match verdict {
                Verdict::No => {}
                Verdict::Yes { from, end, tail } => matches.push((from, end, tail)),
                Verdict::More => decided = start,
            }
            verdict != Verdict::More
        });
        for (from, end, tail) in matches {
            self.run_tail(from, end, tail);
        }
        decided
    }

    /// Emits the text before `limit`, with one marker for each run of secret bytes.
    fn emit(&mut self, limit: usize, out: &mut Vec<u8>) {
        self.spans.sort_unstable();
        let mut at = self.done;
        for span in &self.spans {
            if span.from >= limit {
                break;
            }
            if span.end <= at {
                continue;
            }
            if span.from > at {
                out.extend_from_slice(self.text.get(at..span.from).unwrap_or_default());
                self.inside = false;
            }
            if !self.inside {
                out.extend_from_slice(self.redactor.marker.as_bytes());
                self.inside = true;
                self.hits += 1;
            }
            at = span.end.min(limit);
        }
        if at < limit {
            out.extend_from_slice(self.text.get(at..limit).unwrap_or_default());
            self.inside = false;
        }
        self.forget(limit);
    }

    /// Drops what is emitted, but for the bytes that a rule may look back at.
    fn forget(&mut self, limit: usize) {
        self.spans.retain(|span| span.end > limit);
        let dropped = limit.saturating_sub(rules::LOOKBEHIND);
        self.text.drain(..dropped);
        self.done = limit - dropped;
        for span in &mut self.spans {
            span.from = span.from.saturating_sub(dropped);
            span.end -= dropped;
        }
    }
}

impl std::fmt::Debug for RedactStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedactStream")
            .field("pending", &self.pending())
            .field("hits", &self.hits)
            .finish_non_exhaustive()
    }
}

/// Looks for known secrets in bytes that arrive in chunks; made by
/// [`Redactor::secret_scan`](super::Redactor::secret_scan).
///
/// It knows the exact needles only, not the shapes of well-known tokens.
pub struct SecretScan {
    redactor: Arc<Inner>,
    text: Vec<u8>,
    found: bool,
}

impl SecretScan {
    pub(super) fn new(redactor: Arc<Inner>) -> Self {
        Self { redactor, text: Vec::new(), found: false }
    }

    /// Takes the next bytes. Returns whether a known secret has been seen.
    pub fn push(&mut self, chunk: &[u8]) -> bool {
        let Some(exact) = self.redactor.exact.as_ref() else { return false };
        for block in chunk.chunks(BLOCK_BYTES) {
            if self.found {
                break;
            }
            self.text.extend_from_slice(block);
            self.found = exact.occurs(&self.text);
            self.text.drain(..self.text.len().saturating_sub(exact.longest() - 1));
        }
        self.found
    }

    /// Whether a known secret has been seen.
    #[must_use]
    pub fn found(&self) -> bool {
        self.found
    }
}

impl std::fmt::Debug for SecretScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretScan").field("found", &self.found).finish_non_exhaustive()
    }
}

//! Search for many needles at once.
//!
//! An automaton over thousands of needles costs a dependent memory access per byte of text. But every needle is at
//! least [`MIN_SECRET_BYTES`](super::MIN_SECRET_BYTES) long, so it is enough to look at every few bytes of the text:
//! a bit map over hashes of all the short grams in the first bytes of the needles tells which of these positions may
//! lie in a needle, and only there a trie decides. This is the idea of Wu and Manber, "A fast algorithm for
//! multi-pattern searching" (1994), with a fixed step.

use std::collections::BTreeSet;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, BuildError, MatchKind};

/// Bits of a gram's hash: 2^18 bits are 32 KiB and fit a first-level data cache.
const HASH_BITS: u32 = 18;

/// Bytes of the bit map.
const MAP_BYTES: usize = 1 << (HASH_BITS - 3);

/// Bytes at the start of each needle whose grams are in the bit map. More would make the step longer and the map
/// denser; at 16 a text without secrets is read at memory speed.
const MAX_HEAD: usize = 16;

/// Fewest and most bytes of a gram.
const GRAM_BYTES: std::ops::RangeInclusive<usize> = 4..=8;

/// The needles in a form that is fast to search for. Finds every occurrence, also overlapping ones.
pub(super) struct Exact {
    trie: NFA,
    map: Box<[u8; MAP_BYTES]>,
    /// Keeps the bytes of a gram from a word of eight.
    gram_mask: u64,
    gram_bytes: usize,
    /// Distance between two positions looked at: an occurrence has one of them on a gram of its head.
    step: usize,
    longest: usize,
}

/// What a walk down the trie from one position found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// Length of the longest needle that starts here, 0 for none.
    pub(super) len: usize,
    /// Whether the text ended inside a needle.
    pub(super) open: bool,
}

impl Exact {
    /// Builds the search, or `None` without needles.
    ///
    /// # Errors
    /// If the trie gets larger than its state identifiers can tell apart (2^31).
    pub(super) fn new(needles: &BTreeSet<Vec<u8>>) -> Result<Option<Self>, BuildError> {
        let Some(shortest) = needles.iter().map(Vec::len).min() else { return Ok(None) };
        let head = shortest.min(MAX_HEAD);
        let gram_bytes = (head / 2).clamp(*GRAM_BYTES.start(), *GRAM_BYTES.end());
        let mut exact = Self {
            trie: NFA::builder().match_kind(MatchKind::Standard).prefilter(false).build(needles)?,
            map: Box::new([0; MAP_BYTES]),
            gram_mask: u64::MAX >> (64 - 8 * gram_bytes),
            gram_bytes,
            step: head - gram_bytes + 1,
            longest: needles.iter().map(Vec::len).max().unwrap_or(0),
        };
        for needle in needles {
            for at in 0..exact.step {
                let (byte, bit) = slot(exact.gram(needle, at));
                if let Some(byte) = exact.map.get_mut(byte) {
                    *byte |= bit;
                }
            }
        }
        Ok(Some(exact))
    }

    /// Length of the longest needle in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Calls `found(start, end)` for the longest needle at each start within `from..to`, in ascending order.
    ///
    /// Reads beyond `to` where a needle does.
    pub(super) fn find(&self, text: &[u8], from: usize, to: usize, mut found: impl FnMut(usize, usize)) {
        let mut next_start = from;
        let mut at = from + self.step - 1;
        // The positions whose grams may cover a start before `to`.
        let end = (to + self.step - 1).min((text.len() + 1).saturating_sub(self.gram_bytes));
        while at < end {
            if self.may_match(text, at) {
                for start in next_start.max(at + 1 - self.step)..to.min(at + 1) {
                    let walk = self.walk(text, start);
                    if walk.len > 0 {
                        found(start, start + walk.len);
                    }
                }
                next_start = at + 1;
            }
            at += self.step;
        }
    }

    /// Whether any needle occurs in `text`.
    pub(super) fn occurs(&self, text: &[u8]) -> bool {
        let mut any = false;
        self.find(text, 0, text.len(), |_, _| any = true);
        any
    }

    /// Follows the trie from `start`.
    pub(super) fn walk(&self, text: &[u8], start: usize) -> Walk {
        let mut walk = Walk { len: 0, open: false };
        let Ok(mut state) = self.trie.start_state(Anchored::Yes) else { return walk };
        for (index, byte) in text.get(start..).unwrap_or_default().iter().enumerate() {
            state = self.trie.next_state(Anchored::Yes, state, *byte);
            if self.trie.is_special(state) {
                if self.trie.is_dead(state) {
                    return walk;
                }
                if self.trie.is_match(state) && self.has_needle(state, index + 1) {
                    walk.len = index + 1;
                }
            }
        }
        walk.open = true;
        walk
    }

    /// Whether a needle of `len` bytes ends in `state`, which also knows the needles that are its suffixes.
    fn has_needle(&self, state: StateID, len: usize) -> bool {
        (0..self.trie.match_len(state))
            .any(|index| self.trie.pattern_len(self.trie.match_pattern(state, index)) == len)
    }

    #[inline]
    fn may_match(&self, text: &[u8], at: usize) -> bool {
        let (byte, bit) = slot(self.gram(text, at));
        self.map.get(byte).is_some_and(|byte| byte & bit != 0)
    }

    /// The gram at `at`; beyond the end of the text there are zeros.
    #[inline]
    fn gram(&self, text: &[u8], at: usize) -> u64 {
        let rest = text.get(at..).unwrap_or_default();
        let word = rest.first_chunk().map_or_else(|| padded(rest), |word| u64::from_le_bytes(*word));
        word & self.gram_mask
    }
}

#[cold]
fn padded(rest: &[u8]) -> u64 {
    rest.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Where in the bit map a gram's bit is: multiplicative hashing with the golden ratio (Knuth, volume 3, section 6.4).
#[inline]
fn slot(gram: u64) -> (usize, u8) {
    let hash = gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASH_BITS);
    #[expect(clippy::cast_possible_truncation, reason = "the hash has HASH_BITS bits")]
    let hash = hash as usize;
    (hash >> 3, 1 << (hash & 7))
}

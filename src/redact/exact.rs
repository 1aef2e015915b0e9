//! Search for many needles at once.
//!
//! An automaton over thousands of needles costs a dependent memory access per byte of text, and many times the needles'
//! own memory. But every needle is at least [`MIN_SECRET_BYTES`](super::MIN_SECRET_BYTES) long, so it is enough to
//! look at every few bytes of the text: a bit map over hashes of all the short grams in the first bytes of the needles
//! tells which of these positions may lie in a needle. This is the idea of Wu and Manber, "A fast algorithm for
//! multi-pattern searching" (1994), with a fixed step. Around such a position a second bit map, over the needles' first
//! bytes, tells where one may start, and only there the sorted needles are searched.

use std::collections::BTreeSet;

/// Base 2 logarithm of the bits in a bit map: 2^17 bits are 16 KiB, so that both maps fit a first-level data cache.
const MAP_BITS: u32 = 17;

/// Most bytes at the start of each needle whose grams are in the bit map. More would make the step longer and the map
/// denser; at 16 a text without secrets is read at memory speed.
const MAX_HEAD: usize = 16;

/// Fewest and most bytes of a gram.
const GRAM_BYTES: std::ops::RangeInclusive<usize> = 4..=8;

/// The needles in a form that is fast to search for. Finds every occurrence, also overlapping ones.
pub(super) struct Exact {
    /// In ascending order.
    needles: Vec<Needle>,
    grams: BitMap,
    gram_bytes: usize,
    /// The first eight bytes of each needle.
    starts: BitMap,
    /// Distance between two positions looked at: an occurrence has one of them on a gram of its head.
    step: usize,
    longest: usize,
}

struct Needle {
    bytes: Box<[u8]>,
    /// Index of the longest other needle that this one starts with.
    prefix: Option<usize>,
}

/// What is known about one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Length of the longest needle that starts here, 0 for none.
    pub(super) len: usize,
    /// Whether the text ends inside a needle that starts here.
    pub(super) open: bool,
}

impl Exact {
    /// Builds the search, or `None` without needles. Each has [`MIN_SECRET_BYTES`](super::MIN_SECRET_BYTES) or more.
    pub(super) fn new(needles: BTreeSet<Vec<u8>>) -> Option<Self> {
        let shortest = needles.iter().map(Vec::len).min()?;
        let longest = needles.iter().map(Vec::len).max()?;
        let head = shortest.min(MAX_HEAD);
        let gram_bytes = (head / 2).clamp(*GRAM_BYTES.start(), *GRAM_BYTES.end());
        let step = head - gram_bytes + 1;
        let (mut grams, mut starts) = (BitMap::new(), BitMap::new());
        for needle in &needles {
            (0..step).for_each(|at| grams.insert(gram(needle, at, gram_bytes)));
            starts.insert(gram(needle, 0, START_BYTES));
        }
        Some(Self { needles: with_prefixes(needles), grams, gram_bytes, starts, step, longest })
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
            if self.grams.contains(gram(text, at, self.gram_bytes)) {
                for start in next_start.max(at + 1 - self.step)..to.min(at + 1) {
                    let len = self.starting_at(text, start);
                    if len > 0 {
                        found(start, start + len);
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

    /// Length of the longest needle that starts at `start`, 0 for none.
    fn starting_at(&self, text: &[u8], start: usize) -> usize {
        if self.starts.contains(gram(text, start, START_BYTES)) { self.look_up(text, start).len } else { 0 }
    }

    /// Looks among all needles for those that start at `start`.
    ///
    /// The needles that `rest` begins with are the greatest one that isn't after `rest` in the order, or prefixes of
    /// it. Those that begin with `rest` come right after `rest`.
    pub(super) fn look_up(&self, text: &[u8], start: usize) -> Start {
        let rest = text.get(start..).unwrap_or_default();
        let after = self.needles.partition_point(|needle| *needle.bytes <= *rest);
        let open = self.needles.get(after).is_some_and(|needle| needle.bytes.starts_with(rest));
        let mut candidate = after.checked_sub(1);
        while let Some(needle) = candidate.and_then(|index| self.needles.get(index)) {
            if rest.starts_with(&needle.bytes) {
                return Start { len: needle.bytes.len(), open };
            }
            candidate = needle.prefix;
        }
        Start { len: 0, open }
    }
}

/// Links each needle to the longest one before it that it starts with.
fn with_prefixes(sorted: BTreeSet<Vec<u8>>) -> Vec<Needle> {
    let mut needles: Vec<Needle> = Vec::with_capacity(sorted.len());
    for bytes in sorted {
        // What a needle starts with also starts the one before it, or is that one.
        let mut prefix = needles.len().checked_sub(1);
        while let Some(index) = prefix
            && let Some(other) = needles.get(index)
            && !bytes.starts_with(&other.bytes)
        {
            prefix = other.prefix;
        }
        needles.push(Needle { bytes: bytes.into_boxed_slice(), prefix });
    }
    needles
}

/// Bytes of a needle that the map of starts knows: as many as a word has and every needle has.
const START_BYTES: usize = 8;

/// The `len` bytes at `at` as a number; beyond the end of the text there are zeros.
#[inline]
fn gram(text: &[u8], at: usize, len: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    let word = rest.first_chunk().map_or_else(|| padded(rest), |word| u64::from_le_bytes(*word));
    word & (u64::MAX >> (64 - 8 * len))
}

#[cold]
fn padded(rest: &[u8]) -> u64 {
    rest.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A set of numbers that may also contain others.
struct BitMap(Vec<u8>);

impl BitMap {
    fn new() -> Self {
        Self(vec![0; 1 << (MAP_BITS - 3)])
    }

    fn insert(&mut self, value: u64) {
        let (byte, bit) = Self::slot(value);
        if let Some(byte) = self.0.get_mut(byte) {
            *byte |= bit;
        }
    }

    #[inline]
    fn contains(&self, value: u64) -> bool {
        let (byte, bit) = Self::slot(value);
        self.0.get(byte).is_some_and(|byte| byte & bit != 0)
    }

    /// Byte and bit of a value: multiplicative hashing with the golden ratio (Knuth, volume 3, section 6.4).
    #[inline]
    fn slot(value: u64) -> (usize, u8) {
        let hash = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - MAP_BITS);
        (usize::try_from(hash >> 3).unwrap_or(usize::MAX), 1 << (hash & 7))
    }
}

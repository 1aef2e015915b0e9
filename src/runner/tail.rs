//! The end of a stream: its last N bytes, and how long it was.

use std::collections::VecDeque;

/// Keeps the last bytes of a stream of any length.
///
/// # Guarantees
/// - At most twice the cap is allocated, and nothing before the first byte arrives; a flood costs one copy of at most
///   the cap per push.
/// - The kept text never begins inside a code point: what a cut left of one is dropped, so up to 3 bytes fewer than the
///   cap are kept. Bytes that aren't UTF-8 are kept as they are; converting them is the reader's choice.
/// - A cap of 0 is legal and only counts.
#[derive(Debug)]
pub struct Tail {
    cap: usize,
    kept: VecDeque<u8>,
    total: u64,
}

/// The outcome of a [`Tail`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The end of the stream.
    pub bytes: Vec<u8>,
    /// Length of the whole stream, in bytes.
    pub total: u64,
}

impl Kept {
    /// Whether bytes are missing at the beginning.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }
}

impl Tail {
    /// An empty tail that will keep at most `cap` bytes.
    #[must_use]
    pub const fn new(cap: usize) -> Self {
        Self { cap, kept: VecDeque::new(), total: 0 }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (_, newest) = bytes.split_at(bytes.len().saturating_sub(self.cap));
        let surplus = (self.kept.len() + newest.len()).saturating_sub(self.cap);
        self.kept.drain(..surplus.min(self.kept.len()));
        self.kept.extend(newest);
    }

    /// Ends the stream and cuts its tail at a code point.
    #[must_use]
    pub fn finish(self) -> Kept {
        let Self { kept, total, .. } = self;
        let mut bytes = Vec::from(kept);
        if total > bytes.len() as u64 {
            bytes.drain(..rest_of_a_code_point(&bytes));
        }
        Kept { bytes, total }
    }
}

/// How many bytes at the beginning continue a code point that began before: at most 3 (RFC 3629, section 3).
fn rest_of_a_code_point(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xBF)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tail_of(cap: usize, pushes: &[&[u8]]) -> Kept {
        let mut tail = Tail::new(cap);
        for bytes in pushes {
            tail.push(bytes);
        }
        tail.finish()
    }

    #[test]
    fn a_cut_never_falls_inside_a_code_point() {
        let euro = "x€y".as_bytes(); // 1 + 3 + 1 bytes
        for (cap, expected) in [(5, "x€y"), (4, "€y"), (3, "y"), (2, "y"), (1, "y"), (0, "")] {
            let kept = tail_of(cap, &[euro]);
            assert_eq!(std::str::from_utf8(&kept.bytes).unwrap(), expected, "cap {cap}");
            assert_eq!((kept.total, kept.is_truncated()), (5, cap < 5), "cap {cap}");
        }
    }

    #[test]
    fn invalid_bytes_are_kept_and_a_stray_run_loses_at_most_three() {
        assert_eq!(tail_of(8, &[b"\xff\x80\xfe"]).bytes, b"\xff\x80\xfe");
        assert_eq!(tail_of(8, &[b"\x80\x80\x80\x80\x80"]).bytes, b"\x80\x80\x80\x80\x80", "nothing was cut");
        assert_eq!(tail_of(5, &[&[0x80; 9]]).bytes, [0x80; 2]);
    }

    #[test]
    fn an_empty_stream_has_an_empty_whole_tail() {
        let kept = tail_of(0, &[]);
        assert_eq!((kept.total, kept.is_truncated()), (0, false));
    }

    proptest! {
        #[test]
        fn a_tail_is_the_cut_end_of_the_stream_however_it_arrived(
            pushes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
            cap in 0_usize..80,
        ) {
            let whole = pushes.concat();
            let mut tail = Tail::new(cap);
            for bytes in &pushes {
                tail.push(bytes);
                prop_assert!(tail.kept.len() <= cap && tail.kept.capacity() <= 2 * cap.max(8));
            }
            let kept = tail.finish();
            prop_assert_eq!(kept.total, whole.len() as u64);
            prop_assert!(whole.ends_with(&kept.bytes));
            prop_assert!(kept.bytes.len() + 3 >= cap.min(whole.len()));
            if whole.len() <= cap {
                prop_assert_eq!(kept.bytes, whole);
            }
        }

        #[test]
        fn the_tail_of_a_text_is_a_text(text in "\\PC{0,60}", cap in 0_usize..100, step in 1_usize..7) {
            let mut tail = Tail::new(cap);
            text.as_bytes().chunks(step).for_each(|piece| tail.push(piece));
            let kept = tail.finish();
            prop_assert!(std::str::from_utf8(&kept.bytes).is_ok());
        }
    }
}

//! The texts under which a secret may show up: the value, its lines, and their common encodings.

use std::collections::BTreeSet;

use super::encode;

/// Fewest bytes of a secret value, without the line ends after it.
///
/// Anything shorter occurs by chance, and its redaction would mangle ordinary text.
pub const MIN_SECRET_BYTES: usize = 8;

/// Most bytes of one secret value.
///
/// A byte of a value costs up to 400 bytes of needles where most of it is punctuation; a Kubernetes Secret may hold
/// 1 MiB, and a value of that size is a data set rather than a credential.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Fewest bytes of a line (without the white space around it) of a multi-line value that is a needle of its own.
///
/// It is above [`MIN_SECRET_BYTES`] because a multi-line value is often a configuration file, whose short lines
/// (`apiVersion: v1`) are no secret and stand in every repository. Shorter lines stay covered as parts of the value.
pub const MIN_LINE_BYTES: usize = 16;

/// Values longer than this many bytes are covered by overlapping pieces of this size, so that no needle is long and
/// the carry-over window of a stream stays small.
const PIECE_BYTES: usize = 128;

/// Bytes that two neighbouring pieces share. Three are enough for their base64 forms to overlap as well.
const PIECE_OVERLAP: usize = 8;

/// Line widths in characters of `openssl base64` and PEM, and of `base64` and MIME (RFC 2045).
const BASE64_WRAPS: [usize; 2] = [64, 76];

/// All needles of `value`, or `None` if the value is shorter than [`MIN_SECRET_BYTES`].
pub(super) fn needles(value: &[u8]) -> Option<BTreeSet<Vec<u8>>> {
    let bare = trim_line_ends(value);
    if guard!("secret-too-short", bare.trim_ascii().len() < MIN_SECRET_BYTES) {
        return None;
    }
    let mut all = BTreeSet::new();
    for unit in units(bare) {
        for piece in pieces(unit) {
            add_forms(piece, &mut all);
        }
    }
    for text in [value, bare] {
        add_whole_base64(text, &mut all);
    }
    all.retain(|needle| needle.len() >= MIN_SECRET_BYTES);
    Some(all)
}

/// What is secret by itself: the value, the value without white space around it, and its lines.
fn units(bare: &[u8]) -> BTreeSet<&[u8]> {
    let mut units = BTreeSet::from([bare, bare.trim_ascii()]);
    let lines = bare.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    units.extend(lines.filter(|line| line.len() >= MIN_LINE_BYTES && !is_armour(line)));
    units
}

/// Whether a line is a public delimiter such as `-----BEGIN PRIVATE KEY-----`.
fn is_armour(line: &[u8]) -> bool {
    line.starts_with(b"-----") && line.ends_with(b"-----")
}

fn trim_line_ends(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    value.get(..end).unwrap_or_default()
}

/// The unit itself, or pieces of about [`PIECE_BYTES`] that cover it and overlap by [`PIECE_OVERLAP`] or more.
fn pieces(unit: &[u8]) -> impl Iterator<Item = &[u8]> {
    let last = unit.len().saturating_sub(PIECE_BYTES);
    let starts = (0..last).step_by(PIECE_BYTES - PIECE_OVERLAP).chain([last]);
    starts.filter_map(move |start| unit.get(widen_start(unit, start)..widen_end(unit, start + PIECE_BYTES)))
}

/// Bytes after the first in the longest UTF-8 sequence.
const MAX_CONTINUATION: usize = 3;

/// The start of the code point that `at` is in, so that the piece has a JSON form.
fn widen_start(unit: &[u8], at: usize) -> usize {
    let inside = |at: &usize| unit.get(*at).is_some_and(|byte| is_continuation(*byte));
    at - (at.saturating_sub(MAX_CONTINUATION) + 1..=at).rev().take_while(inside).count()
}

/// The end of the code point that `at` is in.
fn widen_end(unit: &[u8], at: usize) -> usize {
    let rest = unit.get(at..).unwrap_or_default();
    let inside = rest.iter().take(MAX_CONTINUATION).take_while(|byte| is_continuation(**byte)).count();
    unit.len().min(at + inside)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn add_forms(piece: &[u8], all: &mut BTreeSet<Vec<u8>>) {
    all.insert(piece.to_vec());
    all.extend(encode::base64_cores(piece));
    all.extend(encode::hex(piece));
    all.extend(encode::percent(piece));
    all.extend(encode::json(piece));
}

/// The base64 text of a whole value: where it is wrapped its lines, else all of it or its end, whose last characters
/// the cores don't cover.
fn add_whole_base64(value: &[u8], all: &mut BTreeSet<Vec<u8>>) {
    let public = armour_bytes(value);
    for wrap in BASE64_WRAPS {
        let line_bytes = wrap / 4 * 3;
        for (line, public) in value.chunks(line_bytes).zip(public.chunks(line_bytes)) {
            if public.iter().filter(|public| !**public).count() >= MIN_SECRET_BYTES {
                all.extend(encode::base64_whole(line));
            }
        }
    }
    if value.len() <= PIECE_BYTES {
        all.extend(encode::base64_whole(value));
    }
}

/// For each byte, whether it belongs to an armour line.
fn armour_bytes(value: &[u8]) -> Vec<bool> {
    let lines = value.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| std::iter::repeat_n(is_armour(line.trim_ascii()), line.len())).collect()
}

//! Encodings in which other programs print a secret. Each function gives all variants of one family.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Base64 (standard and URL-safe) as it stands when `value` is encoded by itself, padded and not.
pub(super) fn base64_whole(value: &[u8]) -> [Vec<u8>; 4] {
    [
        STANDARD.encode(value).into_bytes(),
        STANDARD_NO_PAD.encode(value).into_bytes(),
        URL_SAFE.encode(value).into_bytes(),
        URL_SAFE_NO_PAD.encode(value).into_bytes(),
    ]
}

/// The characters that every base64 text with `value` somewhere inside it must contain.
///
/// A value inside a longer text begins at one of three offsets within a group of three bytes. A character that also
/// depends on a neighbouring byte isn't part of the core; at most one on each side, which tells four bits or fewer.
pub(super) fn base64_cores(value: &[u8]) -> Vec<Vec<u8>> {
    let mut cores = Vec::new();
    for offset in 0..3 {
        let mut text = vec![0; offset];
        text.extend_from_slice(value);
        let first = (offset * 8).div_ceil(6);
        let end = text.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            cores.extend(encoded.as_bytes().get(first..end).map(<[u8]>::to_vec));
        }
    }
    cores
}

/// Hexadecimal in lower and in upper case.
pub(super) fn hex(value: &[u8]) -> [Vec<u8>; 2] {
    [Case::Lower, Case::Upper].map(|case| {
        let mut out = Vec::with_capacity(value.len() * 2);
        for byte in value {
            case.push_hex(*byte, &mut out);
        }
        out
    })
}

/// Percent-encoding by the sets of characters that common encoders leave alone.
pub(super) fn percent(value: &[u8]) -> Vec<Vec<u8>> {
    /// Beside letters and digits.
    const KEPT: [&[u8]; 6] = [
        b"-._~",                 // RFC 3986, section 2.3; Python's quote(safe=""), Go's QueryEscape
        b"-._~!$&'()*+,;=",      // RFC 3986, section 3.2.1: user and password of a URL
        b"-._~!'()*",            // encodeURIComponent
        b"-._~!'()*;/?:@&=+$,#", // encodeURI
        b"-._~/",                // Python's quote
        b"-._*",                 // application/x-www-form-urlencoded, whose space is a plus sign
    ];
    let mut forms = Vec::new();
    for case in [Case::Lower, Case::Upper] {
        forms.push(percent_encoded(value, case, |_| false));
        for kept in KEPT {
            let encoded =
                percent_encoded(value, case, |byte| byte.is_ascii_alphanumeric() || kept.contains(&byte));
            // No set keeps the percent sign, so `%20` in the text always stands for a space.
            forms.push(replaced(&encoded, b"%20", b"+"));
            forms.push(encoded);
        }
    }
    forms
}

fn percent_encoded(value: &[u8], case: Case, keeps: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() * 3);
    for byte in value {
        if keeps(*byte) {
            out.push(*byte);
        } else {
            out.push(b'%');
            case.push_hex(*byte, &mut out);
        }
    }
    out
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(from) {
            out.extend_from_slice(to);
            rest = tail;
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

/// JSON string bodies (RFC 8259, section 7) as common encoders write them, once and twice escaped.
///
/// Twice, because a command line tool's event is a JSON text that quotes a tool's JSON output. Empty for a value that
/// isn't UTF-8, which no JSON text can hold.
pub(super) fn json(value: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = str::from_utf8(value) else { return Vec::new() };
    // Most styles agree on most secrets.
    let once: BTreeSet<_> = JSON_STYLES.iter().map(|style| style.escape(text)).collect();
    let outer = || JSON_STYLES.iter().filter(|style| !style.everything);
    let twice: BTreeSet<_> = once.iter().flat_map(|text| outer().map(|style| style.escape(text))).collect();
    once.into_iter().chain(twice).map(String::into_bytes).collect()
}

/// What one JSON encoder writes as `\uXXXX` beyond what it must, and how.
struct JsonStyle {
    /// ASCII characters written as `\uXXXX`.
    unicode: &'static str,
    /// Whether everything outside ASCII is written as `\uXXXX`.
    ascii: bool,
    /// Whether every character is written as `\uXXXX`.
    everything: bool,
    /// Whether a slash becomes `\/`.
    slash: bool,
    case: Case,
}

const PLAIN: JsonStyle =
    JsonStyle { unicode: "", ascii: false, everything: false, slash: false, case: Case::Lower };

const JSON_STYLES: [JsonStyle; 11] = [
    PLAIN,                                                 // serde_json, JSON.stringify, jq
    JsonStyle { slash: true, ..PLAIN },                    // PHP with unescaped Unicode
    JsonStyle { slash: true, ascii: true, ..PLAIN },       // PHP
    JsonStyle { ascii: true, ..PLAIN },                    // Python, jq --ascii-output
    JsonStyle { ascii: true, case: Case::Upper, ..PLAIN }, // Jackson
    JsonStyle { unicode: "<>&", ..PLAIN },                 // Go, Rails
    JsonStyle { unicode: "<>&='", ..PLAIN },               // Gson
    JsonStyle { unicode: "<>&'\"", ascii: true, case: Case::Upper, ..PLAIN }, // PHP with JSON_HEX_*
    JsonStyle { unicode: "<>&'\"+`", ascii: true, case: Case::Upper, ..PLAIN }, // .NET
    JsonStyle { everything: true, ..PLAIN },
    JsonStyle { everything: true, case: Case::Upper, ..PLAIN },
];

impl JsonStyle {
    fn escape(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for symbol in text.chars() {
            let unicode = self.everything
                || self.unicode.contains(symbol)
                || (self.ascii && !symbol.is_ascii())
                || (symbol < ' ' && short_escape(symbol).is_none());
            if unicode {
                self.push_unicode(symbol, &mut out);
            } else if let Some(escape) = short_escape(symbol) {
                out.push_str(escape);
            } else if symbol == '/' && self.slash {
                out.push_str("\\/");
            } else {
                out.push(symbol);
            }
        }
        out
    }

    fn push_unicode(&self, symbol: char, out: &mut String) {
        for unit in symbol.encode_utf16(&mut [0; 2]) {
            let mut digits = Vec::with_capacity(4);
            for byte in unit.to_be_bytes() {
                self.case.push_hex(byte, &mut digits);
            }
            out.push_str("\\u");
            out.extend(digits.into_iter().map(char::from));
        }
    }
}

fn short_escape(symbol: char) -> Option<&'static str> {
    Some(match symbol {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        _ => return None,
    })
}

/// Case of hexadecimal digits.
#[derive(Clone, Copy)]
enum Case {
    Lower,
    Upper,
}

impl Case {
    fn push_hex(self, byte: u8, out: &mut Vec<u8>) {
        let digits: &[u8; 16] = match self {
            Self::Lower => b"0123456789abcdef",
            Self::Upper => b"0123456789ABCDEF",
        };
        out.extend([byte >> 4, byte & 15].iter().filter_map(|digit| digits.get(usize::from(*digit))));
    }
}

//! Removal of everything in a text that a person can't see but a terminal or a page acts on.

/// Most characters of one escape sequence. A longer one is taken for text from there on, so that an unfinished
/// sequence can't swallow the rest.
const MAX_SEQUENCE: u32 = 4096;

/// Longest UTF-8 sequence in bytes.
const MAX_UTF8: usize = 4;

/// Makes text that is safe to show from bytes that arrive in chunks.
///
/// # Guarantees
/// - The output has no control characters but newline and tab, no escape sequences (CSI, OSC, DCS, SOS, PM, APC, also
///   with their one-character introducers), no bidirectional controls, and no other characters that are never visible.
/// - Invalid UTF-8 becomes U+FFFD, as with [`String::from_utf8_lossy`].
/// - All line ends (CR LF, CR, NEL, U+2028, U+2029) become one newline each.
/// - It doesn't depend on how the input is split, and sanitizing once more changes nothing.
///
/// # Caveats
/// Joiners and variation selectors are invisible too: a joined emoji falls apart into its parts.
#[derive(Debug, Default)]
pub struct Sanitizer {
    state: State,
    /// Characters of the current escape sequence.
    sequence: u32,
    /// Whether the last character was a carriage return, whose newline is written already.
    after_return: bool,
    /// Bytes of an unfinished character.
    partial: Vec<u8>,
}

/// Where in an escape sequence (ECMA-48) the text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC, and its intermediate characters.
    Escape,
    /// In a control sequence: parameters, then one final character.
    Control,
    /// In a control string (OSC, DCS, SOS, PM, APC): ends with ST or BEL.
    Str,
    /// After an ESC in a control string: a backslash makes it ST.
    StrEscape,
}

impl Sanitizer {
    /// Takes the next bytes and appends the visible text to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut String) {
        let mut joined = std::mem::take(&mut self.partial);
        let text = if joined.is_empty() {
            chunk
        } else {
            joined.extend_from_slice(chunk);
            &joined
        };
        let (complete, partial) = split_partial(text);
        self.partial = partial.to_vec();
        self.take_lossy(complete, out);
    }

    /// Ends the text: an unfinished character becomes U+FFFD.
    pub fn finish(mut self, out: &mut String) {
        let partial = std::mem::take(&mut self.partial);
        self.take_lossy(&partial, out);
    }

    fn take_lossy(&mut self, text: &[u8], out: &mut String) {
        for chunk in text.utf8_chunks() {
            for symbol in chunk.valid().chars() {
                self.take(symbol, out);
            }
            if !chunk.invalid().is_empty() {
                self.take(char::REPLACEMENT_CHARACTER, out);
            }
        }
    }

    fn take(&mut self, symbol: char, out: &mut String) {
        self.sequence = if self.state == State::Text { 0 } else { self.sequence + 1 };
        if self.sequence > MAX_SEQUENCE {
            self.state = State::Text;
        }
        match (self.state, symbol) {
            (State::Str, '\u{1b}') => self.state = State::StrEscape,
            (_, '\u{1b}') => self.state = State::Escape,
            // A line end or CAN and SUB break off whatever is unfinished.
            (State::Text, _) | (_, '\n' | '\r' | '\u{18}' | '\u{1a}') => self.text(symbol, out),
            (State::Escape, '[') => self.state = State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => self.state = State::Str,
            (State::Escape, '0'..='~')
            | (State::Control, '@'..='~')
            | (State::Str, '\u{7}' | '\u{9c}')
            | (State::StrEscape, '\\') => self.state = State::Text,
            (State::Escape, ' '..='/') | (State::Control, ' '..='?') | (State::Str, _) => {}
            (State::Escape | State::Control, _) => self.text(symbol, out),
            // Any other escape ends the string and is one of its own.
            (State::StrEscape, _) => {
                self.state = State::Escape;
                self.take(symbol, out);
            }
        }
    }

    /// A character outside of escape sequences.
    fn text(&mut self, symbol: char, out: &mut String) {
        self.state = State::Text;
        let after_return = std::mem::replace(&mut self.after_return, symbol == '\r');
        match symbol {
            '\n' if after_return => {}
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{9b}' => self.state = State::Control,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = State::Str,
            '\t' => out.push('\t'),
            _ if symbol.is_control() || is_invisible(symbol) => {}
            _ => out.push(symbol),
        }
    }
}

/// Splits off an unfinished UTF-8 sequence at the end.
pub(super) fn split_partial(text: &[u8]) -> (&[u8], &[u8]) {
    let tail = text.len().saturating_sub(MAX_UTF8 - 1);
    for start in (tail..text.len()).rev() {
        let rest = text.get(start..).unwrap_or_default();
        match str::from_utf8(rest) {
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => {
                return text.split_at(start);
            }
            _ => {}
        }
    }
    (text, &[])
}

/// Whether a character takes no place of its own: the default-ignorable code points of Unicode (UAX #44), the
/// bidirectional controls among them, with the interlinear annotations and the noncharacters at the ends of planes.
fn is_invisible(symbol: char) -> bool {
    matches!(symbol,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(symbol) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn sanitized(text: &[u8]) -> String {
        let mut out = String::new();
        let mut sanitizer = Sanitizer::default();
        sanitizer.push(text, &mut out);
        sanitizer.finish(&mut out);
        out
    }

    #[test]
    fn sequences_are_removed_and_text_stays() {
        let cases: [(&[u8], &str); 16] = [
            (b"\x1b[1;31mred\x1b[0m text", "red text"),
            (b"\x1b]8;;https://x\x1b\\link\x1b]8;;\x07.", "link."),
            (b"\x1bPdevice\x1b\\a\x1b_app\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
            ("\u{9b}31mred\u{9d}0;t\u{9c}.".as_bytes(), "red."),
            (b"\x1b(Bascii\x1b7\x1b8\x1bM", "ascii"),
            (b"\x1b]0;unfinished\nnext line", "\nnext line"),
            (b"\x1b]0;title\x1b[31mred", "red"),
            (b"\x1b[31\x1b[32mgreen", "green"),
            (b"\x1b[3\x18m", "m"),
            ("\u{1b}\u{f6}".as_bytes(), "\u{f6}"),
            (b"a\r\nb\rc\n\rd\te", "a\nb\nc\n\nd\te"),
            ("a\u{85}b\u{2028}c\u{2029}d".as_bytes(), "a\nb\nc\nd"),
            (b"a\0b\x07c\x08d\x7fe\x0bf\x0cg", "abcdefg"),
            ("\u{202e}evil\u{2066}\u{2069}\u{200e}\u{61c}".as_bytes(), "evil"),
            ("in\u{200b}vis\u{2060}ib\u{feff}le\u{e0041}\u{fe0f}".as_bytes(), "invisible"),
            (b"a\xffb\xe2\x82", "a\u{fffd}b\u{fffd}"),
        ];
        for (text, expected) in cases {
            assert_eq!(sanitized(text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn an_unfinished_sequence_swallows_a_bounded_text() {
        let text = format!("\u{1b}]0;{}", "x".repeat(10_000));
        let swallowed = text.len() - sanitized(text.as_bytes()).len();
        assert!(swallowed <= MAX_SEQUENCE as usize + 1, "{swallowed}");
    }

    #[test]
    fn nothing_that_unicode_calls_control_bidirectional_or_ignorable_stays() {
        let hidden =
            Regex::new(r"[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}--\t\n]");
        let hidden = hidden.expect("a valid pattern");
        // A line end after each, since it breaks off any escape sequence.
        let all: String = ('\0'..=char::MAX).flat_map(|symbol| [symbol, '\n']).collect();
        let out = sanitized(all.as_bytes());
        assert_eq!(hidden.find(&out).map(|found| found.as_str().escape_unicode().to_string()), None);
        assert!(out.len() > all.len() / 2);
    }

    proptest! {
        #[test]
        fn chunks_and_repetition_change_nothing(
            text in prop::collection::vec(
                prop_oneof![
                    any::<u8>().prop_map(|byte| vec![byte]),
                    any::<char>().prop_map(|symbol| symbol.to_string().into_bytes()),
                    prop::sample::select(&["\u{1b}", "\u{1b}[", "\u{1b}]", "\u{9d}", "\\", "\r", "\n", "m", "\u{7}"][..])
                        .prop_map(|part| part.as_bytes().to_vec()),
                ],
                0..40,
            ).prop_map(|parts| parts.concat()),
        ) {
            let whole = sanitized(&text);
            let mut out = String::new();
            let mut sanitizer = Sanitizer::default();
            for byte in &text {
                sanitizer.push(&[*byte], &mut out);
            }
            sanitizer.finish(&mut out);
            prop_assert_eq!(&out, &whole);
            prop_assert_eq!(sanitized(whole.as_bytes()), whole);
        }
    }
}

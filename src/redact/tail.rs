//! What a rule swallows after the bytes that decided it: a state per byte instead of a window.

/// A set of bytes that a token consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Capital letters and digits.
    Upper,
    /// Letters and digits.
    AlphaNum,
    /// Letters, digits and underscore.
    Word,
    /// Letters, digits, `-` and `_`: base64url (RFC 4648, section 5).
    Base64Url,
    /// base64url and the dot.
    Dotted,
    /// `token68` of RFC 9110, section 11.2.
    Token68,
}

impl Class {
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::AlphaNum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Base64Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Self::Token68 => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }
}

/// How a match goes on after its decided part. There are few different values, so that any number of open tails is a
/// small set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Not at all.
    None,
    /// As long as bytes of the class follow.
    Class(Class),
    /// Through the body of an armoured key and its last line: `lines` of dashes seen whole, `dashes` in the current
    /// one.
    Key { lines: u8, dashes: u8 },
}

impl Tail {
    /// Just after the first line of an armoured key.
    pub(super) const KEY: Self = Self::Key { lines: 0, dashes: 0 };

    /// The state after `byte`, or `None` if the match ends before it.
    pub(super) fn step(self, byte: u8) -> Option<Self> {
        match self {
            Self::None | Self::Key { lines: LAST_LINE_RUNS, .. } => None,
            Self::Class(class) => class.has(byte).then_some(self),
            Self::Key { lines, dashes } if byte == b'-' => Some(if dashes + 1 == ARMOUR_DASHES {
                Self::Key { lines: lines + 1, dashes: 0 }
            } else {
                Self::Key { lines, dashes: dashes + 1 }
            }),
            Self::Key { lines, .. } => in_key(byte).then_some(Self::Key { lines, dashes: 0 }),
        }
    }

    /// How many bytes of `text` belong to the match, and the state if all of them do.
    pub(super) fn run(self, text: &[u8]) -> (usize, Option<Self>) {
        let mut tail = self;
        for (index, byte) in text.iter().enumerate() {
            match tail.step(*byte) {
                Some(next) => tail = next,
                None => return (index, None),
            }
        }
        (text.len(), (tail != Self::None).then_some(tail))
    }
}

/// Dashes on each side of an armour line's label.
const ARMOUR_DASHES: u8 = 5;

/// Runs of dashes in the last line of an armoured key.
const LAST_LINE_RUNS: u8 = 2;

/// Bytes of base64 lines, of their headers (`Proc-Type: 4,ENCRYPTED`), and of a line end escaped in JSON or a shell.
fn in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'+' | b'/' | b'=' | b' ' | b'\t' | b'\n' | b'\r' | b'\\' | b':' | b',' | b'.')
}

//! Frames: the length-prefixed pieces that records are cut into.

/// Longest JSON header of a record, in bytes (64 KiB). A launch with 256 arguments and 1,000 variables needs a third of it.
pub const MAX_CONTROL: usize = 64 << 10;

/// Longest piece of payload in one frame, in bytes (1 MiB).
pub const MAX_DATA: usize = 1 << 20;

/// Bytes before a frame's body: its length and its kind.
pub(super) const PREFIX: usize = 5;

/// What a frame's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A record's JSON header.
    Control,
    /// A piece of a record's payload.
    Data,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Control => 1,
            Self::Data => 2,
        }
    }

    /// The longest body that a frame of this kind may have, in bytes.
    pub(super) const fn limit(self) -> usize {
        match self {
            Self::Control => MAX_CONTROL,
            Self::Data => MAX_DATA,
        }
    }

    /// The kind with this code, if there is one.
    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Control),
            2 => Some(Self::Data),
            _ => None,
        }
    }
}

/// Appends one frame. The caller keeps the body within [`Kind::limit`].
pub(super) fn write(kind: Kind, body: &[u8], out: &mut Vec<u8>) {
    write_prefix(kind, body.len(), out);
    out.extend_from_slice(body);
}

/// Appends the prefix of a frame whose body of `length` bytes the caller appends next.
pub(super) fn write_prefix(kind: Kind, length: usize, out: &mut Vec<u8>) {
    debug_assert!(length <= kind.limit(), "a frame's body has to fit");
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind.code());
}

/// Reads a frame's prefix: its kind, if that is known, and the length of its body.
pub(super) const fn read_prefix(prefix: [u8; PREFIX]) -> (Option<Kind>, u32) {
    let [a, b, c, d, code] = prefix;
    (Kind::from_code(code), u32::from_be_bytes([a, b, c, d]))
}

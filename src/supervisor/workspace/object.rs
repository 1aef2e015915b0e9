//! Git's object names, computed here so that no git process reads the agent's files.

use std::fmt;

use sha1::Digest;

/// The hash function of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl ObjectFormat {
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"sha1" => Some(Self::Sha1),
            b"sha256" => Some(Self::Sha256),
            _ => None,
        }
    }

    /// The format whose object names have this many hexadecimal digits.
    pub(super) fn from_digits(digits: usize) -> Option<Self> {
        [Self::Sha1, Self::Sha256].into_iter().find(|format| format.bytes() * 2 == digits)
    }

    /// The name of the empty tree, which every git knows without storing it.
    pub(super) fn empty_tree(self) -> &'static str {
        match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// The full name of an object, of a commit for instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId {
    format: u8,
    bytes: [u8; 32],
}

impl ObjectId {
    /// Reads a full hexadecimal object name; abbreviations are no names.
    #[must_use]
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        let length = ObjectFormat::from_digits(digits.len())?.bytes();
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let &[high, low] = pair else { return None };
            *byte = (nibble(high)? << 4) | nibble(low)?;
        }
        Some(Self { format: u8::try_from(length).ok()?, bytes })
    }

    pub(super) fn format(&self) -> ObjectFormat {
        if usize::from(self.format) == ObjectFormat::Sha1.bytes() {
            ObjectFormat::Sha1
        } else {
            ObjectFormat::Sha256
        }
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.iter().take(self.format.into()).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a tree entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Regular,
    Executable,
    Symlink,
    Submodule,
}

impl Mode {
    /// Reads an octal mode; old trees hold group-writable files, which git treats as plain ones.
    pub(super) fn from_octal(digits: &[u8]) -> Option<Self> {
        let mode = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?;
        match mode & 0o170_000 {
            0o100_000 if mode & 0o100 == 0 => Some(Self::Regular),
            0o100_000 => Some(Self::Executable),
            0o120_000 => Some(Self::Symlink),
            0o160_000 => Some(Self::Submodule),
            _ => None,
        }
    }

    pub(super) fn as_octal(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        }
    }

    pub(super) fn of_file(executable: bool) -> Self {
        if executable { Self::Executable } else { Self::Regular }
    }

    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::Regular | Self::Executable)
    }

    /// Whether both are files, whatever their executable bits, or both the same other thing.
    pub(super) fn is_same_type(self, other: Self) -> bool {
        self == other || (self.is_file() && other.is_file())
    }
}

/// Computes a blob's name from its length and, in pieces, its content.
pub(super) enum BlobHasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl BlobHasher {
    pub(super) fn new(format: ObjectFormat, length: u64) -> Self {
        let mut hasher = match format {
            ObjectFormat::Sha1 => Self::Sha1(sha1::Sha1::new()),
            ObjectFormat::Sha256 => Self::Sha256(sha2::Sha256::new()),
        };
        hasher.update(format!("blob {length}\0").as_bytes());
        hasher
    }

    pub(super) fn update(&mut self, content: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(content),
            Self::Sha256(hasher) => hasher.update(content),
        }
    }

    pub(super) fn finish(self) -> ObjectId {
        match self {
            Self::Sha1(hasher) => name(&hasher.finalize()),
            Self::Sha256(hasher) => name(&hasher.finalize()),
        }
    }
}

/// The name of a blob that is wholly in memory.
pub(super) fn blob_id(format: ObjectFormat, content: &[u8]) -> ObjectId {
    let mut hasher = BlobHasher::new(format, content.len() as u64);
    hasher.update(content);
    hasher.finish()
}

fn name(digest: &[u8]) -> ObjectId {
    let mut bytes = [0; 32];
    let mut length = 0;
    for (to, from) in bytes.iter_mut().zip(digest) {
        *to = *from;
        length += 1;
    }
    ObjectId { format: length, bytes }
}

//! The proof that a connection comes from the one runner that the supervisor started.

use std::fmt;

/// A one-time secret of 32 random bytes, given to the runner on its standard input or in a file and shown in its hello.
///
/// The supervisor draws it, accepts exactly one connection that shows it, and then stops listening.
#[derive(Clone)]
pub struct Token([u8; Self::BYTES]);

impl Token {
    /// Length of a token, in bytes.
    pub const BYTES: usize = 32;

    /// Wraps bytes that came from a cryptographic random source.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The secret itself, for handing it over.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Whether both are the same secret. Looks at every byte, so that the time taken doesn't tell how many agree.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |difference, (mine, theirs)| difference | (mine ^ theirs)) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

//! One text for one value: canonical JSON (RFC 8785) and its SHA-256, with the format's version in front.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// SHA-256 of the value's canonical JSON as `v1:` and 64 hexadecimal digits.
///
/// A value that has no JSON form (none of ours: string keys, and integers within 2^53 by the schemas' bounds) hashes as `null`.
pub(super) fn hash(value: &impl Serialize) -> String {
    let canonical = serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
    format!("v1:{}", sha256_hex(&canonical))
}

/// SHA-256 as 64 hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String can't fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn order_and_spelling_of_json_do_not_matter() {
        assert_eq!(
            hash(&json!({"a": 1, "b": "\u{e9}"})),
            hash(&serde_json::from_str::<serde_json::Value>(r#"{"b":"\u00e9","a":1}"#).unwrap())
        );
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

//! Names that git gives a meaning, and quoting for the formats that need it.

use std::fmt::Write as _;

/// Characters that some file systems ignore in names, as UTF-8: a name with them can be another's equal there
/// (git's `core.protectHFS`).
const IGNORABLE: [&str; 16] = [
    "\u{200c}", "\u{200d}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202b}", "\u{202c}", "\u{202d}",
    "\u{202e}", "\u{206a}", "\u{206b}", "\u{206c}", "\u{206d}", "\u{206e}", "\u{206f}", "\u{feff}",
];

/// Whether a single file name is `.git` on some file system: git refuses such a name in any tree, so a diff that held
/// one could never be applied.
///
/// The rule is that of git's `verify_path` with `core.protectHFS` and `core.protectNTFS`.
pub(super) fn means_git_dir(name: &[u8]) -> bool {
    let plain = String::from_utf8_lossy(name).to_ascii_lowercase();
    let visible = IGNORABLE.iter().fold(plain, |name, ignorable| name.replace(ignorable, ""));
    [".git", "git~1"].into_iter().any(|reserved| {
        visible.strip_prefix(reserved).is_some_and(|rest| {
            let rest = rest.trim_start_matches([' ', '.']);
            rest.is_empty() || rest.starts_with(':') || rest.starts_with('\\')
        })
    })
}

/// Whether this can be the name of a branch or tag, by the rules of `git check-ref-format`.
pub(super) fn is_ref_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let component = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.strip_suffix(".lock").is_none()
            && !part.ends_with('.')
    };
    name.split('/').all(component)
        && !name.contains(forbidden)
        && !name.contains("..")
        && !name.contains("@{")
        && name != "@"
}

/// Quotes bytes the way git reads them in `fast-import` streams and `alternates` files: in double quotes, with octal
/// escapes for what would end a line or the quotes.
pub(super) fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in bytes {
        if byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f) {
            let mut escape = String::new();
            // Writing to a string cannot fail.
            let _ = write!(escape, "\\{byte:03o}");
            quoted.extend_from_slice(escape.as_bytes());
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'"');
    quoted
}

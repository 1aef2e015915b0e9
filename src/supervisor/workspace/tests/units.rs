//! The pure parts.

use crate::supervisor::workspace::ObjectId;
use crate::supervisor::workspace::names::{is_ref_name, means_git_dir, quote};
use crate::supervisor::workspace::object::{ObjectFormat, blob_id};

#[test]
fn blobs_are_named_as_git_names_them() {
    // From `git hash-object` in a repository of each format.
    let sha1 = "ce013625030ba8dba906f756967f9e9ca394464a";
    let sha256 = "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4";
    assert_eq!(blob_id(ObjectFormat::Sha1, b"hello\n").to_string(), sha1);
    assert_eq!(blob_id(ObjectFormat::Sha256, b"hello\n").to_string(), sha256);
}

#[test]
fn only_full_lower_case_names_are_object_names() {
    let digits = "0123456789abcdef".repeat(4);
    assert_eq!(ObjectId::from_hex(&digits.as_bytes()[..40]).unwrap().to_string(), digits[..40]);
    assert_eq!(ObjectId::from_hex(digits.as_bytes()).unwrap().to_string(), digits);
    for bad in
        [&digits[..39], &digits[..41], "", &digits[..40].to_uppercase(), &digits[..40].replace('0', "g")]
    {
        assert!(ObjectId::from_hex(bad.as_bytes()).is_none(), "{bad}");
    }
}

#[test]
fn names_that_mean_git_on_some_file_system_are_known() {
    for name in [
        ".git",
        ".GIT",
        ".Git",
        ".git.",
        ".git ",
        ".git . .",
        ".git::$INDEX_ALLOCATION",
        "git~1",
        "GIT~1",
        ".g\u{200c}it",
    ] {
        assert!(means_git_dir(name.as_bytes()), "{name}");
    }
    for name in [".gitignore", ".github", "git", ".gi", ".git~", "git~2", "x.git", ".git-x", ""] {
        assert!(!means_git_dir(name.as_bytes()), "{name}");
    }
}

#[test]
fn reference_names_are_those_that_git_accepts() {
    for name in ["main", "a/b", "-x", "é", "a.b", "x@y"] {
        assert!(is_ref_name(name), "{name}");
    }
    for name in [
        "", "/a", "a/", "a//b", ".a", "a/.b", "a..b", "a.lock", "a b", "a:b", "a~1", "a^", "a*", "@",
        "a@{1}", "a\n", "a.",
    ] {
        assert!(!is_ref_name(name), "{name}");
    }
}

#[test]
fn quoting_keeps_every_byte_on_one_line() {
    assert_eq!(quote(b"plain \xff"), b"\"plain \xff\"");
    assert_eq!(quote(b"a\n\"\\"), b"\"a\\012\\042\\134\"");
}

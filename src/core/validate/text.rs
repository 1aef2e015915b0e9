//! Small questions about text that definitions and tasks share.

use regex::Regex;

/// The pattern as an expression that must match the whole value; `None` when it isn't one.
pub(super) fn whole_match(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

/// The part of `git check-ref-format` that the schema's pattern leaves open.
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "git's rule is case-sensitive")]
pub(super) fn is_branch_name(name: &str) -> bool {
    let parts = || name.split('/');
    !name.contains("..")
        && !name.ends_with('.')
        && parts().all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
        && !name.starts_with('-')
}

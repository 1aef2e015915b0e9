//! Named guards, which `./test mutations` switches off one at a time to see that a test notices.
//!
//! A guard is a condition under which something is refused, bounded or ended. Without the feature `mutations`, which is
//! never a default and never released, `guard!("name", condition)` is the condition and nothing else. With it, the
//! guard named by the environment variable `CAISSON_MUTATION` is never true. `tests/mutations.txt` lists every guard
//! with a test that must then fail; `tests/architecture.rs` compares the list with the code.

/// The condition of the guard `name`: `if guard!("prompt-too-large", bytes > LIMIT) { return Err(…) }`.
///
/// The condition is not evaluated while the guard is switched off.
#[cfg(not(feature = "mutations"))]
macro_rules! guard {
    ($name:literal, $condition:expr $(,)?) => {
        $condition
    };
}

#[cfg(feature = "mutations")]
macro_rules! guard {
    ($name:literal, $condition:expr $(,)?) => {
        $crate::guard::stands($name) && $condition
    };
}

/// The environment variable that names the one guard to switch off. What starts a part of caisson with a cleared
/// environment passes it on, or that part's guards stay on.
#[cfg(feature = "mutations")]
pub(crate) const SWITCH: &str = "CAISSON_MUTATION";

/// Whether the guard `name` is on. The environment is read once per process.
#[cfg(feature = "mutations")]
pub(crate) fn stands(name: &str) -> bool {
    static OFF: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| {
        #[expect(clippy::disallowed_methods, reason = "a switch for tests, absent from every released build")]
        std::env::var(SWITCH).ok()
    });
    OFF.as_deref() != Some(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_guard_is_its_condition() {
        let refuses = |bytes: usize| guard!("guard-self-test", bytes > 3);
        assert!(refuses(4), "a guard that is on refuses");
        assert!(!refuses(3));
    }
}

//! Host patterns: a name or `*.suffix`, with an optional port.

/// Whether everything that `pattern` allows lies inside one of `ceiling`.
///
/// A wildcard stands for one or more labels, and a pattern without a port means 443.
pub fn covers(ceiling: &[String], pattern: &str) -> bool {
    let (host, port) = split(pattern);
    ceiling
        .iter()
        .map(|outer| split(outer))
        .any(|(outer, outer_port)| outer_port == port && contains(outer, host))
}

fn split(pattern: &str) -> (&str, &str) {
    pattern.rsplit_once(':').unwrap_or((pattern, "443"))
}

fn contains(outer: &str, host: &str) -> bool {
    match outer.strip_prefix("*.") {
        Some(suffix) => host.strip_suffix(suffix).is_some_and(|labels| labels.ends_with('.')),
        None => outer == host,
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_pattern_is_covered_only_by_one_that_allows_all_of_it() {
        let table = [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("a.example", "a.example:443", true),
            ("a.example", "a.example:80", false),
            ("a.example:80", "a.example:80", true),
            ("*.example", "a.example", true),
            ("*.example", "b.a.example", true),
            ("*.example", "example", false),
            ("*.example", "badexample", false),
            ("*.example", "*.example", true),
            ("*.example", "*.a.example", true),
            ("*.a.example", "*.example", false),
            ("a.example", "*.a.example", false),
            ("*.example", "a.example.evil", false),
        ];
        for (ceiling, pattern, expected) in table {
            assert_eq!(covers(&[ceiling.to_owned()], pattern), expected, "{pattern} in {ceiling}");
        }
        assert!(!covers(&[], "a.example"));
    }
}

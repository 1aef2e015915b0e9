//! Checks that look at the text of any tracked file.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

/// The names of the guards in `text`: the literal of each `guard!("name", …)`, wherever it stands.
pub(crate) fn guards(text: &str) -> BTreeSet<String> {
    fn collect(tokens: TokenStream, found: &mut BTreeSet<String>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for window in tokens.windows(3) {
            if let [TokenTree::Ident(name), TokenTree::Punct(bang), TokenTree::Group(input)] = window
                && name == "guard"
                && bang.as_char() == '!'
                && let Some(TokenTree::Literal(literal)) = input.stream().into_iter().next()
            {
                found.insert(literal.to_string().trim_matches('"').to_owned());
            }
        }
        for token in tokens {
            if let TokenTree::Group(group) = token {
                collect(group.stream(), found);
            }
        }
    }
    let mut found = BTreeSet::new();
    if let Ok(tokens) = text.parse() {
        collect(tokens, &mut found);
    }
    found
}

/// Directories of one machine that `text` names, and lock file entries that came from elsewhere than the public
/// registries: what would tell where the project was built, or fail elsewhere.
pub(crate) fn machine_traces(
    path: &str,
    text: &str,
    homes: &[&str],
    registries: &[(&str, &str)],
) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = format!("{path}:{}", number + 1);
        for home in homes {
            let directory = format!("/{home}/");
            // `src/home/` and `https://host/home/` are no directories of a machine.
            let absolute = line.match_indices(&directory).any(|(index, _)| {
                let before = line.get(..index).unwrap_or_default();
                let inner = before.ends_with(|it: char| it.is_alphanumeric() || "._-*}/".contains(it));
                !inner || before.ends_with("file://")
            });
            if absolute {
                broken.push(format!("{at}: names {directory}, a directory of one machine"));
            }
        }
        for (key, registry) in registries {
            let value = line.trim_start().strip_prefix(key);
            if path.contains("lock") && value.is_some_and(|it| !it.starts_with(registry)) {
                broken.push(format!("{at}: comes from elsewhere than {registry}"));
            }
        }
    }
    broken
}

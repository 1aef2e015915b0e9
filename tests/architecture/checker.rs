//! Reads sources and names what breaks the rules: a function over paths and texts, so that every rule can be shown to
//! fail on an invented source. The rules themselves are data in `tests/architecture.rs`.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A top-level module of the crate, or one of its two roots (`lib`, `main`).
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// The other layers that it may name.
    pub(crate) uses: &'static [&'static str],
    pub(crate) io: Io,
}

/// What a layer may touch besides its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Io {
    /// Values in, values out: no file, process, socket, clock, environment, randomness or runtime.
    Pure,
    /// May do all of it, and may be async.
    Shell,
}

/// The rules as data.
pub(crate) struct Rules {
    pub(crate) layers: &'static [Layer],
    /// Layers that code under `#[cfg(test)]` may name besides those of its own layer.
    pub(crate) tests_use: &'static [&'static str],
    /// Modules of shells that are pure all the same, and have no `std::io` either.
    pub(crate) sans_io: &'static [&'static str],
    /// Paths that pure code doesn't name.
    pub(crate) impure: &'static [&'static str],
    /// Paths that sans-IO code doesn't name either.
    pub(crate) io: &'static [&'static str],
    /// Lines of a file, trailing test module and test files aside.
    pub(crate) max_lines: usize,
}

/// A file of the crate: its path from the root of the project, `/`-separated, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every broken rule in `sources`, each as `path:line: what is wrong`.
pub(crate) fn check(sources: &[Source], rules: &Rules) -> Vec<String> {
    let mut broken = Vec::new();
    let mut parsed = Vec::new();
    for source in sources {
        match syn::parse_file(&source.text) {
            Ok(file) => parsed.push((source, module_of(&source.path), file)),
            Err(error) => broken.push(format!("{}: doesn't parse: {error}", source.path)),
        }
    }
    let test_modules: BTreeSet<Vec<String>> =
        parsed.iter().flat_map(|(_, module, file)| test_modules(module, file)).collect();
    for (source, module, file) in &parsed {
        let is_test =
            (0..=module.len()).any(|end| module.get(..end).is_some_and(|it| test_modules.contains(it)));
        check_file(source, module, file, is_test, rules, &mut broken);
    }
    broken
}

fn check_file(
    source: &Source,
    module: &[String],
    file: &syn::File,
    is_test: bool,
    rules: &Rules,
    broken: &mut Vec<String>,
) {
    let path = &source.path;
    if !source.text.starts_with("//!") {
        broken.push(format!("{path}:1: doesn't start with a //! header that says what it is for"));
    }
    let lines = source.text.lines().count() - trailing_test_lines(file);
    if !is_test && lines > rules.max_lines {
        broken.push(format!("{path}: has {lines} lines that aren't tests; the limit is {}", rules.max_lines));
    }
    let name = match module.first() {
        Some(name) => name.as_str(),
        None if path.ends_with("main.rs") => "main",
        None => "lib",
    };
    let Some(layer) = rules.layers.iter().find(|layer| layer.name == name) else {
        broken.push(format!("{path}: the top-level module {name} has no place in the table of layers"));
        return;
    };
    let mut reader = Reader { path, layer, rules, module: module.to_vec(), in_test: is_test, broken };
    reader.visit_file(file);
}

/// The module path of a file: `src/a/b.rs` and `src/a/b/mod.rs` are `[a, b]`; `src/lib.rs` and `src/main.rs` are `[]`.
fn module_of(path: &str) -> Vec<String> {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut module: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

/// The modules that `file` declares under `#[cfg(test)]`, and itself if it is all test.
fn test_modules(module: &[String], file: &syn::File) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    if is_cfg_test(&file.attrs) {
        found.push(module.to_vec());
    }
    for item in &file.items {
        if let syn::Item::Mod(item) = item
            && is_cfg_test(&item.attrs)
        {
            found.push([module, &[item.ident.to_string()]].concat());
        }
    }
    found
}

/// Lines of an inline `#[cfg(test)] mod …` at the end of `file`.
fn trailing_test_lines(file: &syn::File) -> usize {
    let Some(syn::Item::Mod(item)) = file.items.last() else { return 0 };
    let Some((brace, _)) = &item.content else { return 0 };
    if !is_cfg_test(&item.attrs) {
        return 0;
    }
    let start = item.attrs.first().map_or(item.mod_token.span, |attribute| attribute.pound_token.span);
    brace.span.close().end().line + 1 - start.start().line
}

/// `#[cfg(test)]` or `#[cfg(all(test, …))]`. Anything cleverer counts as code that ships.
fn is_cfg_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (text == "test" || text.starts_with("all(test,"))
    })
}

/// Walks one file with the module that it is in.
struct Reader<'a> {
    path: &'a str,
    layer: &'static Layer,
    rules: &'a Rules,
    module: Vec<String>,
    in_test: bool,
    broken: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn report(&mut self, line: usize, what: &str) {
        self.broken.push(format!("{}:{line}: {what}", self.path));
    }

    fn is_sans_io(&self) -> bool {
        let module = self.module.join("::");
        self.rules.sans_io.iter().any(|it| within(&module, it))
    }

    fn must_be_pure(&self) -> bool {
        !self.in_test && (self.layer.io == Io::Pure || self.is_sans_io())
    }

    /// Checks one path as written. `opaque` is a glob or a rename, which could hide what lies below.
    fn check_path(&mut self, line: usize, segments: &[String], opaque: bool) {
        match self.resolve(segments) {
            Named::Ours(path) => self.check_direction(line, &path),
            Named::Other => {
                let path = segments.join("::");
                if self.must_be_pure() {
                    self.check_purity(line, &path, opaque);
                }
            }
        }
    }

    fn check_direction(&mut self, line: usize, path: &[String]) {
        let Some(target) = path.first() else {
            return self.report(line, "takes in the crate's root whole: name the module");
        };
        if self.module.first() == Some(target) || self.layer.uses.contains(&target.as_str()) {
            return;
        }
        if self.in_test && self.rules.tests_use.contains(&target.as_str()) {
            return;
        }
        let what = if self.rules.layers.iter().any(|layer| layer.name == target) {
            format!("{} must not use {target} (it may use: {})", self.layer.name, self.layer.uses.join(", "))
        } else {
            format!("crate::{target} is no layer of the table: name the module that it comes from")
        };
        self.report(line, &what);
    }

    fn check_purity(&mut self, line: usize, path: &str, opaque: bool) {
        let extra = if self.is_sans_io() { self.rules.io } else { &[] };
        let forbidden = self.rules.impure.iter().chain(extra);
        let hit = forbidden.copied().find(|it| within(path, it) || (opaque && within(it, path)));
        if let Some(hit) = hit {
            let module = self.module.join("::");
            self.report(line, &format!("{module} is pure and must not use {hit} (as {path})"));
        } else if path.ends_with("::now") {
            self.report(line, &format!("pure code takes the time as an argument ({path})"));
        }
    }

    fn check_async(&mut self, line: usize) {
        if self.must_be_pure() {
            self.report(line, "only the shells are async");
        }
    }

    fn resolve(&self, segments: &[String]) -> Named {
        let Some((first, mut rest)) = segments.split_first() else { return Named::Other };
        let mut module = match first.as_str() {
            "crate" | "caisson" => return Named::Ours(rest.to_vec()),
            "self" => self.module.clone(),
            "super" => self.module.split_last().map(|(_, outer)| outer.to_vec()).unwrap_or_default(),
            // In the root, a module's name needs no `crate::`.
            name if self.module.is_empty() && self.rules.layers.iter().any(|layer| layer.name == name) => {
                return Named::Ours(segments.to_vec());
            }
            _ => return Named::Other,
        };
        while let Some(("super", below)) = rest.split_first().map(|(it, below)| (it.as_str(), below)) {
            module.pop();
            rest = below;
        }
        module.extend_from_slice(rest);
        Named::Ours(module)
    }

    fn check_use(&mut self, tree: &syn::UseTree, above: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(it) => {
                above.push(it.ident.to_string());
                self.check_use(&it.tree, above);
                above.pop();
            }
            syn::UseTree::Name(it) => self.check_use_leaf(&it.ident, above, false),
            syn::UseTree::Rename(it) => self.check_use_leaf(&it.ident, above, true),
            syn::UseTree::Glob(it) => {
                let line = it.star_token.spans.first().map_or(0, |span| span.start().line);
                self.check_path(line, above, true);
            }
            syn::UseTree::Group(it) => {
                for tree in &it.items {
                    self.check_use(tree, above);
                }
            }
        }
    }

    fn check_use_leaf(&mut self, name: &Ident, above: &[String], renamed: bool) {
        let mut path = above.to_vec();
        // `use a::{self}` names `a`.
        if above.is_empty() || name != "self" {
            path.push(name.to_string());
        }
        self.check_path(name.span().start().line, &path, renamed);
    }

    /// Paths and `async` in tokens that have no syntax of their own: a macro's input, a derive's list.
    fn check_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end_of_path(line, &mut path);
                        line = ident.span().start().line;
                    }
                    if ident == "async" {
                        self.check_async(line);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    // `a::{b, c}` in a macro is rare enough to ask for another spelling.
                    if colons == 2
                        && group.delimiter() == Delimiter::Brace
                        && path.first().is_some_and(|it| it == "crate")
                    {
                        self.report(line, "a grouped use of the crate inside a macro: spell it out");
                    }
                    self.end_of_path(line, &mut path);
                    colons = 0;
                    self.check_tokens(group.stream());
                }
                _ => {
                    self.end_of_path(line, &mut path);
                    colons = 0;
                }
            }
        }
        self.end_of_path(line, &mut path);
    }

    fn end_of_path(&mut self, line: usize, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.check_path(line, path, false);
        }
        path.clear();
    }

    fn with_test(&mut self, attributes: &[syn::Attribute], walk: impl FnOnce(&mut Self)) {
        let outer = self.in_test;
        self.in_test |= is_cfg_test(attributes);
        walk(self);
        self.in_test = outer;
    }
}

/// What a path leads to.
enum Named {
    /// A path below the crate's root.
    Ours(Vec<String>),
    /// Another crate, or something that the file itself has in scope.
    Other,
}

/// Whether `path` is `prefix` or below it.
fn within(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.with_test(attributes(item), |reader| visit::visit_item(reader, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let line = item.ident.span().start().line;
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("path")) {
            self.report(line, "#[path] hides where a module lives");
        }
        let name = item.ident.to_string();
        if self.module.is_empty() && !self.rules.layers.iter().any(|layer| layer.name == name) {
            self.report(line, &format!("the top-level module {name} has no place in the table of layers"));
        }
        if self.module.is_empty() {
            return;
        }
        self.module.push(name);
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.check_use(&item.tree, &mut Vec::new());
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.check_path(item.ident.span().start().line, &[item.ident.to_string()], true);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 {
            let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
            self.check_path(line, &segments, false);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.check_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        visit::visit_attribute(self, attribute);
        if let syn::Meta::List(list) = &attribute.meta {
            self.check_tokens(list.tokens.clone());
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.check_async(signature.ident.span().start().line);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.check_async(block.async_token.span.start().line);
        visit::visit_expr_async(self, block);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        if let Some(token) = &closure.asyncness {
            self.check_async(token.span.start().line);
        }
        visit::visit_expr_closure(self, closure);
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(it) => &it.attrs,
        syn::Item::Enum(it) => &it.attrs,
        syn::Item::Fn(it) => &it.attrs,
        syn::Item::Impl(it) => &it.attrs,
        syn::Item::Macro(it) => &it.attrs,
        syn::Item::Mod(it) => &it.attrs,
        syn::Item::Static(it) => &it.attrs,
        syn::Item::Struct(it) => &it.attrs,
        syn::Item::Trait(it) => &it.attrs,
        syn::Item::Type(it) => &it.attrs,
        syn::Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

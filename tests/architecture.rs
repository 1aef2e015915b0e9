//! Holds the directions of the source tree: which part may name which, which parts are pure, how long a file may be.
//!
//! The rules are the tables below. A new top-level module fails until it has a place in `LAYERS`.

#[path = "architecture/checker.rs"]
mod checker;
#[path = "architecture/text.rs"]
mod text;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use checker::{Io, Layer, Rules, Source};

/// From the bottom up. A layer may name itself and what its row lists, nothing else of ours.
const LAYERS: &[Layer] = &[
    // Macros for everyone.
    Layer { name: "guard", io: Io::Shell, uses: &[] },
    // Pure, and nothing of ours below them.
    Layer { name: "protocol", io: Io::Pure, uses: &["guard"] },
    Layer { name: "redact", io: Io::Pure, uses: &["guard"] },
    // The objects; every text that a status shows is of redact's one type.
    Layer { name: "api", io: Io::Pure, uses: &["guard", "redact"] },
    // Pure decisions over them.
    Layer { name: "core", io: Io::Pure, uses: &["guard", "api", "protocol", "redact"] },
    // Shells. Those inside the sandbox don't know the executors that start them.
    Layer { name: "runner", io: Io::Shell, uses: &["guard", "api", "protocol", "redact", "core"] },
    Layer { name: "supervisor", io: Io::Shell, uses: &["guard", "api", "protocol", "redact", "core"] },
    Layer { name: "gateway", io: Io::Shell, uses: &["guard", "api", "protocol", "redact", "core"] },
    // Without a pod the supervisor runs beside its executor, in the same process.
    Layer {
        name: "executor",
        io: Io::Shell,
        uses: &["guard", "api", "protocol", "redact", "core", "supervisor"],
    },
    Layer {
        name: "channel",
        io: Io::Shell,
        uses: &["guard", "api", "protocol", "redact", "core", "supervisor", "executor", "gateway"],
    },
    Layer {
        name: "controller",
        io: Io::Shell,
        uses: &["guard", "api", "protocol", "redact", "core", "supervisor", "executor", "gateway", "channel"],
    },
    Layer {
        name: "cli",
        io: Io::Shell,
        uses: &[
            "guard",
            "api",
            "protocol",
            "redact",
            "core",
            "executor",
            "runner",
            "gateway",
            "channel",
            "supervisor",
            "controller",
        ],
    },
    // The roots: the library's only declares modules, the binary's only calls the command line.
    Layer { name: "lib", io: Io::Pure, uses: &[] },
    Layer { name: "main", io: Io::Shell, uses: &["cli"] },
];

const RULES: Rules = Rules {
    layers: LAYERS,
    // Fixtures are made of objects, decisions and records, also below the layer that decides.
    tests_use: &["guard", "api", "protocol", "redact", "core"],
    // Pure parts of shells: events in, actions out.
    sans_io: &["runner::machine", "gateway::policy", "gateway::connect"],
    impure: &[
        "std::env",
        "std::fs",
        "std::io::stderr",
        "std::io::stdin",
        "std::io::stdout",
        "std::net",
        "std::os::fd",
        "std::os::unix::fs",
        "std::os::unix::net",
        "std::os::unix::process",
        "std::process",
        "std::thread",
        "getrandom",
        "hyper",
        "kube::client",
        "kube::Client",
        "kube::runtime",
        "nix",
        "rand",
        "tokio",
        "tokio_util",
        "uuid::Uuid::new_v4",
    ],
    io: &["std::io"],
    max_lines: 600,
};

/// Where a machine keeps people's files.
const HOMES: &[&str] = &["home", "root", "work", "Users"];

/// In a lock file: a key, and what its value starts with.
const REGISTRIES: &[(&str, &str)] = &[
    ("source = \"", "registry+https://github.com/rust-lang/crates.io-index"),
    ("\"resolved\": \"", "never: npm finds packages by name and checksum"),
];

#[test]
fn the_tree_keeps_its_directions() {
    let broken = checker::check(&sources(), &RULES);
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn no_tracked_file_names_a_machine() {
    let broken: Vec<String> = tracked_files("")
        .iter()
        .flat_map(|file| text::machine_traces(&file.path, &file.text, HOMES, REGISTRIES))
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn every_guard_has_a_test_that_misses_it() {
    let in_code: BTreeSet<String> = sources().iter().flat_map(|source| text::guards(&source.text)).collect();
    let table = tracked_files("tests/mutations.txt");
    let listed: BTreeSet<String> = table
        .iter()
        .flat_map(|file| file.text.lines())
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert_eq!(in_code, listed, "left: guards in src, right: guards in tests/mutations.txt");
}

/// The sources of the crate.
fn sources() -> Vec<Source> {
    let mut sources = tracked_files("src");
    sources.retain(|file| Path::new(&file.path).extension().is_some_and(|it| it == "rs"));
    assert!(!sources.is_empty(), "no sources: the tests run in a clone");
    sources
}

/// The text files below `folder` that git tracks or would ("" is the whole tree).
fn tracked_files(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])
        .arg(if folder.is_empty() { "." } else { folder })
        .current_dir(root)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    listing
        .split_terminator('\0')
        // A file deleted from the tree may still be in the index, and a fixture may not be text.
        .filter_map(|path| Some((path, std::fs::read_to_string(root.join(path)).ok()?)))
        .map(|(path, text)| Source { path: path.to_owned(), text })
        .collect()
}

/// Each rule fails when it is broken.
mod rules {
    use super::{HOMES, REGISTRIES, RULES, Source, checker, text};

    fn broken_by(path: &str, body: &str) -> Vec<String> {
        let text = format!("//! Header.\n{body}\n");
        checker::check(&[Source { path: path.to_owned(), text }], &RULES)
    }

    #[track_caller]
    fn refused(path: &str, body: &str, because: &str) {
        let broken = broken_by(path, body);
        assert_eq!(broken.len(), 1, "{body}: {broken:#?}");
        assert!(broken.iter().all(|it| it.starts_with(path) && it.contains(because)), "{broken:#?}");
    }

    #[track_caller]
    fn fine(path: &str, body: &str) {
        assert_eq!(broken_by(path, body), Vec::<String>::new(), "{body}");
    }

    #[test]
    fn the_lowest_layers_use_nothing_of_ours() {
        for layer in ["api", "protocol", "redact"] {
            let because = format!("{layer} must not use core");
            refused(&format!("src/{layer}/x.rs"), "use crate::core::validate;", &because);
        }
        fine("src/api/task.rs", "use crate::api::limits::Limits; use super::conditions;");
    }

    #[test]
    fn core_uses_objects_records_and_redaction_only() {
        fine("src/core/plan.rs", "use crate::{api::Task, protocol::Record, redact};");
        refused("src/core/plan.rs", "use crate::executor::RunSpec;", "core must not use executor");
    }

    #[test]
    fn an_executor_uses_no_shell_but_the_supervisor() {
        fine("src/executor/process.rs", "use crate::core::plan::RunSpec; use crate::supervisor::control;");
        refused("src/executor/process.rs", "use crate::runner::start;", "executor must not use runner");
    }

    #[test]
    fn nobody_but_the_binary_uses_the_command_line() {
        for layer in ["core", "executor", "runner", "gateway", "channel", "supervisor", "controller"] {
            refused(&format!("src/{layer}/mod.rs"), "fn f() { crate::cli::run(); }", "must not use cli");
        }
        fine("src/main.rs", "fn main() { caisson::cli::run(); }");
        refused("src/main.rs", "fn main() { caisson::core::decide(); }", "main must not use core");
    }

    #[test]
    fn the_library_root_only_declares_modules() {
        fine("src/lib.rs", "pub mod api; pub mod core;");
        refused("src/lib.rs", "pub mod core;\npub use core::validate;", "lib must not use core");
    }

    #[test]
    fn a_new_top_level_module_needs_a_place_in_the_table() {
        refused("src/util.rs", "", "util has no place");
        refused("src/lib.rs", "pub mod util;", "util has no place");
        refused("src/lib.rs", "mod util { pub struct X; }", "util has no place");
    }

    #[test]
    fn every_spelling_of_a_path_counts() {
        let because = "core must not use cli";
        for body in [
            "use crate::{api::Task, cli::{render}};",
            "use crate::cli::{self};",
            "use crate::{cli as other};",
            "use crate::cli::*;",
            "use super::super::cli::render;",
            "use self::super::super::cli::render;",
            "fn f() -> crate::cli::Exit { loop {} }",
            "mod inner { use super::super::super::cli::render; }",
            "fn f() { println!(\"{}\", crate::cli::name()); }",
            "macro_rules! m { () => { $crate::cli::run() } }",
            "#[derive(crate::cli::Render)]\nstruct S;",
            "impl super::super::cli::Render for u8 {}",
            "fn f() { <u8 as crate::cli::Render>::render(); }",
        ] {
            refused("src/core/plan.rs", body, because);
        }
    }

    #[test]
    fn a_path_that_stays_in_its_layer_is_fine() {
        fine(
            "src/core/plan/steps.rs",
            "use super::super::decide::Plan; pub(super) fn f() {} pub(crate) fn g() {}",
        );
        fine("src/core/plan.rs", "use std::fmt; fn f() { core::mem::drop(1); }");
    }

    #[test]
    fn the_root_is_never_taken_whole() {
        refused("src/cli/mod.rs", "use crate::*;", "name the module");
        refused("src/cli.rs", "use super::*;", "name the module");
        refused("src/cli/mod.rs", "use crate::Task;", "crate::Task is no layer");
    }

    #[test]
    fn pure_layers_touch_nothing_but_their_arguments() {
        for body in [
            "use std::fs;",
            "use std::{collections::BTreeMap, fs::File};",
            "fn f() { std::env::args(); }",
            "use std::process::Command;",
            "use std::net::TcpStream;",
            "use std as s;",
            "use std::*;",
            "use tokio::sync::mpsc;",
            "use ::nix::unistd;",
            "extern crate tokio;",
            "fn f() { let _ = uuid::Uuid::new_v4(); }",
            "fn f() { vec![std::thread::current()]; }",
        ] {
            for layer in ["api", "core", "protocol", "redact"] {
                refused(&format!("src/{layer}/x.rs"), body, "is pure and must not use");
            }
            fine("src/executor/x.rs", body);
        }
    }

    #[test]
    fn pure_layers_are_told_the_time() {
        for body in [
            "fn f() { std::time::Instant::now(); }",
            "use std::time::SystemTime;\nfn f() { SystemTime::now(); }",
            "use jiff::Timestamp as Time;\nfn f() { let _ = Time::now; }",
        ] {
            refused("src/core/decide.rs", body, "takes the time as an argument");
        }
        fine("src/core/decide.rs", "use std::time::{Duration, Instant}; fn f(now: Instant) { drop(now); }");
    }

    #[test]
    fn only_shells_are_async() {
        for body in [
            "async fn f() {}",
            "trait T { async fn f(); }",
            "fn f() { let _ = async {}; }",
            "fn f() { let _ = async || (); }",
            "fn f() { spawn!(async move {}); }",
        ] {
            for path in ["src/core/x.rs", "src/redact/x.rs", "src/runner/machine.rs"] {
                refused(path, body, "only the shells are async");
            }
            fine("src/supervisor/x.rs", body);
        }
    }

    #[test]
    fn the_runners_machine_does_no_io() {
        for path in ["src/runner/machine.rs", "src/runner/machine/deadline.rs"] {
            for body in ["use std::io;", "use nix::sys::signal;", "use std::fs;", "use std::os::fd::OwnedFd;"]
            {
                refused(path, body, "is pure and must not use");
            }
        }
        fine("src/runner/machinery.rs", "use std::io;");
        fine("src/core/x.rs", "use std::io;");
    }

    #[test]
    fn tests_may_touch_files_and_name_the_pure_layers() {
        let body = "use crate::core::plan; use std::fs; async fn f() {}";
        fine("src/api/x.rs", &format!("#[cfg(test)]\nmod tests {{ {body} }}"));
        fine("src/api/x.rs", "#[cfg(test)]\nuse std::fs;");
        refused("src/api/x.rs", "#[cfg(test)]\nmod tests { use crate::cli; }", "must not use cli");
        refused("src/api/x.rs", "#[cfg(not(test))]\nmod tests { use std::fs; }", "must not use std::fs");
        refused("src/api/x.rs", "mod tests { use std::fs; }", "must not use std::fs");
    }

    #[test]
    fn a_file_is_a_test_when_its_parent_says_so() {
        let file =
            |path: &str, body: &str| Source { path: path.to_owned(), text: format!("//! H.\n{body}\n") };
        let parent = |declares| file("src/redact/mod.rs", declares);
        let tests = || file("src/redact/tests.rs", &format!("use std::fs;{}", "\n".repeat(700)));
        assert_eq!(
            checker::check(&[parent("#[cfg(test)]\nmod tests;"), tests()], &RULES),
            Vec::<String>::new()
        );
        assert_eq!(checker::check(&[parent("mod tests;"), tests()], &RULES).len(), 2);
    }

    #[test]
    fn a_file_is_at_most_600_lines_without_its_tests() {
        let lines = |count: usize| "\n".repeat(count - 2);
        fine("src/cli/mod.rs", &lines(600));
        refused("src/cli/mod.rs", &lines(601), "has 601 lines");
        fine("src/cli/mod.rs", &format!("{}\n#[cfg(test)]\nmod tests {{{}}}", lines(600), lines(500)));
        refused(
            "src/cli/mod.rs",
            &format!("#[cfg(test)]\nmod tests {{{}}}\nfn f() {{}}", lines(600)),
            "lines",
        );
    }

    #[test]
    fn every_file_says_what_it_is_for() {
        let text = "use std::fmt;\n".to_owned();
        let broken = checker::check(&[Source { path: "src/cli/mod.rs".to_owned(), text }], &RULES);
        assert_eq!(broken, ["src/cli/mod.rs:1: doesn't start with a //! header that says what it is for"]);
    }

    #[test]
    fn a_file_that_does_not_parse_and_a_hidden_module_are_refused() {
        refused("src/core/x.rs", "fn f( {}", "doesn't parse");
        refused("src/core/x.rs", "#[path = \"../cli.rs\"]\nmod y;", "hides where a module lives");
    }

    #[test]
    fn guards_are_found_in_code_and_not_in_comments() {
        let source = r#"
            // guard!("comment", x)
            /// guard!("doc", x)
            fn f() { if guard!("first", a > 1) { assert!(guard!("inside", b)); } }
        "#;
        assert_eq!(text::guards(source).into_iter().collect::<Vec<_>>(), ["first", "inside"]);
    }

    #[test]
    fn directories_of_a_machine_are_found() {
        let traces = |text: &str| text::machine_traces("docs/x.md", text, HOMES, REGISTRIES).len();
        for home in HOMES {
            for text in
                [format!("see /{home}/someone/x"), format!("\"/{home}/x\""), format!("file:///{home}/x")]
            {
                assert_eq!(traces(&text), 1, "{text}");
            }
            for text in [format!("src/{home}/x"), format!("https://example.com/{home}/x"), format!("/{home}")]
            {
                assert_eq!(traces(&text), 0, "{text}");
            }
        }
    }

    #[test]
    fn a_lock_file_names_public_registries_only() {
        let lock =
            |text: &str| text::machine_traces("tests/x/package-lock.json", text, HOMES, REGISTRIES).len();
        assert_eq!(lock("      \"resolved\": \"https://registry.example/a/-/a-1.tgz\","), 1);
        assert_eq!(lock("      \"resolved\": \"http://mirror.local/a/-/a-1.tgz\","), 1);
    }
}

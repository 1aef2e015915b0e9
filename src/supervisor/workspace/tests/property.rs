//! The main promise: the patch, applied by git to a fresh checkout, gives the agent's tree.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

use super::fixture::{Sandbox, Tree, git};
use crate::supervisor::workspace::{Applied, apply};

/// One change of a tree. Whatever is in the way of its path is removed first.
#[derive(Debug, Clone)]
enum Edit {
    Write(PathBuf, Vec<u8>),
    Link(PathBuf, String),
    Remove(PathBuf),
    ToggleExecutable(PathBuf),
}

fn path() -> impl Strategy<Value = PathBuf> {
    // Few names, so that paths meet: as files, as directories, with what sorts around a slash.
    let name =
        select(vec!["a", "a-b", "a.b", "b", "-x", "new\nline", "sp ace", "\"q\"", "é", ".gitattributes"]);
    vec(name, 1..4).prop_map(|names| names.iter().collect())
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        "",
        "one",
        "two",
        " ",
        "\t",
        "one\r",
        "diff --git a/a b/a",
        "@@ -1 +1 @@",
        "\\ No newline",
        "-- ",
        "* eol=crlf",
    ]);
    prop_oneof![
        4 => vec(line, 0..12).prop_map(|lines| lines.join("\n").into_bytes()),
        1 => vec(any::<u8>(), 0..200),
        1 => Just(b"\r\n".repeat(30)),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        5 => (path(), content()).prop_map(|(path, content)| Edit::Write(path, content)),
        1 => (path(), select(vec!["a", "../..", "/etc/passwd", "nowhere\n"])).prop_map(|(path, to)| Edit::Link(path, to.into())),
        2 => path().prop_map(Edit::Remove),
        1 => path().prop_map(Edit::ToggleExecutable),
    ]
}

fn make(tree: &Tree, edit: &Edit) {
    match edit {
        Edit::Write(path, content) => {
            make_way(tree, path);
            tree.write(path, content);
        }
        Edit::Link(path, to) => {
            make_way(tree, path);
            fs::create_dir_all(tree.path(path).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, tree.path(path)).unwrap();
        }
        Edit::Remove(path) => make_way(tree, path),
        Edit::ToggleExecutable(path) => {
            let is_file = |path: PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
            if path.ancestors().skip(1).all(|parent| !tree.path(parent).is_symlink())
                && is_file(tree.path(path))
            {
                tree.make_executable(path);
            }
        }
    }
}

fn make_way(tree: &Tree, path: &Path) {
    let mut prefixes: Vec<_> = path.ancestors().filter(|prefix| !prefix.as_os_str().is_empty()).collect();
    prefixes.reverse();
    for prefix in prefixes {
        let Ok(metadata) = tree.path(prefix).symlink_metadata() else { return };
        if !metadata.is_dir() || prefix == path {
            tree.remove(prefix.to_str().unwrap());
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, ..Config::default() })]

    #[test]
    fn the_patch_gives_the_agents_tree(before in vec(edit(), 0..12), after in vec(edit(), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sandbox = Sandbox::new();
            let source = Tree::init(sandbox.path("source"), &[]);
            // Committed as they are, as files of a hostile commit would be.
            fs::create_dir_all(source.path(".git/info")).unwrap();
            fs::write(source.path(".git/info/attributes"), "* -text !eol\n").unwrap();
            for edit in &before {
                make(&source, edit);
            }
            source.commit();
            let run = sandbox.run(&source.root).await;
            assert_eq!(run.tree.files(), source.files());
            for edit in &after {
                make(&run.tree, edit);
            }
            let diff = run.diff().await;
            assert!(diff.is_complete());
            let unchanged = run.tree.files() == source.files();
            assert_eq!(diff.is_empty(), unchanged);

            // By git itself, on a fresh checkout.
            let other = Sandbox::new();
            let fresh = other.run(&source.root).await.tree;
            if !unchanged {
                fs::write(sandbox.path("patch"), &diff.patch).unwrap();
                fresh.git(&["apply", "--whitespace=nowarn", sandbox.path("patch").to_str().unwrap()]);
            }
            assert_eq!(fresh.files(), run.tree.files());

            // And by us, on the original.
            let applied = apply(&git(), &source.root, &diff).await.unwrap();
            assert_eq!(applied, Applied { files: diff.files.len() });
            assert_eq!(source.files(), run.tree.files());
        });
    }
}

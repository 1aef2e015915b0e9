//! What the diff says about ordinary changes.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::fixture::{Sandbox, patch_text, summary};
use crate::supervisor::workspace::{DiffLimits, Incomplete, Totals};

#[tokio::test]
async fn nothing_changed_is_an_empty_diff() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), ("dir/b", "two\n")]);
    let run = sandbox.run(&source.root).await;
    let diff = run.diff().await;
    assert!(diff.is_empty() && diff.is_complete() && diff.patch.is_empty());
    assert_eq!(diff.totals, Totals::default());
}

#[tokio::test]
async fn an_empty_workspace_costs_no_repository_until_a_file_exists() {
    let sandbox = Sandbox::new();
    let run = sandbox.try_run(None).await.unwrap();
    assert_eq!(run.prepared.base, None);
    assert!(run.diff().await.is_empty());
    assert_eq!(fs::read_dir(&run.layout.private).unwrap().count(), 0);
    run.tree.write("hello", "hello\n");
    for _again in 0..2 {
        let diff = run.diff().await;
        assert_eq!(summary(&diff), ["Added hello +1 -0"]);
        assert!(patch_text(&diff).contains("new file mode 100644\n"));
    }
    run.tree.git(&["init", "--quiet"]);
    run.tree.commit();
    assert_eq!(summary(&run.diff().await), ["Added hello +1 -0"]);
}

#[tokio::test]
async fn every_kind_of_change_is_named() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[
        ("deleted", "1\n2\n"),
        ("executable", "x\n"),
        ("modified", "1\n2\n3\n"),
        ("now-a-directory", "x\n"),
        ("now-a-file/a", "x\n"),
        ("now-a-file/b", "x\n"),
        ("now-a-link", "x\n"),
        ("unchanged", "x\n"),
    ]);
    source.link("now-regular", "unchanged");
    source.commit();
    let run = sandbox.run(&source.root).await;
    let tree = &run.tree;
    tree.write("added", "1\n2\n");
    tree.write("binary", b"\0\x01\x02");
    tree.write("empty", "");
    tree.make_executable("executable");
    tree.write("modified", "1\nchanged\n3\n");
    for path in ["deleted", "now-a-directory", "now-a-file", "now-a-link", "now-regular"] {
        tree.remove(path);
    }
    tree.write("now-a-directory/inside", "x\n");
    tree.write("now-a-file", "x\n");
    tree.write("now-regular", "unchanged");
    tree.link("now-a-link", "unchanged");
    fs::create_dir_all(tree.path("empty directory/in another")).unwrap();
    let diff = run.diff().await;
    assert_eq!(
        summary(&diff),
        [
            "Added added +2 -0",
            "Added binary binary",
            "Deleted deleted +0 -2",
            "Added empty +0 -0",
            "ModeChanged executable +0 -0",
            "Modified modified +1 -1",
            "Deleted now-a-directory +0 -1",
            "Added now-a-directory/inside +1 -0",
            "Added now-a-file +1 -0",
            "Deleted now-a-file/a +0 -1",
            "Deleted now-a-file/b +0 -1",
            "TypeChanged now-a-link +1 -1",
            "TypeChanged now-regular +0 -0",
        ]
    );
    assert_eq!(diff.totals, Totals { files: 13, insertions: 6, deletions: 7 });
    assert!(diff.is_complete());
    // The same again: a diff leaves nothing behind that the next one could stumble over.
    assert_eq!(run.diff().await, diff);
}

#[tokio::test]
async fn names_of_any_bytes_are_exact() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("File", ""), ("file", "")]);
    let run = sandbox.run(&source.root).await;
    let mut names = [
        &b"-x"[..],
        b"a\nb",
        b"a\tb",
        b"\"quoted\"",
        b"back\\slash",
        b"caf\xe9",
        b" ",
        b"a b ",
        b"FILE",
        b"\x01",
        b"=>",
        b"{a}",
        b":100644",
        b"*",
        b"#",
        b"!x",
    ];
    for name in names {
        run.tree.write(OsStr::from_bytes(name), name);
    }
    names.sort_unstable();
    let diff = run.diff().await;
    let found: Vec<_> = diff.files.iter().map(|file| file.path.as_os_str().as_bytes()).collect();
    assert_eq!(found, names);
    assert_eq!(diff.totals.insertions, 17, "one line each, and two in the name with a newline");
}

#[tokio::test]
async fn ignored_files_are_left_out_but_never_those_of_the_base() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[
        (".gitignore", "target/\n*.log\n!keep.log\n/top\n"),
        ("sub/.gitignore", "!deep.log\nlocal\n"),
        ("target/tracked", "1\n"),
        ("tracked.log", "1\n"),
    ]);
    let run = sandbox.run(&source.root).await;
    for path in [
        "target/built",
        "target/deep/built",
        "sub/target/built",
        "a.log",
        "keep.log",
        "top",
        "sub/top",
        "sub/deep.log",
        "sub/local",
        "local",
        "sub/x.log",
        "target/tracked",
        "tracked.log",
        "tracked.log.d/x",
    ] {
        run.tree.write(path, "2\n");
    }
    let diff = run.diff().await;
    let ours: Vec<_> = diff.files.iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(
        ours,
        ["keep.log", "local", "sub/deep.log", "sub/top", "target/tracked", "tracked.log", "tracked.log.d/x"]
    );
    assert_eq!(diff.ignored, 6, "target, sub/target, a.log, top, sub/local, sub/x.log");
    run.tree.git(&["add", "--all"]);
    let gits = run.tree.git(&["diff", "--cached", "--name-only", "--no-renames"]);
    assert_eq!(ours, gits.lines().collect::<Vec<_>>());
}

#[tokio::test]
async fn an_ignore_file_of_the_agent_counts_but_not_through_a_link() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "")]);
    let run = sandbox.run(&source.root).await;
    run.tree.write(".gitignore", "\u{feff}build\r\n[\nb*d\\\n");
    run.tree.write("build", "x\n");
    assert_eq!(summary(&run.diff().await), ["Added .gitignore +3 -0"]);
    run.tree.remove(".gitignore");
    run.tree.write("patterns", "build\n");
    run.tree.link(".gitignore", "patterns");
    assert_eq!(
        summary(&run.diff().await),
        ["Added .gitignore +1 -0", "Added build +1 -0", "Added patterns +1 -0"]
    );
}

#[tokio::test]
async fn a_large_file_is_listed_and_not_read() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("tracked", "small\n")]);
    let run = sandbox.run(&source.root).await;
    let gigabytes = 2 << 30;
    fs::File::create(run.tree.path("sparse")).unwrap().set_len(gigabytes).unwrap();
    run.tree.write("other", "x\n");
    let diff = run.diff().await;
    assert_eq!(diff.oversized, [(PathBuf::from("sparse"), gigabytes)]);
    assert_eq!(summary(&diff), ["Added other +1 -0"]);
    assert_eq!(diff.totals.files, 2);
    assert_eq!(diff.incomplete, [Incomplete::FileBytes].into());
}

#[tokio::test]
async fn a_large_file_of_the_base_counts_only_when_it_changed() {
    let sandbox = Sandbox::new();
    let source =
        sandbox.repository(&[("large", "0123456789\n"), ("script", "0123456789\n"), ("grown", "1\n")]);
    let run = sandbox.run(&source.root).await;
    let limits = DiffLimits { file_bytes: 4, ..DiffLimits::default() };
    assert!(run.diff_within(&limits).await.is_empty());
    run.tree.make_executable("script");
    assert_eq!(summary(&run.diff_within(&limits).await), ["ModeChanged script +0 -0"]);
    run.tree.write("large", "0123456780\n");
    run.tree.write("grown", "12345");
    let diff = run.diff_within(&limits).await;
    assert_eq!(diff.oversized, [(PathBuf::from("grown"), 5), (PathBuf::from("large"), 11)]);
    assert_eq!(summary(&diff), ["ModeChanged script +0 -0"]);
}

#[tokio::test]
async fn a_patch_is_cut_between_files() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[]);
    let run = sandbox.run(&source.root).await;
    for name in ["a", "b", "c"] {
        run.tree.write(name, format!("diff --git a/{name} b/{name}\n").repeat(100));
    }
    let whole = run.diff().await;
    assert!(whole.is_complete());
    for limit in [0, 1, whole.patch.len() / 2, whole.patch.len() - 1] {
        let cut = run.diff_within(&DiffLimits { patch_bytes: limit, ..DiffLimits::default() }).await;
        assert_eq!(cut.incomplete, [Incomplete::PatchBytes].into());
        assert_eq!(cut.totals, whole.totals);
        assert!(cut.patch.len() <= limit && whole.patch.starts_with(&cut.patch));
        assert_eq!(
            cut.patch.len(),
            limit / (whole.patch.len() / 3) * (whole.patch.len() / 3),
            "limit {limit}"
        );
    }
    let exact = DiffLimits { patch_bytes: whole.patch.len(), ..DiffLimits::default() };
    assert_eq!(run.diff_within(&exact).await, whole);
}

#[tokio::test]
async fn limits_leave_out_and_never_invent_deletions() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a/b/c/d", "1\n"), ("e", "1\n"), ("f/g", "1\n"), ("z", "1\n")]);
    let run = sandbox.run(&source.root).await;
    run.tree.write("e", "changed\n");
    run.tree.remove("z");
    let limited = async |limits: DiffLimits| {
        let diff = run.diff_within(&limits).await;
        (summary(&diff), diff.incomplete.into_iter().collect::<Vec<_>>())
    };
    let standard = DiffLimits::default();
    let shallow = limited(DiffLimits { depth: 1, ..standard.clone() }).await;
    assert_eq!(shallow, (vec!["Modified e +1 -1".into(), "Deleted z +0 -1".into()], vec![Incomplete::Depth]));
    let (_, few) = limited(DiffLimits { entries: 3, ..standard.clone() }).await;
    assert_eq!(few, [Incomplete::Entries]);
    for entries in 0..5 {
        let (found, _) = limited(DiffLimits { entries, ..standard.clone() }).await;
        let true_ones = ["Modified e +1 -1", "Deleted z +0 -1"];
        assert!(found.iter().all(|line| true_ones.contains(&&**line)), "{entries}: {found:?}");
    }
    let (found, little) = limited(DiffLimits { content_bytes: 10, ..standard.clone() }).await;
    assert_eq!((found.len(), little), (0, vec![Incomplete::ContentBytes]));
}

/// Enough files that a step which does something slow for each would be noticed here.
#[tokio::test]
async fn a_hundred_thousand_files() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[]);
    let mut stream =
        String::from("blob\nmark :1\ndata 2\nx\n\ncommit refs/heads/main\ncommitter A <> 0 +0000\ndata 0\n");
    for index in 0..100_000 {
        writeln!(stream, "M 100644 :1 d{}/e{}/f{index}", index / 10_000, index / 100).unwrap();
    }
    fs::write(sandbox.path("stream"), stream).unwrap();
    source.git(&["-c", "core.hooksPath=/dev/null", "symbolic-ref", "HEAD", "refs/heads/other"]);
    let import = std::process::Command::new("git")
        .args(["fast-import", "--quiet", "--force"])
        .current_dir(&source.root)
        .stdin(fs::File::open(sandbox.path("stream")).unwrap())
        .status();
    assert!(import.unwrap().success());
    source.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    fs::rename(source.path(".git"), sandbox.path("bare")).unwrap();
    let run = sandbox.run(&sandbox.path("bare")).await;
    run.tree.write("d9/e999/f99999", "changed\n");
    let diff = run.diff().await;
    assert_eq!(summary(&diff), ["Modified d9/e999/f99999 +1 -1"]);
    run.tree.remove("d5");
    assert_eq!(run.diff().await.totals.files, 10_001);
}

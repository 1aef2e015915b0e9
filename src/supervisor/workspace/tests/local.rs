//! A workspace of a local repository.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::fixture::{Sandbox, Tree, local, snapshot, trap};
use crate::supervisor::workspace::{Note, Source};

fn at(path: &Path, revision: &str) -> Source {
    Source { revision: Some(revision.to_owned()), ..local(path) }
}

fn inside(path: &Path, subdirectory: &str) -> Source {
    Source { subdirectory: Some(subdirectory.to_owned()), ..local(path) }
}

/// The code that a source fails with.
async fn refusal(sandbox: &Sandbox, source: Source) -> &'static str {
    sandbox.try_run(Some(source)).await.err().expect("refused").system_code()
}

#[tokio::test]
async fn the_workspace_is_the_head_commit_and_the_agents_git_works() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), ("dir/b", "two\n")]);
    source.link("link", "dir/b");
    source.make_executable("a");
    let head = source.commit();
    let run = sandbox.run(&source.root).await;
    assert_eq!(run.prepared.base.unwrap().to_string(), head);
    assert_eq!(run.prepared.directory, run.layout.workspace);
    assert_eq!(run.prepared.notes, []);
    assert_eq!(run.tree.files(), source.files());
    assert_eq!(
        run.tree.git(&["status", "--porcelain=v2", "--branch"]),
        format!("# branch.oid {head}\n# branch.head main")
    );
    assert_eq!(run.tree.git(&["log", "--format=%s"]), "change\nchange");
    run.tree.write("a", "changed\n");
    assert_eq!(run.tree.git(&["diff", "--numstat"]), "1\t1\ta");
    run.tree.commit();
    run.tree.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn the_original_is_never_written() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), ("b", "two\n"), (".gitignore", "ignored\n")]);
    source.write("a", "uncommitted\n");
    source.write("untracked", "");
    // Makes the index's knowledge of the file stale, which git would like to write down.
    source.write(".gitignore", "ignored\n");
    let before = snapshot(&source.root);
    let run = sandbox.run(&source.root).await;
    run.tree.write("a", "two\n");
    run.tree.write("c", "one\n");
    assert_eq!(run.diff().await.files.len(), 2);
    assert_eq!(snapshot(&source.root), before);
}

#[tokio::test]
async fn the_agents_git_writes_to_its_own_repository() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), ("b", "two\n")]);
    let contents = || {
        snapshot(&source.root).into_iter().map(|(path, entry)| (path, entry.committed)).collect::<Vec<_>>()
    };
    let before = contents();
    let run = sandbox.run(&source.root).await;
    run.tree.write("a", "two\n");
    run.tree.commit();
    run.tree.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(contents(), before);
}

#[tokio::test]
async fn uncommitted_changes_are_noted_and_not_included() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), ("b", ""), (".gitignore", "ignored\n")]);
    fs::write(source.path(".git/info/exclude"), "excluded\n").unwrap();
    source.write("a", "uncommitted\n");
    source.remove("b");
    source.write("ignored", "");
    source.write("excluded", "");
    source.write("new/file", "");
    source.write("new/other", "");
    let run = sandbox.run(&source.root).await;
    assert_eq!(run.prepared.notes, [Note::UncommittedChanges { tracked: 2, untracked: 1 }]);
    assert_eq!(fs::read(run.tree.path("a")).unwrap(), b"one\n");
    assert!(!run.tree.path("new").exists());
}

#[tokio::test]
async fn noting_uncommitted_changes_runs_no_filter_of_the_users() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), (".gitattributes", "* filter=trap\n")]);
    let mark = sandbox.path("mark");
    source.git(&["config", "filter.trap.clean", &trap(&mark)]);
    source.git(&["config", "core.fsmonitor", &trap(&sandbox.path("mark2"))]);
    source.write("a", "two\n");
    let run = sandbox.run(&source.root).await;
    assert_eq!(run.prepared.notes, [Note::UncommittedChanges { tracked: 1, untracked: 0 }]);
    assert!(!mark.exists() && !sandbox.path("mark2").exists());
    source.git(&["status"]);
    assert!(mark.exists() && sandbox.path("mark2").exists(), "the trap works");
}

#[tokio::test]
async fn an_index_that_cannot_be_read_elsewhere_is_no_failure() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n")]);
    source.git(&["update-index", "--split-index"]);
    assert_eq!(Sandbox::new().run(&source.root).await.prepared.notes, []);
    fs::write(source.path(".git/index"), "damaged").unwrap();
    assert_eq!(sandbox.run(&source.root).await.prepared.notes, [Note::UncommittedUnknown]);
}

#[tokio::test]
async fn a_revision_is_taken_literally() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n")]);
    let first = source.git(&["rev-parse", "HEAD"]);
    source.write("a", "two\n");
    source.commit();
    source.git(&["update-ref", "refs/heads/-x", &first]);
    source.git(&["update-ref", "refs/heads/--upload-pack=touch", &first]);
    source.git(&["tag", "--annotate", "--message=tag", "v1", &first]);
    for (name, branch) in [
        ("-x", Some("-x")),
        ("--upload-pack=touch", Some("--upload-pack=touch")),
        ("v1", None),
        ("main~1", None),
        (&first, None),
        (&first[..8], None),
    ] {
        let sandbox = Sandbox::new();
        let run = sandbox.try_run(Some(at(&source.root, name))).await.unwrap();
        assert_eq!(run.prepared.base.unwrap().to_string(), first, "{name}");
        assert_eq!(run.prepared.notes, [], "{name}");
        let status = run.tree.git(&["status", "--branch", "--porcelain=v2"]);
        assert!(
            status.ends_with(&format!("branch.head {}", branch.unwrap_or("(detached)"))),
            "{name}: {status}"
        );
    }
}

#[tokio::test]
async fn a_revision_that_names_no_commit_is_refused() {
    let source = Sandbox::new();
    let tree = source.repository(&[("a", "one\n")]);
    let mark = source.path("mark");
    let touch = format!("--upload-pack=touch {}", mark.display());
    for revision in
        ["absent", "", "--help", &touch, "HEAD:a", "a\0b", "0123456789012345678901234567890123456789"]
    {
        assert_eq!(
            refusal(&Sandbox::new(), at(&tree.root, revision)).await,
            "REVISION_NOT_FOUND",
            "{revision}"
        );
    }
    assert!(!mark.exists());
}

#[tokio::test]
async fn what_is_no_repository_is_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("plain")).unwrap();
    fs::write(sandbox.path("file"), "").unwrap();
    for name in ["plain", "file", "absent"] {
        assert_eq!(refusal(&Sandbox::new(), local(&sandbox.path(name))).await, "NOT_A_REPOSITORY", "{name}");
    }
    let unborn = Tree::init(sandbox.path("unborn"), &[]);
    assert_eq!(refusal(&Sandbox::new(), local(&unborn.root)).await, "NO_COMMIT");
}

#[tokio::test]
async fn a_workspace_that_is_not_empty_is_refused() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[]);
    fs::create_dir_all(sandbox.layout().workspace.join("x")).unwrap();
    assert_eq!(refusal(&sandbox, local(&source.root)).await, "WORKSPACE_NOT_EMPTY");
}

#[tokio::test]
async fn paths_of_any_bytes_work() {
    for name in [&b"with space"[..], b"-x", b"caf\xe9 \xff", b"new\nline", b"\"quoted\\", b"#comment", b"a:b"]
    {
        let sandbox = Sandbox::new();
        let source = Tree::init(sandbox.path(OsStr::from_bytes(name)), &[]);
        source.write(OsStr::from_bytes(name), "x");
        source.commit();
        let run = sandbox.run(&source.root).await;
        assert_eq!(run.tree.files(), source.files());
        assert_eq!(run.prepared.notes, []);
        run.tree.git(&["log"]);
    }
}

#[tokio::test]
async fn every_kind_of_repository_is_a_source() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n")]);
    source.write("a", "two\n");
    source.commit();
    let url = format!("file://{}", source.root.display());
    source.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    source.git(&["worktree", "add", "--quiet", "../worktree"]);
    source.git(&["clone", "--quiet", "--depth=1", &url, "../shallow"]);
    source.git(&["clone", "--quiet", "--shared", ".", "../borrower"]);
    source.git(&["clone", "--quiet", "--separate-git-dir=../apart", ".", "../separate"]);
    for (kind, commits) in
        [("bare", "2"), ("worktree", "2"), ("shallow", "1"), ("borrower", "2"), ("separate", "2")]
    {
        let before = snapshot(&sandbox.path(kind));
        let own = Sandbox::new();
        let run = own.run(&sandbox.path(kind)).await;
        assert_eq!(run.tree.files(), source.files(), "{kind}");
        assert_eq!(run.prepared.notes, [], "{kind}");
        assert_eq!(run.tree.git(&["rev-list", "--count", "HEAD"]), commits, "{kind}");
        run.tree.write("a", "three\n");
        assert_eq!(run.diff().await.files.len(), 1, "{kind}");
        assert_eq!(snapshot(&sandbox.path(kind)), before, "{kind}");
    }
}

#[tokio::test]
async fn a_sha256_repository_is_a_source() {
    let sandbox = Sandbox::new();
    let source = Tree::init(sandbox.path("source"), &["--object-format=sha256"]);
    source.write("a", "one\n");
    source.commit();
    let run = sandbox.run(&source.root).await;
    assert!(run.diff().await.is_empty());
    run.tree.write("a", "two\n");
    assert_eq!(run.diff().await.files.len(), 1);
    run.tree.git(&["status"]);
}

#[tokio::test]
async fn a_partial_clone_without_the_content_fails_cleanly() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n")]);
    source.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", source.root.display());
    source.git(&["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "../partial"]);
    assert_eq!(refusal(&sandbox, local(&sandbox.path("partial"))).await, "CHECKOUT_FAILED");
}

#[tokio::test]
async fn submodules_are_left_empty_and_noted() {
    let sandbox = Sandbox::new();
    let library = Tree::init(sandbox.path("library"), &[]);
    library.write("lib.c", "");
    library.commit();
    let source = sandbox.repository(&[("a", "")]);
    source.git(&["submodule", "--quiet", "add", "../library", "vendor/library"]);
    source.commit();
    let run = sandbox.run(&source.root).await;
    let paths = vec![PathBuf::from("vendor/library")];
    assert_eq!(run.prepared.notes, [Note::SubmodulesLeftEmpty { paths: paths.clone() }]);
    assert_eq!(fs::read_dir(run.tree.path("vendor/library")).unwrap().count(), 0);
    let diff = run.diff().await;
    assert!(diff.is_empty() && diff.nested_repositories.is_empty());

    run.tree.write("vendor/library/lib.c", "changed");
    let diff = run.diff().await;
    assert!(diff.is_empty());
    assert_eq!(diff.nested_repositories, paths);

    // The submodule itself is a repository too, with a `.git` file.
    let inner = Sandbox::new();
    let run = inner.run(&source.path("vendor/library")).await;
    assert_eq!(run.tree.files(), library.files());
}

#[tokio::test]
async fn the_checkout_is_raw() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[
        ("crlf.txt", "a\r\nb\r\n"),
        ("lf.txt", "a\nb\n"),
        ("id.txt", "$Id$\n"),
        ("utf16.txt", "text\n"),
        ("model.bin", "version https://git-lfs.github.com/spec/v1\n"),
        (".gitattributes", ""),
    ]);
    let attributes = "lf.txt eol=crlf\ncrlf.txt text\nid.txt ident\nutf16.txt working-tree-encoding=UTF-16\n\
                      model.bin filter=lfs diff=lfs merge=lfs -text\n[attr]macro filter=lfs text\nlf.txt macro\n";
    // Written by hand, because git would convert on the way in.
    source.write(".gitattributes", attributes);
    source.git(&["add", ".gitattributes"]);
    source.git(&["commit", "--quiet", "--message=attributes"]);
    let run = sandbox.run(&source.root).await;
    for (path, raw) in source.files() {
        assert_eq!(run.tree.files().get(&path), Some(&raw), "{}", path.display());
    }
    let diff = run.diff().await;
    assert!(diff.is_empty() && diff.patch.is_empty());
    // The agent's git agrees, even when it has to read the files again.
    for path in source.files().keys() {
        let content = fs::read(run.tree.path(path)).unwrap();
        run.tree.remove(path.to_str().unwrap());
        run.tree.write(path, content);
    }
    assert_eq!(run.tree.git(&["status", "--porcelain"]), "");
}

#[tokio::test]
async fn no_hook_or_configuration_of_the_source_comes_along() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "one\n"), (".gitattributes", "* filter=trap\n")]);
    let mark = sandbox.path("mark");
    let program = trap(&mark);
    source.git(&["config", "filter.trap.smudge", &program]);
    fs::create_dir_all(source.path(".git/hooks")).unwrap();
    fs::copy(&program, source.path(".git/hooks/post-checkout")).unwrap();
    let run = sandbox.run(&source.root).await;
    run.tree.git(&["checkout", "--quiet", "-b", "other"]);
    assert!(!mark.exists());
    source.git(&["checkout", "--quiet", "-b", "other"]);
    assert!(mark.exists(), "the trap works");
}

#[tokio::test]
async fn the_agent_starts_in_the_subdirectory() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("services/api/main", ""), ("file", "")]);
    source.link("link", "services");
    source.link("services/out", "/etc");
    source.commit();
    fs::create_dir(source.path("untracked")).unwrap();
    for (given, expected) in [
        (inside(&source.root, "services/api"), Ok("services/api")),
        (inside(&source.root, "./services/"), Ok("services")),
        (local(&source.path("services/api")), Ok("services/api")),
        (inside(&source.path("services/api"), "services"), Ok("services")),
        (local(&source.path("untracked")), Err("SUBDIRECTORY_MISSING")),
        (inside(&source.root, "absent"), Err("SUBDIRECTORY_MISSING")),
        (inside(&source.root, "file"), Err("SUBDIRECTORY_MISSING")),
        (inside(&source.root, "link/api"), Err("SUBDIRECTORY_SYMLINK")),
        (inside(&source.root, "services/out"), Err("SUBDIRECTORY_SYMLINK")),
        (inside(&source.root, "services/../.."), Err("SUBDIRECTORY_INVALID")),
        (inside(&source.root, "/etc"), Err("SUBDIRECTORY_INVALID")),
        (inside(&source.root, ".git"), Err("SUBDIRECTORY_INVALID")),
        (inside(&source.root, "a\0b"), Err("SUBDIRECTORY_INVALID")),
    ] {
        let own = Sandbox::new();
        let got = own.try_run(Some(given.clone())).await;
        let got = got.map(|run| run.prepared.directory).map_err(|error| error.system_code());
        assert_eq!(got, expected.map(|path| own.layout().workspace.join(path)), "{given:?}");
    }
}

#[tokio::test]
async fn a_tree_with_names_that_git_refuses_is_not_checked_out() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "")]);
    let blob = source.git(&["hash-object", "-w", "a"]);
    for name in [".git", "..", ".GIT"] {
        let listing = source.path("listing");
        let mut raw = format!("100644 {name}\0").into_bytes();
        raw.extend((0..20).map(|i| u8::from_str_radix(&blob[2 * i..2 * i + 2], 16).unwrap()));
        fs::write(&listing, raw).unwrap();
        let tree = source.git(&["hash-object", "-t", "tree", "--literally", "-w", "listing"]);
        let commit = source.git(&["commit-tree", "-m", "hostile", &tree]);
        assert_eq!(refusal(&Sandbox::new(), at(&source.root, &commit)).await, "CHECKOUT_FAILED", "{name}");
    }
}

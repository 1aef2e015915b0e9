//! Applying a diff to the user's repository.

use std::fs;
use std::path::PathBuf;

use super::fixture::{Run, Sandbox, Tree, git, snapshot, trap};
use crate::supervisor::workspace::{
    Applied, ApplyError, ChangeKind, DiffLimits, FileChange, WorkspaceDiff, apply,
};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// A source with one file, and a run in which the agent changed its first line and added a file.
async fn changed(sandbox: &Sandbox) -> (Tree, Run, WorkspaceDiff) {
    let source = sandbox.repository(&[("a", LINES), ("b", "1\n")]);
    let run = sandbox.run(&source.root).await;
    run.tree.write("a", LINES.replace('1', "one"));
    run.tree.write("new/file", "new\n");
    let diff = run.diff().await;
    (source, run, diff)
}

/// Applies and expects a refusal that changes nothing.
async fn refusal(target: &Tree, diff: &WorkspaceDiff) -> ApplyError {
    let before = snapshot(&target.root);
    let error = apply(&git(), &target.root, diff).await.unwrap_err();
    assert_eq!(snapshot(&target.root), before);
    error
}

#[tokio::test]
async fn a_diff_applies_to_the_original() {
    let sandbox = Sandbox::new();
    let (source, run, diff) = changed(&sandbox).await;
    let (head, index) = (source.git(&["rev-parse", "HEAD"]), fs::read(source.path(".git/index")).unwrap());
    assert_eq!(apply(&git(), &source.root, &diff).await.unwrap(), Applied { files: 2 });
    assert_eq!(source.files(), run.tree.files());
    assert_eq!(source.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(fs::read(source.path(".git/index")).unwrap(), index);
}

#[tokio::test]
async fn a_diff_applies_from_a_directory_below_the_root() {
    let sandbox = Sandbox::new();
    let (source, run, diff) = changed(&sandbox).await;
    fs::create_dir(source.path("below")).unwrap();
    apply(&git(), &source.path("below"), &diff).await.unwrap();
    assert_eq!(source.files(), run.tree.files());
}

#[tokio::test]
async fn an_empty_diff_applies_to_anything() {
    let sandbox = Sandbox::new();
    let applied = apply(&git(), &sandbox.path("absent"), &WorkspaceDiff::default()).await;
    assert_eq!(applied.unwrap(), Applied { files: 0 });
}

#[tokio::test]
async fn uncommitted_changes_are_kept() {
    let sandbox = Sandbox::new();
    let (source, _, diff) = changed(&sandbox).await;
    source.write("b", "mine\n");
    source.write("a", LINES.replace('9', "nine"));
    source.write("untracked", "mine\n");
    apply(&git(), &source.root, &diff).await.unwrap();
    assert_eq!(fs::read_to_string(source.path("a")).unwrap(), LINES.replace('1', "one").replace('9', "nine"));
    assert_eq!(fs::read(source.path("b")).unwrap(), b"mine\n");
    assert_eq!(fs::read(source.path("untracked")).unwrap(), b"mine\n");
}

#[tokio::test]
async fn a_target_that_moved_on_takes_what_still_applies() {
    let sandbox = Sandbox::new();
    let (source, _, diff) = changed(&sandbox).await;
    source.write("a", LINES.replace('9', "nine"));
    source.write("c", "");
    source.commit();
    apply(&git(), &source.root, &diff).await.unwrap();
    assert!(source.path("new/file").exists());
}

#[tokio::test]
async fn a_conflict_changes_nothing() {
    for conflict in [
        "changed",
        "deleted",
        "in the way",
        "not a directory",
        "a full directory",
        "a nested empty directory",
    ] {
        let sandbox = Sandbox::new();
        let (source, _, diff) = changed(&sandbox).await;
        match conflict {
            "changed" => source.write("a", LINES.replace('1', "mine")),
            "deleted" => source.remove("a"),
            "in the way" => source.write("new/file", "mine\n"),
            "a full directory" => source.write("new/file/mine", "mine\n"),
            "not a directory" => source.write("new", "mine\n"),
            _ => fs::create_dir_all(source.path("new/file/empty")).unwrap(),
        }
        let error = refusal(&source, &diff).await;
        assert!(matches!(error, ApplyError::DoesNotApply { .. }), "{conflict}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("new"), "git's words are not in the message");
    }
}

#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let sandbox = Sandbox::new();
    let (source, _, diff) = changed(&sandbox).await;
    fs::create_dir(sandbox.path("outside")).unwrap();
    source.link("new", sandbox.path("outside"));
    assert!(matches!(refusal(&source, &diff).await, ApplyError::DoesNotApply { .. }));
    assert!(!sandbox.path("outside/file").exists());
    // Not even through one that the patch itself brings.
    let run = Sandbox::new();
    let run = run.try_run(None).await.unwrap();
    run.tree.link("link", sandbox.path("outside"));
    let mut diff = run.diff().await;
    let file = String::from(
        "diff --git a/link/file b/link/file\nnew file mode 100644\n--- /dev/null\n+++ b/link/file\n@@ -0,0 +1 @@\n+x\n",
    );
    diff.patch.extend(file.into_bytes());
    assert!(matches!(refusal(&source, &diff).await, ApplyError::DoesNotApply { .. }));
    assert!(!sandbox.path("outside/file").exists());
}

#[tokio::test]
async fn hostile_names_are_refused() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "")]);
    for name in
        [".git/hooks/pre-commit", "../escaped", ".GIT/config", "sub/.git/config", "/tmp/caisson-escaped"]
    {
        let patch = format!(
            "diff --git a/{name} b/{name}\nnew file mode 100755\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
        );
        let file = FileChange {
            path: PathBuf::from(name),
            kind: ChangeKind::Added,
            insertions: 1,
            deletions: 0,
            binary: false,
        };
        let mut diff = WorkspaceDiff { patch: patch.into_bytes(), ..WorkspaceDiff::default() };
        // Whether the list of files tells about it or not.
        let error = refusal(&source, &diff).await;
        assert!(matches!(error, ApplyError::DoesNotApply { .. }), "{name}: {error:?}");
        diff.files.push(file);
        assert!(matches!(refusal(&source, &diff).await, ApplyError::UnsafePath), "{name}");
    }
    assert!(!sandbox.path("escaped").exists());
}

#[tokio::test]
async fn an_incomplete_diff_is_refused() {
    let sandbox = Sandbox::new();
    let (source, run, _) = changed(&sandbox).await;
    let cut = run.diff_within(&DiffLimits { patch_bytes: 300, ..DiffLimits::default() }).await;
    assert!(!cut.patch.is_empty());
    assert!(matches!(refusal(&source, &cut).await, ApplyError::Incomplete));
}

#[tokio::test]
async fn a_target_without_a_working_tree_is_refused() {
    let sandbox = Sandbox::new();
    let (source, _, diff) = changed(&sandbox).await;
    source.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    fs::create_dir(sandbox.path("plain")).unwrap();
    for name in ["bare", "plain"] {
        let error = refusal(&Tree { root: sandbox.path(name) }, &diff).await;
        assert!(matches!(error, ApplyError::NotAWorkTree), "{name}");
    }
}

#[tokio::test]
async fn the_targets_line_endings_are_kept_and_its_filters_do_not_run() {
    let sandbox = Sandbox::new();
    let source =
        sandbox.repository(&[(".gitattributes", "a eol=crlf\nf filter=trap\n"), ("a", LINES), ("f", "1\n")]);
    source.remove("a");
    source.git(&["checkout", "--quiet", "a"]);
    assert!(fs::read_to_string(source.path("a")).unwrap().starts_with("1\r\n"));
    let mark = sandbox.path("mark");
    for key in ["clean", "smudge", "process"] {
        source.git(&["config", &format!("filter.trap.{key}"), &trap(&mark)]);
    }
    source.git(&["config", "filter.trap.required", "true"]);
    source.git(&["config", "apply.whitespace", "fix"]);
    let run = sandbox.run(&source.root).await;
    run.tree.write("a", LINES.replace('1', "one  "));
    run.tree.write("f", "2\n");
    let diff = run.diff().await;
    apply(&git(), &source.root, &diff).await.unwrap();
    assert!(fs::read_to_string(source.path("a")).unwrap().starts_with("one  \r\n2\r\n"));
    assert_eq!(fs::read(source.path("f")).unwrap(), b"2\n");
    assert!(!mark.exists());
    source.try_git(&["add", "f"]);
    assert!(mark.exists(), "the trap works");
}

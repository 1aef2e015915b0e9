//! Trees that an attacker leaves.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::fixture::{Sandbox, Tree, patch_text, summary, trap};
use crate::supervisor::workspace::{DiffLimits, SkipReason};

#[tokio::test]
async fn the_agents_git_directory_is_never_read() {
    for replacement in ["gone", "a file", "a link", "damaged"] {
        let sandbox = Sandbox::new();
        let source = sandbox.repository(&[("a", "one\n")]);
        let run = sandbox.run(&source.root).await;
        if replacement == "damaged" {
            fs::write(run.tree.path(".git/config"), "[").unwrap();
            fs::write(run.tree.path(".git/index"), "x").unwrap();
        } else {
            run.tree.remove(".git");
        }
        match replacement {
            "a file" => run.tree.write(".git", "gitdir: /nonexistent\n"),
            "a link" => run.tree.link(".git", "/etc"),
            _ => {}
        }
        run.tree.write("a", "two\n");
        assert_eq!(summary(&run.diff().await), ["Modified a +1 -1"], "{replacement}");
    }
}

/// Marks that are left by programs which git was told to run.
struct Traps {
    marks: Vec<PathBuf>,
}

impl Traps {
    /// Asks git, by configuration, attributes and hooks, to run programs in the repository at `tree`.
    fn set(sandbox: &Sandbox, tree: &Tree, name: &str) -> Self {
        let mut marks = Vec::new();
        let mut set = |kind: &str| {
            let mark = sandbox.path(format!("{name}-{kind}"));
            marks.push(mark.clone());
            trap(&mark)
        };
        tree.git(&["config", "filter.clean.clean", &set("clean")]);
        tree.git(&["config", "filter.process.process", &set("process")]);
        tree.git(&["config", "diff.textconv.textconv", &set("textconv")]);
        tree.git(&["config", "diff.driver.command", &set("driver")]);
        tree.git(&["config", "core.fsmonitor", &set("fsmonitor")]);
        fs::create_dir_all(tree.path(".git/hooks")).unwrap();
        fs::copy(set("hook"), tree.path(".git/hooks/pre-commit")).unwrap();
        let attributes =
            "clean* filter=clean\nprocess* filter=process\ntextconv* diff=textconv\ndriver* diff=driver\n";
        tree.write(".gitattributes", attributes);
        fs::create_dir_all(tree.path(".git/info")).unwrap();
        fs::write(tree.path(".git/info/attributes"), attributes).unwrap();
        Self { marks }
    }

    fn sprung(&self) -> Vec<&Path> {
        self.marks.iter().map(PathBuf::as_path).filter(|mark| mark.exists()).collect()
    }
}

const TRAPPED: [&str; 4] = ["clean", "process", "textconv", "driver"];

#[tokio::test]
async fn nothing_that_the_tree_asks_for_is_run() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&TRAPPED.map(|name| (name, "one\n")));
    let run = sandbox.run(&source.root).await;
    let nested = Tree::init(run.tree.path("nested"), &[]);
    for name in TRAPPED {
        nested.write(name, "one\n");
    }
    nested.commit();
    run.tree.git(&["add", "nested"]);
    let (outer_traps, inner_traps) =
        (Traps::set(&sandbox, &run.tree, "outer"), Traps::set(&sandbox, &nested, "inner"));
    for name in TRAPPED {
        run.tree.write(name, "two\n");
        nested.write(name, "two\n");
    }
    let diff = run.diff().await;
    assert_eq!(outer_traps.sprung(), [] as [&Path; 0]);
    assert_eq!(inner_traps.sprung(), [] as [&Path; 0]);
    assert_eq!(diff.nested_repositories, [PathBuf::from("nested")]);
    let changed: Vec<_> = TRAPPED.iter().map(|name| format!("Modified {name} +1 -1")).collect();
    let found = summary(&diff);
    assert!(changed.iter().all(|line| found.contains(line)), "{found:?}");
    assert!(found.iter().all(|line| !line.contains("nested")), "{found:?}");

    // Every trap works, and plain git steps into it.
    for command in [&["status"][..], &["diff"], &["add", "--all"], &["commit", "--message=x"]] {
        run.tree.try_git(command);
    }
    assert_eq!(outer_traps.sprung().len(), 6, "{:?}", outer_traps.sprung());
    assert!(
        inner_traps.sprung().iter().any(|mark| mark.ends_with("inner-clean")),
        "{:?}",
        inner_traps.sprung()
    );
}

#[tokio::test]
async fn a_planted_git_directory_hides_no_change_of_the_base() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("dir/tracked", "1\n"), ("dir/sub/gone", "1\n"), ("a", "")]);
    for plant_a_file in [false, true] {
        let own = Sandbox::new();
        let run = own.run(&source.root).await;
        if plant_a_file {
            run.tree.write("dir/.git", "gitdir: elsewhere");
        } else {
            Tree::init(run.tree.path("dir"), &[]);
        }
        run.tree.write("dir/tracked", "2\n");
        run.tree.write("dir/untracked", "2\n");
        run.tree.remove("dir/sub/gone");
        let diff = run.diff().await;
        assert_eq!(summary(&diff), ["Deleted dir/sub/gone +0 -1", "Modified dir/tracked +1 -1"]);
        assert_eq!(diff.nested_repositories, [PathBuf::from("dir")]);
    }
}

#[tokio::test]
async fn links_are_shown_and_never_followed() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("dir/file", "1\n")]);
    let run = sandbox.run(&source.root).await;
    let outside = sandbox.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "the content outside\n").unwrap();
    run.tree.remove("dir");
    run.tree.link("dir", &outside);
    run.tree.link("passwd", "/etc/passwd");
    run.tree.link("loop", "loop");
    run.tree.link("up", "..");
    run.tree.link("dangling", "nowhere");
    let diff = run.diff().await;
    assert_eq!(
        summary(&diff),
        [
            "Added dangling +1 -0",
            "Added dir +1 -0",
            "Deleted dir/file +0 -1",
            "Added loop +1 -0",
            "Added passwd +1 -0",
            "Added up +1 -0",
        ]
    );
    assert!(patch_text(&diff).contains("new file mode 120000"));
    assert!(patch_text(&diff).contains("+/etc/passwd\n"));
    assert!(!patch_text(&diff).contains("root:") && !patch_text(&diff).contains("content outside"));
}

#[tokio::test]
async fn pipes_sockets_and_reserved_names_are_listed_and_not_opened() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "1\n")]);
    let run = sandbox.run(&source.root).await;
    mkfifo(&run.tree.path("fifo"), Mode::S_IRWXU).unwrap();
    run.tree.remove("a");
    mkfifo(&run.tree.path("a"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(run.tree.path("socket")).unwrap();
    mkfifo(&run.tree.path(".gitignore"), Mode::S_IRWXU).unwrap();
    run.tree.write(".GIT/hooks/pre-commit", "x");
    run.tree.write("sub/git~1", "x");
    let diff = run.diff().await;
    let skipped: Vec<_> =
        diff.skipped.iter().map(|(path, reason)| (path.to_str().unwrap(), *reason)).collect();
    assert_eq!(
        skipped,
        [
            (".GIT", SkipReason::ReservedName),
            (".gitignore", SkipReason::Fifo),
            ("a", SkipReason::Fifo),
            ("fifo", SkipReason::Fifo),
            ("socket", SkipReason::Socket),
            ("sub/git~1", SkipReason::ReservedName),
        ]
    );
    assert_eq!(summary(&diff), ["Deleted a +0 -1"]);
    assert!(diff.is_complete());
}

#[tokio::test]
async fn a_hard_link_is_an_ordinary_file() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "1\n")]);
    let run = sandbox.run(&source.root).await;
    fs::write(sandbox.path("outside"), "x\n").unwrap();
    fs::hard_link(sandbox.path("outside"), run.tree.path("inside")).unwrap();
    assert_eq!(summary(&run.diff().await), ["Added inside +1 -0"]);
}

#[tokio::test]
async fn a_replaced_workspace_is_refused() {
    for replacement in ["gone", "a link", "another"] {
        let sandbox = Sandbox::new();
        let source = sandbox.repository(&[("a", "1\n")]);
        let run = sandbox.run(&source.root).await;
        fs::rename(&run.layout.workspace, sandbox.path("moved")).unwrap();
        match replacement {
            "a link" => std::os::unix::fs::symlink(sandbox.path("moved"), &run.layout.workspace).unwrap(),
            "another" => fs::create_dir(&run.layout.workspace).unwrap(),
            _ => {}
        }
        let error = run.try_diff(&DiffLimits::default()).await.unwrap_err();
        assert_eq!(error.system_code(), "WORKSPACE_REPLACED", "{replacement}");
    }
}

/// Swaps a directory for a link to the outside and back as fast as it can, while diffs are made.
#[tokio::test(flavor = "multi_thread")]
async fn swapping_a_directory_for_a_link_leads_nowhere() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository(&[("a", "1\n")]);
    let run = sandbox.run(&source.root).await;
    let outside = sandbox.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "the content outside\n").unwrap();
    run.tree.write("dir/file", "inside\n");
    run.tree.link("link", &outside);
    let (stop, root) = (AtomicBool::new(false), run.tree.root.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (directory, link, aside) = (root.join("dir"), root.join("link"), root.join("aside"));
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in
                    [(&directory, &aside), (&link, &directory), (&directory, &link), (&aside, &directory)]
                {
                    fs::rename(from, to).unwrap();
                }
            }
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for _ in 0..100 {
                    let diff = run.diff().await;
                    assert!(!patch_text(&diff).contains("content outside"));
                }
            });
        });
        stop.store(true, Ordering::Relaxed);
    });
}

#[tokio::test]
async fn a_tree_deeper_than_any_path_is_walked_to_the_limit() {
    let sandbox = Sandbox::new();
    let run = sandbox.try_run(None).await.unwrap();
    let name = "d".repeat(200);
    let mut directory =
        nix::dir::Dir::open(&run.tree.root, nix::fcntl::OFlag::O_RDONLY, Mode::empty()).unwrap();
    for _ in 0..300 {
        nix::sys::stat::mkdirat(&directory, name.as_str(), Mode::S_IRWXU).unwrap();
        directory =
            nix::dir::Dir::openat(&directory, name.as_str(), nix::fcntl::OFlag::O_RDONLY, Mode::empty())
                .unwrap();
    }
    drop(directory);
    run.tree.write("a", "1\n");
    let diff = run.diff().await;
    assert_eq!(summary(&diff), ["Added a +1 -0"]);
    assert!(!diff.is_complete());
}

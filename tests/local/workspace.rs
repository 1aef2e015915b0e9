//! The agent works on a copy; the caller's repository is looked at and never touched.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::repo::git;
use crate::support::{Account, Caisson, Finished, Repo};

/// An agent that changes, adds and removes files.
const WORKS: &str =
    "echo four >>README.md; mkdir -p src; printf 'fn main() {}\\n' >src/main.rs; rm -f old.txt";

fn run(account: &Account, agent: &str, directory: &Path) -> Caisson {
    account.run(agent, "x").arg("--workspace").arg(directory)
}

/// Runs for a person, who is also told the notes.
fn human(account: &Account, agent: &str, directory: &Path) -> Finished {
    account
        .caisson(["run", "--yes", "--prompt=x", "--definition", agent, "--workspace"])
        .arg(directory)
        .run()
        .exits(0)
}

#[test]
fn the_change_is_shown_and_the_original_stays_as_it_was() {
    let account = Account::new();
    account.agent("works", "", WORKS);
    let repo = Repo::init(account.path("my repo (é) & 'more'"))
        .write("README.md", "one\n")
        .write("old.txt", "old\n")
        .commit();
    let (before, head) = (repo.snapshot(), repo.git(["rev-parse", "HEAD"]));
    let finished = run(&account, "works", repo.path()).run().exits(0);
    let result = finished.result();
    assert_eq!(result["commit"]["base"], head.trim());
    let diff = &result["diff"];
    assert_eq!((&diff["files"], &diff["insertions"], &diff["deletions"]), (&3.into(), &2.into(), &1.into()));
    let patch = diff["patch"].as_str().unwrap();
    for part in ["+four", "+fn main() {}", "deleted file mode 100644", "-old"] {
        assert!(patch.contains(part), "{patch}");
    }
    assert!(repo.snapshot() == before, "the original was touched");
    account.assert_nothing_left();
}

#[test]
fn every_kind_of_repository_is_a_workspace() {
    let account = Account::new();
    let seen = account.path("seen");
    account.agent("looks", "", &format!("cat README.md >{0}; basename \"$PWD\" >>{0}; git symbolic-ref -q HEAD >>{0}; git log --oneline | wc -l >>{0}", seen.display()));
    let repo = Repo::new(account.path("repo")).write("folder/file", "x").commit();
    repo.git(["worktree", "add", "--quiet", "-b", "side", "../linked"]);
    git(&account.path(""), ["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let expect = |directory: &Path, expected: &[&str]| {
        run(&account, "looks", directory).run().exits(0);
        let text = fs::read_to_string(&seen).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines, expected, "{}", directory.display());
    };
    let content = ["one", "two", "three"];
    let with = |end: &[&'static str]| [&content[..], end].concat();
    expect(repo.path(), &with(&["workspace", "refs/heads/main", "2"]));
    expect(&account.path("linked"), &with(&["workspace", "refs/heads/side", "2"]));
    expect(&account.path("bare.git"), &with(&["workspace", "refs/heads/main", "2"]));
    // A folder inside the repository is where the agent starts.
    expect(&repo.path().join("folder"), &["folder", "refs/heads/main", "2"]);
    // Names that look like options are names.
    repo.git(["update-ref", "refs/heads/-x", "HEAD"]);
    repo.git(["symbolic-ref", "HEAD", "refs/heads/-x"]);
    expect(repo.path(), &with(&["workspace", "refs/heads/-x", "2"]));
    repo.git(["checkout", "--quiet", "--detach"]);
    expect(repo.path(), &with(&["workspace", "2"]));
}

#[test]
fn a_relative_folder_with_dashes_is_a_folder() {
    let account = Account::new();
    account.agent("looks", "", "cat README.md");
    Repo::new(account.path("--upload-pack=touch x"));
    let finished = account
        .caisson(["run", "--yes", "--prompt=x", "--definition=looks", "--workspace=--upload-pack=touch x"])
        .run()
        .exits(0);
    assert!(finished.out().contains("three"));
    assert!(!account.path("x").exists());
}

#[test]
fn what_the_copy_lacks_is_said() {
    let account = Account::new();
    account.agent("looks", "", "ls -A module; cat README.md");
    let repo = Repo::new(account.path("repo"));
    let id = repo.git(["rev-parse", "HEAD"]);
    let repo = repo.write(
        ".gitmodules",
        "[submodule \"module\"]\n\tpath = module\n\turl = https://git.example/module\n",
    );
    repo.git(["update-index", "--add", "--cacheinfo", &format!("160000,{},module", id.trim())]);
    repo.git(["add", ".gitmodules"]);
    repo.git(["commit", "--quiet", "--message=a submodule"]);
    let repo = repo.write("README.md", "changed and not committed\n").write("new.txt", "new");
    let before = repo.snapshot();
    let finished = human(&account, "looks", repo.path());
    let text = finished.out();
    assert!(text.contains("note: submodules are left empty: \"module\""), "{text}");
    assert!(text.contains("note: not in the workspace: 1 changed and 1 untracked"), "{text}");
    assert!(!text.contains("changed and not committed"), "{text}");
    assert!(repo.snapshot() == before, "the original was touched");
}

#[test]
fn a_change_is_applied_on_request_only_and_as_a_whole() {
    let account = Account::new();
    account.agent("works", "", WORKS);
    account.agent("fails", "", &format!("{WORKS}; exit 1"));
    let repo = Repo::new(account.path("repo")).write("folder/file", "x").write("old.txt", "old\n").commit();
    run(&account, "fails", repo.path()).arg("--apply").run().exits(1);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    // An uncommitted change elsewhere is no hindrance, and stays.
    let repo = repo.write("mine.txt", "mine\n");
    run(&account, "works", repo.path()).arg("--apply").run().exits(0).tells("3 files");
    assert_eq!(repo.read("README.md"), "one\ntwo\nthree\nfour\n");
    assert_eq!((repo.read("src/main.rs"), repo.read("mine.txt")), ("fn main() {}\n".into(), "mine\n".into()));
    assert!(!repo.path().join("old.txt").exists());
    assert_eq!(repo.git(["rev-list", "--count", "HEAD"]).trim(), "2", "nothing is committed");
    account.assert_nothing_left();
}

#[test]
fn a_change_from_a_subfolder_is_applied_where_it_belongs() {
    let account = Account::new();
    account.agent("works", "", "echo more >>file; echo beside >../beside");
    let repo = Repo::new(account.path("repo")).write("folder/file", "x\n").commit();
    run(&account, "works", &repo.path().join("folder")).arg("--apply").run().exits(0).tells("2 files");
    assert_eq!((repo.read("folder/file"), repo.read("beside")), ("x\nmore\n".into(), "beside\n".into()));
}

#[test]
fn a_change_that_no_longer_applies_changes_nothing() {
    let account = Account::new();
    let repo = Repo::new(account.path("repo"));
    // While the agent works, the person does too.
    let script = format!(
        "echo four >>README.md; echo x >new.txt; printf 'else\\n' >{}/README.md",
        repo.path().display()
    );
    account.agent("races", "", &script);
    let finished = run(&account, "races", repo.path()).arg("--apply").run().exits(1);
    finished.tells("not applied: delivery-failed").tells("nothing was changed");
    assert_eq!(repo.read("README.md"), "else\n");
    assert!(!repo.path().join("new.txt").exists(), "half of the change was applied");
}

#[test]
fn a_change_with_a_secret_or_a_gap_is_not_applied() {
    let account = Account::new();
    let key = "environment: [{name: AGENT_KEY, secretKeyRef: {name: a, key: b}}]";
    account.agent("leaks", key, "printf 'key = %s\\n' \"$AGENT_KEY\" >config.ini");
    account.agent("encodes", key, "printf %s \"$AGENT_KEY\" | base64 >config.b64");
    account.agent("outgrows", "", "head -c 40000000 /dev/zero | tr '\\0' x >large; echo x >small");
    let repo = Repo::new(account.path("repo"));
    for agent in ["leaks", "encodes"] {
        let finished = run(&account, agent, repo.path())
            .arg("--apply")
            .env("AGENT_KEY", "plainly-a-secret-value-9")
            .run();
        assert!(!finished.dump().contains("plainly-a-secret"), "{}", finished.dump());
        finished.exits(1).tells("not applied: secret-in-delivery");
    }
    run(&account, "outgrows", repo.path())
        .arg("--apply")
        .run()
        .exits(1)
        .tells("not applied: delivery-failed");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    account.assert_nothing_left();
}

#[test]
fn an_agent_may_do_to_its_git_folder_what_it_likes() {
    let account = Account::new();
    let repo = Repo::new(account.path("repo"));
    for (name, script) in [
        ("removes", "rm -rf .git"),
        ("replaces", "rm -rf .git; echo 'gitdir: /etc' >.git"),
        ("links", "rm -rf .git; ln -s /etc .git"),
        (
            "rewrites",
            "git -c user.name=a -c user.email=a@b commit --allow-empty -qm x; git checkout -q --orphan y",
        ),
        ("excludes", "echo new.txt >>.git/info/exclude"),
    ] {
        account.agent(name, "", &format!("{script}; echo new >new.txt"));
        let result = run(&account, name, repo.path()).run().exits(0).result();
        assert_eq!(result["diff"]["files"], 1, "{name}: {result}");
        assert!(result["diff"]["patch"].as_str().unwrap().contains("+new"), "{name}: {result}");
    }
    account.assert_nothing_left();
}

/// A repository full of traps below the working directory: whoever runs git's filters, drivers, monitors or hooks in it leaves a mark.
fn traps(mark: &Path) -> String {
    let mark = mark.display();
    format!(
        "spring() {{
           git config core.fsmonitor 'echo fsmonitor >>{mark}; false'
           git config core.hooksPath \"$PWD/.git/hooks\"
           git config filter.trap.clean 'echo clean >>{mark}; cat'
           git config filter.trap.smudge 'echo smudge >>{mark}; cat'
           git config filter.trap.process 'echo process >>{mark}; false'
           git config filter.trap.required true
           git config diff.trap.textconv 'echo textconv >>{mark}; cat'
           git config diff.trap.command 'echo driver >>{mark}; true'
           git config diff.external 'echo external >>{mark}; true'
           git config core.pager 'echo pager >>{mark}; cat'
           git config core.sshCommand 'echo ssh >>{mark}; false'
           mkdir -p .git/hooks
           for hook in post-checkout post-index-change pre-commit reference-transaction; do
             printf '#!/bin/sh\\necho hook >>{mark}\\n' >.git/hooks/$hook; chmod +x .git/hooks/$hook
           done
           printf '* filter=trap diff=trap text\\n' >.gitattributes
           echo trapped >>README.md; echo trapped >new.txt
         }}
         git init -q nested
         (cd nested && spring)
         mkdir -p deep/er && git init -q deep/er/module && (cd deep/er/module && spring)
         [ -d .git ] || git init -q .
         spring"
    )
}

#[test]
fn nothing_in_the_agents_tree_is_ever_executed() {
    let account = Account::new();
    let mark = account.path("mark");
    account.agent("sets-traps", "", &traps(&mark));
    let repo = Repo::new(account.path("repo"));
    let finished = human(&account, "sets-traps", repo.path());
    let text = finished.out();
    assert!(
        text.contains("nested repositories are left out of the diff: \"deep/er/module\", \"nested\""),
        "{text}"
    );
    assert!(text.contains("+trapped"), "{text}");
    assert!(!mark.exists(), "executed: {}", fs::read_to_string(&mark).unwrap());
    let applied = run(&account, "sets-traps", repo.path()).arg("--apply").run();
    assert!(!mark.exists(), "executed: {}\n{}", fs::read_to_string(&mark).unwrap(), applied.dump());
    account.assert_nothing_left();
    // The traps do work: git itself steps into them.
    let control = Repo::new(account.path("control"));
    let script = account.file("traps.sh", traps(&mark));
    let sprung = std::process::Command::new("sh").arg(script).current_dir(control.path()).output().unwrap();
    assert!(sprung.status.success());
    let _ = std::process::Command::new("git").args(["add", "--all"]).current_dir(control.path()).output();
    assert!(fs::read_to_string(&mark).unwrap().contains("fsmonitor"));
}

#[test]
fn nothing_in_the_callers_repository_is_executed() {
    let account = Account::new();
    let mark = account.path("mark");
    account.agent("works", "", "echo x >x");
    let repo = Repo::new(account.path("repo"));
    let script = account.file("traps.sh", traps(&mark));
    let sprung = std::process::Command::new("sh").arg(script).current_dir(repo.path()).output().unwrap();
    assert!(sprung.status.success());
    let _ = fs::remove_file(&mark);
    run(&account, "works", repo.path()).arg("--apply").run().exits(0);
    assert!(!mark.exists(), "executed: {}", fs::read_to_string(&mark).unwrap());
    assert_eq!(repo.read("x"), "x\n");
}

#[test]
fn odd_files_are_compared_without_being_followed_or_swallowed() {
    let account = Account::new();
    account.agent(
        "odd",
        "",
        "truncate -s 2G sparse
         printf x >\"$(printf 'new\\nline')\"
         ln -s /etc/passwd passwd; ln -s loop loop; ln -s . here
         mkfifo pipe
         printf 'a\\0b' >binary
         mkdir locked && echo x >locked/x && chmod 000 locked/x locked",
    );
    let finished = human(&account, "odd", Repo::new(account.path("repo")).path());
    let text = finished.out();
    assert!(text.contains("too large for the diff: \"sparse\""), "{text}");
    assert!(text.contains("\"a/new\\nline\"") || text.contains("\"b/new\\nline\""), "{text}");
    assert!(text.contains("new file mode 120000") && text.contains("+/etc/passwd"), "{text}");
    assert!(!text.contains("root:"), "a link was followed\n{text}");
    assert!(text.contains("neither file nor link, or not readable: \"pipe\""), "{text}");
    assert!(text.contains("GIT binary patch"), "{text}");
    account.assert_nothing_left();
}

#[test]
fn links_in_the_callers_repository_stay_links() {
    let account = Account::new();
    account.agent(
        "looks",
        "",
        "readlink loop escape; cat escape/hostname >/dev/null || true; echo x >>loop-not",
    );
    let repo = Repo::init(account.path("repo"));
    symlink("loop", repo.path().join("loop")).unwrap();
    symlink("/etc", repo.path().join("escape")).unwrap();
    let repo = repo.commit();
    let result = run(&account, "looks", repo.path()).run().exits(0).result();
    assert_eq!((&result["text"], &result["diff"]["files"]), (&"loop\n/etc\n".into(), &1.into()));
}

#[test]
fn a_tree_of_100_000_files_is_copied_and_compared() {
    let account = Account::new();
    account.agent("counts", "", "find . -name .git -prune -o -type f -print | wc -l; echo more >>d7/f7");
    git(&account.path(""), ["init", "--quiet", "--bare", "large.git"]);
    let mut stream = String::from(
        "blob\nmark :1\ndata 2\nx\n\ncommit refs/heads/main\ncommitter A <a@b> 0 +0000\ndata 0\n",
    );
    for file in 0..100_000 {
        writeln!(stream, "M 100644 :1 d{}/f{}", file / 100, file % 100).unwrap();
    }
    let input = fs::File::open(account.file("stream", stream)).unwrap();
    let imported = std::process::Command::new("git")
        .args(["-C", "large.git", "fast-import", "--quiet"])
        .current_dir(account.path(""))
        .stdin(input)
        .status()
        .unwrap();
    assert!(imported.success());
    git(&account.path("large.git"), ["symbolic-ref", "HEAD", "refs/heads/main"]);
    let result = run(&account, "counts", &account.path("large.git")).run().exits(0).result();
    assert_eq!((&result["text"], &result["diff"]["files"]), (&"100000\n".into(), &1.into()), "{result}");
    account.assert_nothing_left();
}

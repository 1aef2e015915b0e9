//! How git is started and ended.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::fixture::{Sandbox, local};
use crate::supervisor::workspace::{Git, GitError, WorkspaceError, prepare};

/// A program in the place of git.
fn stand_in(sandbox: &Sandbox, script: &str) -> Git {
    let directory = sandbox.path("bin");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("git"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(directory.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = directory.into_os_string();
    path.push(":/usr/bin:/bin");
    Git::find(&path).unwrap()
}

#[test]
fn git_is_found_on_the_given_path_only() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("directory/git")).unwrap();
    fs::create_dir_all(sandbox.path("plain")).unwrap();
    fs::write(sandbox.path("plain/git"), "").unwrap();
    for path in
        ["", ".", sandbox.path("directory").to_str().unwrap(), sandbox.path("plain").to_str().unwrap()]
    {
        let error = Git::find(OsStr::new(path)).unwrap_err();
        assert!(matches!(error, GitError::Missing), "{path}");
        assert_eq!(WorkspaceError::git(error).system_code(), "GIT_MISSING");
    }
}

#[tokio::test]
async fn the_environment_is_cleared() {
    let sandbox = Sandbox::new();
    let seen = sandbox.path("environment");
    let git = stand_in(&sandbox, &format!("env > '{}'; exit 1", seen.display()));
    prepare(&git, Some(&local(&sandbox.path("x"))), &sandbox.layout()).await.unwrap_err();
    let environment = fs::read_to_string(seen).unwrap();
    let names: Vec<_> = environment.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        let expected = name.starts_with("GIT_")
            || ["PATH", "HOME", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name);
        assert!(expected, "{name}");
    }
    assert!(environment.contains("GIT_ALLOW_PROTOCOL=\n"));
}

#[tokio::test]
async fn what_git_says_is_in_no_message() {
    let sandbox = Sandbox::new();
    let git = stand_in(
        &sandbox,
        "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo 'a-secret' >&2; exec kill -9 $$",
    );
    let error = prepare(&git, Some(&local(&sandbox.path("x"))), &sandbox.layout()).await.unwrap_err();
    let WorkspaceError::Git { source: GitError::Failed { stderr, .. } } = &error else { panic!("{error:?}") };
    assert!(stderr.unredacted().ends_with(b"a-secret\n"));
    assert_eq!(stderr.unredacted().len(), 8 * 1024);
    assert!(!format!("{error:?} {error:#?} {error}").contains("secret"));
}

#[tokio::test]
async fn dropping_the_future_ends_git() {
    let sandbox = Sandbox::new();
    let fifo = sandbox.path("fifo");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let git =
        stand_in(&sandbox, &format!("exec 3> '{}'; echo started >&3; exec cat /dev/zero", fifo.display()));
    let (started, has_started) = tokio::sync::oneshot::channel();
    let reader = std::thread::spawn(move || {
        let mut lines = BufReader::new(fs::File::open(fifo).unwrap());
        lines.read_line(&mut String::new()).unwrap();
        started.send(()).unwrap();
        // Ends when the last writer does.
        lines.read_to_end(&mut Vec::new()).unwrap();
    });
    let (source, layout) = (local(&sandbox.path("x")), sandbox.layout());
    tokio::select! {
        _ = prepare(&git, Some(&source), &layout) => panic!("it never ends"),
        _ = has_started => {}
    }
    tokio::task::spawn_blocking(move || reader.join().unwrap()).await.unwrap();
}

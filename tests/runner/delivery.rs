//! What reaches the agent: arguments, standard input, files and environment, byte for byte.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use caisson::protocol::{EncodeError, LaunchError, LaunchFile, Outcome, Record as _, Stdin, ToRunner};

use crate::support::{Supervisor, path_in, run, sh};

/// What the kernel says that the agent's arguments are, from `$1` on.
const SHOW_ARGUMENTS: &str = "cat /proc/$$/cmdline";

fn arguments_seen(arguments: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut launch = sh(SHOW_ARGUMENTS);
    launch.argv.extend(arguments.iter().map(|argument| OsString::from_vec(argument.to_vec())));
    let finished = run(&launch);
    assert_eq!(finished.report.outcome, Outcome::Exited);
    let mut seen: Vec<Vec<u8>> = finished.stdout.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    assert_eq!(seen.pop(), Some(Vec::new()), "the last argument ends with NUL too");
    seen.split_off(4)
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let prompts: Vec<&[u8]> = vec![
        b"- [ ] do x",
        b"--version",
        b"--",
        b"-",
        b"resume",
        b"---\ntitle: front matter\n---\n\nDo it.\n",
        b"lines\r\nof DOS\r\n",
        "na\u{ef}ve \u{1f980} \u{202e}text".as_bytes(),
        b"$(touch /tmp/x) `id` $HOME \"quoted\" 'too' \\ * ; | & > <",
        b"",
        b"\xff\xfe not UTF-8",
        b"trailing newline\n",
        b"",
    ];
    assert_eq!(arguments_seen(&prompts), prompts);
}

#[test]
fn nul_is_refused_before_anything_is_sent() {
    let mut launch = sh("true");
    launch.argv.push("a\0b".into());
    let refused = ToRunner::Launch(Box::new(launch)).encode(&mut Vec::new());
    assert_eq!(refused, Err(EncodeError::Launch(LaunchError::Nul { field: "argument" })));
}

#[test]
fn the_longest_argument_works_and_one_byte_more_is_e2big() {
    // MAX_ARG_STRLEN is 32 pages of 4 KiB and counts the NUL (include/uapi/linux/binfmts.h).
    let longest = vec![b'x'; 131_071];
    assert_eq!(arguments_seen(&[&longest]), [longest]);

    let mut launch = sh("true");
    launch.argv.push(OsString::from_vec(vec![b'x'; 131_072]));
    let report = run(&launch).report;
    assert_eq!(report.outcome, Outcome::SpawnFailed);
    assert_eq!(report.system_code.unwrap().as_str(), "E2BIG");
    assert_eq!(report.exit, None);
}

#[test]
fn a_closed_standard_input_is_at_its_end_at_once() {
    let finished = run(&sh("cat; echo end"));
    assert_eq!(finished.stdout_text(), "end\n");
}

#[test]
fn a_mebibyte_arrives_on_standard_input() {
    let prompt: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[n as usize % 3]).collect();
    let launch = caisson::protocol::Launch { stdin: Stdin::Bytes(prompt.clone()), ..sh("cat") };
    let finished = run(&launch);
    assert!(finished.stdout == prompt, "{} bytes", finished.stdout.len());
}

#[test]
fn an_agent_need_not_read_its_standard_input() {
    // More than a pipe holds: whoever writes it all at once would block.
    let unread = Stdin::Bytes(vec![b'x'; 4 << 20]);
    let finished = run(&caisson::protocol::Launch { stdin: unread.clone(), ..sh("echo done") });
    assert_eq!(finished.stdout_text(), "done\n");
    // Closing it early is no error either.
    let finished = run(&caisson::protocol::Launch { stdin: unread, ..sh("exec <&-; echo closed") });
    assert_eq!(finished.stdout_text(), "closed\n");
    assert_eq!(finished.report.exit.unwrap().code, 0);
}

#[test]
fn a_mebibyte_arrives_in_a_private_file_that_is_gone_afterwards() {
    let mut supervisor = Supervisor::start();
    let path = path_in(&supervisor.directory, "prompt");
    let content: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[n as usize % 3]).collect();
    let mut launch = sh("cat \"$1\"; stat -c %a \"$1\" >&2");
    launch.argv.push(path.clone().into());
    launch.files = vec![LaunchFile { path: path.clone(), content: content.clone() }];
    supervisor.launch(&launch);
    let finished = supervisor.finish();
    assert!(finished.stdout == content);
    assert_eq!(finished.stderr, b"600\n");
    assert!(!path.exists());
}

#[test]
fn a_file_never_overwrites_or_follows_what_is_there() {
    let mut supervisor = Supervisor::start();
    let target = path_in(&supervisor.directory, "target");
    let link = path_in(&supervisor.directory, "link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let mut launch = sh("true");
    let other = path_in(&supervisor.directory, "other");
    launch.files = vec![
        LaunchFile { path: other.clone(), content: b"x".to_vec() },
        LaunchFile { path: link.clone(), content: b"x".to_vec() },
    ];
    supervisor.launch(&launch);
    let report = supervisor.finish().report;
    assert_eq!(report.outcome, Outcome::SpawnFailed);
    assert_eq!(report.system_code.unwrap().as_str(), "EEXIST");
    assert!(!target.exists() && link.is_symlink() && !other.exists());
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let mut launch = sh("cat /proc/$$/environ");
    launch.environment =
        vec![("B".into(), "two=2".into()), ("A".into(), "\u{e9} \n".into()), ("EMPTY".into(), "".into())];
    // `cat` is found without a PATH, by the shell's own default.
    assert_eq!(run(&launch).stdout, "B=two=2\0A=\u{e9} \n\0EMPTY=\0".as_bytes());
}

#[test]
fn the_agent_starts_in_the_given_directory() {
    let mut supervisor = Supervisor::start();
    let directory = path_in(&supervisor.directory, "with space");
    std::fs::create_dir(&directory).unwrap();
    supervisor.launch(&caisson::protocol::Launch { working_directory: directory.clone(), ..sh("pwd -P") });
    let expected = format!("{}\n", directory.canonicalize().unwrap().display());
    assert_eq!(supervisor.finish().stdout_text(), expected);
}

#[test]
fn a_start_that_fails_says_why() {
    let supervisor_directory = tempfile::TempDir::new().unwrap();
    let file = |name: &str, content: &[u8], mode: u32| {
        let path = path_in(&supervisor_directory, name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    // A script without `#!` must not be handed to a shell.
    let no_format = file("no-format", b"echo started by a shell\n", 0o755);
    let table = [
        (path_in(&supervisor_directory, "absent"), "ENOENT"),
        (file("not-executable", b"#!/bin/sh\n", 0o644), "EACCES"),
        (no_format, "ENOEXEC"),
        (file("bad-interpreter", b"#!/no/such/interpreter\n", 0o755), "ENOENT"),
        (supervisor_directory.path().to_owned(), "EACCES"),
    ];
    for (program, code) in table {
        let finished = run(&caisson::protocol::Launch { program: program.clone(), ..sh("true") });
        assert_eq!(finished.report.outcome, Outcome::SpawnFailed, "{}", program.display());
        assert_eq!(finished.report.system_code.unwrap().as_str(), code, "{}", program.display());
        assert_eq!(finished.stdout, b"", "{}", program.display());
    }
    let nowhere = caisson::protocol::Launch { working_directory: "/no/such/directory".into(), ..sh("true") };
    assert_eq!(run(&nowhere).report.system_code.unwrap().as_str(), "ENOENT");
}

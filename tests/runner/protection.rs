//! What the agent can't inherit, read or gain, and what a runner refuses.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use caisson::protocol::Outcome;
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::support::{Supervisor, live_sh, run, sh, status_kib};

#[test]
fn the_agent_inherits_three_descriptors_and_no_more() {
    // `ls` itself opens the directory, as 3.
    let launch = caisson::protocol::Launch {
        program: "/bin/ls".into(),
        argv: vec!["ls".into(), "/proc/self/fd".into()],
        ..sh("")
    };
    // One that the runner itself was started with, without close-on-exec.
    let mut supervisor = Supervisor::start_with(|command| {
        command.stdin(Stdio::piped());
        let script = "exec 9</dev/null; exec \"$@\"";
        let inner: Vec<_> = std::iter::once(command.get_program().to_owned())
            .chain(command.get_args().map(std::ffi::OsStr::to_owned))
            .collect();
        *command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(inner).stdin(Stdio::piped());
    });
    supervisor.launch(&launch);
    assert_eq!(supervisor.finish().stdout_text(), "0\n1\n2\n3\n");
}

#[test]
fn the_agent_starts_with_default_signals_no_core_files_and_no_way_up() {
    // The runner is started with signals ignored, as by `nohup`.
    let mut supervisor = Supervisor::start_with(|command| {
        let inner: Vec<_> = std::iter::once(command.get_program().to_owned())
            .chain(command.get_args().map(std::ffi::OsStr::to_owned))
            .collect();
        *command = Command::new("sh");
        command
            .args(["-c", "trap '' HUP QUIT USR1 CHLD; exec \"$@\"", "sh"])
            .args(inner)
            .stdin(Stdio::piped());
    });
    let launch = caisson::protocol::Launch {
        program: "/bin/cat".into(),
        argv: vec!["cat".into(), "/proc/self/status".into(), "/proc/self/limits".into()],
        ..sh("")
    };
    supervisor.launch(&launch);
    let finished = supervisor.finish();
    let has = |line: &str| finished.stdout_text().lines().any(|found| found.starts_with(line));
    assert!(has("SigBlk:\t0000000000000000"), "{}", finished.stdout_text());
    // But for 32 and 33, which the C library keeps for itself and lets nobody set.
    let ignored = finished.stdout_text().lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & !0x1_8000_0000, 0);
    assert!(has("NoNewPrivs:\t1"), "{}", finished.stdout_text());
    assert!(has("Max core file size        0                    0"), "{}", finished.stdout_text());
}

#[test]
fn the_agent_leads_a_session_of_its_own_and_has_no_terminal() {
    let finished = run(&sh("cut -d' ' -f1,5,6,7 /proc/$$/stat"));
    let fields: Vec<&str> = finished.stdout_text().split_whitespace().collect();
    assert_eq!((fields[0], fields[0], "0"), (fields[1], fields[2], fields[3]), "pid = group = session");
}

#[test]
fn the_agent_can_not_read_its_runner() {
    // As root every file can be read, so the runner becomes somebody; its binary has to be where somebody can reach it.
    let directory = TempDir::new().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = directory.path().join("caisson");
    std::fs::copy(env!("CARGO_BIN_EXE_caisson"), &program).unwrap();
    let socket = directory.path().join("socket");
    let mut supervisor = Supervisor::start_program(&program, directory, |command| {
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).unwrap();
        if geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
    });
    let script = "echo own; head -c 1 /proc/$$/environ >/dev/null && echo read
        for file in environ mem fd/0 maps auxv; do head -c 1 /proc/$PPID/$file >/dev/null 2>&1 && echo $file; done; true";
    supervisor.launch(&sh(script));
    assert_eq!(supervisor.finish().stdout_text(), "own\nread\n");
}

#[test]
fn a_runner_without_a_supervisor_gives_up() {
    let directory = TempDir::new().unwrap();
    let run_with = |token: &[u8], arguments: &[&str]| {
        let mut runner = Command::new(env!("CARGO_BIN_EXE_caisson"))
            .args(["runner", "--socket"])
            .arg(directory.path().join("nobody-listens"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut runner.stdin.take().unwrap(), token).unwrap();
        let output = runner.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run_with(&[b'S'; 31], &[]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("caisson runner: can not read the token of 32 bytes: "), "{message}");
    let (code, message) = run_with(&[b'S'; 32], &[]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("caisson runner: no supervisor at /"), "{message}");
    assert!(message.ends_with("nobody-listens: No such file or directory (os error 2)\n"), "{message}");
    assert!(!message.contains("SSSS"), "the token isn't told");
}

#[test]
fn a_token_can_come_from_a_file() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, crate::support::TOKEN).unwrap();
    let mut supervisor = Supervisor::start_with(|command| {
        command.arg("--token-file").arg(&file);
    });
    supervisor.launch(&sh("exit 5"));
    assert_eq!(supervisor.finish().report.exit.unwrap().code, 5);
}

#[test]
fn a_waiting_runner_is_small() {
    let supervisor = Supervisor::start();
    // Its own memory. What it maps of the program is shared, and depends on the profile: `benches/run.rs` measures that.
    let own = status_kib(supervisor.runner_pid(), "RssAnon");
    assert!(own <= 4 * 1024, "{own} KiB");
}

#[test]
fn as_process_1_the_runner_ends_the_whole_namespace() {
    let mut supervisor = Supervisor::start_with(|command| {
        let inner: Vec<_> = std::iter::once(command.get_program().to_owned())
            .chain(command.get_args().map(std::ffi::OsStr::to_owned))
            .collect();
        *command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        command.args(inner).stdin(Stdio::piped());
    });
    let script = "echo parent $PPID; (setsid sh -c 'sleep 1000 & sleep 1000' &); exit 6";
    let mut launch = live_sh(script);
    launch.limits.processes = Some(16);
    supervisor.launch(&launch);
    let finished = supervisor.finish();
    assert_eq!(finished.stdout_text(), "parent 1\n");
    assert_eq!((finished.report.outcome, finished.report.exit.unwrap().code), (Outcome::Exited, 6));
    assert!(finished.report.leftovers >= 1);
}

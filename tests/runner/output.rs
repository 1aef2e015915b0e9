//! What comes back: tails, totals, floods, and streams that stay open.

use std::time::Duration;

use caisson::protocol::{Exit, Launch, Limits, Outcome, Stream, StreamReport, ToSupervisor};

use crate::support::{Supervisor, live_sh, run, sh, status_kib, wait_for};

fn capped(max_output_bytes: u64, script: &str) -> Launch {
    let launch = sh(script);
    Launch { limits: Limits { max_output_bytes, ..launch.limits.clone() }, ..launch }
}

#[test]
fn exit_codes_and_signals_are_reported() {
    for (script, exit) in [
        ("exit 0", Exit::with_code(0)),
        ("exit 3", Exit::with_code(3)),
        ("exit 255", Exit::with_code(255)),
        ("kill -SEGV $$", Exit::by_signal(11)),
        ("kill -TERM $$", Exit::by_signal(15)),
        ("kill -KILL $$", Exit::by_signal(9)),
        // A real-time signal, which many wrappers of `wait` have no name for.
        ("kill -40 $$", Exit::by_signal(40)),
    ] {
        let report = run(&sh(script)).report;
        assert_eq!((report.outcome, report.exit), (Outcome::Exited, Some(exit)), "{script}");
        assert_eq!(report.leftovers, 0, "{script}");
    }
}

#[test]
fn silence_is_two_complete_empty_streams() {
    let finished = run(&sh("true"));
    let silent = StreamReport { bytes: 0, truncated: false, complete: true };
    assert_eq!((finished.report.stdout, finished.report.stderr), (silent, silent));
    assert_eq!((finished.stdout.len(), finished.stderr.len()), (0, 0));
}

#[test]
fn streams_are_kept_apart_and_cut_at_their_beginning() {
    let finished = run(&capped(8, "printf 0123456789; printf abc >&2"));
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice()), (&b"23456789"[..], &b"abc"[..]));
    assert_eq!(finished.report.stdout, StreamReport { bytes: 10, truncated: true, complete: true });
    assert_eq!(finished.report.stderr, StreamReport { bytes: 3, truncated: false, complete: true });
}

#[test]
fn a_cap_of_zero_only_counts() {
    let finished = run(&capped(0, "echo hello"));
    assert_eq!(finished.stdout, b"");
    assert_eq!(finished.report.stdout, StreamReport { bytes: 6, truncated: true, complete: true });
}

#[test]
fn a_code_point_that_is_split_over_writes_arrives_whole() {
    // The euro sign in two writes, with the first one surely read before the second one is written.
    let mut supervisor = Supervisor::start();
    let go = supervisor.directory.path().join("go");
    let mut launch =
        live_sh("printf '\\342\\202'; until [ -e \"$1\" ]; do sleep 0.01; done; printf '\\254!'");
    launch.argv.push(go.clone().into());
    supervisor.launch(&launch);
    loop {
        match supervisor.receive() {
            Some(ToSupervisor::Output { bytes, .. }) => break assert_eq!(bytes, [0o342, 0o202]),
            other => assert!(matches!(other, Some(ToSupervisor::Started { .. }))),
        }
    }
    std::fs::write(go, "").unwrap();
    assert_eq!(supervisor.finish().stdout_text(), "\u{20ac}!");
}

#[test]
fn a_cut_inside_a_code_point_drops_the_rest_of_it_and_invalid_bytes_stay() {
    assert_eq!(run(&capped(4, "printf 'a\\342\\202\\254bc'")).stdout, b"bc");
    assert_eq!(run(&sh("printf '\\377\\376a'")).stdout, b"\xff\xfea");
}

#[test]
fn a_flood_is_counted_and_held_in_bounded_memory() {
    let mut supervisor = Supervisor::start();
    let before = status_kib(supervisor.runner_pid(), "VmRSS");
    // The agent waits at the end, so that the runner's peak can be read.
    let mut launch = live_sh("yes | head -c 1000000000 >&2; echo flooded; read -r _ < \"$1\"");
    launch.live_output = false;
    let gate = supervisor.directory.path().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    launch.argv.push(gate.clone().into());
    supervisor.launch(&launch);
    // Opening the other end of the gate waits until the agent is there.
    std::fs::write(&gate, "go\n").unwrap();
    let peak = status_kib(supervisor.runner_pid(), "VmHWM");
    let finished = supervisor.finish();
    assert_eq!(finished.report.stderr.bytes, 1_000_000_000);
    assert_eq!(finished.stderr.len(), 1 << 20);
    assert_eq!(finished.stdout, b"flooded\n");
    assert!(peak < before + 6 * 1024, "from {before} to {peak} KiB");
}

#[test]
fn a_supervisor_that_does_not_read_slows_the_agent_but_costs_no_memory() {
    let mut supervisor = Supervisor::start();
    let mut launch = live_sh("head -c 50000000 /dev/zero; echo done");
    launch.limits.max_output_bytes = 0;
    supervisor.launch(&launch);
    // Held back: the agent's pipe is full and the runner doesn't read on.
    let pid = supervisor.runner_pid();
    wait_for("the runner to hold back", || status_kib(pid, "VmRSS") > 0 && is_waiting(pid));
    let peak = status_kib(pid, "VmHWM");
    assert!(peak < 24 * 1024, "{peak} KiB");
    let mut total = 0;
    loop {
        match supervisor.receive() {
            Some(ToSupervisor::Output { stream: Stream::Stdout, bytes }) => total += bytes.len(),
            Some(ToSupervisor::Exited { report, .. }) => {
                assert_eq!((report.stdout.bytes, total), (50_000_005, 50_000_005));
                break;
            }
            other => assert!(matches!(other, Some(ToSupervisor::Started { .. })), "{other:?}"),
        }
    }
}

/// Whether a process has slept through ten looks in a row.
fn is_waiting(pid: u32) -> bool {
    let switches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        (line.to_owned(), status.contains("State:\tS"))
    };
    let first = switches();
    first.1
        && (0..10).all(|_| {
            std::thread::park_timeout(Duration::from_millis(5));
            switches() == first
        })
}

#[test]
fn a_stdout_held_open_by_a_grandchild_does_not_hold_up_the_report() {
    // In the group, and out of it.
    for script in ["sleep 1000 & echo parent", "setsid sh -c 'sleep 1000 & sleep 1000' & echo parent"] {
        let finished = run(&sh(script));
        assert_eq!(finished.stdout, b"parent\n", "{script}");
        assert_eq!(finished.report.exit, Some(Exit::with_code(0)), "{script}");
        assert!(finished.report.stdout.complete, "{script}");
        assert!(finished.report.leftovers >= 1, "{script}");
        assert!(finished.report.duration < Duration::from_secs(30), "{script}");
    }
}

#[test]
fn an_agent_that_closes_its_output_runs_on() {
    let finished = run(&sh("exec >&- 2>&-; sleep 0.2; exit 9"));
    assert_eq!(finished.report.exit, Some(Exit::with_code(9)));
    assert!(finished.report.duration >= Duration::from_millis(200));
}

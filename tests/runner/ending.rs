//! How everything ends: deadlines, stops, lost supervisors, and processes that would rather stay.

use std::time::Duration;

use caisson::protocol::{
    Ended, Exit, Launch, Limits, Outcome, Stdin, StopReason, Stream, TerminationMethod, ToRunner,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Supervisor, TOKEN, is_alive, live_sh, path_in, pid_after, run, sh, wait_for};

const SHORT: Duration = Duration::from_millis(300);

fn limited(launch: Launch, timeout: Duration, grace: Duration) -> Launch {
    Launch { limits: Limits { timeout, grace, ..launch.limits.clone() }, ..launch }
}

/// A child, a grandchild, one in a session of its own, and one that is also forked twice: all deaf to SIGTERM.
const STUBBORN_FAMILY: &str = "
    trap '' TERM HUP INT
    sh -c 'echo child $$; sleep 1000' &
    setsid sh -c 'echo session $$; sleep 1000' &
    (setsid sh -c '(echo daemon $(exec sh -c \"echo \\$PPID\"); exec sleep 1000) &' &)
    until [ $(cat \"$1\" 2>/dev/null | wc -l) = 3 ]; do sleep 0.01; done
";

/// Starts the family and gives the process ids of its members, the agent's own included.
fn start_family(supervisor: &mut Supervisor, limits: impl FnOnce(&mut Limits), after: &str) -> Vec<u32> {
    let list = supervisor.directory.path().join("family");
    let script = format!(
        "exec 3>&1 >>\"$1\"; {STUBBORN_FAMILY} exec >&3 3>&-; cat \"$1\"; echo agent $$; echo started; {after}"
    );
    let mut launch = live_sh(&script);
    launch.argv.push(list.into());
    limits(&mut launch.limits);
    supervisor.launch(&launch);
    let output = supervisor.read_until(Stream::Stdout, "started\n");
    let pids = ["child ", "session ", "daemon ", "agent "].map(|name| pid_after(&output, name)).to_vec();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{output}");
    pids
}

fn wait_until_gone(pids: &[u32]) {
    wait_for("the agent's tree to vanish", || !pids.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn what_the_agent_leaves_behind_is_ended_before_the_report() {
    let mut supervisor = Supervisor::start();
    let pids = start_family(&mut supervisor, |_| {}, "until [ -e \"$1.go\" ]; do sleep 0.01; done; exit 4");
    std::fs::write(supervisor.directory.path().join("family.go"), "").unwrap();
    let report = supervisor.finish().report;
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0);
    assert_eq!((report.outcome, report.exit), (Outcome::Exited, Some(Exit::with_code(4))));
    assert_eq!(report.termination_method, TerminationMethod::None);
    assert!(report.leftovers >= 3, "{report:?}");
}

#[test]
fn a_family_that_ignores_sigterm_is_killed_after_the_grace() {
    let mut supervisor = Supervisor::start();
    let pids = start_family(
        &mut supervisor,
        |limits| (limits.timeout, limits.grace) = (Duration::from_secs(2), SHORT),
        "while :; do sleep 1000; done",
    );
    let report = supervisor.finish().report;
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0);
    assert_eq!(report.outcome, Outcome::Ended(Ended::TimedOut));
    assert_eq!(report.exit, Some(Exit::by_signal(9)));
    assert_eq!(report.termination_method, TerminationMethod::Sigkill);
    assert!(report.timeout && report.duration >= Duration::from_secs(2) + SHORT, "{report:?}");
}

#[test]
fn an_agent_that_heeds_sigterm_keeps_its_exit_code() {
    let script = "trap 'echo cleaning up; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let mut supervisor = Supervisor::start();
    supervisor.launch(&live_sh(script));
    supervisor.read_until(Stream::Stdout, "ready");
    supervisor.stop(StopReason::Cancelled, Duration::from_secs(50));
    let finished = supervisor.finish();
    assert_eq!(finished.report.outcome, Outcome::Ended(Ended::Stopped(StopReason::Cancelled)));
    assert_eq!(finished.report.exit, Some(Exit::with_code(7)));
    assert_eq!(finished.report.termination_method, TerminationMethod::Sigterm);
    assert_eq!(finished.stdout_text(), "ready\ncleaning up\n");
    assert!(!finished.report.timeout);
}

#[test]
fn a_stopped_agent_is_ended_by_sigterm_too() {
    let mut supervisor = Supervisor::start();
    supervisor.launch(&live_sh("echo ready; kill -STOP $$"));
    supervisor.read_until(Stream::Stdout, "ready");
    supervisor.stop(StopReason::Retired, Duration::from_secs(50));
    let report = supervisor.finish().report;
    assert_eq!(report.exit, Some(Exit::by_signal(15)));
}

#[test]
fn an_agent_that_never_exits_after_its_result_ends_at_the_deadline() {
    let launch = limited(sh("echo '{\"result\":\"done\"}'; exec sleep 1000"), SHORT, SHORT);
    let finished = run(&launch);
    assert_eq!(finished.stdout_text(), "{\"result\":\"done\"}\n");
    assert_eq!(finished.report.outcome, Outcome::Ended(Ended::TimedOut));
    assert_eq!(finished.report.termination_method, TerminationMethod::Sigterm);
}

#[test]
fn an_agent_that_waits_with_an_unread_prompt_still_meets_its_deadline() {
    let launch = Launch { stdin: Stdin::Bytes(vec![b'x'; 4 << 20]), ..sh("exec sleep 1000") };
    assert!(run(&limited(launch, SHORT, SHORT)).report.timeout);
}

#[test]
fn a_flood_does_not_outrun_the_deadline() {
    let report = run(&limited(sh("exec yes"), SHORT, SHORT)).report;
    assert_eq!(report.outcome, Outcome::Ended(Ended::TimedOut));
}

#[test]
fn a_lost_supervisor_ends_the_agent_and_all_of_its_family() {
    let mut supervisor = Supervisor::start();
    let pids = start_family(&mut supervisor, |_| {}, "while :; do sleep 1000; done");
    supervisor.vanish();
    assert_eq!(supervisor.runner_exit().code(), Some(1));
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0, "gone before the runner is");
}

#[test]
fn a_supervisor_that_breaks_the_protocol_is_a_lost_one() {
    let mut supervisor = Supervisor::start();
    let pids = start_family(&mut supervisor, |_| {}, "while :; do sleep 1000; done");
    supervisor.send_raw(b"\0\0\0\x01\x09?");
    assert_eq!(supervisor.runner_exit().code(), Some(1));
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0);

    let mut supervisor = Supervisor::start();
    let pids = start_family(&mut supervisor, |_| {}, "while :; do sleep 1000; done");
    supervisor.launch(&sh("echo a second launch"));
    let report = supervisor.finish().report;
    assert_eq!(report.outcome, Outcome::Ended(Ended::SupervisorLost));
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0);
}

#[test]
fn a_killed_runner_takes_the_agent_with_it() {
    let mut supervisor = Supervisor::start();
    supervisor.launch(&live_sh("trap '' TERM HUP; echo agent $$; exec sleep 1000"));
    let output = supervisor.read_until(Stream::Stdout, "\n");
    let agent = pid_after(&output, "agent ");
    supervisor.runner.kill().unwrap();
    wait_until_gone(&[agent]);
}

#[test]
fn a_signal_to_the_runner_ends_the_agent_with_its_own_grace() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut supervisor = Supervisor::start();
        let after = "while :; do sleep 1000; done";
        let pids = start_family(&mut supervisor, |limits| limits.grace = SHORT, after);
        kill(Pid::from_raw(supervisor.runner_pid().cast_signed()), signal).unwrap();
        let report = supervisor.finish().report;
        assert_eq!(report.outcome, Outcome::Ended(Ended::Stopped(StopReason::Interrupted)), "{signal}");
        assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0, "{signal}");
    }
}

#[test]
fn a_stop_before_the_launch_ends_the_runner_quietly() {
    let mut supervisor = Supervisor::start();
    supervisor.stop(StopReason::Cancelled, SHORT);
    assert!(supervisor.receive().is_none());
    assert_eq!(supervisor.runner_exit().code(), Some(0));
}

#[test]
fn too_many_processes_end_the_agent() {
    let mut launch = sh("i=0; while [ $i -lt 12 ]; do sleep 1000 & i=$((i + 1)); done; wait");
    launch.limits.processes = Some(8);
    let report = run(&launch).report;
    assert_eq!(report.outcome, Outcome::Ended(Ended::ProcessLimit));
    assert_eq!(report.system_code.unwrap().as_str(), "PROCESS_LIMIT");
    assert!(report.leftovers >= 8);

    // The same tree under a limit that it keeps; what left the group counts too.
    let mut launch = sh("i=0; while [ $i -lt 6 ]; do setsid sleep 0.7 & i=$((i + 1)); done; wait");
    launch.limits.processes = Some(8);
    assert_eq!(run(&launch).report.outcome, Outcome::Exited);
    launch.limits.processes = Some(6);
    assert_eq!(run(&launch).report.outcome, Outcome::Ended(Ended::ProcessLimit));
}

#[test]
fn a_tree_that_doubles_itself_is_contained() {
    // A fork bomb that would stop at some thousand processes if nobody stopped it earlier.
    let script =
        "f() { [ $1 -lt 10 ] || exec sleep 1000; f $(($1 + 1)) | f $(($1 + 1)) & }; f 0; while :; do :; done";
    let mut launch = sh(script);
    launch.limits.processes = Some(64);
    let report = run(&launch).report;
    assert_eq!(report.outcome, Outcome::Ended(Ended::ProcessLimit), "{report:?}");
}

#[test]
fn orphans_are_reaped_while_the_agent_runs() {
    let mut supervisor = Supervisor::start();
    let script = "i=0; while [ $i -lt 200 ]; do (true &); i=$((i + 1)); done; echo spawned; while :; do sleep 1000; done";
    supervisor.launch(&live_sh(script));
    supervisor.read_until(Stream::Stdout, "spawned");
    let runner = supervisor.runner_pid();
    let children = || std::fs::read_to_string(format!("/proc/{runner}/task/{runner}/children")).unwrap();
    // Only the agent itself stays the runner's child: neither a zombie nor anything else does.
    wait_for("200 orphans to be reaped", || children().split_whitespace().count() == 1);
    supervisor.send(&ToRunner::Stop(caisson::protocol::Stop {
        reason: StopReason::Cancelled,
        grace: Duration::from_secs(5),
    }));
    assert_eq!(supervisor.finish().report.leftovers, 0);
}

/// The hello then fails to be sent, at a moment when nothing else is there to wake the runner.
#[test]
fn a_supervisor_that_hangs_up_before_the_hello_ends_the_runner() {
    use std::io::Write as _;
    for _ in 0..100 {
        let directory = tempfile::TempDir::new().unwrap();
        let socket = path_in(&directory, "socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let mut runner = std::process::Command::new(env!("CARGO_BIN_EXE_caisson"))
            .arg("runner")
            .arg("--socket")
            .arg(&socket)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        runner.stdin.take().unwrap().write_all(&TOKEN).unwrap();
        let mut pending =
            [nix::poll::PollFd::new(std::os::fd::AsFd::as_fd(&listener), nix::poll::PollFlags::POLLIN)];
        nix::poll::poll(&mut pending, nix::poll::PollTimeout::NONE).unwrap();
        // Closes the connection too, which nobody has accepted.
        drop(listener);
        wait_for("the runner to end", || runner.try_wait().unwrap().is_some());
    }
}

//! The machine against any order of events, and against a simulated world.

use proptest::prelude::*;

use super::*;
use crate::protocol::{Stdin, StopReason};

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_secs(5);

fn launch() -> Box<Launch> {
    Box::new(Launch {
        program: "/bin/agent".into(),
        argv: vec!["agent".into()],
        environment: Vec::new(),
        working_directory: "/".into(),
        stdin: Stdin::Closed,
        files: Vec::new(),
        limits: Limits { timeout: TIMEOUT, grace: GRACE, max_output_bytes: 8, processes: Some(4) },
        live_output: false,
    })
}

/// A machine whose agent runs since time 0.
fn running() -> Machine {
    let mut machine = Machine::new();
    assert!(matches!(machine.handle(Duration::ZERO, Input::Launch(launch())).as_slice(), [Action::Spawn(_)]));
    let started = machine.handle(Duration::ZERO, Input::Spawned { pid: 7 });
    assert!(matches!(started.as_slice(), [Action::Send(ToSupervisor::Started { pid: 7 })]));
    machine
}

fn stop(reason: StopReason, grace: Duration) -> Input<'static> {
    Input::Stop(Stop { reason, grace })
}

/// One word per action, so that a test reads as a story.
fn words(actions: &[Action]) -> String {
    let word = |action: &Action| match action {
        Action::Spawn(_) => "spawn",
        Action::Signal(Signal::Terminate) => "TERM",
        Action::Signal(Signal::Kill) => "KILL",
        Action::Sweep => "sweep",
        Action::Count { .. } => "count",
        Action::Send(ToSupervisor::Exited { .. }) => "report",
        Action::Send(_) => "send",
        Action::Exit => "exit",
    };
    actions.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn report_in(actions: &[Action]) -> Option<&ExecReport> {
    actions.iter().find_map(|action| match action {
        Action::Send(ToSupervisor::Exited { report, .. }) => Some(report),
        _ => None,
    })
}

/// Closes both streams and answers the sweep: the end of a well-behaved agent.
fn finish(machine: &mut Machine, now: Duration) -> ExecReport {
    assert!(machine.handle(now, Input::StreamClosed(Stream::Stdout)).is_empty());
    assert!(machine.handle(now, Input::StreamClosed(Stream::Stderr)).is_empty());
    let actions = machine.handle(now, Input::Swept { remaining: false });
    assert_eq!(words(&actions), "report exit");
    assert_eq!(machine.deadline(), None);
    report_in(&actions).unwrap().clone()
}

#[test]
fn an_agent_that_exits_is_swept_after_and_reported() {
    let mut machine = running();
    let _ = machine.handle(SECOND, Input::Output { stream: Stream::Stdout, bytes: b"0123456789" });
    let _ = machine.handle(SECOND, Input::OrphanReaped { killed: true });
    assert_eq!(words(&machine.handle(SECOND, Input::ChildExited(Exit::with_code(3)))), "sweep");
    let _ = machine.handle(SECOND, Input::OrphanReaped { killed: true });
    let _ = machine.handle(SECOND, Input::OrphanReaped { killed: false });
    let report = finish(&mut machine, SECOND);
    let expected = ExecReport {
        outcome: Outcome::Exited,
        exit: Some(Exit::with_code(3)),
        system_code: None,
        termination_method: TerminationMethod::None,
        timeout: false,
        stdout: StreamReport { bytes: 10, truncated: true, complete: true },
        stderr: StreamReport { bytes: 0, truncated: false, complete: true },
        leftovers: 1,
        duration: SECOND,
    };
    assert_eq!(report, expected);
}

#[test]
fn a_start_that_failed_is_reported_with_its_code() {
    let mut machine = Machine::new();
    let _ = machine.handle(SECOND, Input::Launch(launch()));
    let code = SystemCode::try_from("ENOENT".to_owned()).unwrap();
    let actions = machine.handle(SECOND, Input::SpawnFailed { code: code.clone() });
    assert_eq!(words(&actions), "report exit");
    let report = report_in(&actions).unwrap();
    assert_eq!((report.outcome, &report.system_code), (Outcome::SpawnFailed, &Some(code)));
}

#[test]
fn a_deadline_leads_from_term_over_grace_to_kill() {
    let mut machine = running();
    let before = TIMEOUT.checked_sub(Duration::from_millis(1)).unwrap();
    assert_eq!(words(&machine.handle(before, Input::Tick)), "count");
    assert_eq!(machine.deadline(), Some(TIMEOUT));
    assert_eq!(words(&machine.handle(TIMEOUT, Input::Tick)), "TERM");
    assert_eq!(words(&machine.handle(TIMEOUT + GRACE, Input::Tick)), "KILL sweep");
    let exited = machine.handle(TIMEOUT + GRACE, Input::ChildExited(Exit::by_signal(9)));
    assert_eq!(words(&exited), "sweep");
    let report = finish(&mut machine, TIMEOUT + GRACE);
    assert_eq!(report.outcome, Outcome::Ended(Ended::TimedOut));
    assert_eq!(report.termination_method, TerminationMethod::Sigkill);
    assert!(report.timeout);
    assert_eq!(report.exit, Some(Exit::by_signal(9)));
}

#[test]
fn a_flood_of_output_does_not_hold_up_the_deadline() {
    let mut machine = running();
    let actions = machine.handle(TIMEOUT, Input::Output { stream: Stream::Stderr, bytes: b"x" });
    assert_eq!(words(&actions), "TERM count");
}

#[test]
fn an_exit_seen_at_the_deadline_is_an_exit() {
    let mut machine = running();
    assert_eq!(words(&machine.handle(2 * TIMEOUT, Input::ChildExited(Exit::with_code(0)))), "sweep");
    assert_eq!(finish(&mut machine, 2 * TIMEOUT).outcome, Outcome::Exited);
}

#[test]
fn a_later_stop_can_only_shorten_the_grace_and_the_first_reason_stays() {
    let mut machine = running();
    assert_eq!(words(&machine.handle(SECOND, stop(StopReason::Cancelled, 10 * SECOND))), "count TERM");
    let _ = machine.handle(2 * SECOND, stop(StopReason::Retired, 60 * SECOND));
    let _ = machine.handle(3 * SECOND, stop(StopReason::Interrupted, SECOND));
    assert_eq!(words(&machine.handle(4 * SECOND, Input::Tick)), "KILL sweep");
    let _ = machine.handle(4 * SECOND, Input::ChildExited(Exit::by_signal(9)));
    let report = finish(&mut machine, 4 * SECOND);
    assert_eq!(report.outcome, Outcome::Ended(Ended::Stopped(StopReason::Cancelled)));
}

#[test]
fn a_lost_supervisor_and_a_second_launch_kill_at_once() {
    for lost in [Input::SupervisorLost, Input::Launch(launch())] {
        let mut machine = running();
        assert_eq!(words(&machine.handle(Duration::ZERO, lost)), "KILL sweep");
        let _ = machine.handle(Duration::ZERO, Input::ChildExited(Exit::by_signal(9)));
        assert_eq!(finish(&mut machine, Duration::ZERO).outcome, Outcome::Ended(Ended::SupervisorLost));
    }
}

#[test]
fn before_a_launch_a_stop_or_a_loss_just_ends_the_runner() {
    for end in [stop(StopReason::Cancelled, GRACE), Input::Interrupted, Input::SupervisorLost] {
        let mut machine = Machine::new();
        assert_eq!(words(&machine.handle(SECOND, end)), "exit");
        assert_eq!(words(&machine.handle(SECOND, Input::Launch(launch()))), "", "nothing starts any more");
    }
}

#[test]
fn one_process_more_than_the_limit_ends_all() {
    let mut machine = running();
    assert_eq!(machine.deadline(), Some(COUNT_INTERVAL));
    assert_eq!(words(&machine.handle(COUNT_INTERVAL, Input::Tick)), "count");
    assert_eq!(words(&machine.handle(COUNT_INTERVAL, Input::Counted { processes: 4 })), "");
    assert_eq!(words(&machine.handle(COUNT_INTERVAL, Input::Counted { processes: 5 })), "KILL sweep");
    let _ = machine.handle(SECOND, Input::ChildExited(Exit::by_signal(9)));
    let report = finish(&mut machine, SECOND);
    assert_eq!(report.outcome, Outcome::Ended(Ended::ProcessLimit));
    assert_eq!(report.system_code, Some(SystemCode::process_limit()));
}

#[test]
fn many_orphans_are_a_reason_to_count_at_once() {
    let mut machine = running();
    for _ in 1..COUNT_ORPHANS {
        assert_eq!(words(&machine.handle(Duration::ZERO, Input::OrphanReaped { killed: false })), "");
    }
    assert_eq!(words(&machine.handle(Duration::ZERO, Input::OrphanReaped { killed: false })), "count");
    assert_eq!(machine.deadline(), Some(COUNT_INTERVAL));
    assert_eq!(words(&machine.handle(Duration::ZERO, Input::OrphanReaped { killed: false })), "");
}

#[test]
fn what_survives_sigkill_for_five_seconds_is_a_failed_termination() {
    let mut machine = running();
    let _ = machine.handle(SECOND, stop(StopReason::Retired, Duration::ZERO));
    let actions = machine.handle(SECOND + VANISH, Input::Tick);
    assert_eq!(words(&actions), "report exit");
    let report = report_in(&actions).unwrap();
    let reason = Some(Ended::Stopped(StopReason::Retired));
    assert_eq!((report.outcome, report.exit), (Outcome::TerminationFailed(reason), None));

    // The agent itself exits well, something that it started can't be killed.
    let mut machine = running();
    let _ = machine.handle(SECOND, Input::ChildExited(Exit::with_code(0)));
    assert_eq!(words(&machine.handle(SECOND + SWEEP_INTERVAL, Input::Swept { remaining: true })), "sweep");
    let actions = machine.handle(SECOND + VANISH, Input::Tick);
    assert_eq!(report_in(&actions).unwrap().outcome, Outcome::TerminationFailed(None));
}

#[test]
fn an_exit_after_sigkill_gives_what_is_left_no_more_time() {
    let mut machine = running();
    let _ = machine.handle(SECOND, Input::SupervisorLost);
    let _ = machine.handle(4 * SECOND, Input::ChildExited(Exit::by_signal(9)));
    assert!(report_in(&machine.handle(SECOND + VANISH, Input::Tick)).is_some());
}

#[test]
fn a_stream_that_nobody_of_the_agent_holds_open_delays_the_report_by_half_a_second_at_most() {
    let mut machine = running();
    let _ = machine.handle(SECOND, Input::StreamClosed(Stream::Stderr));
    let _ = machine.handle(SECOND, Input::ChildExited(Exit::with_code(0)));
    assert_eq!(words(&machine.handle(SECOND, Input::Swept { remaining: false })), "");
    assert_eq!(machine.deadline(), Some(SECOND + DRAIN));
    let _ = machine.handle(SECOND, Input::Output { stream: Stream::Stdout, bytes: b"late" });
    let actions = machine.handle(SECOND + DRAIN, Input::Tick);
    let report = report_in(&actions).unwrap();
    assert_eq!(report.outcome, Outcome::Exited);
    assert_eq!(report.stdout, StreamReport { bytes: 4, truncated: false, complete: false });
    assert!(report.stderr.complete);
}

#[test]
fn output_is_sent_live_only_if_asked_for() {
    let mut machine = Machine::new();
    let mut live = launch();
    live.live_output = true;
    let _ = machine.handle(Duration::ZERO, Input::Launch(live));
    let actions = machine.handle(Duration::ZERO, Input::Output { stream: Stream::Stderr, bytes: b"now" });
    match actions.as_slice() {
        [Action::Send(ToSupervisor::Output { stream: Stream::Stderr, bytes })] => assert_eq!(bytes, b"now"),
        other => panic!("{other:?}"),
    }
    let quiet = running().handle(Duration::ZERO, Input::Output { stream: Stream::Stderr, bytes: b"now" });
    assert!(quiet.is_empty());
}

/// Anything that a shell or a peer could feed, sensible or not.
fn any_input() -> impl Strategy<Value = fn() -> Input<'static>> {
    let inputs: Vec<fn() -> Input<'static>> = vec![
        || Input::Launch(launch()),
        || Input::Spawned { pid: 7 },
        || Input::SpawnFailed { code: SystemCode::process_limit() },
        || Input::Output { stream: Stream::Stdout, bytes: b"out" },
        || Input::StreamClosed(Stream::Stdout),
        || Input::StreamClosed(Stream::Stderr),
        || Input::ChildExited(Exit::with_code(0)),
        || Input::OrphanReaped { killed: true },
        || Input::Swept { remaining: true },
        || Input::Swept { remaining: false },
        || Input::Counted { processes: 3 },
        || Input::Counted { processes: 9 },
        || stop(StopReason::Cancelled, GRACE),
        || stop(StopReason::Interrupted, Duration::ZERO),
        || Input::Interrupted,
        || Input::SupervisorLost,
        || Input::Tick,
    ];
    prop::sample::select(inputs)
}

/// How an agent of the simulated world behaves.
#[derive(Debug, Clone)]
struct Agent {
    exits_at: Option<u64>,
    heeds_term: Option<u64>,
    dies_after_kill: Option<u64>,
    sweeps_needed: u32,
    keeps_stream_open: bool,
    stop_at: Option<(u64, u64)>,
    lost_at: Option<u64>,
    processes: u32,
}

fn any_agent() -> impl Strategy<Value = Agent> {
    let at = |most: u64| prop::option::of(0..most);
    let stop_at = prop::option::of((0..90_000_u64, 0..20_000_u64));
    (at(90_000), at(9_000), at(9_000), 0_u32..400, any::<bool>(), stop_at, at(90_000), 1_u32..7).prop_map(
        |(
            exits_at,
            heeds_term,
            dies_after_kill,
            sweeps_needed,
            keeps_stream_open,
            stop_at,
            lost_at,
            processes,
        )| {
            Agent {
                exits_at,
                heeds_term,
                dies_after_kill,
                sweeps_needed,
                keeps_stream_open,
                stop_at,
                lost_at,
                processes,
            }
        },
    )
}

proptest! {
    #[test]
    fn any_order_of_events_ends_in_exactly_one_report_per_launch(
        script in prop::collection::vec((any_input(), 0_u64..20_000), 0..40),
    ) {
        let mut machine = Machine::new();
        let (mut now, mut all) = (Duration::ZERO, Vec::new());
        for (input, pause) in script {
            now += Duration::from_millis(pause);
            all.extend(machine.handle(now, input()));
        }
        // From here on only time passes, and it passes for a bounded while.
        let quiet_since = now;
        while let Some(at) = machine.deadline() {
            now = now.max(at);
            all.extend(machine.handle(now, Input::Tick));
        }
        prop_assert!(now <= quiet_since + TIMEOUT + GRACE + VANISH + DRAIN);
        let count = |word: &str| words(&all).split(' ').filter(|found| *found == word).count();
        prop_assert!(count("spawn") <= 1);
        prop_assert_eq!(count("report"), count("spawn"));
        prop_assert!(count("exit") <= 1 && count("exit") >= count("report"));
        prop_assert!(count("TERM") <= 1 && count("KILL") <= 1);
        prop_assert!(count("exit") == 0 || words(&all).ends_with("exit"), "nothing follows the end");
    }

    #[test]
    fn a_world_of_any_agent_comes_to_a_bounded_end(agent in any_agent()) {
        let (actions, end) = simulate(&agent);
        let times = |word: &str| {
            actions.iter().filter(|(_, found)| *found == word).map(|(at, _)| *at).collect::<Vec<u64>>()
        };
        let (term, kill) = (times("TERM"), times("KILL"));
        if let Some(term) = term.first() {
            // Whatever still lived after SIGTERM got SIGKILL within the grace.
            let grace = agent.stop_at.map_or(0, |(_, grace)| grace).max(5_000);
            let alive_until = kill.first().copied().unwrap_or(end);
            prop_assert!(alive_until <= term + grace + 5_500, "{actions:?}");
        }
        if agent.exits_at.is_none_or(|at| at > 60_000) {
            prop_assert!(!term.is_empty() || !kill.is_empty());
            prop_assert!(term.iter().chain(&kill).min().is_some_and(|first| *first <= 60_000));
        }
        prop_assert!(end <= 60_000 + 20_000 + 5_000 + 500, "{actions:?}");
    }
}

/// Runs an agent against the machine in simulated milliseconds; gives every action with its time, and the end.
fn simulate(agent: &Agent) -> (Vec<(u64, String)>, u64) {
    let mut machine = Machine::new();
    let mut log = Vec::new();
    let mut queue = machine.handle(Duration::ZERO, Input::Launch(launch()));
    let (mut dies_at, mut sweeps) = (agent.exits_at, agent.sweeps_needed);
    for at in 0..100_000_u64 {
        let now = Duration::from_millis(at);
        if agent.lost_at == Some(at) {
            queue.extend(machine.handle(now, Input::SupervisorLost));
        }
        if let Some((_, grace)) = agent.stop_at.filter(|(stop_at, _)| *stop_at == at) {
            queue.extend(machine.handle(now, stop(StopReason::Cancelled, Duration::from_millis(grace))));
        }
        if dies_at == Some(at) {
            queue.extend(machine.handle(now, Input::ChildExited(Exit::with_code(0))));
            queue.extend(machine.handle(now, Input::StreamClosed(Stream::Stderr)));
            if !agent.keeps_stream_open {
                queue.extend(machine.handle(now, Input::StreamClosed(Stream::Stdout)));
            }
        }
        if machine.deadline().is_some_and(|deadline| deadline <= now) {
            queue.extend(machine.handle(now, Input::Tick));
        }
        while !queue.is_empty() {
            for action in std::mem::take(&mut queue) {
                log.push((at, words(std::slice::from_ref(&action))));
                let sooner = |delay: Option<u64>| match (delay, dies_at) {
                    (Some(delay), Some(dies_at)) => Some(dies_at.min(at + 1 + delay)),
                    (Some(delay), None) => Some(at + 1 + delay),
                    (None, dies_at) => dies_at,
                };
                match action {
                    Action::Spawn(_) => queue.extend(machine.handle(now, Input::Spawned { pid: 7 })),
                    Action::Signal(Signal::Terminate) => dies_at = sooner(agent.heeds_term),
                    Action::Signal(Signal::Kill) => dies_at = sooner(agent.dies_after_kill),
                    Action::Count { .. } => {
                        queue.extend(machine.handle(now, Input::Counted { processes: agent.processes }));
                    }
                    Action::Sweep => {
                        sweeps = sweeps.saturating_sub(1);
                        let remaining = sweeps > 0 || dies_at.is_none_or(|dies_at| dies_at > at);
                        queue.extend(machine.handle(now, Input::Swept { remaining }));
                    }
                    Action::Send(_) => {}
                    Action::Exit => return (log, at),
                }
            }
        }
    }
    panic!("no end: {log:?}");
}

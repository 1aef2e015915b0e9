//! The thin unix shell around the machine: a poll loop that feeds it and does as it says.

mod agent;
mod error;
mod guard;
mod link;
mod sys;
mod tree;

use std::collections::VecDeque;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal as UnixSignal;
use nix::unistd::Pid;

use self::agent::Agent;
use self::error::RunnerError;
use self::guard::{Signals, Told};
use self::link::Link;
use self::tree::Reaped;
use super::Arguments;
use super::machine::{Action, Input, Machine, Signal};
use crate::protocol::{Launch, Stream, ToRunner, ToSupervisor, VERSION};

/// Read at once from a pipe or the socket, in bytes: a pipe's default capacity.
const BUFFER: usize = 64 << 10;

/// Longest wait for the supervisor to take the report.
const DELIVER: Duration = Duration::from_mins(1);

/// Children reaped before other events are looked at again, so that a storm of them can't starve a deadline.
const REAP_AT_ONCE: usize = 256;

/// A monotonic clock that starts with the runner.
#[derive(Clone, Copy, Debug)]
struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the shell is where time comes from")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> Duration {
        self.0.elapsed()
    }
}

/// Runs one agent for the supervisor that `arguments` name.
pub(super) fn run(arguments: &Arguments) -> Result<(), RunnerError> {
    let clock = Clock::start();
    let signals = guard::prepare()?;
    let token = link::read_token(arguments.token_file.as_deref(), clock)?;
    let mut link = Link::connect(&arguments.socket, &signals, clock)?;
    link.send(&ToSupervisor::Hello { version: VERSION, pid: std::process::id(), token })?;
    let shell = Shell {
        clock,
        signals,
        link,
        machine: Machine::new(),
        agent: None,
        leader: None,
        is_reaping: false,
        is_loss_told: false,
        is_over: false,
        inputs: VecDeque::new(),
        buffer: vec![0; BUFFER],
    };
    shell.run()
}

/// Writes an error and its causes to standard error, as one line.
pub(super) fn complain(error: &RunnerError) {
    let mut line = format!("caisson runner: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        line.push_str(": ");
        line.push_str(&source.to_string());
        cause = source.source();
    }
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Everything that the loop holds.
struct Shell {
    clock: Clock,
    signals: Signals,
    link: Link,
    machine: Machine,
    agent: Option<Agent>,
    /// The agent's own process as long as it isn't reaped: the only time in which its number is surely its own.
    leader: Option<Pid>,
    /// Whether more children may have ended than were reaped at once.
    is_reaping: bool,
    /// Whether the machine knows that the supervisor is gone.
    is_loss_told: bool,
    /// Whether the machine said that the runner is to end.
    is_over: bool,
    inputs: VecDeque<Input<'static>>,
    buffer: Vec<u8>,
}

/// A descriptor that can have something.
#[derive(Clone, Copy, Debug)]
enum Source {
    Signals,
    Link,
    Stdin,
    Output(Stream),
}

impl Shell {
    fn run(mut self) -> Result<(), RunnerError> {
        loop {
            self.process_inputs()?;
            if self.is_over {
                return self.deliver();
            }
            self.link.flush();
            // A link that is lost has no event to wait for, however that was found out.
            if self.link.is_lost() && !self.is_loss_told {
                self.is_loss_told = true;
                self.inputs.push_back(Input::SupervisorLost);
                continue;
            }
            let ready = self.wait()?;
            self.collect(ready)?;
        }
    }

    /// Feeds what happened to the machine and does what it says, until nothing is left.
    fn process_inputs(&mut self) -> Result<(), RunnerError> {
        // Every turn of the loop is also the passing of time.
        self.inputs.push_back(Input::Tick);
        while let Some(input) = self.inputs.pop_front() {
            let actions = self.machine.handle(self.clock.now(), input);
            self.perform(actions)?;
        }
        Ok(())
    }

    fn perform(&mut self, actions: Vec<Action>) -> Result<(), RunnerError> {
        for action in actions {
            match action {
                Action::Spawn(launch) => self.spawn(*launch),
                Action::Signal(signal) => self.signal(signal),
                Action::Sweep => self.sweep(),
                Action::Count { most } => {
                    let processes = tree::count_descendants(most);
                    self.inputs.push_back(Input::Counted { processes });
                }
                Action::Send(record) => self.link.send(&record)?,
                Action::Exit => self.is_over = true,
            }
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        let signal = match signal {
            Signal::Terminate => UnixSignal::SIGTERM,
            Signal::Kill => UnixSignal::SIGKILL,
        };
        if let Some(leader) = self.leader {
            tree::signal_group(leader, signal);
        }
    }

    fn spawn(&mut self, launch: Launch) {
        match agent::start(launch) {
            Ok(agent) => {
                self.leader = Some(agent.pid);
                self.inputs.push_back(Input::Spawned { pid: agent.pid.as_raw().unsigned_abs() });
                for (stream, pipe) in [(Stream::Stdout, &agent.stdout), (Stream::Stderr, &agent.stderr)] {
                    if pipe.is_none() {
                        self.inputs.push_back(Input::StreamClosed(stream));
                    }
                }
                self.agent = Some(agent);
            }
            Err(code) => self.inputs.push_back(Input::SpawnFailed { code }),
        }
    }

    /// Kills what is left, once. What that orphans becomes the runner's own and is met by the next sweep: a loop here
    /// would only take the processor from processes that are busy dying.
    fn sweep(&mut self) {
        tree::kill_children();
        self.inputs.push_back(Input::Swept { remaining: true });
        self.reap();
    }

    /// Reaps what has ended, and tells the machine when nothing is left.
    fn reap(&mut self) {
        for _ in 0..REAP_AT_ONCE {
            match tree::reap() {
                Reaped::Child(pid, exit) if self.leader == Some(pid) => {
                    self.leader = None;
                    if let Some(agent) = &mut self.agent {
                        agent.stdin = None;
                    }
                    self.inputs.push_back(Input::ChildExited(exit));
                }
                Reaped::Child(_, exit) => {
                    let killed = exit.signal == Some(nix::libc::SIGKILL);
                    self.inputs.push_back(Input::OrphanReaped { killed });
                }
                Reaped::NoneEnded => {
                    self.is_reaping = false;
                    return;
                }
                Reaped::NoChildren => {
                    self.is_reaping = false;
                    self.inputs.push_back(Input::Swept { remaining: false });
                    return;
                }
            }
        }
        self.is_reaping = true;
    }

    /// Waits for events or the machine's next deadline; says which sources have something.
    fn wait(&self) -> Result<Vec<Source>, RunnerError> {
        let mut sources = vec![Source::Signals];
        let mut set = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let mut add = |source, descriptor, flags| {
            sources.push(source);
            set.push(PollFd::new(descriptor, flags));
        };
        if let Some((socket, flags)) = self.link.interest() {
            add(Source::Link, socket, flags);
        }
        if let Some(agent) = &self.agent {
            if let Some(feed) = &agent.stdin {
                add(Source::Stdin, feed.as_fd(), PollFlags::POLLOUT);
            }
            let outputs = [(Stream::Stdout, &agent.stdout), (Stream::Stderr, &agent.stderr)];
            for (stream, pipe) in outputs.into_iter().filter(|_| !self.is_holding_back()) {
                if let Some(pipe) = pipe {
                    add(Source::Output(stream), pipe.as_fd(), PollFlags::POLLIN);
                }
            }
        }
        let left = self.machine.deadline().map(|at| at.saturating_sub(self.clock.now()));
        let timeout = if self.is_reaping { PollTimeout::ZERO } else { poll_timeout(left) };
        match poll(&mut set, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(errno) => return Err(RunnerError::Wait { source: errno.into() }),
        }
        // An event without a name here is an event too: whoever looks then finds out.
        let ready = sources.into_iter().zip(&set).filter(|(_, descriptor)| descriptor.any() != Some(false));
        Ok(ready.map(|(source, _)| source).collect())
    }

    /// Whether the agent has to wait for the supervisor to read. Not after its end: the rest of a pipe is small.
    const fn is_holding_back(&self) -> bool {
        self.leader.is_some() && self.link.is_congested()
    }

    /// Turns events into inputs.
    fn collect(&mut self, ready: Vec<Source>) -> Result<(), RunnerError> {
        for source in ready {
            match source {
                Source::Signals => self.take_signals(),
                Source::Link => self.receive(),
                Source::Stdin => self.feed(),
                Source::Output(stream) => self.read(stream)?,
            }
        }
        if self.is_reaping {
            self.reap();
        }
        Ok(())
    }

    fn take_signals(&mut self) {
        while let Some(told) = self.signals.take() {
            match told {
                Told::ChildEnded => self.is_reaping = true,
                Told::Interrupted => self.inputs.push_back(Input::Interrupted),
            }
        }
    }

    fn receive(&mut self) {
        for record in self.link.receive(&mut self.buffer) {
            self.inputs.push_back(match record {
                ToRunner::Launch(launch) => Input::Launch(launch),
                ToRunner::Stop(stop) => Input::Stop(stop),
            });
        }
    }

    fn feed(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.stdin.take_if(|feed| !feed.advance());
        }
    }

    /// Reads one stream once and hands what came to the machine.
    fn read(&mut self, stream: Stream) -> Result<(), RunnerError> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let slot = match stream {
            Stream::Stdout => &mut agent.stdout,
            Stream::Stderr => &mut agent.stderr,
        };
        let Some(count) = slot.as_mut().and_then(|pipe| agent::read_once(pipe, &mut self.buffer)) else {
            return Ok(());
        };
        if count == 0 {
            *slot = None;
            self.inputs.push_back(Input::StreamClosed(stream));
            return Ok(());
        }
        let bytes = self.buffer.get(..count).unwrap_or_default();
        let actions = self.machine.handle(self.clock.now(), Input::Output { stream, bytes });
        self.perform(actions)
    }

    /// Sends what is still unsent and ends.
    fn deliver(mut self) -> Result<(), RunnerError> {
        // The private files go before the supervisor hears that all is over.
        self.agent = None;
        let until = self.clock.now() + DELIVER;
        loop {
            self.link.flush();
            if self.link.is_lost() {
                return Err(RunnerError::SupervisorLost);
            }
            if self.link.is_flushed() {
                self.link.close();
                return Ok(());
            }
            let left = until.saturating_sub(self.clock.now());
            if left.is_zero() {
                return Err(RunnerError::SupervisorLost);
            }
            let Some((socket, _)) = self.link.interest() else { continue };
            match poll(&mut [PollFd::new(socket, PollFlags::POLLOUT)], poll_timeout(Some(left))) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(errno) => return Err(RunnerError::Wait { source: errno.into() }),
            }
        }
    }
}

/// A timeout for `poll`, rounded up so that it doesn't wake just before the deadline. `None` waits for ever.
fn poll_timeout(left: Option<Duration>) -> PollTimeout {
    let Some(left) = left else { return PollTimeout::NONE };
    let millis = left.as_nanos().div_ceil(1_000_000);
    i32::try_from(millis)
        .ok()
        .and_then(|millis| PollTimeout::try_from(millis).ok())
        .unwrap_or(PollTimeout::MAX)
}

//! One run from the supervisor's side: workspace, grant, runner, reading, diff, report.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;
use tracing::{debug, trace};

use super::control::{Control, Order, Ready};
use super::launch;
use super::sandbox::Sandbox;
use super::stop::StopSignal;
use super::workspace::{self, DiffLimits, Prepared, Source, WorkspaceDiff, WorkspaceError};
use super::{notes, output};
use crate::api::{Code, DiffSummary, LogMode, Usage};
use crate::core::decide::RunState;
use crate::core::outcome::{Failure, Outcome, Reading};
use crate::core::plan::RunSpec;
use crate::protocol::{
    Decoder, ExecReport, Launch, MAX_PAYLOAD, Record, Stop, Stream, SystemCode, ToRunner, ToSupervisor,
    Token, VERSION,
};
use crate::redact::{Redacted, Redactor, TextStream};

/// Longest wait for the runner's hello: it is this same program, started on this machine.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// After deadline, grace and the five seconds that processes have to vanish: how long the runner may take to say so.
const REPORT_MARGIN: Duration = Duration::from_secs(30);
/// Longest time for the diff of a finished run.
const DIFF_LIMIT: Duration = Duration::from_mins(2);
/// Bytes read from the runner at once.
const CHUNK: usize = 64 * 1024;

/// What a finished run leaves to its controller.
#[derive(Debug)]
pub struct Report {
    /// The facts.
    pub outcome: Outcome,
    /// The whole change, for a controller on the same machine.
    pub change: Option<WorkspaceDiff>,
}

/// Sees one run through. `announce` is told when the agent runs; `stop` ends it.
///
/// # Guarantees
/// The agent starts at most once, and only after [`Control::launch`] gave its order.
pub async fn supervise<L, F>(
    spec: &RunSpec,
    sandbox: &Sandbox,
    runner: F,
    control: &dyn Control,
    announce: &(dyn Fn(RunState) + Send + Sync),
    stop: &mut StopSignal,
) -> Report
where
    L: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = std::io::Result<Runner<L>>>,
{
    let session = Session { spec, sandbox, control, announce };
    match session.prepare(runner, stop).await {
        Err(failure) => Report::failed(failure, None),
        Ok((prepared, runner)) => session.run(&prepared, runner, stop).await,
    }
}

impl Report {
    fn failed(failure: Failure, prepared: Option<&Prepared>) -> Self {
        let base = prepared.and_then(|prepared| prepared.base.as_ref()).map(ToString::to_string);
        Self { outcome: Outcome { failure: Some(failure), base, ..Outcome::default() }, change: None }
    }
}

/// The connection to the one runner.
#[derive(Debug)]
pub struct Runner<L> {
    link: L,
    decoder: Decoder<ToSupervisor>,
    /// What was read behind the last record.
    pending: Vec<u8>,
}

impl<L: AsyncRead + AsyncWrite + Unpin> Runner<L> {
    /// Takes a connection whose first record must be a hello with the token.
    ///
    /// # Errors
    /// When it isn't, or doesn't come in time.
    pub async fn accept(link: L, token: &Token) -> std::io::Result<Self> {
        let mut runner = Self { link, decoder: Decoder::new(MAX_PAYLOAD), pending: Vec::new() };
        let hello = tokio::time::timeout(HELLO_LIMIT, runner.next()).await??;
        match hello {
            Some(ToSupervisor::Hello { version: VERSION, token: shown, .. }) if shown.matches(token) => {
                Ok(runner)
            }
            _ => Err(std::io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// The next record; `None` when the runner is gone.
    async fn next(&mut self) -> std::io::Result<Option<ToSupervisor>> {
        loop {
            let mut input = self.pending.as_slice();
            let record = self.decoder.decode(&mut input).map_err(std::io::Error::other)?;
            let used = self.pending.len() - input.len();
            self.pending.drain(..used);
            if record.is_some() {
                return Ok(record);
            }
            self.pending.reserve(CHUNK);
            if self.link.read_buf(&mut self.pending).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn send(&mut self, record: &ToRunner) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes).map_err(std::io::Error::other)?;
        self.link.write_all(&bytes).await
    }
}

struct Session<'a> {
    spec: &'a RunSpec,
    sandbox: &'a Sandbox,
    control: &'a dyn Control,
    announce: &'a (dyn Fn(RunState) + Send + Sync),
}

/// What wakes a supervisor while its agent runs.
enum Event {
    Stop(Stop),
    Record(std::io::Result<Option<ToSupervisor>>),
}

/// How the runner's part ended.
struct Finished {
    report: ExecReport,
    stdout: Vec<u8>,
}

impl Session<'_> {
    /// Makes the workspace while the runner starts.
    async fn prepare<L, F>(&self, runner: F, stop: &mut StopSignal) -> Result<(Prepared, Runner<L>), Failure>
    where
        F: Future<Output = std::io::Result<Runner<L>>>,
    {
        let source = source(self.spec);
        let workspace = workspace::prepare(&self.sandbox.git, source.as_ref(), &self.sandbox.layout);
        tokio::select! {
            stop = stop.next() => Err(Failure::stopped(stop.reason)),
            both = async { tokio::join!(workspace, runner) } => match both {
                (Err(error), _) => Err(workspace_failure(&error)),
                (_, Err(_)) => Err(failure(Code::RuntimeUnavailable, "RUNNER_NOT_STARTED")),
                (Ok(prepared), Ok(runner)) => {
                    debug!(run = %self.spec.id, notes = prepared.notes.len(), "workspace and runner are ready");
                    Ok((prepared, runner))
                }
            },
        }
    }

    async fn run<L: AsyncRead + AsyncWrite + Unpin>(
        &self,
        prepared: &Prepared,
        mut runner: Runner<L>,
        stop: &mut StopSignal,
    ) -> Report {
        let (order, redactor, launch) = match self.granted(prepared, &mut runner, stop).await {
            Ok(granted) => granted,
            Err(refused) => return Report::failed(refused, Some(prepared)),
        };
        (self.announce)(RunState::Running);
        let finished = match runner.send(&ToRunner::Launch(Box::new(launch))).await {
            Ok(()) => self.follow(&mut runner, &order, &redactor, stop).await,
            Err(_) => Err(failure(Code::Lost, "RUNNER_LOST")),
        };
        self.conclude(prepared, &order, &redactor, finished).await
    }

    /// The grant, and everything that can still fail before the agent starts.
    async fn granted<L: AsyncRead + AsyncWrite + Unpin>(
        &self,
        prepared: &Prepared,
        runner: &mut Runner<L>,
        stop: &mut StopSignal,
    ) -> Result<(Order, Redactor, Launch), Failure> {
        let ready = Ready { base: prepared.base.as_ref().map(ToString::to_string) };
        let order = self.ask(runner, ready, stop).await?;
        let redactor = launch::redactor(&order)?;
        let launch = launch::launch(&order, self.sandbox, &prepared.directory)?;
        Ok((order, redactor, launch))
    }

    /// Asks for the grant. Waiting for the answer ends with a stop, and with the runner, which has nothing to say before.
    async fn ask<L: AsyncRead + AsyncWrite + Unpin>(
        &self,
        runner: &mut Runner<L>,
        ready: Ready,
        stop: &mut StopSignal,
    ) -> Result<Order, Failure> {
        tokio::select! {
            // In this order: a grant that comes together with a stop is not used.
            biased;
            stop = stop.next() => Err(Failure::stopped(stop.reason)),
            _ = runner.next() => Err(failure(Code::RuntimeUnavailable, "RUNNER_LOST")),
            order = self.control.launch(&self.spec.id, ready) => order,
        }
    }

    /// Until the runner's report. Stops are passed on; a runner that falls silent is lost.
    async fn follow<L: AsyncRead + AsyncWrite + Unpin>(
        &self,
        runner: &mut Runner<L>,
        order: &Order,
        redactor: &Redactor,
        stop: &mut StopSignal,
    ) -> Result<Finished, Failure> {
        let mut live = (order.logs == LogMode::Redacted).then(|| Live::new(self, redactor));
        let mut patience =
            Instant::now() + order.limits.timeout.to_std() + self.sandbox.grace + REPORT_MARGIN;
        loop {
            let event = tokio::time::timeout_at(patience, async {
                tokio::select! {
                    stop = stop.next() => Event::Stop(stop),
                    record = runner.next() => Event::Record(record),
                }
            });
            match event.await {
                Err(_) => return Err(failure(Code::Lost, "RUNNER_SILENT")),
                Ok(Event::Stop(stop)) => {
                    patience = Instant::now() + stop.grace + REPORT_MARGIN;
                    if runner.send(&ToRunner::Stop(stop)).await.is_err() {
                        return Err(failure(Code::Lost, "RUNNER_LOST"));
                    }
                }
                Ok(Event::Record(Ok(None))) => return Err(failure(Code::Lost, "RUNNER_LOST")),
                Ok(Event::Record(Ok(Some(ToSupervisor::Exited { report, stdout, .. })))) => {
                    if let Some(live) = live.take() {
                        live.finish();
                    }
                    return Ok(Finished { report, stdout });
                }
                Ok(Event::Record(Ok(Some(ToSupervisor::Output { stream, bytes })))) => {
                    trace!(run = %self.spec.id, ?stream, bytes = bytes.len(), "output");
                    if let Some(live) = &mut live {
                        live.push(stream, &bytes);
                    }
                }
                Ok(Event::Record(Ok(Some(ToSupervisor::Started { pid })))) => {
                    debug!(run = %self.spec.id, pid, "the agent was started");
                }
                Ok(Event::Record(Err(_) | Ok(Some(ToSupervisor::Hello { .. })))) => {
                    return Err(failure(Code::InvalidExecResult, "PROTOCOL"));
                }
            }
        }
    }

    /// Whatever happened: what changed, and what is known, without anything secret.
    async fn conclude(
        &self,
        prepared: &Prepared,
        order: &Order,
        redactor: &Redactor,
        finished: Result<Finished, Failure>,
    ) -> Report {
        let mut outcome = Outcome {
            base: prepared.base.as_ref().map(ToString::to_string),
            notes: notes::of_workspace(prepared, redactor),
            ..Outcome::default()
        };
        match finished {
            Err(failure) => {
                debug!(run = %self.spec.id, code = failure.code.name(), "the runner did not report");
                outcome.failure = Some(failure);
            }
            Ok(Finished { report, stdout }) => {
                let execution = launch::execution(&report);
                debug!(
                    run = %self.spec.id, end = ?execution.end, exit_code = execution.exit_code,
                    stdout = execution.stdout.bytes, stderr = execution.stderr.bytes,
                    milliseconds = execution.duration_ms, "the agent has ended"
                );
                outcome.execution = Some(execution);
                let executable = &self.sandbox.executable;
                let raw =
                    output::worker::evaluate(executable, &order.output, &stdout, report.stdout.truncated)
                        .await;
                outcome.reading = Some(redact(raw, report.stdout.truncated, redactor));
            }
        }
        let limits = DiffLimits::default();
        let diff = workspace::diff(&self.sandbox.git, prepared, &self.sandbox.layout, &limits);
        let change = match tokio::time::timeout(DIFF_LIMIT, diff).await {
            Ok(Ok(change)) => Some(change),
            Ok(Err(error)) => {
                outcome.failure.get_or_insert(workspace_failure(&error));
                None
            }
            Err(_) => {
                outcome.failure.get_or_insert(failure(Code::WorkspaceFailed, "DIFF_TIMEOUT"));
                None
            }
        };
        if let Some(change) = &change {
            debug!(run = %self.spec.id, files = change.totals.files, whole = change.is_complete(), "the workspace was compared");
            outcome.notes.extend(notes::of_change(change, redactor));
            outcome.diff = Some(summary(change, redactor));
        }
        Report { outcome, change }
    }
}

/// Live output, redacted stream by stream.
struct Live<'a> {
    session: &'a Session<'a>,
    stdout: TextStream,
    stderr: TextStream,
}

impl<'a> Live<'a> {
    fn new(session: &'a Session<'a>, redactor: &Redactor) -> Self {
        Self { session, stdout: redactor.text_stream(), stderr: redactor.text_stream() }
    }

    /// Shows everything at once but what may be the beginning of a secret: the agent may say nothing more for a long time.
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let redacted = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let (decided, settled) = (redacted.push(bytes), redacted.flush());
        self.show(stream, decided);
        self.show(stream, settled);
    }

    fn finish(self) {
        let Self { session, stdout, stderr } = self;
        for (stream, text) in [(Stream::Stdout, stdout.finish()), (Stream::Stderr, stderr.finish())] {
            if !text.is_empty() {
                session.control.live(&session.spec.id, stream, text);
            }
        }
    }

    fn show(&self, stream: Stream, text: Redacted) {
        if !text.is_empty() {
            self.session.control.live(&self.session.spec.id, stream, text);
        }
    }
}

fn failure(code: Code, system_code: &'static str) -> Failure {
    Failure { code, system_code: SystemCode::new(system_code) }
}

fn workspace_failure(error: &WorkspaceError) -> Failure {
    failure(Code::WorkspaceFailed, error.system_code())
}

fn source(spec: &RunSpec) -> Option<Source> {
    let git = spec.workspace.git.as_ref()?;
    let repository = match git.repository.strip_prefix("file://") {
        Some(path) => workspace::Repository::Local(Path::new(path).to_owned()),
        None => workspace::Repository::Https(git.repository.clone()),
    };
    Some(Source {
        repository,
        revision: Some(git.revision.clone()),
        depth: git.depth.and_then(|depth| u32::try_from(depth).ok()),
        subdirectory: git.subdirectory.clone(),
    })
}

fn redact(raw: output::RawReading, truncated: bool, redactor: &Redactor) -> Reading {
    let usage = Usage {
        input_tokens: raw.input_tokens,
        output_tokens: raw.output_tokens,
        cost_usd: raw.cost_usd,
        turns: raw.turns,
        session_id: raw.session_id.map(|session| redactor.text(&session)),
        denials: raw.denials,
    };
    Reading {
        parsed: raw.parsed,
        failed: raw.failed,
        text: raw.text.map(|text| redactor.text(&text)),
        text_truncated: truncated,
        usage: (usage != Usage::default()).then_some(usage),
    }
}

fn summary(change: &WorkspaceDiff, redactor: &Redactor) -> DiffSummary {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let patch = redactor.bytes(&change.patch);
    DiffSummary {
        files: number(change.totals.files),
        insertions: number(change.totals.insertions),
        deletions: number(change.totals.deletions),
        redacted: patch.as_str().contains(redactor.marker()),
        patch: (!change.patch.is_empty()).then_some(patch),
        truncated: !change.is_complete(),
    }
}

//! From an order to what the runner is told, and from its report to facts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::control::Order;
use super::sandbox::Sandbox;
use crate::api::{Code, StreamFacts, TerminationMethod};
use crate::core::command::PromptChannel;
use crate::core::outcome::{End, Execution, Failure};
use crate::protocol::{self, Ended, ExecReport, Launch, LaunchFile, Limits, Stdin, StreamReport, SystemCode};
use crate::redact::Redactor;

/// The redactor that knows every secret of the order.
///
/// # Errors
/// A secret too short to be found in a text refuses the start.
pub(super) fn redactor(order: &Order) -> Result<Redactor, Failure> {
    let mut builder = Redactor::builder();
    for variable in order.environment.iter().filter(|variable| variable.secret) {
        builder.secret(variable.name.as_str(), variable.value.as_slice());
    }
    builder
        .build()
        .map_err(|_| Failure { code: Code::Unsupported, system_code: SystemCode::new("SECRET_TOO_SHORT") })
}

/// What the runner is to start.
///
/// # Errors
/// When the program doesn't exist. The runner would say the same, but only after the grant's work.
pub(super) fn launch(order: &Order, sandbox: &Sandbox, directory: &Path) -> Result<Launch, Failure> {
    let missing = Failure { code: Code::SpawnFailed, system_code: SystemCode::new("ENOENT") };
    let command = &order.command;
    let program = sandbox.programs.find(&command.binary).ok_or(missing)?;
    let mut argv: Vec<OsString> = vec![command.binary.clone().into()];
    argv.extend(command.arguments.iter().map(OsString::from));
    let prompt = order.prompt.as_str().as_bytes().to_vec();
    let mut stdin = Stdin::Closed;
    let mut files = Vec::new();
    match command.channel {
        PromptChannel::Argument => {}
        PromptChannel::Stdin => stdin = Stdin::Bytes(prompt),
        PromptChannel::File => {
            let path = sandbox.prompts.join("prompt");
            let mut argument = OsString::from(command.file_flag.clone().unwrap_or_default());
            argument.push("=");
            argument.push(&path);
            argv.push(argument);
            files.push(LaunchFile { path, content: prompt });
        }
    }
    Ok(Launch {
        program,
        argv,
        environment: environment(order, sandbox),
        working_directory: directory.to_owned(),
        stdin,
        files,
        limits: Limits {
            timeout: order.limits.timeout.to_std(),
            grace: sandbox.grace,
            max_output_bytes: order.limits.max_output_bytes.bytes().unsigned_abs(),
            processes: u32::try_from(order.limits.processes).ok(),
        },
        live_output: order.logs == crate::api::LogMode::Redacted,
    })
}

/// The executor's variables, then the definition's, which win.
fn environment(order: &Order, sandbox: &Sandbox) -> Vec<(OsString, OsString)> {
    let own = [
        ("HOME", sandbox.home.as_os_str()),
        ("TMPDIR", sandbox.temporary.as_os_str()),
        ("LANG", OsStr::new("C.UTF-8")),
    ];
    let own = own.map(|(name, value)| (name.into(), value.to_owned()));
    let declared: Vec<(OsString, OsString)> = order
        .environment
        .iter()
        .map(|variable| (variable.name.clone().into(), OsString::from_vec(variable.value.clone())))
        .collect();
    let stands = |name: &OsString| declared.iter().any(|(declared, _)| declared == name);
    let inherited: Vec<_> = own
        .into_iter()
        .chain(sandbox.environment.iter().cloned())
        .filter(|(name, _)| !stands(name))
        .collect();
    inherited.into_iter().chain(declared).collect()
}

/// A runner's report as facts of an outcome.
pub(super) fn execution(report: &ExecReport) -> Execution {
    Execution {
        end: end(report.outcome),
        exit_code: report.exit.map(|exit| exit.code),
        system_code: report.system_code.clone(),
        termination_method: match report.termination_method {
            protocol::TerminationMethod::None => None,
            protocol::TerminationMethod::Sigterm => Some(TerminationMethod::Sigterm),
            protocol::TerminationMethod::Sigkill => Some(TerminationMethod::Sigkill),
        },
        stdout: facts(report.stdout),
        stderr: facts(report.stderr),
        duration_ms: i64::try_from(report.duration.as_millis()).unwrap_or(i64::MAX),
    }
}

fn end(outcome: protocol::Outcome) -> End {
    match outcome {
        protocol::Outcome::Exited => End::Exited,
        protocol::Outcome::SpawnFailed => End::SpawnFailed,
        protocol::Outcome::TerminationFailed(_) => End::TerminationFailed,
        protocol::Outcome::Ended(Ended::TimedOut) => End::TimedOut,
        protocol::Outcome::Ended(Ended::ProcessLimit) => End::ProcessLimit,
        protocol::Outcome::Ended(Ended::SupervisorLost) => End::ControlLost,
        protocol::Outcome::Ended(Ended::Stopped(reason)) => End::stopped(reason),
    }
}

fn facts(stream: StreamReport) -> StreamFacts {
    StreamFacts { bytes: i64::try_from(stream.bytes).unwrap_or(i64::MAX), truncated: stream.truncated }
}

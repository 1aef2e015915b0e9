//! The process in which programs are evaluated: bounded in time and memory, and killed when it takes longer.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{RawReading, read};
use crate::api::Output;

/// Longest time for all programs of one definition.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Address space of the process: an output of 8 MiB as CEL values takes well under a tenth of it.
const MEMORY_LIMIT: u64 = 2 << 30;
/// Longest answer: the text can't be longer than the output.
const MAX_ANSWER: u64 = 64 << 20;

/// The hidden subcommand that this module starts.
pub const SUBCOMMAND: &str = "evaluate";

#[derive(Serialize, Deserialize)]
struct Question {
    output: Output,
    truncated: bool,
    bytes: usize,
}

/// Evaluates in a process of `executable`, which must be this program.
///
/// Output that can't be evaluated within the bounds counts as unreadable: it is the agent's, not ours.
pub async fn evaluate(executable: &Path, output: &Output, stdout: &[u8], truncated: bool) -> RawReading {
    // Plain text has no program to run.
    if output.text.is_none() && output.failed.is_none() && output.usage.is_none() {
        return read(output, stdout, truncated);
    }
    let answer = tokio::time::timeout(TIME_LIMIT, ask(executable, output, stdout, truncated)).await;
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

async fn ask(
    executable: &Path,
    output: &Output,
    stdout: &[u8],
    truncated: bool,
) -> std::io::Result<RawReading> {
    let mut child = Command::new(executable)
        .arg(SUBCOMMAND)
        .arg(std::process::id().to_string())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut question =
        serde_json::to_vec(&Question { output: output.clone(), truncated, bytes: stdout.len() })?;
    question.push(b'\n');
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&question).await?;
        stdin.write_all(stdout).await?;
    }
    let answer = child.wait_with_output().await?;
    Ok(serde_json::from_slice(&answer.stdout)?)
}

/// The process's own side: a question on standard input, its answer on standard output.
pub fn main(parent: u32) -> ExitCode {
    match answer(parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(parent: u32) -> std::io::Result<()> {
    // Nobody waits for the answer of a process whose parent was killed, perhaps before this line.
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid().as_raw().cast_unsigned() != parent {
        return Err(std::io::ErrorKind::NotConnected.into());
    }
    setrlimit(Resource::RLIMIT_AS, MEMORY_LIMIT, MEMORY_LIMIT)?;
    setrlimit(Resource::RLIMIT_CPU, TIME_LIMIT.as_secs(), TIME_LIMIT.as_secs() + 1)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let mut input = Vec::new();
    std::io::stdin().lock().take(MAX_ANSWER).read_to_end(&mut input)?;
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (question, stdout) = input.split_at(end);
    let question: Question = serde_json::from_slice(question)?;
    let stdout = stdout
        .get(1..)
        .filter(|stdout| stdout.len() == question.bytes)
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let reading = read(&question.output, stdout, question.truncated);
    std::io::stdout().lock().write_all(&serde_json::to_vec(&reading)?)
}

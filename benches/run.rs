//! What `caisson run` costs: start to exit beside the same command bare, and the runner's resident memory, as a Markdown table.
//!
//! `cargo bench --bench run -- [ROUNDS]`; the default is 40. The variants run in turn, so that a change of the machine's speed
//! meets all of them. The workspace is empty, and the agent is `true`.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark takes times and prints them, and ends where anything fails"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CAISSON: &str = env!("CARGO_BIN_EXE_caisson");

fn main() {
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(40);
    let home = tempfile::tempdir().unwrap();
    definition(home.path(), "text", "/bin/true");
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        times[0].push(time(&mut Command::new("/bin/true")));
        times[1].push(time(&mut caisson(home.path(), "text")));
    }
    let [bare, run] = times;
    println!("| variant | median ms | min | max |\n|---|---:|---:|---:|");
    row("the command bare", &bare);
    row("`caisson run` of it", &run);
    let added: Vec<Duration> = run.iter().zip(&bare).map(|(run, bare)| run.saturating_sub(*bare)).collect();
    row("added, by pairs (goal ≤ 60 at p50)", &added);
    println!(
        "\nresident memory of the runner before output: {} KiB (goal ≤ 8192)",
        runner_memory(home.path())
    );
}

fn definition(home: &Path, name: &str, binary: &str) {
    let text = format!(
        "apiVersion: caisson.dev/v1alpha1\nkind: AgentCliDefinition\nmetadata: {{name: {name}}}\n\
         spec:\n  version: \"1\"\n  binary: {binary}\n"
    );
    fs::write(home.join(format!("{name}.yaml")), text).unwrap();
}

fn caisson(home: &Path, name: &str) -> Command {
    let mut command = Command::new(CAISSON);
    command
        .args(["run", "--yes", "--prompt", "x", "--definition"])
        .arg(home.join(format!("{name}.yaml")))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    assert!(command.status().unwrap().success());
    start.elapsed()
}

fn row(name: &str, times: &[Duration]) {
    let mut times = times.to_vec();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, min, max) = (times[times.len() / 2], times[0], times[times.len() - 1]);
    println!("| {name} | {:.1} | {:.1} | {:.1} |", ms(median), ms(min), ms(max));
}

/// An agent looks at its parent, which is the runner, before it has written anything.
fn runner_memory(home: &Path) -> u64 {
    let agent = home.join("look.sh");
    fs::write(&agent, "#!/bin/sh\ngrep VmRSS /proc/$PPID/status\n").unwrap();
    Command::new("chmod").arg("+x").arg(&agent).status().unwrap();
    definition(home, "look", "look.sh");
    let mut child = caisson(home, "look")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find(|line| line.starts_with("VmRSS")).unwrap();
    child.wait().unwrap();
    found.split_whitespace().nth(1).unwrap().parse().unwrap()
}

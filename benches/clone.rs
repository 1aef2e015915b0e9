//! Preparing and comparing a workspace next to `git clone --local`, interleaved, as a Markdown table.
//!
//! `cargo bench --bench clone -- [FILES [ROUNDS]]`; the defaults are 10,000 files and 15 rounds.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where anything fails"
)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use caisson::supervisor::workspace::{DiffLimits, Git, Layout, Prepared, Repository, Source, diff, prepare};

fn main() {
    // Cargo adds options of its own, such as `--bench`.
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<usize>().ok());
    let (files, rounds) = (numbers.next().unwrap_or(10_000), numbers.next().unwrap_or(15));
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    make_source(&source, files);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let git = Git::find(OsStr::new("/usr/local/bin:/usr/bin:/bin")).unwrap();

    let mut clone = Vec::new();
    let mut ours = Vec::new();
    let mut unchanged = Vec::new();
    let mut changed = Vec::new();
    for round in 0..=rounds {
        let clone_to = directory.path().join("clone");
        let layout = Layout {
            workspace: directory.path().join("run/workspace"),
            private: directory.path().join("run/private"),
        };
        let mut prepared = None;
        let make_clone =
            || time(|| run_git(&source, &["clone", "--quiet", "--local", ".", clone_to.to_str().unwrap()]));
        let mut make_ours = || {
            let source = Source {
                repository: Repository::Local(source.clone()),
                revision: None,
                depth: None,
                subdirectory: None,
            };
            time(|| prepared = Some(runtime.block_on(prepare(&git, Some(&source), &layout)).unwrap()))
        };
        // Whoever is second finds warmer caches, so both take turns.
        let (clone_time, our_time) = if round % 2 == 0 {
            let clone_time = make_clone();
            (clone_time, make_ours())
        } else {
            let our_time = make_ours();
            (make_clone(), our_time)
        };
        let prepared: Prepared = prepared.unwrap();
        let compare = || {
            time(|| drop(runtime.block_on(diff(&git, &prepared, &layout, &DiffLimits::default())).unwrap()))
        };
        let unchanged_time = compare();
        for index in (0..files).step_by(100) {
            fs::write(layout.workspace.join(path(index)), "changed\n").unwrap();
        }
        let changed_time = compare();
        // The first round warms up.
        if round > 0 {
            clone.push(clone_time);
            ours.push(our_time);
            unchanged.push(unchanged_time);
            changed.push(changed_time);
        }
        fs::remove_dir_all(clone_to).unwrap();
        fs::remove_dir_all(directory.path().join("run")).unwrap();
    }
    let mut ratios: Vec<f64> =
        ours.iter().zip(&clone).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    println!(
        "{files} files, {rounds} rounds, milliseconds\n\n| what | median | min | max |\n|---|--:|--:|--:|"
    );
    row("git clone --local", clone);
    row("prepare", ours);
    row("diff, nothing changed", unchanged);
    row("diff, 1 in 100 changed", changed);
    println!("\nprepare / clone, median of pairs: {:.2}", ratios[ratios.len() / 2]);
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn time(work: impl FnOnce()) -> Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, min, max) = (times[times.len() / 2], times[0], times[times.len() - 1]);
    println!(
        "| {name} | {:.0} | {:.0} | {:.0} |",
        milliseconds(median),
        milliseconds(min),
        milliseconds(max)
    );
}

fn path(index: usize) -> String {
    format!("d{}/e{}/f{index}.txt", index / 10_000, index / 100)
}

/// A packed repository of small text files, each another one.
fn make_source(source: &Path, files: usize) {
    fs::create_dir_all(source).unwrap();
    run_git(source, &["init", "--quiet", "--initial-branch=main"]);
    let mut import = Command::new("git");
    import.args(["fast-import", "--quiet"]).current_dir(source).stdin(Stdio::piped());
    let mut import = import.spawn().unwrap();
    let mut stream = import.stdin.take().unwrap();
    writeln!(stream, "commit refs/heads/main\ncommitter A <> 0 +0000\ndata 0\n").unwrap();
    for index in 0..files {
        let content = format!("line of file {index}\n").repeat(index % 80 + 1);
        writeln!(stream, "M 100644 inline {}\ndata {}\n{content}", path(index), content.len()).unwrap();
    }
    drop(stream);
    assert!(import.wait().unwrap().success());
    run_git(source, &["reset", "--quiet", "--hard"]);
}

fn run_git(directory: &Path, arguments: &[&str]) {
    assert!(Command::new("git").args(arguments).current_dir(directory).status().unwrap().success());
}

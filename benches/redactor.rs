//! Throughput of the redactor (number P9): 32 secrets with all encodings over 64 MiB of log lines, JSON and code.
//!
//! ```text
//! cargo bench --bench redactor -- [--runs N] [--corpus FILE] [--beside gitleaks=PATH] [--beside ripsecrets=PATH]
//! ```
//!
//! The variants run in turn, so that a change of the machine's speed meets all of them. Everything is on one thread; the
//! programs beside it read the same corpus from a file, pinned to one core. They only report, and know no secret. The
//! corpus is the same on every machine. Each variant's output is searched for every planted secret.

#![expect(clippy::print_stdout, reason = "the table is the purpose of this program")]

mod corpus;

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use caisson::redact::Redactor;

use corpus::Corpus;

const CORPUS_BYTES: usize = 64 << 20;

/// What a supervisor reads from a pipe at once.
const CHUNK_BYTES: usize = 64 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let corpus = Corpus::new(CORPUS_BYTES);
    std::fs::write(&options.corpus, &corpus.text)?;
    println!(
        "{} MiB, {} secrets planted {} times, {} runs each\n",
        corpus.text.len() >> 20,
        corpus.secrets.len(),
        corpus.planted.len(),
        options.runs
    );
    let mut variants = variants(&corpus, &options)?;
    // Written once, so that no run pays for fresh pages.
    let mut out = vec![0; corpus.text.len() + CHUNK_BYTES];
    for _ in 0..options.runs {
        for variant in &mut variants {
            let took = variant.run(&corpus, &mut out)?;
            variant.took.push(took);
        }
    }
    println!("| variant | MB/s median | min | max |\n|---|---:|---:|---:|");
    for variant in &mut variants {
        println!("{}", variant.row(corpus.text.len()));
    }
    if !options.keep_corpus {
        std::fs::remove_file(&options.corpus)?;
    }
    Ok(())
}

struct Options {
    runs: usize,
    corpus: PathBuf,
    keep_corpus: bool,
    beside: Vec<(String, String)>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let corpus = std::env::temp_dir().join(format!("redactor-corpus-{}.txt", std::process::id()));
        let mut options = Self { runs: 7, corpus, keep_corpus: false, beside: Vec::new() };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--bench" => {}
                "--runs" => options.runs = value()?.parse().map_err(|_| "--runs takes a number")?,
                "--corpus" => {
                    options.corpus = value()?.into();
                    options.keep_corpus = true;
                }
                "--beside" => {
                    let value = value()?;
                    let (tool, path) = value.split_once('=').ok_or("--beside takes TOOL=PATH")?;
                    options.beside.push((tool.to_owned(), path.to_owned()));
                }
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(options)
    }
}

struct Variant {
    name: String,
    work: Work,
    took: Vec<Duration>,
}

enum Work {
    Redact(Redactor),
    Scan(Redactor),
    Beside(Vec<String>),
}

fn variants(corpus: &Corpus, options: &Options) -> Result<Vec<Variant>, Box<dyn Error>> {
    let mut builder = Redactor::builder();
    for (index, secret) in corpus.secrets.iter().enumerate() {
        builder.secret(format!("secret {index}"), secret.as_bytes());
    }
    let with_rules = builder.build()?;
    let exact = builder.without_rules().build()?;
    // Finds nothing, so it reads everything.
    let mut unused = Redactor::builder();
    for (index, secret) in corpus::secrets(1).iter().enumerate() {
        unused.secret(format!("unused secret {index}"), secret.as_bytes());
    }
    let mut variants = vec![
        Variant::new("redact, exact needles", Work::Redact(exact)),
        Variant::new("redact, needles and rules", Work::Redact(with_rules)),
        Variant::new("scan a delivery", Work::Scan(unused.build()?)),
    ];
    let corpus = options.corpus.display().to_string();
    for (tool, path) in &options.beside {
        let arguments: &[&str] = match tool.as_str() {
            "gitleaks" => &["dir", &corpus, "--no-banner", "--log-level=error", "--exit-code=0"],
            "ripsecrets" => &[&corpus],
            other => return Err(format!("don't know how to run {other}").into()),
        };
        let pinned = ["taskset", "-c", "0", path].into_iter().chain(arguments.iter().copied());
        variants.push(Variant::new(tool, Work::Beside(pinned.map(str::to_owned).collect())));
    }
    Ok(variants)
}

impl Variant {
    fn new(name: &str, work: Work) -> Self {
        Self { name: name.to_owned(), work, took: Vec::new() }
    }

    fn run(&self, corpus: &Corpus, out: &mut Vec<u8>) -> Result<Duration, Box<dyn Error>> {
        match &self.work {
            Work::Redact(redactor) => {
                out.clear();
                let (hits, took) = timed(|| {
                    let mut stream = redactor.stream();
                    for chunk in corpus.text.chunks(CHUNK_BYTES) {
                        stream.push(chunk, out);
                    }
                    stream.finish(out)
                });
                corpus.check(out, hits)?;
                Ok(took)
            }
            Work::Scan(redactor) => {
                let (found, took) = timed(|| {
                    let mut scan = redactor.secret_scan();
                    corpus.text.chunks(CHUNK_BYTES).any(|chunk| scan.push(chunk))
                });
                if found { Err("found a secret that isn't there".into()) } else { Ok(took) }
            }
            Work::Beside(command) => {
                let (program, arguments) = command.split_first().ok_or("no program")?;
                let mut command = Command::new(program);
                command.args(arguments).stdout(Stdio::null());
                let (status, took) = timed(|| command.status());
                // ripsecrets ends with 1 when it finds something.
                if status?.code().is_some_and(|code| code <= 1) {
                    Ok(took)
                } else {
                    Err(format!("{} failed", self.name).into())
                }
            }
        }
    }

    fn row(&mut self, bytes: usize) -> String {
        self.took.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "a corpus has far fewer bytes than 2^52")]
        let rate = |took: Option<&Duration>| took.map_or(0.0, |took| bytes as f64 / 1e6 / took.as_secs_f64());
        let median = rate(self.took.get(self.took.len() / 2));
        let (min, max) = (rate(self.took.last()), rate(self.took.first()));
        format!("| {} | {median:.0} | {min:.0} | {max:.0} |", self.name)
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}

//! A text like the output of coding agents, with secrets planted in it; the same for every run.

#![expect(clippy::indexing_slicing, reason = "indices are taken from the length")]

use std::fmt::Write as _;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Distance between two planted secrets, on average.
const PLANT_EVERY: usize = 64 << 10;

/// Number of secrets.
const SECRETS: u64 = 32;

/// The corpus and what is in it.
pub(crate) struct Corpus {
    pub(crate) text: Vec<u8>,
    pub(crate) secrets: Vec<String>,
    /// Parts of the text that no redacted output may have.
    pub(crate) planted: Vec<String>,
}

impl Corpus {
    pub(crate) fn new(bytes: usize) -> Self {
        let mut random = Random(0x5eed);
        let secrets = secrets(0);
        let mut text = String::with_capacity(bytes + 4096);
        let mut planted = Vec::new();
        let mut next_plant = PLANT_EVERY;
        while text.len() < bytes {
            match random.below(10) {
                0..4 => log_lines(&mut random, &mut text),
                4..7 => json_event(&mut random, &mut text),
                7..9 => code(&mut random, &mut text),
                _ => blob(&mut random, &mut text),
            }
            if text.len() > next_plant {
                let secret = &secrets[random.below(secrets.len())];
                planted.push(plant(&mut random, secret, &mut text));
                next_plant += PLANT_EVERY;
            }
        }
        Self { text: text.into_bytes(), secrets, planted }
    }

    /// Fails if a planted secret is in `out`, or if there were fewer replacements than secrets.
    pub(crate) fn check(&self, out: &[u8], hits: u64) -> Result<(), Box<dyn std::error::Error>> {
        let search = AhoCorasick::new(&self.planted)?;
        if let Some(missed) = search.find(out) {
            let missed = &self.planted[missed.pattern().as_usize()];
            return Err(format!("a planted secret was missed: {missed}").into());
        }
        if hits < u64::try_from(self.planted.len())? {
            return Err(format!("only {hits} replacements for {} planted secrets", self.planted.len()).into());
        }
        Ok(())
    }
}

/// Keys, passwords and two private keys of several lines; different ones for each `seed`.
pub(crate) fn secrets(seed: u64) -> Vec<String> {
    let mut random = Random(0xace + seed);
    let mut secret = |index: usize| match index % 16 {
        0 => format!("sk-ant-api03-{}-{}AA", random.text(BASE64_URL, 86), random.text(BASE64_URL, 6)),
        1 => format!("ghp_{}", random.text(ALPHANUMERIC, 36)),
        2 => random.text(HEX, 40),
        3 => random.text(PASSWORD, 16),
        4 => {
            let lines: Vec<_> = (0..26).map(|_| random.text(BASE64, 64)).collect();
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
        }
        5 => random.text(PASSWORD, 24),
        6 => random.text(BASE64, 88),
        _ => random.text(ALPHANUMERIC, 20 + index * 2),
    };
    (0..usize::try_from(SECRETS).unwrap_or_default()).map(&mut secret).collect()
}

/// Writes a secret in one of its encodings, and returns the part that must not survive.
fn plant(random: &mut Random, secret: &str, text: &mut String) -> String {
    let percent =
        |secret: &str| secret.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
    let planted = match random.below(8) {
        0 | 1 => secret.trim_end().to_owned(),
        2 => STANDARD.encode(secret),
        3 => {
            // At any of the three alignments; the characters that depend on the neighbours are left out.
            let before = random.below(3);
            let encoded = URL_SAFE_NO_PAD.encode(format!("{}{secret}\n", &"ab"[..before]));
            let _ = writeln!(text, "{encoded}");
            return encoded[4..encoded.len() - 4].to_owned();
        }
        4 => secret.bytes().fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
        5 => percent(secret),
        6 => {
            let quoted = serde_json::Value::from(secret).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
        _ => secret.lines().nth(1).unwrap_or(secret).to_owned(),
    };
    let _ = writeln!(text, "key is {planted} as given");
    planted
}

const WORDS: &[&str] = &[
    "the", "request", "worker", "cache", "index", "parse", "failed", "ready", "token", "result", "for",
    "with", "session", "retry", "build", "test", "module", "value", "error", "stream", "buffer", "update",
    "commit", "branch",
];
const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const PASSWORD: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!$%&/=?+*#-_.:;<>\\\"";
const HEX: &[u8] = b"0123456789abcdef";

fn log_lines(random: &mut Random, text: &mut String) {
    for _ in 0..4 {
        let level = random.pick(&["INFO", "DEBUG", "WARN", "ERROR"]);
        let _ = writeln!(
            text,
            "2026-03-{:02}T{:02}:{:02}:{:02}.{:06}Z {level} worker-{}: {} id={}-{} url=https://api.example.com/v1/{}",
            random.below(28) + 1,
            random.below(24),
            random.below(60),
            random.below(60),
            random.below(1_000_000),
            random.below(32),
            random.words(8),
            random.text(HEX, 8),
            random.text(HEX, 12),
            random.words(1),
        );
    }
}

fn json_event(random: &mut Random, text: &mut String) {
    let mut source = String::new();
    code(random, &mut source);
    let event = serde_json::json!({
        "type": "assistant",
        "session_id": random.text(HEX, 32),
        "message": {"role": "assistant", "content": [{"type": "text", "text": random.words(40)},
            {"type": "tool_use", "name": "Edit", "input": {"file_path": "/workspace/src/lib.rs", "new_string": source}}]},
        "usage": {"input_tokens": random.below(100_000), "output_tokens": random.below(4000)},
    });
    let _ = writeln!(text, "{event}");
}

fn code(random: &mut Random, text: &mut String) {
    let name = random.pick(WORDS);
    let _ = writeln!(text, "/// Returns the {} of `{name}`.", random.words(4));
    let _ = writeln!(
        text,
        "pub fn {name}_{}(task: &Task, disk_usage: usize) -> Result<u64, Error> {{",
        random.pick(WORDS)
    );
    for _ in 0..6 {
        let (left, right) = (random.pick(WORDS), random.pick(WORDS));
        let number = random.below(5000);
        let _ = writeln!(
            text,
            "    let {left} = self.{right}.iter().map(|x| x.len() + {number}).sum::<usize>();"
        );
        let _ = writeln!(
            text,
            "    if {left} > task.{right}() {{ return Err(Error::new(\"{}\")); }}",
            random.words(3)
        );
    }
    let _ = writeln!(text, "    Ok(0x{})\n}}\n", random.text(HEX, 16));
}

fn blob(random: &mut Random, text: &mut String) {
    let _ = writeln!(text, "integrity sha512-{}", random.text(BASE64, 86));
    let _ = writeln!(text, "data:image/png;base64,{}", random.text(BASE64, 1000));
    let _ = writeln!(
        text,
        "GET /search?q={}%20{}%2F{}&page=2",
        random.pick(WORDS),
        random.pick(WORDS),
        random.text(HEX, 8)
    );
}

/// The generator of Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or_default() % end
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    fn text(&mut self, alphabet: &[u8], len: usize) -> String {
        (0..len).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.pick(WORDS)).collect::<Vec<_>>().join(" ")
    }
}

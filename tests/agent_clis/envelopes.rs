//! Recorded outputs of the real CLIs in `tests/fixtures/envelopes`, read by the definitions' output programs. Other
//! tests use them in place of the CLIs. Run with `RECORD_ENVELOPES=1` to write them anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::agent_cli::{AgentCli, Place};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/envelopes")
}

/// Writes a fixture, if asked to, without the run's own path.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests asks for new fixtures")]
pub(crate) fn record(name: &str, stdout: &str, place: &Place) {
    if std::env::var_os("RECORD_ENVELOPES").is_some() {
        let path = directory().join(name);
        fs::create_dir_all(path.parent().expect("a folder per CLI")).expect("a folder");
        let beside = place.beside("");
        fs::write(path, stdout.replace(beside.to_str().expect("UTF-8"), "/place/")).expect("a file");
    }
}

#[test]
fn the_programs_read_every_recorded_output() {
    let mut readings = Vec::new();
    for (name, extension) in [("claude-code", "json"), ("codex", "jsonl")] {
        let cli = AgentCli::shipped(name, "");
        let folder = directory().join(name);
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("recorded").map(|entry| entry.expect("readable").path()).collect();
        paths.sort();
        for path in paths {
            assert_eq!(path.extension().and_then(|known| known.to_str()), Some(extension), "{path:?}");
            let reading = cli.read(&fs::read_to_string(&path).expect("text"));
            let stem = path.file_stem().expect("a name").to_str().expect("UTF-8");
            let usage = serde_json::Value::Object(reading.usage);
            readings.push(format!("{name} {stem}: failed={} {:?} {usage}", reading.failed, reading.text));
        }
    }
    insta::assert_snapshot!(readings.join("\n"));
}

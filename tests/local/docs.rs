//! What the documentation shows is what happens: its commands, run verbatim in an empty account.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The `sh` blocks of a page, in order, as one script.
fn script(page: &str) -> String {
    let mut script = String::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, "```sh") => inside = true,
            (true, "```") => inside = false,
            (true, line) => {
                script.push_str(line);
                script.push('\n');
            }
            (false, _) => {}
        }
    }
    script
}

#[test]
fn the_page_about_an_agent_of_your_own_works_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/your-own-agent.md")).unwrap();
    let script = script(&page);
    assert!(script.matches("caisson run").count() >= 4, "{script}");
    let home = tempfile::tempdir().unwrap();
    let caisson = Path::new(env!("CARGO_BIN_EXE_caisson")).parent().unwrap();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", caisson.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert_eq!(stdout.matches("done · exit 0").count(), 3, "{stdout}");
    assert!(stdout.contains("+HELLO\n") && stdout.contains("+BY NAME\n"), "{stdout}");
    let applied = fs::read_to_string(home.path().join("my-agent/repository/SHOUT.txt")).unwrap();
    assert_eq!(applied, "HELLO\n");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.chain(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)));
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(&page).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.starts_with("http")) {
            let file = target.split('#').next().unwrap_or_default();
            let there = file.is_empty() || page.parent().unwrap().join(file).exists();
            assert!(there, "{} links to {target}", page.display());
        }
    }
}

/// The reference is made of the types; `CAISSON_UPDATE=1` writes it anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "whether to rewrite is the caller's to say")]
fn the_reference_is_what_the_types_say() {
    use caisson::api::{Code, Reason};
    let mut text = String::from(
        "# Reference\n\nGenerated from the types; a test compares it.\n\n## Codes\n\n\
         `status.result.code` of a task that did not succeed. `caisson explain CODE` says what to do.\n\n\
         | code | category | retryable | message |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let retryable = if code.retryable() { "yes" } else { "no" };
        let _ = writeln!(text, "| `{code}` | {:?} | {retryable} | {} |", code.category(), code.message());
    }
    text.push_str(
        "\n## Reasons of conditions\n\nA failure's reason is its code in capitals, such as `NonzeroExit`.\n\n\
         | reason | meaning |\n|---|---|\n",
    );
    for (reason, meaning) in Reason::DOCUMENTED {
        let _ = writeln!(text, "| `{reason}` | {} |", meaning.trim());
    }
    text.push_str(
        "\n## Objects\n\nEvery field with its meaning and bounds stands in \
         [the custom resource definitions](../crds/), which `caisson crd` prints.\n\n## `caisson run`\n\n```text\n",
    );
    let help = Command::new(env!("CARGO_BIN_EXE_caisson"))
        .args(["run", "--help"])
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    text.push_str(&String::from_utf8(help.stdout).unwrap());
    text.push_str("```\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
    if std::env::var_os("CAISSON_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "rewrite it with CAISSON_UPDATE=1");
}

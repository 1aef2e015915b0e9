//! Nothing leaks: distinct secrets are planted in every place, and every byte of every surface is searched for each of them in
//! every form that a reader could undo.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::support::account::{definition, task, tree};
use crate::support::process::contains;
use crate::support::{Account, Caisson, Finished, process, wait};

const PROMPT: &str = "prompt-Qm7dhx \"quoted\" fix\nsecond-line-of-the-prompt-Kv2p";
const OPTION: &str = "option-value-Zr91vw with blanks";
const MODEL: &str = "model-value-Tn4kye";
const KEY: &str = "api-key-Wb6%rsq/8uf+3\"jz";
const LINES: &str = "first-line-of-a-key-Hy5c\nsecond-line-of-a-key-Pd8m\nthird-line-of-a-key-Xg3n";
const ENDS: &str = "key-with-a-newline-at-its-end-Lf0t\n";
const URL: &str = "token-in-a-url-Sj7b";

/// Every secret by name.
fn all() -> BTreeMap<&'static str, &'static str> {
    [("prompt", PROMPT), ("option", OPTION), ("model", MODEL), ("url", URL)]
        .into_iter()
        .chain(credentials())
        .collect()
}

/// Those that caisson knows to be secret wherever they stand.
fn credentials() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([("key", KEY), ("lines", LINES), ("ends", ENDS)])
}

/// Every form of a secret: each of its lines and the whole, raw, escaped and encoded.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let lines = secret.lines().filter(|line| line.len() >= 8);
    lines.chain([secret, secret.trim_end()]).flat_map(forms_of_line).collect()
}

fn forms_of_line(text: &str) -> Vec<Vec<u8>> {
    let bytes = text.as_bytes();
    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let json = serde_json::to_string(text).unwrap();
    let json = json.trim_matches('"');
    let twice = serde_json::to_string(json).unwrap();
    let percent: String = bytes
        .iter()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) {
                char::from(*byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    let mut forms = vec![
        bytes.to_vec(),
        hex.clone().into_bytes(),
        hex.to_uppercase().into_bytes(),
        json.as_bytes().to_vec(),
        twice.trim_matches('"').as_bytes().to_vec(),
        percent.into_bytes(),
    ];
    // At each of the three places that it can have in a longer text; the characters at both ends hold bits of neighbours.
    for skipped in 0..3_usize {
        for engine in [&STANDARD, &URL_SAFE] {
            let whole = engine.encode([&vec![0; skipped], bytes].concat());
            let inner = whole.trim_end_matches('=');
            let from = [0, 2, 3][skipped];
            forms.push(inner.as_bytes()[from..inner.len() - 1].to_vec());
        }
    }
    forms
}

/// Places that anyone else may read.
#[derive(Default)]
struct Surfaces(Vec<(String, Vec<u8>)>);

impl Surfaces {
    fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((name.into(), bytes.into()));
    }

    fn output(&mut self, name: &str, finished: &Finished) {
        self.add(format!("{name}: stdout"), finished.stdout.clone());
        self.add(format!("{name}: stderr"), finished.stderr.clone());
    }

    /// Names and contents below a folder, but for those that `skip` names.
    fn files(&mut self, root: &Path, skip: &[&str]) {
        for path in tree(root) {
            if path.components().any(|part| skip.iter().any(|name| part.as_os_str() == *name)) {
                continue;
            }
            self.add("a file's name", path.as_os_str().as_encoded_bytes());
            if path.symlink_metadata().is_ok_and(|facts| facts.is_file()) {
                self.add(path.display().to_string(), fs::read(&path).unwrap_or_default());
            }
        }
    }

    /// Command lines, and environments but for the caller's own, of everything that caisson started and isn't the agent.
    fn processes(&mut self, account: &Account, caisson: u32) -> usize {
        let agents = |process: &process::Process| {
            process.command.contains("leaks.sh") || process.command.starts_with("sleep")
        };
        let others: Vec<_> =
            process::of(account.root()).into_iter().filter(|process| !agents(process)).collect();
        for process in &others {
            self.add(format!("command line of {}", process.pid), process.command.as_bytes());
            if process.pid != caisson {
                let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
                self.add(format!("environment of {}", process.command), environment);
            }
        }
        others.len()
    }

    /// Which of the secrets stand where.
    fn found(&self, secrets: &BTreeMap<&str, &str>) -> Vec<String> {
        let mut found = Vec::new();
        for (name, secret) in secrets {
            for form in forms(secret) {
                for (surface, bytes) in &self.0 {
                    if contains(bytes, &form) {
                        found.push(format!("{name} as {:?} in {surface}", String::from_utf8_lossy(&form)));
                    }
                }
            }
        }
        found
    }

    #[track_caller]
    fn assert_free_of(&self, secrets: &BTreeMap<&str, &str>) {
        let found = self.found(secrets);
        assert!(found.is_empty(), "{} surfaces, found: {found:#?}", self.0.len());
    }
}

/// An agent that says everything that it knows in every form, whole and in pieces, on both streams, and leaves it in files.
fn account(end: &str) -> Account {
    let account = Account::new();
    let script = format!(
        r#"prompt=$(cat)
        say() {{
          printf '%s\n' "$1"
          printf '%s' "$1" | base64; printf '%s' "$1" | base64 -w 0; echo
          printf 'x%s' "$1" | base64 -w 0; echo; printf 'xy%sz' "$1" | base64 -w 0 | tr '+/' '-_'; echo
          printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n'; echo
          printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F; echo
          # In pieces, each written by itself.
          printf '%s' "$1" | dd bs=3 status=none; echo
          printf '%s' "$1" | sed -e 's/%/%25/g' -e 's/ /%20/g' -e 's/"/%22/g' -e 's|/|%2F|g' -e 's/+/%2B/g'; echo
          printf '%s' "$1" | sed -e 's/"/\\"/g' | awk '{{printf "%s%s", sep, $0; sep = "\\n"}}' >"$TMPDIR/json"
          cat "$TMPDIR/json"; echo
          sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' "$TMPDIR/json"; echo
        }}
        everything() {{
          for secret in "$prompt" "$AGENT_KEY" "$AGENT_LINES" "$AGENT_ENDS" "$@"; do say "$secret"; done
        }}
        everything "$@"; everything "$@" >&2
        everything "$@" >said.txt; everything "$@" >"$HOME/said.txt"; everything "$@" >"$TMPDIR/said.txt"
        echo running >>{state}
        while [ ! -e {go} ]; do sleep 0.01; done
        {end}"#,
        state = account.path("state").display(),
        go = account.path("go").display(),
    );
    let spec = "modelFlag: --model
promptDelivery: {stdin: {}}
options: [{name: note, flag: --note, schema: {type: string}}]
environment:
  - {name: AGENT_KEY, secretKeyRef: {name: a, key: key}}
  - {name: AGENT_LINES, secretKeyRef: {name: a, key: lines}}
  - {name: AGENT_ENDS, secretKeyRef: {name: a, key: ends}}";
    account.agent("leaks", spec, &script);
    account
}

/// A run with every secret in its place: the task comes from standard input, the keys from the caller's environment.
fn run(account: &Account, arguments: &[&str]) -> Caisson {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let spec = format!(
        "definition: {{name: leaks}}\nprompt: {}\nmodel: {MODEL}\noptions: {{note: {}}}",
        quoted(PROMPT),
        quoted(OPTION)
    );
    account
        .caisson(["run", "-"])
        .args(arguments)
        .stdin(task("job", &spec))
        .env("AGENT_KEY", KEY)
        .env("AGENT_LINES", LINES)
        .env("AGENT_ENDS", ENDS)
        .env("CAISSON_LOG", "trace")
}

/// Runs to the end, looking at everything in the middle and afterwards.
fn observe(account: &Account, arguments: &[&str]) -> (Surfaces, Finished) {
    let mut surfaces = Surfaces::default();
    let _ = fs::remove_file(account.path("go"));
    let _ = fs::remove_file(account.path("state"));
    let running = run(account, arguments).start();
    wait::for_file(&account.path("state"), || format!("{}\n{}", running.dump(), account.dump()));
    surfaces.files(&account.state(), &["workspace", "home", "tmp"]);
    assert!(surfaces.processes(account, running.pid()) >= 2, "caisson and its runner");
    fs::write(account.path("go"), "").unwrap();
    let finished = running.finish();
    surfaces.output(&format!("{arguments:?}"), &finished);
    surfaces.files(&account.state(), &[]);
    assert!(finished.err().contains("TRACE") && finished.err().contains("DEBUG"), "logs are part of it");
    (surfaces, finished)
}

#[test]
fn an_agent_that_fails_with_everything_on_its_streams_leaves_nothing_of_it() {
    let account = account("rm -f said.txt; exit 1");
    for form in ["--output=human", "--output=json", "--output=yaml"] {
        let (surfaces, finished) = observe(&account, &["--yes", form]);
        finished.exits(1);
        surfaces.assert_free_of(&all());
    }
    account.assert_nothing_left();
}

#[test]
fn what_a_successful_or_followed_agent_says_shows_no_credential() {
    let account = account("exit 0");
    for form in ["--output=human", "--output=json", "--output=yaml"] {
        let (surfaces, finished) = observe(&account, &["--yes", "--follow", form]);
        surfaces.assert_free_of(&credentials());
        // What it says of the task is its own, and shown: the search would have seen the rest.
        assert!(!surfaces.found(&all()).is_empty());
        assert!(finished.out().contains("[redacted]") && finished.err().contains("[redacted]"));
        finished.exits(0);
    }
    account.assert_nothing_left();
}

#[test]
fn a_killed_caisson_leaves_nothing_but_the_agents_own() {
    let account = account("exit 0");
    let mut running = run(&account, &["--yes"]).start();
    wait::for_file(&account.path("state"), || account.dump());
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let mut surfaces = Surfaces::default();
    surfaces.files(&account.state(), &["workspace", "home", "tmp"]);
    let cleaned = run(&account, &["--dry-run"]).run().exits(0).tells("lost: its agent may have run");
    surfaces.output("the next command", &cleaned);
    surfaces.files(&account.state(), &[]);
    surfaces.assert_free_of(&all());
    account.assert_nothing_left();
}

#[test]
fn previews_and_refusals_show_nothing() {
    let account = account("exit 0");
    let mut surfaces = Surfaces::default();
    for (arguments, code) in [
        (&["--dry-run"][..], 0),
        (&["--dry-run", "--output=json"], 0),
        (&[], 3),
        (&["--output=yaml"], 3),
        (&["--approve=v1:0"], 3),
        (&["--yes", "--timeout=9h"], 2),
        (&["--yes", "--definition=demo"], 2),
        (&["--yes", "--workspace=/"], 2),
    ] {
        surfaces.output(&format!("{arguments:?}"), &run(&account, arguments).run().exits(code));
    }
    let missing = run(&account, &["--yes"]).without_env("AGENT_LINES").run().exits(2);
    surfaces.output("a missing secret", &missing);
    let short = run(&account, &["--yes", "--output=json"]).env("AGENT_ENDS", "short").run().exits(1);
    assert_eq!(short.result()["systemCode"], "SECRET_TOO_SHORT");
    surfaces.output("a short secret", &short);
    let unusable = run(&account, &["--yes"]).env("XDG_STATE_HOME", "/proc/none").run().exits(1);
    surfaces.output("no state directory", &unusable);
    surfaces.assert_free_of(&all());
}

#[test]
fn manifests_that_are_refused_show_no_value_of_theirs() {
    let account = account("exit 0");
    let mut surfaces = Surfaces::default();
    let secret = "planted-in-a-manifest-Jw3x";
    let good = "definition: {name: leaks}\nprompt: x\n";
    let specs: Vec<String> = [
        "definition: SECRET\nprompt: x",
        "definition: {name: 'SECRET!'}\nprompt: x",
        "definition: {name: leaks, version: '!SECRET'}\nprompt: x",
        "definition: {name: leaks, version: SECRET}\nprompt: x",
        "definition: {name: leaks, contractHash: SECRET}\nprompt: x",
        "definition: {name: leaks}\nprompt: [SECRET]",
        "definition: {name: leaks}\nprompt: \"SECRET\\0\"",
        "definition: {name: leaks}\nprompt: SECRET\npromptFrom: {configMapKeyRef: {name: SECRET!, key: SECRET}}",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain(
        [
            "model: 'SECRET !'",
            "model: [SECRET]",
            "options: {note: [SECRET]}",
            "options: {note: {a: SECRET}}",
            "options: {other: SECRET}",
            "options: SECRET",
            "workspace: {git: {repository: 'https://user:SECRET@git.example/a/b', revision: main}}",
            "workspace: {git: {repository: 'https://SECRET@git.example/a/b', revision: main}}",
            "workspace: {git: {repository: 'https://git.example/a/b?token=SECRET', revision: main}}",
            "workspace: {git: {repository: 'https://git.example/SECRET', revision: main}}",
            "workspace: {git: {repository: 'https://git.example/a', revision: '--upload-pack=touch SECRET'}}",
            "workspace: {git: {repository: 'https://git.example/a', revision: SECRET, subdirectory: ../SECRET}}",
            "workspace: {git: {repository: 'https://git.example/a', revision: SECRET, secretRef: {name: SECRET!}}}",
            "workspace: SECRET",
            "delivery: {branch: '-SECRET', secretRef: {name: '!SECRET'}}",
            "limits: {timeout: SECRET}",
            "limits: {maxOutputBytes: SECRET, processes: SECRET, resources: {cpu: SECRET, memory: SECRET}}",
            "limits: SECRET",
            "egress: {hosts: ['SECRET!']}",
            "dryRun: SECRET",
            "idempotencyKey: '!SECRET'",
            "approvalTimeout: SECRET",
            "ttlAfterFinished: SECRET",
        ]
        .map(|field| format!("{good}{field}")),
    )
    .map(|spec| spec.replace("SECRET", secret))
    .collect();
    for spec in &specs {
        let manifest = task("job", spec);
        let file = account.file("task.yaml", &manifest);
        surfaces.output(
            spec,
            &account.caisson(["run", "--yes"]).arg(&file).env("CAISSON_LOG", "trace").run().exits(2),
        );
        surfaces.output(spec, &account.caisson(["validate", "--output=json"]).arg(&file).run());
    }
    for text in [
        "prompt: \"SECRET",
        "- SECRET\n  bad: [SECRET",
        "a: *SECRET",
        "? SECRET\n: [",
        "SECRET: {SECRET: SECRET",
        "%SECRET",
    ] {
        let file = account.file("broken.yaml", text.replace("SECRET", secret));
        surfaces.output(text, &account.caisson(["run", "--yes"]).arg(&file).run().exits(2));
        surfaces.output(text, &account.caisson(["validate"]).arg(&file).run().exits(2));
    }
    for field in [
        "arguments: SECRET",
        "environment: [{name: A, value: [SECRET]}]",
        "environment: [{name: A, value: SECRET, secretKeyRef: {name: SECRET!, key: SECRET}}]",
        "output: {format: Json, text: 'SECRET ('}",
        "limits: {timeout: {default: SECRET, max: SECRET}}",
        "arguments: [\"SECRET\\0\"]",
    ] {
        let file = account.file("definition.yaml", definition("d", &field.replace("SECRET", secret)));
        let run = account.caisson(["run", "--yes", "--prompt=x", "--definition"]).arg(&file).run().exits(2);
        surfaces.output(field, &run);
        surfaces.output(field, &account.caisson(["validate"]).arg(&file).run().exits(2));
    }
    // On the command line: what clap itself would quote.
    for argument in ["--option=SECRET", "--option=note", "--option=other=SECRET", "--model=SECRET !"] {
        let argument = argument.replace("SECRET", secret);
        let caisson = account.caisson(["run", "--definition=leaks", "--prompt-file=/dev/null", &argument]);
        surfaces.output(&argument, &caisson.run().exits(2));
    }
    for (name, bytes) in
        [("nul", format!("{secret}\0").into_bytes()), ("latin1", [secret.as_bytes(), b"\xe9"].concat())]
    {
        let file = account.file(name, bytes);
        surfaces.output(
            name,
            &account
                .caisson(["run", "--yes", "--definition=leaks", "--prompt-file"])
                .arg(file)
                .run()
                .exits(2),
        );
    }
    let planted = BTreeMap::from([("planted", secret)]);
    surfaces.assert_free_of(&planted);
}

#[test]
fn what_a_panic_could_print_shows_nothing() {
    use caisson::api::{AgentCliTask, LogMode, Output};
    use caisson::controller::local::{Secrets, inline_prompt};
    use caisson::core::command::{self, Prompt};
    use caisson::core::validate::{Document, document};
    use caisson::supervisor::control::{Order, Variable};

    let manifest = serde_json::json!({
        "apiVersion": "caisson.dev/v1alpha1", "kind": "AgentCliTask", "metadata": {"name": "job"},
        "spec": {"definition": {"name": "leaks"}, "prompt": PROMPT, "model": MODEL, "options": {"note": OPTION}},
    });
    let Document::Task(task) = document(manifest).unwrap() else { panic!("a task") };
    let task: AgentCliTask = task;
    let mut surfaces = Surfaces::default();
    surfaces.add("a task", format!("{task:?} {task:#?}"));
    surfaces.add("a spec", format!("{:?}", task.spec));
    let prompt = Prompt::new(PROMPT.to_owned()).unwrap();
    let rules: caisson::api::AgentCliDefinitionSpec = serde_json::from_value(serde_json::json!({
        "version": "1", "binary": "leaks", "modelFlag": "--model",
        "options": [{"name": "note", "flag": "--note", "schema": {"type": "string"}}],
    }))
    .unwrap();
    let command = command::build(&task.spec, &rules, &prompt).unwrap();
    let variable = Variable { name: "AGENT_KEY".into(), value: KEY.into(), secret: true };
    let limits = caisson::core::limits::effective(&task.spec.limits, &rules.limits).unwrap();
    let order = Order {
        command: command.clone(),
        prompt: prompt.clone(),
        environment: vec![variable.clone()],
        output: Output::default(),
        limits,
        logs: LogMode::None,
    };
    surfaces.add("a prompt", format!("{prompt:?} {:?}", inline_prompt(Some(PROMPT.to_owned()))));
    surfaces.add("a command", format!("{command:?} {}", command.display()));
    surfaces.add("an order", format!("{order:?} {order:#?} {variable:?}"));
    let secrets =
        Secrets::from_environment([("AGENT_KEY".into(), KEY.into()), ("OTHER".into(), LINES.into())]);
    surfaces.add("the environment", format!("{secrets:?}"));
    let mut builder = caisson::redact::Redactor::builder();
    builder.secret("the key", KEY).secret("the lines", LINES).secret("short", "short");
    surfaces.add("a redactor's error", format!("{:?}", builder.build().unwrap_err()));
    surfaces.assert_free_of(&all());
}

/// Without this, a search that looks at nothing would pass as well.
#[test]
fn the_search_finds_what_does_leak() {
    let account = account("exit 0");
    let running = run(&account, &["--yes"]).start();
    wait::for_file(&account.path("state"), || account.dump());
    let mut own = Surfaces::default();
    for run in account.runs() {
        own.files(&run.join("1/workspace"), &[]);
    }
    let found = own.found(&all());
    for (name, secret) in all().into_iter().filter(|(name, _)| *name != "url") {
        for form in forms(secret) {
            let form = format!("{name} as {:?} ", String::from_utf8_lossy(&form));
            // The key has one line and no end of line, so each of its forms was written as it is.
            assert!(name != "key" || found.iter().any(|found| found.starts_with(&form)), "not found: {form}");
        }
        assert!(found.iter().any(|found| found.starts_with(name)), "{name} was not found: {found:#?}");
    }
    // The agent's own command line and environment, which the searches of others leave out.
    let agent =
        process::of(account.root()).into_iter().find(|process| process.command.contains("leaks.sh")).unwrap();
    let mut own = Surfaces::default();
    own.add("command line", agent.command);
    own.add("environment", fs::read(format!("/proc/{}/environ", agent.pid)).unwrap());
    let found = own.found(&all());
    for name in ["option", "model", "key", "lines", "ends"] {
        assert!(found.iter().any(|found| found.starts_with(name)), "{name} was not found: {found:#?}");
    }
    fs::write(account.path("go"), "").unwrap();
    running.finish().exits(0);
}

//! Nothing runs that its caller hasn't approved exactly.

use std::fs;

use crate::support::account::{definition, task, write_program};
use crate::support::terminal::{CONTROL_C, END_OF_INPUT, Terminal};
use crate::support::{Account, Caisson, Repo};

/// An agent that leaves a mark outside of everything.
fn account() -> Account {
    let account = Account::new();
    write(&account, "");
    account
}

fn write(account: &Account, more: &str) {
    let spec = format!(
        "modelFlag: --model\noptions: [{{name: level, flag: --level, schema: {{type: integer}}}}]\n{more}"
    );
    account.agent("marks", &spec, &format!("echo started >>{}", account.path("mark").display()));
}

fn starts(account: &Account) -> usize {
    fs::read_to_string(account.path("mark")).unwrap_or_default().lines().count()
}

fn run(account: &Account) -> Caisson {
    account.caisson(["run", "--definition=marks", "--prompt-file=-"])
}

#[test]
fn without_a_terminal_the_digest_and_how_to_approve_it_are_told() {
    let account = account();
    let finished = run(&account).stdin("x").run().exits(3).tells("nothing was started");
    let digest = finished.digest();
    finished.tells(&format!("--approve {digest}"));
    assert_eq!(starts(&account), 0);
    let json = run(&account).arg("--output=json").stdin("x").run().exits(3).json();
    assert_eq!(json["status"]["digest"], digest.as_str());
    let conditions = json["status"]["conditions"].as_array().unwrap();
    let approved = conditions.iter().find(|condition| condition["type"] == "Approved").unwrap();
    assert_eq!((&approved["status"], &approved["reason"]), (&"False".into(), &"WaitingForApproval".into()));
    account.assert_nothing_left();
}

#[test]
fn exactly_what_was_approved_runs() {
    let account = account();
    let digest = run(&account).stdin("x").run().exits(3).digest();
    let finished = run(&account).args(["--output=json", "--approve", &digest]).stdin("x").run().exits(0);
    assert_eq!(starts(&account), 1);
    let approval = finished.json()["status"]["approval"].clone();
    assert_eq!((&approval["required"], &approval["digest"]), (&true.into(), &digest.as_str().into()));
    let conditions = finished.json()["status"]["conditions"].clone();
    let approved =
        conditions.as_array().unwrap().iter().find(|one| one["type"] == "Approved").unwrap().clone();
    assert_eq!(approved["reason"], "SelfApproved");
}

#[test]
fn anything_else_than_what_was_approved_does_not_run() {
    let account = account();
    let approved = |arguments: &[&str]| run(&account).args(arguments).stdin("x").run().exits(3).digest();
    let digest = approved(&[]);
    let stale = |caisson: Caisson| {
        caisson.args(["--approve", &digest]).run().exits(3).tells("not what the digest names");
    };
    stale(run(&account).stdin("x "));
    stale(run(&account).stdin("x\n"));
    for other in ["--model=m", "--option=level=1", "--timeout=9m"] {
        stale(run(&account).arg(other).stdin("x"));
    }
    for more in [
        "arguments: [--more]",
        "environment: [{name: A, value: b}]",
        "limits: {timeout: {default: 9m, max: 1h}}",
    ] {
        write(&account, more);
        stale(run(&account).stdin("x"));
    }
    let manifest = definition("marks", "modelFlag: --model\n").replace("\"1\"", "\"2\"");
    fs::write(account.definitions().join("marks.yaml"), manifest).unwrap();
    stale(run(&account).stdin("x"));
    write(&account, "description: the same all the same");
    run(&account).args(["--approve", &digest]).stdin("x").run().exits(0);
    assert_eq!(starts(&account), 1);
    // What is only shown or read in another way is the same task.
    run(&account).args(["--follow", "--output=yaml", "--approve", &digest]).stdin("x").run().exits(0);
    for wrong in ["", "v1:", "v1:0000", &digest[..60], &digest.to_uppercase(), &format!("{digest} ")] {
        run(&account).args(["--approve", wrong]).stdin("x").run().exits(3);
    }
    assert_eq!(starts(&account), 2);
    account.assert_nothing_left();
}

#[test]
fn an_approval_names_the_commit() {
    let account = account();
    let repo = Repo::new(account.path("repo"));
    let run = || run(&account).arg("--workspace").arg(repo.path()).stdin("x");
    let digest = run().run().exits(3).digest();
    run().args(["--approve", &digest]).run().exits(0);
    repo.git(["commit", "--quiet", "--allow-empty", "--message=more"]);
    run().args(["--approve", &digest]).run().exits(3);
    assert_eq!(starts(&account), 1);
}

#[test]
fn a_definition_may_need_no_approval() {
    let account = Account::new();
    account.agent(
        "marks",
        "requiresApproval: false",
        &format!("echo started >>{}", account.path("mark").display()),
    );
    run(&account).stdin("x").run().exits(0);
    // A digest that is named all the same has to be the right one.
    run(&account).args(["--approve", "v1:0"]).stdin("x").run().exits(3);
    assert_eq!(starts(&account), 1);
}

#[test]
fn a_task_file_is_approved_like_anything_else() {
    let account = Account::new();
    write_program(&account.path("beside.sh"), &format!("echo started >>{}", account.path("mark").display()));
    let both = definition("beside", "") + "---\n" + &task("job", "definition: {name: beside}\nprompt: x");
    let file = account.file("task.yaml", both);
    let digest = account.caisson(["run"]).arg(&file).run().exits(3).digest();
    account.caisson(["run", "--approve", &digest]).arg(&file).run().exits(0);
    assert_eq!(starts(&account), 1);
}

#[test]
fn a_person_is_shown_what_would_run_and_asked() {
    for (answer, code, expected) in [
        (&b"y\n"[..], 0, 1),
        (b"YES\n", 0, 1),
        (b"n\n", 3, 0),
        (b"\n", 3, 0),
        (b"yes, please\n", 3, 0),
        (END_OF_INPUT, 3, 0),
    ] {
        let account = account();
        let prompt = account.file("prompt", "planted-prompt");
        let caisson = account.caisson(["run", "--definition=marks", "--prompt-file"]).arg(prompt);
        let mut terminal = Terminal::start(&caisson);
        terminal.until_shown("Run exactly this? [y/N]");
        terminal.send(answer);
        let (status, screen) = terminal.finish();
        assert_eq!(status.code(), Some(code), "{answer:?}\n{screen}");
        assert_eq!(starts(&account), expected, "{answer:?}\n{screen}");
        assert!(screen.contains("marks.sh -- [prompt, 14 bytes]"), "{screen}");
        assert!(!screen.contains("planted-prompt"), "{screen}");
        assert_eq!(code == 3, screen.contains("--approve v1:"), "{screen}");
        account.assert_nothing_left();
    }
}

#[test]
fn control_c_at_the_question_starts_nothing() {
    let account = account();
    let prompt = account.file("prompt", "x");
    let mut terminal =
        Terminal::start(&account.caisson(["run", "--definition=marks", "--prompt-file"]).arg(prompt));
    terminal.until_shown("Run exactly this? [y/N]");
    terminal.send(CONTROL_C);
    let (status, screen) = terminal.finish();
    assert!(!status.success(), "{screen}");
    assert_eq!(starts(&account), 0);
    account.assert_nothing_left();
}

#[test]
fn control_c_while_the_agent_runs_is_an_interruption() {
    let account = Account::new();
    account.agent("waits", "", &format!("echo started >{}; exec sleep 600", account.path("mark").display()));
    let mut terminal = Terminal::start(&account.run("waits", "x").args(["--follow"]));
    terminal.until_shown("the agent runs");
    crate::support::wait::for_file(&account.path("mark"), || account.dump());
    terminal.send(CONTROL_C);
    let (status, screen) = terminal.finish();
    assert_eq!(status.code(), Some(130), "{screen}");
    assert!(screen.contains("interrupted: the agent was ended"), "{screen}");
    assert!(screen.contains("\"code\": \"cancelled\""), "{screen}");
    account.assert_nothing_left();
}

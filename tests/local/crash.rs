//! Whenever and however a run is ended, nothing of it stays, and its agent was started once at most.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::account::write_program;
use crate::support::{Account, Caisson, Repo, Running, process, wait};

/// An agent that says outside that it was started, leaves processes everywhere, and waits.
fn account() -> Account {
    let account = Account::new();
    let script = format!(
        "echo started >>{}
         setsid sh -c 'sleep 601 & setsid sleep 602 & sleep 603' </dev/null >/dev/null 2>&1 &
         (trap '' TERM HUP INT; sleep 604 & sleep 605) &
         echo work >work.txt
         echo running >>{}
         sleep 606",
        account.path("starts").display(),
        account.path("state").display()
    );
    account.agent("waits", "", &script);
    account
}

fn starts(account: &Account) -> usize {
    fs::read_to_string(account.path("starts")).unwrap_or_default().lines().count()
}

/// Starts a run and waits until its agent runs.
fn running(account: &Account) -> Running {
    let running = account.run("waits", "x").start();
    wait::for_file(&account.path("state"), || format!("{}\n{}", running.dump(), account.dump()));
    running
}

/// A run that stands still while its workspace is made: git waits for a file called `go`.
fn preparing(account: &Account) -> Running {
    let repo = Repo::new(account.path("repo"));
    running_with_slow_git(account, account.run("waits", "x").arg("--workspace").arg(repo.path()))
}

fn running_with_slow_git(account: &Account, caisson: Caisson) -> Running {
    let programs = account.path("programs");
    fs::create_dir_all(&programs).unwrap();
    let path = crate::support::command::search_path();
    let script = format!(
        "case \"$GIT_DIR\" in */runs/*) echo preparing >>{}; while [ ! -e {} ]; do sleep 0.01; done ;; esac
         PATH={}; exec git \"$@\"",
        account.path("state").display(),
        account.path("go").display(),
        path.display()
    );
    write_program(&programs.join("git"), &script);
    let mut search = programs.into_os_string();
    search.push(":");
    search.push(&path);
    let running = caisson.env("PATH", search).start();
    wait::for_file(&account.path("state"), || format!("{}\n{}", running.dump(), account.dump()));
    running
}

/// A harmless command, which cleans up.
fn next_command(account: &Account) -> String {
    account.caisson(["definitions"]).run().exits(0).err()
}

#[test]
fn an_interruption_while_the_agent_runs_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let account = account();
        let running = running(&account);
        running.signal(signal);
        let finished = running.finish().exits(130).tells("interrupted: the agent was ended");
        assert_eq!(finished.result()["code"], "cancelled", "{signal}");
        // At once, without the help of another command.
        assert!(account.runs().is_empty() && process::of(account.root()).is_empty(), "{}", account.dump());
        assert_eq!(next_command(&account), "");
        assert_eq!(starts(&account), 1);
    }
}

#[test]
fn an_interruption_while_the_workspace_is_made_starts_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let account = account();
        let running = preparing(&account);
        running.signal(signal);
        let finished = running.finish().exits(130);
        assert_eq!(finished.result()["code"], "cancelled", "{signal}");
        account.assert_nothing_left();
        assert_eq!(starts(&account), 0);
    }
}

#[test]
fn more_interruptions_than_one_change_nothing() {
    let account = account();
    let running = running(&account);
    for signal in [Signal::SIGINT, Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        running.signal(signal);
    }
    running.finish().exits(130);
    account.assert_nothing_left();
}

#[test]
fn a_stubborn_agent_is_killed_after_the_grace() {
    let account = Account::new();
    let state = account.path("state");
    account.agent(
        "stubborn",
        "",
        &format!("trap '' TERM INT HUP; echo running >{}; while :; do sleep 1; done", state.display()),
    );
    let running = account.run("stubborn", "x").start();
    wait::for_file(&state, || account.dump());
    running.signal(Signal::SIGINT);
    let result = running.finish().exits(130).result();
    assert_eq!(result["terminationMethod"], "Sigkill");
    account.assert_nothing_left();
}

#[test]
fn a_caisson_that_is_killed_takes_its_agent_along() {
    let account = account();
    let mut running = running(&account);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    wait::until("the agent's tree to be gone", || account.dump(), || process::of(account.root()).is_empty());
    assert_eq!(account.runs().len(), 1, "the record stays until somebody reads it");
    let told = next_command(&account);
    assert!(told.contains("cleaned up: the run of waits (waits, "), "{told}");
    assert!(told.contains("lost: its agent may have run"), "{told}");
    account.assert_nothing_left();
    assert_eq!(next_command(&account), "", "told once");
    assert_eq!(starts(&account), 1);
}

#[test]
fn a_caisson_that_is_killed_before_the_grant_has_started_nothing() {
    let account = account();
    let mut running = preparing(&account);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let told = next_command(&account);
    assert!(told.contains("its agent was never started"), "{told}");
    // Git, which waits, is among them.
    assert!(told.contains("ended\n") && told.contains("process"), "{told}");
    account.assert_nothing_left();
    assert_eq!(starts(&account), 0);
}

/// Moments in a run of `agent` from before the journal's first write to beyond its end.
fn moments(agent: &str, script: &str, count: u32) -> impl Iterator<Item = Duration> + use<> {
    let account = Account::new();
    account.agent(agent, "", script);
    let length = wait::length(|| drop(account.run(agent, "x").run().exits(0)));
    (0..count).map(move |step| length * 5 / 4 * step / count)
}

/// Whatever the moment: one start at most, nothing left, and what the next command says is true.
#[test]
fn at_whatever_moment_caisson_is_killed_what_is_said_afterwards_is_true() {
    let mut said = [0; 3];
    for moment in moments("quick", "echo done", 30) {
        let account = Account::new();
        let script = format!("echo started >>{}; echo done", account.path("starts").display());
        account.agent("quick", "", &script);
        let mut running = account.run("quick", "x").start();
        // A moment, not a condition to wait for.
        std::thread::park_timeout(moment);
        let _ = running.child.kill();
        running.child.wait().unwrap();
        let told = next_command(&account);
        account.assert_nothing_left();
        let starts = starts(&account);
        assert!(starts <= 1, "started {starts} times");
        match (told.contains("lost: its agent may have run"), told.contains("never started"), told.is_empty())
        {
            (true, false, false) => said[0] += 1,
            (false, true, false) => {
                assert_eq!(starts, 0, "{told}");
                said[1] += 1;
            }
            // Killed before its record was there, or when all was over.
            _ => said[2] += 1,
        }
        assert!(told.is_empty() || told.starts_with("cleaned up: ") && told.lines().count() == 1, "{told}");
    }
    assert!(said[0] + said[1] > 0, "every moment was before the run or after it: {said:?}");
}

#[test]
fn at_whatever_moment_it_is_interrupted_nothing_is_left() {
    for moment in moments("quick", "echo done", 25) {
        let account = Account::new();
        account.agent(
            "quick",
            "",
            &format!("echo started >>{}; sleep 600", account.path("starts").display()),
        );
        let running = account.run("quick", "x").start();
        std::thread::park_timeout(moment);
        running.signal(Signal::SIGINT);
        let finished = running.finish();
        let code = finished.status.code();
        // Before anything exists the signal ends it like any program.
        assert!(code.is_none_or(|code| code == 130), "{}", finished.dump());
        assert!(account.runs().is_empty(), "{}", account.dump());
        account.assert_nothing_left();
        assert!(starts(&account) <= 1);
    }
}

#[test]
fn a_caisson_that_is_killed_takes_the_reading_of_output_along() {
    let account = Account::new();
    let spec = "output:\n  format: Json\n  text: \"out.filter(a, out.exists(b, out.exists(c, a + b + c < 0))).size() > 0 ? 'a' : 'b'\"";
    account.agent("endless", spec, "seq -s, 1 5000 | sed -e 's/^/[/' -e 's/$/]/'");
    let mut running = account.run("endless", "x").start();
    let reads = |process: &process::Process| process.command.contains(" evaluate");
    wait::until("the output to be read", || account.dump(), || process::of(account.root()).iter().any(reads));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    // Left alone it would end by its own limit, ten seconds of computing.
    let gone = || process::of(account.root()).is_empty();
    wait::within(Duration::from_secs(5), "the reading to be gone", || account.dump(), gone);
    assert!(next_command(&account).contains("lost: its agent may have run"));
    account.assert_nothing_left();
}

#[test]
fn a_runner_that_is_killed_is_reported_and_its_agent_is_ended() {
    let account = account();
    let running = running(&account);
    let runner = process::of(account.root())
        .into_iter()
        .find(|process| process.command.contains(" runner "))
        .unwrap_or_else(|| panic!("no runner\n{}", account.dump()));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(runner.pid.cast_signed()), Signal::SIGKILL).unwrap();
    let result = running.finish().exits(1).result();
    assert_eq!((&result["code"], &result["systemCode"]), (&"lost".into(), &"RUNNER_LOST".into()));
    assert_eq!(result["diff"]["files"], 1, "what the agent did is still told");
    account.assert_nothing_left();
    assert_eq!(starts(&account), 1);
}

#[test]
fn a_run_that_is_alive_is_left_alone() {
    let account = account();
    let go = account.path("go");
    account.agent(
        "patient",
        "",
        &format!(
            "echo running >{}; while [ ! -e {} ]; do sleep 0.01; done; echo done",
            account.path("state").display(),
            go.display()
        ),
    );
    account.agent("quick", "", "echo quick");
    let running = account.run("patient", "x").start();
    wait::for_file(&account.path("state"), || account.dump());
    assert_eq!(next_command(&account), "");
    account.run("quick", "y").run().exits(0);
    assert_eq!(account.runs().len(), 1);
    fs::write(go, "").unwrap();
    assert_eq!(running.finish().exits(0).result()["text"], "done\n");
    account.assert_nothing_left();
}

#[test]
fn many_runs_at_once_do_not_disturb_each_other() {
    let account = Account::new();
    account.agent("quick", "", "cat ../home/.x 2>/dev/null; echo \"$2\" >mine; sleep 0.05; ls; cat mine");
    let runs: Vec<_> = (0..8)
        .map(|number| {
            account
                .caisson([
                    "run",
                    "--yes",
                    "--output=json",
                    "--definition=quick",
                    "--prompt",
                    &number.to_string(),
                ])
                .start()
        })
        .collect();
    for (number, run) in runs.into_iter().enumerate() {
        let finished = run.finish().exits(0);
        assert_eq!(finished.result()["text"], format!("mine\n{number}\n"));
        assert!(!finished.err().contains("cleaned up"), "{}", finished.dump());
    }
    account.assert_nothing_left();
}

#[test]
fn what_an_agent_has_closed_is_removed_all_the_same() {
    let account = Account::new();
    account.agent(
        "closes",
        "",
        "for place in . \"$HOME\" \"$TMPDIR\"; do
           mkdir -p $place/a/b/c; echo x >$place/a/b/c/x; chmod 0 $place/a/b/c/x $place/a/b/c $place/a/b; chmod 500 $place/a
         done
         chmod 0 \"$HOME\"",
    );
    account.run("closes", "x").run().exits(0);
    account.assert_nothing_left();
}

#[test]
fn what_cannot_be_cleaned_up_is_told_and_stops_nobody() {
    let account = Account::new();
    account.agent("quick", "", "echo quick");
    let runs = account.state().join("caisson/runs");
    fs::create_dir_all(&runs).unwrap();
    fs::write(runs.join("stray"), "").unwrap();
    // A folder without a record is a run that was killed before it had one.
    fs::create_dir(runs.join("0123456789abcdef0123456789abcdef")).unwrap();
    let finished = account.run("quick", "x").run().exits(0).tells("error: can't use ");
    finished.tells("cleaned up: a run that had not begun");
    assert_eq!(account.runs(), [runs.join("stray")]);
}

#[test]
fn a_state_directory_that_cannot_be_used_is_told() {
    let account = Account::new();
    account.agent("quick", "", "echo quick");
    fs::write(account.state().join("caisson"), "a file").unwrap();
    account.run("quick", "x").run().exits(1).tells("the record of the run can't be kept");
}

#[test]
fn a_state_directory_may_have_a_long_path() {
    let account = Account::new();
    account.agent("quick", "", "echo quick");
    let state = account.path(&["a-long-name-of-a-folder"; 12].join("/"));
    account.run("quick", "x").env("XDG_STATE_HOME", state).run().exits(0);
}

#[test]
fn the_folders_of_a_run_are_its_owners_alone() {
    let account = account();
    let running = running(&account);
    for path in crate::support::account::tree(&account.runs()[0]) {
        use std::os::unix::fs::PermissionsExt;
        let facts = path.symlink_metadata().unwrap();
        // Below the agent's own folders it is the agent that chooses; nobody else gets there.
        let depth = path.strip_prefix(account.state()).unwrap().components().count();
        assert!(
            depth > 5 || facts.permissions().mode() % 0o100 == 0,
            "{}: {:o}",
            path.display(),
            facts.permissions().mode()
        );
    }
    drop(running);
}

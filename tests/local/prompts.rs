//! Every prompt reaches the agent byte for byte, or is refused before anything starts.

use std::fs;

use crate::support::{Account, Finished};

/// Agents that write what they hear to a file, one for each way of delivery.
fn account() -> Account {
    let account = Account::new();
    let heard = account.path("heard").display().to_string();
    account.agent(
        "by-argument",
        "",
        &format!("[ $# -eq 2 ] && [ \"$1\" = -- ] && printf %s \"$2\" >{heard}"),
    );
    account.agent("by-stdin", "promptDelivery: {stdin: {}}", &format!("[ $# -eq 0 ] && cat >{heard}"));
    account.agent(
        "by-file",
        "promptDelivery: {file: {flag: --message-file}}",
        &format!("[ $# -eq 1 ] && cat \"${{1#--message-file=}}\" >{heard}"),
    );
    account
}

fn heard(account: &Account) -> Vec<u8> {
    fs::read(account.path("heard")).unwrap()
}

fn run(account: &Account, agent: &str, prompt: &[u8]) -> Finished {
    let file = account.file("prompt", prompt);
    account.caisson(["run", "--yes", "--output=json", "--definition", agent, "--prompt-file"]).arg(file).run()
}

#[test]
fn whatever_a_prompt_looks_like_it_is_the_prompt() {
    let account = account();
    for prompt in [
        "- [ ] do x",
        "--version",
        "--help",
        "-",
        "--",
        "resume",
        "",
        " ",
        "\n",
        "---\ntitle: front matter\n---\nbody\n",
        "one\r\ntwo\r\n",
        "$(touch x) `touch y` ${HOME} \\n 'quoted' \"twice\" * ?",
        "tab\tbell\u{7}escape\u{1b}[31m",
        "\u{feff}caf\u{e9} \u{1f6a2} \u{202e}",
    ] {
        for agent in ["by-argument", "by-stdin", "by-file"] {
            run(&account, agent, prompt.as_bytes()).exits(0);
            assert_eq!(String::from_utf8(heard(&account)).unwrap(), prompt, "{agent}");
        }
    }
    account.assert_nothing_left();
}

#[test]
fn a_prompt_on_the_command_line_may_begin_with_dashes() {
    let account = account();
    for prompt in ["- [ ] do x", "--version", "resume", "---\na: b\n---\n", ""] {
        account.caisson(["run", "--yes", "--definition=by-argument", "--prompt", prompt]).run().exits(0);
        assert_eq!(String::from_utf8(heard(&account)).unwrap(), prompt);
    }
}

#[test]
fn a_prompt_that_no_command_line_can_carry_is_refused() {
    let account = account();
    run(&account, "by-stdin", b"a\0b").exits(2).tells(".spec.prompt: must not contain a NUL character");
    run(&account, "by-stdin", b"caf\xe9").exits(2).tells("is not UTF-8");
    run(&account, "by-stdin", b"\xed\xa0\x80").exits(2).tells("is not UTF-8");
    assert!(!account.path("heard").exists());
    account.assert_nothing_left();
}

#[test]
fn a_mebibyte_goes_through_standard_input_and_through_a_file() {
    let account = account();
    // Every length of UTF-8, so that no boundary of a buffer is one of a character.
    let prompt: String = "a\u{e9}\u{20ac}\u{1f6a2}\n"
        .chars()
        .cycle()
        .take(1 << 20)
        .scan(0, |bytes, next| {
            *bytes += next.len_utf8();
            (*bytes <= 1 << 20).then_some(next)
        })
        .collect();
    for agent in ["by-stdin", "by-file"] {
        let finished = run(&account, agent, prompt.as_bytes()).exits(0);
        assert!(heard(&account) == prompt.as_bytes(), "{agent}: not what was sent");
        assert_eq!(finished.json()["status"]["preview"]["promptBytes"], prompt.len());
    }
    run(&account, "by-stdin", &vec![b'x'; (1 << 20) + 1]).exits(2).tells(".spec.prompt: must have at most");
}

#[test]
fn an_argument_beyond_the_kernels_bound_is_refused_before_the_start() {
    let account = account();
    let prompt = "x".repeat(131_072);
    run(&account, "by-argument", &prompt.as_bytes()[1..]).exits(0);
    assert_eq!(heard(&account).len(), 131_071);
    fs::remove_file(account.path("heard")).unwrap();
    let refused = run(&account, "by-argument", prompt.as_bytes()).exits(2).tells("prompt-too-large");
    assert_eq!(refused.result()["code"], "prompt-too-large");
    assert!(!account.path("heard").exists());
    for agent in ["by-stdin", "by-file"] {
        run(&account, agent, prompt.as_bytes()).exits(0);
        assert_eq!(heard(&account).len(), 131_072, "{agent}");
    }
}

#[test]
fn an_agent_that_does_not_read_its_prompt_does_not_block() {
    let account = Account::new();
    account.agent("deaf", "promptDelivery: {stdin: {}}", "exec 0<&-; echo done");
    run(&account, "deaf", &vec![b'x'; 1 << 20]).exits(0);
}

#[test]
fn the_prompt_file_is_the_agents_alone_and_gone_afterwards() {
    let account = Account::new();
    let facts = account.path("facts");
    account.agent(
        "looks",
        "promptDelivery: {file: {flag: --file}}",
        &format!("stat -c '%a %n' \"${{1#--file=}}\" >{}", facts.display()),
    );
    run(&account, "looks", b"x").exits(0);
    let text = fs::read_to_string(facts).unwrap();
    let (mode, path) = text.trim().split_once(' ').unwrap();
    assert_eq!(mode, "600");
    assert!(!std::path::Path::new(path).exists());
}

#[test]
fn standard_input_is_closed_unless_it_carries_the_prompt() {
    let account = Account::new();
    account.agent("waits-for-input", "", "cat; echo end of input");
    let file = account.file("prompt", "x");
    let finished = account
        .caisson(["run", "--yes", "--output=json", "--definition=waits-for-input", "--prompt-file"])
        .arg(file)
        .stdin("not for the agent")
        .run()
        .exits(0);
    assert_eq!(finished.result()["text"], "end of input\n");
}

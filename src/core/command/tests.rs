//! Command lines, byte for byte, and what of them may be shown.

use serde_json::{Value, json};

use super::*;
use crate::core::fixtures::{self, DEFINITION, TASK, merge, yaml};

/// The command of the full task and definition, changed by merge patches of their specs.
fn built(task: &Value, definition: &Value, prompt: &str) -> Result<Command, CommandTooLarge> {
    let patched = |text, patch: &Value| {
        let mut value = yaml(text);
        merge(&mut value, &json!({"spec": patch}));
        value
    };
    let task = fixtures::task(patched(TASK, task));
    let definition = fixtures::definition(patched(DEFINITION, definition));
    build(&task.spec, &definition.spec, &Prompt::new(prompt.to_owned()).unwrap())
}

/// A definition whose three options take anything of their type.
fn loose(delivery: &Value) -> Value {
    json!({
        "arguments": ["-p"],
        "promptDelivery": delivery,
        "options": [
            {"name": "text", "flag": "--text", "schema": {"type": "string", "maxLength": 65536}},
            {"name": "count", "flag": "-n", "schema": {"type": "integer"}},
            {"name": "quick", "flag": "--quick", "schema": {"type": "boolean"}},
        ],
    })
}

#[test]
fn values_are_bound_to_their_flags_and_options_stand_in_order_of_their_names() {
    let argument = json!({"argument": {}});
    let table = [
        (json!({"text": "plain"}), vec!["--text=plain"]),
        (json!({"text": "two words"}), vec!["--text=two words"]),
        (json!({"text": "'\"$(x)`\\"}), vec!["--text='\"$(x)`\\"]),
        (json!({"text": "--model=other"}), vec!["--text=--model=other"]),
        (json!({"text": ""}), vec!["--text="]),
        (json!({"text": "é\n-x"}), vec!["--text=é\n-x"]),
        (json!({"count": -5}), vec!["-n=-5"]),
        (json!({"count": 0}), vec!["-n=0"]),
        (json!({"quick": true}), vec!["--quick"]),
        (json!({"quick": false}), vec![]),
        (json!({"text": "a", "quick": true, "count": 1}), vec!["-n=1", "--quick", "--text=a"]),
    ];
    for (options, expected) in table {
        // Merge patches would keep the fixture's options.
        let mut spec = fixtures::task(yaml(TASK)).spec;
        spec.options = serde_json::from_value(options).unwrap();
        let mut value = yaml(DEFINITION);
        merge(&mut value, &json!({"spec": loose(&argument)}));
        let definition = fixtures::definition(value).spec;
        let command = build(&spec, &definition, &Prompt::new("go".to_owned()).unwrap()).unwrap();
        let expected = [vec!["-p"], expected, vec!["--model=sonnet-5", "--", "go"]].concat();
        assert_eq!(command.arguments, expected);
    }
}

#[test]
fn no_model_and_no_options_leave_the_definitions_own_arguments() {
    let task = json!({"model": null, "options": null});
    assert_eq!(built(&task, &json!({}), "go").unwrap().arguments, ["-p", "--output-format=json", "--", "go"]);
}

#[test]
fn the_prompt_travels_once_by_the_declared_way_only() {
    let task = json!({"model": null, "options": null});
    for prompt in
        ["go", "", "- [ ] do x", "--version", "--", "---\na: b\n---\r\n", "resume", " é\u{1F980} ", "$(id)"]
    {
        let argument = built(&task, &loose(&json!({"argument": {}})), prompt).unwrap();
        assert_eq!(argument.arguments, ["-p", "--", prompt]);
        assert_eq!((argument.channel, argument.file_flag), (PromptChannel::Argument, None));

        let stdin = built(&task, &loose(&json!({"argument": null, "stdin": {}})), prompt).unwrap();
        assert_eq!(stdin.arguments, ["-p"]);
        assert_eq!((stdin.channel, stdin.file_flag), (PromptChannel::Stdin, None));

        let file = json!({"argument": null, "file": {"flag": "--message-file"}});
        let file = built(&task, &loose(&file), prompt).unwrap();
        assert_eq!(file.arguments, ["-p"]);
        assert_eq!((file.channel, file.file_flag.as_deref()), (PromptChannel::File, Some("--message-file")));
    }
}

#[test]
fn a_nul_is_no_prompt() {
    assert_eq!(Prompt::new("a\0b".to_owned()), Err(NulInPrompt));
}

#[test]
fn an_argument_may_just_fill_the_kernels_limit() {
    let task = json!({"model": null, "options": null});
    let longest = "x".repeat(MAX_ARGUMENT_BYTES - 1);
    let one_more = "x".repeat(MAX_ARGUMENT_BYTES);
    let wide = "é".repeat(MAX_ARGUMENT_BYTES / 2);
    assert!(built(&task, &json!({}), &longest).is_ok());
    assert_eq!(built(&task, &json!({}), &one_more), Err(CommandTooLarge));
    assert_eq!(built(&task, &json!({}), &wide), Err(CommandTooLarge), "bytes count, not characters");
    // The other ways have no such limit.
    for delivery in
        [json!({"argument": null, "stdin": {}}), json!({"argument": null, "file": {"flag": "-f"}})]
    {
        assert!(built(&task, &json!({"promptDelivery": delivery}), &one_more.repeat(8)).is_ok());
    }
}

#[test]
fn the_number_and_the_sum_of_arguments_are_bounded() {
    let bounds = |lengths: &[usize], file| {
        let arguments: Vec<String> = lengths.iter().map(|length| "x".repeat(*length)).collect();
        check_bounds("a", &arguments, file).is_ok()
    };
    assert!(bounds(&[0; MAX_ARGUMENTS - 1], None), "the program counts as one");
    assert!(!bounds(&[0; MAX_ARGUMENTS], None));
    assert!(!bounds(&[0; MAX_ARGUMENTS - 1], Some(0)), "the prompt file's argument counts");
    // Two bytes for the program, one for each NUL.
    let half = MAX_ARGUMENT_BYTES - 1;
    assert!(bounds(&[half, half - 2], None));
    assert!(!bounds(&[half, half - 1], None));
}

#[test]
fn nothing_that_a_task_states_is_shown() {
    const MARKER: &str = "zqMARKERqz";
    let task = json!({"model": MARKER, "options": {"maxTurns": null, "mode": null, "verbose": null, "text": MARKER}});
    for delivery in [
        json!({"argument": {}}),
        json!({"argument": null, "stdin": {}}),
        json!({"argument": null, "file": {"flag": "--file"}}),
    ] {
        let command = built(&task, &loose(&delivery), MARKER).unwrap();
        let shown =
            format!("{} {command:?} {:?}", command.display(), Prompt::new(MARKER.to_owned()).unwrap());
        assert!(!shown.contains(MARKER), "{shown}");
        assert!(command.display().as_str().contains("--text=[redacted] --model=[redacted]"), "{shown}");
    }
}

#[test]
fn a_display_reads_like_a_command_line() {
    let show = |delivery| {
        let definition = json!({"arguments": ["-p", "it's", ""], "promptDelivery": delivery});
        built(&json!({}), &definition, "go").unwrap().display().to_string()
    };
    insta::assert_snapshot!(
        [
            show(json!({"argument": {}})),
            show(json!({"argument": null, "stdin": {}})),
            show(json!({"argument": null, "file": {"flag": "--file"}})),
        ]
        .join("\n")
    );
}

#[test]
fn a_display_fits_its_field() {
    let arguments: Vec<String> = (0..60).map(|_| "é".repeat(1000)).collect();
    let command = built(&json!({}), &json!({"arguments": arguments}), "go").unwrap();
    assert!(command.display().len() <= MAX_DISPLAY_BYTES, "{}", command.display().len());
}

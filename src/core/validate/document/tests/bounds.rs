//! Legal and illegal values of every number, duration, size and share of CPU.

use super::problems;
use crate::core::fixtures::yaml;

const TASK: &str = "apiVersion: caisson.dev/v1alpha1\nkind: AgentCliTask\nmetadata: {name: a}\n\
                    spec: {definition: {name: demo}, prompt: x, idempotencyKey: k, ";
const DEFINITION: &str = "apiVersion: caisson.dev/v1alpha1\nkind: AgentCliDefinition\nmetadata: {name: a}\n\
                          spec: {version: '1', binary: agent, ";

/// What no number, duration, size or share of CPU may be.
const NEVER: [&str; 13] = [
    "",
    "''",
    "-1",
    "'-1'",
    "1.5",
    "'1.5'",
    "1e3",
    "'1e3'",
    "text",
    "[]",
    "{}",
    "true",
    "99999999999999999999",
];

struct Row {
    /// The fields of the spec, with `@` for the value.
    fields: &'static str,
    /// The path at which a problem is reported.
    path: &'static str,
    legal: &'static [&'static str],
    illegal: &'static [&'static str],
}

const fn row(
    fields: &'static str,
    path: &'static str,
    legal: &'static [&'static str],
    illegal: &'static [&'static str],
) -> Row {
    Row { fields, path, legal, illegal }
}

const TASKS: &[Row] = &[
    row(
        "limits: {timeout: @}",
        ".spec.limits.timeout",
        &["1s", "01s", "1m", "24h", "23h59m60s", "86400s"],
        &["0s", "0h0m", "1", "60", "24h1s", "86401s", "25h", "1d", "100ms", "1S", "'1 m'", "9999999h"],
    ),
    row(
        "limits: {maxOutputBytes: @}",
        ".spec.limits.maxOutputBytes",
        &["0", "'0'", "1", "1Ki", "8Mi", "8388608", "'8388608'", "8192Ki", "8388k"],
        &["8388609", "'8388609'", "8193Ki", "9Mi", "1Gi", "8389k", "1mi", "1MiB", "'1 Mi'", "1m"],
    ),
    row(
        "limits: {processes: @}",
        ".spec.limits.processes",
        &["1", "2", "32768"],
        &["0", "32769", "'1'", "9223372036854775807"],
    ),
    row(
        "limits: {resources: {cpu: @}}",
        ".spec.limits.resources.cpu",
        &["1m", "1", "'1'", "500m", "256", "'256'", "256000m"],
        &["0", "0m", "257", "256001m", "'257'", "1k", "1M", "1u"],
    ),
    row(
        "limits: {resources: {memory: @}}",
        ".spec.limits.resources.memory",
        &["16Mi", "16777216", "'16777216'", "4Ti", "4398046511104", "1G"],
        &["0", "1", "16777215", "15Mi", "4398046511105", "5Ti", "4097Gi", "999999Ti", "1Pi"],
    ),
    row(
        "limits: {resources: {ephemeralStorage: @}}",
        ".spec.limits.resources.ephemeralStorage",
        &["1Mi", "1048576", "4Ti"],
        &["0", "1", "1048575", "1023Ki", "4398046511105", "5Ti"],
    ),
    row(
        "workspace: {git: {repository: 'https://git.example/a', revision: main, depth: @}}",
        ".spec.workspace.git.depth",
        &["0", "1", "1000000"],
        &["1000001", "'1'"],
    ),
    row("approvalTimeout: @", ".spec.approvalTimeout", &["1s", "8760h"], &["0s", "0", "8761h", "8760h1s"]),
    row("ttlAfterFinished: @", ".spec.ttlAfterFinished", &["0s", "8760h"], &["0", "8761h", "8760h1s"]),
];

const DEFINITIONS: &[Row] = &[
    row("maxConcurrent: @", ".spec.maxConcurrent", &["1", "10000"], &["0", "10001", "'1'"]),
    row("podRetention: @", ".spec.podRetention", &["0s", "1h"], &["0", "1"]),
    row(
        "limits: {timeout: {default: @, max: 24h}}",
        ".spec.limits.timeout.default",
        &["1s", "24h"],
        &["0s", "24h1s", "0", "1"],
    ),
    row(
        "limits: {timeout: {default: 1s, max: @}}",
        ".spec.limits.timeout.max",
        &["1s", "24h"],
        &["0s", "24h1s"],
    ),
    row(
        "limits: {maxOutputBytes: {default: @, max: 8Mi}}",
        ".spec.limits.maxOutputBytes.default",
        &["0", "1", "8Mi"],
        &["8388609", "9Mi"],
    ),
    row(
        "limits: {maxOutputBytes: {default: 0, max: @}}",
        ".spec.limits.maxOutputBytes.max",
        &["0", "1", "8Mi"],
        &["8388609", "9Mi", "999999Ti", "9999999Ti"],
    ),
    row(
        "limits: {processes: {default: @, max: 32768}}",
        ".spec.limits.processes.default",
        &["1", "32768"],
        &["0", "32769"],
    ),
    row(
        "limits: {processes: {default: 1, max: @}}",
        ".spec.limits.processes.max",
        &["1", "32768"],
        &["0", "32769"],
    ),
    row(
        "limits: {resources: {cpu: {default: @, max: 256}}}",
        ".spec.limits.resources.cpu.default",
        &["1m", "256"],
        &["0", "257", "9223372036854775"],
    ),
    row(
        "limits: {resources: {cpu: {default: 1m, max: @}}}",
        ".spec.limits.resources.cpu.max",
        &["1m", "256"],
        &["0", "257", "256001m"],
    ),
    row(
        "limits: {resources: {memory: {default: @, max: 4Ti}}}",
        ".spec.limits.resources.memory.default",
        &["16Mi", "4Ti"],
        &["0", "1", "16777215", "4398046511105"],
    ),
    row(
        "limits: {resources: {memory: {default: 16Mi, max: @}}}",
        ".spec.limits.resources.memory.max",
        &["16Mi", "4Ti"],
        &["0", "16777215", "5Ti"],
    ),
    row(
        "limits: {resources: {ephemeralStorage: {default: @, max: 4Ti}}}",
        ".spec.limits.resources.ephemeralStorage.default",
        &["1Mi", "4Ti"],
        &["0", "1", "4398046511105"],
    ),
    row(
        "limits: {resources: {ephemeralStorage: {default: 1Mi, max: @}}}",
        ".spec.limits.resources.ephemeralStorage.max",
        &["1Mi", "4Ti"],
        &["0", "1", "5Ti"],
    ),
    row(
        "options: [{name: a, flag: --a, schema: {type: string, maxLength: @}}]",
        ".spec.options[0].schema.maxLength",
        &["0", "1", "65536"],
        &["65537", "'1'"],
    ),
];

/// The bounds of an option may be negative.
const SIGNED: &[Row] = &[
    row(
        "options: [{name: a, flag: --a, schema: {type: integer, minimum: @}}]",
        ".spec.options[0].schema.minimum",
        &["-1", "0", "9007199254740991", "-9007199254740991"],
        &["9007199254740992", "-9007199254740992", "1.5", "1e3", "'1'", ""],
    ),
    row(
        "options: [{name: a, flag: --a, schema: {type: integer, maximum: @}}]",
        ".spec.options[0].schema.maximum",
        &["-1", "0", "9007199254740991", "-9007199254740991"],
        &["9007199254740992", "-9007199254740992", "1.5", "1e3", "'1'", ""],
    ),
];

/// What `value` in `row` gives other than expected.
fn surprise(head: &str, row: &Row, value: &str, legal: bool) -> Option<String> {
    let found = problems(yaml(&format!("{head}{}}}\n", row.fields.replace('@', value))));
    let told = found.iter().any(|problem| problem.starts_with(&format!("{}: ", row.path)));
    (told == legal || found.is_empty() != legal).then(|| format!("{} = {value}: {found:?}", row.path))
}

#[test]
fn legal_numbers_are_taken_and_illegal_ones_refused_at_their_path() {
    let tables =
        [(TASK, TASKS, &NEVER[..]), (DEFINITION, DEFINITIONS, &NEVER[..]), (DEFINITION, SIGNED, &[])];
    let mut surprises = Vec::new();
    for (head, rows, never) in tables {
        for row in rows {
            let legal = row.legal.iter().filter_map(|value| surprise(head, row, value, true));
            let illegal = row.illegal.iter().chain(never);
            surprises.extend(legal.chain(illegal.filter_map(|value| surprise(head, row, value, false))));
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
}

#[test]
fn a_default_above_its_ceiling_is_refused() {
    for fields in [
        "limits: {timeout: {default: 2m, max: 1m}}",
        "limits: {maxOutputBytes: {default: 2, max: 1}}",
        "limits: {processes: {default: 2, max: 1}}",
        "limits: {resources: {cpu: {default: 2m, max: 1m}}}",
        "limits: {resources: {memory: {default: 32Mi, max: 16Mi}}}",
        "limits: {resources: {ephemeralStorage: {default: 2Mi, max: 1Mi}}}",
    ] {
        let found = problems(yaml(&format!("{DEFINITION}{fields}}}\n")));
        assert!(matches!(&found[..], [one] if one.contains(".default: must be from")), "{fields}: {found:?}");
    }
}

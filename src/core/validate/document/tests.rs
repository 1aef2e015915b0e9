//! Manifests as people write them: what is refused, with which path, and that nothing of the manifest is quoted.

use serde_json::{Value, json};

use super::*;
use crate::core::fixtures::{DEFINITION, TASK, leaves, yaml};

mod bounds;

fn problems(value: Value) -> Vec<String> {
    document(value).err().into_iter().flatten().map(|problem| problem.to_string()).collect()
}

#[test]
fn the_full_objects_are_sound() {
    assert!(matches!(document(yaml(TASK)), Ok(Document::Task(_))));
    assert!(matches!(document(yaml(DEFINITION)), Ok(Document::Definition(_))));
}

#[test]
fn only_our_kinds_are_read() {
    for text in [
        "{}",
        "null",
        "[]",
        "text",
        "{apiVersion: caisson.dev/v1alpha1}",
        "{apiVersion: caisson.dev/v1alpha1, kind: Pod}",
        "{apiVersion: caisson.dev/v1, kind: AgentCliTask}",
        "{apiVersion: v1, kind: AgentCliTask}",
        "{apiVersion: [caisson.dev/v1alpha1], kind: AgentCliTask}",
    ] {
        let found = problems(yaml(text));
        assert_eq!(
            found,
            [".kind: not an AgentCliTask or AgentCliDefinition of caisson.dev/v1alpha1"],
            "{text}"
        );
    }
}

/// JSON pointers of every object in `value`, but those whose fields are values by name.
fn objects(value: &Value, pointer: &str, found: &mut Vec<String>) {
    const MAPS: [&str; 4] = ["/options", "/annotations", "/matchLabels", "/nodeSelector"];
    match value {
        Value::Object(fields) => {
            if !MAPS.iter().any(|map| pointer.ends_with(map)) {
                found.push(pointer.to_owned());
            }
            for (name, value) in fields {
                objects(value, &format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                objects(value, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn an_unknown_field_is_refused_at_every_level() {
    for (text, levels) in [(TASK, 12), (DEFINITION, 30)] {
        let whole = yaml(text);
        let mut found = Vec::new();
        objects(&whole, "", &mut found);
        assert!(found.len() >= levels, "the fixture has lost fields: {}", found.len());
        for pointer in found {
            let mut value = whole.clone();
            let object = value.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            object.insert("misspelt".to_owned(), json!("value"));
            let path = dotted(&format!("{pointer}/misspelt"));
            assert_eq!(problems(value), [format!("{path}: unknown field")]);
        }
    }
}

#[test]
fn every_problem_is_reported_at_once() {
    let text = r#"
apiVersion: caisson.dev/v1alpha1
kind: AgentCliTask
metadata: {name: Not_A_Name}
spec:
  definition: {nam: demo}
  model: "-x"
  promptFrom: {configMapKeyRef: {name: a}}
  prompt: 5
  limits: {timeout: 25h, processes: 0, resources: {cpu: 1.5, memory: 1Mi}}
  egress: {hosts: ["https://x"]}
  ttlAfterFinished: 1h
"#;
    insta::assert_snapshot!(problems(yaml(text)).join("\n"));
}

#[test]
fn a_definitions_own_problems_come_with_those_of_its_schema() {
    let text = r#"
apiVersion: caisson.dev/v1alpha1
kind: AgentCliDefinition
metadata: {name: demo}
spec:
  version: "1"
  binary: agent
  image: registry.example/agent:latest
  arguments: ["--"]
  maxConcurrent: 0
  options:
    - {name: a, flag: --a, schema: {type: string, pattern: "("}}
    - {name: a, flag: --a, schema: {type: integer, enum: [x]}}
  output: {format: Json, text: "out.("}
  limits: {timeout: {default: 2h, max: 1h}}
  retird: true
"#;
    insta::assert_snapshot!(problems(yaml(text)).join("\n"));
}

#[test]
fn null_is_not_a_value() {
    for pointer in leaves(&yaml(TASK)).into_iter().filter(|pointer| pointer.starts_with("/spec")) {
        let mut value = yaml(TASK);
        *value.pointer_mut(&pointer).unwrap() = Value::Null;
        let path = dotted(&pointer);
        let found = problems(value);
        // Values of options may have any shape; what is legal is the definition's to say.
        let legal = pointer.starts_with("/spec/options/");
        assert_eq!(found.iter().any(|problem| problem.starts_with(&path)), !legal, "{pointer}: {found:?}");
    }
}

#[test]
fn no_problem_quotes_a_value() {
    const MARKER: &str = "zqMARKERqz";
    let shapes =
        [json!(MARKER), json!(format!("\n{MARKER} \u{1b}[1m")), json!([MARKER]), json!({"known": MARKER})];
    for text in [TASK, DEFINITION] {
        let whole = yaml(text);
        for pointer in leaves(&whole) {
            for shape in &shapes {
                let mut value = whole.clone();
                *value.pointer_mut(&pointer).unwrap() = shape.clone();
                let found = problems(value);
                assert!(found.iter().all(|problem| !problem.contains(MARKER)), "{pointer}: {found:?}");
            }
        }
    }
}

#[test]
fn the_name_of_an_unknown_field_cannot_forge_a_line() {
    let mut value = yaml(TASK);
    value["spec"].as_object_mut().unwrap().insert("a\n.spec: fine".to_owned(), json!(1));
    assert_eq!(problems(value), [r#".spec["a\n.spec: fine"]: unknown field"#]);
}

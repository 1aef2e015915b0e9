//! Objects and helpers that the tests of several modules share.

use serde_json::Value;

use crate::api::{AgentCliDefinition, AgentCliTask};
use crate::core::validate::{Document, document};

/// A task with every field; it fits [`DEFINITION`].
pub(crate) const TASK: &str = include_str!("../../tests/fixtures/objects/task.yaml");
/// A definition with every field.
pub(crate) const DEFINITION: &str = include_str!("../../tests/fixtures/objects/definition.yaml");

/// The JSON value of a YAML text.
pub(crate) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The task of a manifest that must be sound.
pub(crate) fn task(value: Value) -> AgentCliTask {
    match document(value) {
        Ok(Document::Task(task)) => task,
        other => panic!("not a task: {other:?}"),
    }
}

/// The definition of a manifest that must be sound.
pub(crate) fn definition(value: Value) -> AgentCliDefinition {
    match document(value) {
        Ok(Document::Definition(definition)) => definition,
        other => panic!("not a definition: {other:?}"),
    }
}

/// JSON pointers of every value without values inside: scalars, and empty lists and objects.
pub(crate) fn leaves(value: &Value) -> Vec<String> {
    fn visit(value: &Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, value) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    visit(value, &format!("{pointer}/{name}"), found);
                }
            }
            Value::Array(values) if !values.is_empty() => {
                for (index, value) in values.iter().enumerate() {
                    visit(value, &format!("{pointer}/{index}"), found);
                }
            }
            _ => found.push(pointer.to_owned()),
        }
    }
    let mut found = Vec::new();
    visit(value, "", &mut found);
    found
}

/// RFC 7396: `patch` over `value`; null removes.
pub(crate) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let fields = value.as_object_mut().unwrap();
    for (name, change) in patch {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
    }
}

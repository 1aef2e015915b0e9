//! A manifest against the resource's schema and CEL rules, as the API server would see it, but with unknown fields refused.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use kube::core::CustomResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Problem;
use crate::api::{API_VERSION, AgentCliDefinition, AgentCliTask, crd};

/// A manifest of one of our kinds.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one value at a time, at the edge")]
pub enum Document {
    /// A task.
    Task(AgentCliTask),
    /// A definition.
    Definition(AgentCliDefinition),
}

/// The manifest isn't one of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an AgentCliTask or AgentCliDefinition of {API_VERSION}")]
pub struct UnknownKind;

/// Reads a manifest, whose JSON value may have any shape.
///
/// # Errors
/// Every problem found by the schema and its CEL rules, unknown fields included, and in a definition also what no schema can say,
/// in the order of their paths. No problem quotes a value.
pub fn document(value: Value) -> Result<Document, Vec<Problem>> {
    let field = |name: &str| value.get(name).and_then(Value::as_str);
    match (field("apiVersion"), field("kind")) {
        (Some(API_VERSION), Some("AgentCliTask")) => TASK.read(value, |_| Vec::new()).map(Document::Task),
        (Some(API_VERSION), Some("AgentCliDefinition")) => DEFINITION
            .read(value, |object: &AgentCliDefinition| super::definition(&object.spec))
            .map(Document::Definition),
        _ => Err(vec![Problem::new(".kind", UnknownKind.to_string())]),
    }
}

static TASK: LazyLock<Checker> = LazyLock::new(Checker::of::<AgentCliTask>);
static DEFINITION: LazyLock<Checker> = LazyLock::new(Checker::of::<AgentCliDefinition>);

struct Checker {
    /// The rules of the resource's own schema.
    rules: kube_cel::CompiledSchema,
    /// The schema with unknown fields refused. `None` can't happen with a schema that the tests compiled.
    strict: Option<jsonschema::Validator>,
}

impl Checker {
    fn of<K: CustomResourceExt>() -> Self {
        let version = crd::of::<K>().spec.versions.into_iter().next();
        let schema = version
            .and_then(|version| version.schema?.open_api_v3_schema)
            .and_then(|schema| serde_json::to_value(schema).ok())
            .map_or(Value::Bool(false), crd::with_whole_numbers);
        let mut strict = schema.clone();
        refuse_unknown_fields(&mut strict);
        if let Some(properties) = strict.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("apiVersion".into(), json!({"type": "string"}));
            properties.insert("kind".into(), json!({"type": "string"}));
            properties.insert("metadata".into(), metadata_schema());
        }
        Self { rules: kube_cel::compile_schema(&schema), strict: jsonschema::validator_for(&strict).ok() }
    }

    fn read<T: DeserializeOwned>(
        &self,
        value: Value,
        beyond_the_schema: impl FnOnce(&T) -> Vec<Problem>,
    ) -> Result<T, Vec<Problem>> {
        let Some(strict) = &self.strict else {
            return Err(vec![Problem::new(".", "the schema can't be compiled")]);
        };
        let mut problems = Vec::new();
        fractions(&value, "", &mut problems);
        let refused = strict.iter_errors(&value).flat_map(|error| from_schema(&error));
        let refused: Vec<Problem> = refused.filter(|problem| !told(&problems, &problem.path)).collect();
        problems.extend(refused);
        problems.extend(self.broken_rules(&value, &problems));
        let object = serde_json::from_value(value);
        match &object {
            Ok(object) => problems.extend(beyond_the_schema(object)),
            // Whatever the type refuses, the schema has refused with a path; this is for what it should have.
            Err(error) if problems.is_empty() => problems.push(Problem::new(".", unreadable(error))),
            Err(_) => {}
        }
        match object {
            Ok(object) if problems.is_empty() => Ok(object),
            _ => {
                problems.sort();
                problems.dedup();
                Err(problems)
            }
        }
    }

    /// Rules that the object breaks. A rule that can't be evaluated on ill-typed fields says nothing about them that the schema
    /// hasn't said better; on a well-typed object it counts as broken.
    fn broken_rules(&self, value: &Value, known: &[Problem]) -> Vec<Problem> {
        let outcome = kube_cel::Validator::new().validate_compiled(&self.rules, value, None);
        let broken = outcome.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default();
        broken
            .into_iter()
            .filter_map(|error| {
                let path = rule_path(&error.field_path);
                match error.kind {
                    // The message is the rule's own text: ours, and the same for every object.
                    kube_cel::ErrorKind::ValidationFailure => {
                        (!told(known, &path)).then(|| Problem::new(path, error.message))
                    }
                    _ => {
                        known.is_empty().then(|| Problem::new(path, "a rule of the schema can't be checked"))
                    }
                }
            })
            .collect()
    }
}

fn told(problems: &[Problem], path: &str) -> bool {
    problems.iter().any(|problem| problem.path == path)
}

/// Every number that isn't a whole one, or doesn't fit 64 bits. No field takes such a number, but JSON Schema counts `1e3` and
/// `2.0` as integers.
fn fractions(value: &Value, path: &str, problems: &mut Vec<Problem>) {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            problems.push(Problem::new(path, "must be a whole number, written in digits"));
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                fractions(value, &join(path, &index.to_string()), problems);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                fractions(value, &join(path, name), problems);
            }
        }
        _ => {}
    }
}

/// What is left for serde to refuse has passed the schema; its messages name types and forms, and may quote a value, so only the
/// kind of error is told.
fn unreadable(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Data => "a value has the wrong type or form",
        _ => "not readable",
    }
}

fn rule_path(path: &str) -> String {
    if path.starts_with('.') { path.to_owned() } else { format!(".{path}") }
}

/// Closes every object that lists its properties, and gives int-or-string values the type that the keyword implies.
fn refuse_unknown_fields(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if object.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        object.insert("type".into(), json!(["integer", "string"]));
    }
    let open = object.contains_key("additionalProperties")
        || object.contains_key("x-kubernetes-preserve-unknown-fields");
    if !open && object.get("type") == Some(&json!("object")) {
        object.insert("additionalProperties".into(), Value::Bool(false));
        // Without this, the validator blames the object and not the field.
        object.entry("properties").or_insert_with(|| json!({}));
    }
    for keyword in ["properties", "items", "additionalProperties"] {
        match object.get_mut(keyword) {
            Some(Value::Object(children)) if keyword == "properties" => {
                children.values_mut().for_each(refuse_unknown_fields);
            }
            Some(child) => refuse_unknown_fields(child),
            None => {}
        }
    }
}

/// The part of an object's metadata that a person writes; the API server adds the rest.
fn metadata_schema() -> Value {
    let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"},
            "namespace": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"},
            "labels": strings, "annotations": strings,
            "uid": {"type": "string"}, "resourceVersion": {"type": "string"}, "generation": {"type": "integer"},
            "creationTimestamp": {"type": ["string", "null"]}, "managedFields": {"type": "array"},
            "ownerReferences": {"type": "array"}, "finalizers": {"type": "array"}, "generateName": {"type": "string"},
            "deletionTimestamp": {"type": "string"}, "deletionGracePeriodSeconds": {"type": "integer"}, "selfLink": {"type": "string"},
        },
    })
}

fn from_schema(error: &jsonschema::ValidationError<'_>) -> Vec<Problem> {
    let path = dotted(error.instance_path().as_str());
    let one = |message: String| vec![Problem::new(path.as_str(), message)];
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|name| Problem::new(join(&path, name), "unknown field")).collect()
        }
        ValidationErrorKind::Required { property } => {
            vec![Problem::new(join(&path, property.as_str().unwrap_or_default()), "is required")]
        }
        ValidationErrorKind::Enum { options } => one(format!("must be one of {options}")),
        ValidationErrorKind::Maximum { limit } => one(format!("must be at most {limit}")),
        ValidationErrorKind::Minimum { limit } => one(format!("must be at least {limit}")),
        ValidationErrorKind::MaxLength { limit } => one(format!("must have at most {limit} characters")),
        ValidationErrorKind::MinLength { limit } => one(format!("must have at least {limit} characters")),
        ValidationErrorKind::MaxItems { limit } => one(format!("must have at most {limit} entries")),
        ValidationErrorKind::MinItems { limit } => one(format!("must have at least {limit} entries")),
        ValidationErrorKind::MaxProperties { limit } => one(format!("must have at most {limit} fields")),
        ValidationErrorKind::Pattern { pattern } => one(format!("must match {pattern}")),
        ValidationErrorKind::Type { .. } => one("has the wrong type".to_owned()),
        other => one(format!("breaks the schema's {}", other.keyword())),
    }
}

/// `/spec/options/0/name` as `.spec.options[0].name`.
fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    let path = parts.fold(String::new(), |path, part| join(&path, &part));
    if path.is_empty() { ".".to_owned() } else { path }
}

fn join(path: &str, part: &str) -> String {
    let path = path.strip_suffix('.').unwrap_or(path);
    let plain =
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if plain && part.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{path}[{part}]")
    } else if plain {
        format!("{path}.{part}")
    } else {
        // The name is the author's text: quoted and escaped, it can't forge another line.
        format!("{path}[{}]", Value::String(part.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests;

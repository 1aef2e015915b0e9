//! The generated definitions: what stands in `crds/`, and whether an API server would take it.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;

mod rules;

/// The committed files are what the types say; `CAISSON_UPDATE=1` writes them anew.
#[test]
fn the_committed_files_are_generated_from_the_types() {
    #[expect(clippy::disallowed_methods, reason = "the switch that rewrites generated files")]
    let update = std::env::var("CAISSON_UPDATE").is_ok_and(|value| value == "1");
    for crd in crds() {
        let text = yaml(&crd).unwrap();
        let path = file_of(&crd);
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "{} is stale: run the tests with CAISSON_UPDATE=1", path.display());
    }
}

fn file_of(crd: &CustomResourceDefinition) -> PathBuf {
    let name = crd.metadata.name.as_deref().unwrap();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds").join(name).with_added_extension("yaml")
}

#[test]
fn the_yaml_says_the_same_as_the_types() {
    for crd in crds() {
        let text = yaml(&crd).unwrap();
        let read: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, crd);
        assert!(!text.contains(".0\n"), "a bound is written as a float");
    }
}

/// One place in a schema.
struct Node<'a> {
    path: String,
    schema: &'a serde_json::Map<String, Value>,
    /// Whether it is a field, which needs a description of its own.
    field: bool,
}

impl Node<'_> {
    fn text(&self, keyword: &str) -> &str {
        self.schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
    }

    fn has(&self, keyword: &str) -> bool {
        self.schema.contains_key(keyword)
    }

    fn is(&self, keyword: &str) -> bool {
        self.schema.get(keyword) == Some(&json!(true))
    }

    fn rules(&self) -> Vec<&str> {
        let rules = self.schema.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().map(|rule| rule["rule"].as_str().unwrap()).collect()
    }
}

/// Every place in every schema, with paths such as `AgentCliTask.spec.egress.hosts[]`.
fn walk(check: impl Fn(&Node<'_>)) {
    fn visit(path: String, field: bool, schema: &Value, check: &dyn Fn(&Node<'_>)) {
        let schema = schema.as_object().unwrap_or_else(|| panic!("{path}: not a schema object"));
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            visit(format!("{path}.{name}"), true, property, check);
        }
        if let Some(items) = schema.get("items") {
            visit(format!("{path}[]"), false, items, check);
        }
        if let Some(values) = schema.get("additionalProperties") {
            visit(format!("{path}{{}}"), false, values, check);
        }
        check(&Node { path, schema, field });
    }
    for crd in crds() {
        let schema = crd.spec.versions[0].schema.as_ref().unwrap();
        let schema = serde_json::to_value(&schema.open_api_v3_schema).unwrap();
        visit(crd.spec.names.kind, true, &schema, &check);
    }
}

#[test]
fn every_field_is_described() {
    walk(|node| {
        let described =
            node.text("description").len() >= 5 && !node.text("description").contains("Auto-generated");
        assert!(!node.field || described, "{}", node.path);
    });
}

#[test]
fn no_number_is_unsigned_or_a_fraction() {
    walk(|node| {
        assert!(!node.text("format").starts_with("uint"), "{}", node.path);
        assert!(!["float", "double"].contains(&node.text("format")), "{}", node.path);
        assert_ne!(node.text("type"), "number", "{}", node.path);
    });
}

/// Kubernetes' own types, whose bounds the API server checks where it uses them, and values of any shape.
const FOREIGN: [&str; 2] =
    ["AgentCliDefinition.spec.allowedNamespaces.", "AgentCliDefinition.spec.pod.tolerations[]."];
const UNBOUNDED: [&str; 1] = ["AgentCliDefinition.spec.pod.nodeSelector{}"];

#[test]
fn every_text_list_and_map_is_bounded() {
    walk(|node| {
        if FOREIGN.iter().any(|prefix| node.path.starts_with(prefix)) || UNBOUNDED.contains(&&*node.path) {
            return;
        }
        let bound = match node.text("type") {
            "string" if node.has("enum") || node.text("format") == "date-time" => return,
            "string" => "maxLength",
            "array" => "maxItems",
            "object" if node.has("additionalProperties") => "maxProperties",
            _ if node.is("x-kubernetes-int-or-string") => "maxLength",
            _ => return,
        };
        assert!(node.has(bound), "{} has no {bound}", node.path);
    });
}

#[test]
fn conditions_are_a_map_by_type() {
    let seen = std::cell::Cell::new(0);
    walk(|node| {
        if node.path.ends_with(".conditions") {
            seen.set(seen.get() + 1);
            assert_eq!(node.text("x-kubernetes-list-type"), "map", "{}", node.path);
            assert_eq!(node.schema["x-kubernetes-list-map-keys"], json!(["type"]), "{}", node.path);
            let required = node.schema["items"]["required"].as_array().unwrap();
            assert!(required.contains(&json!("type")), "a key of the list is required");
        }
    });
    assert_eq!(seen.get(), 2);
}

/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>
#[test]
fn schemas_are_structural() {
    walk(|node| {
        let Node { path, schema, .. } = node;
        for keyword in
            ["$ref", "definitions", "oneOf", "anyOf", "allOf", "not", "uniqueItems", "nullable", "const"]
        {
            assert!(!node.has(keyword), "{path} has {keyword}");
        }
        let free = node.is("x-kubernetes-int-or-string") || node.is("x-kubernetes-preserve-unknown-fields");
        assert!(node.has("type") != free, "{path} needs a type, or be int-or-string or of any shape");
        assert!(!(node.has("properties") && node.has("additionalProperties")), "{path}");
        if let Some(default) = schema.get("default") {
            let validator = jsonschema::validator_for(&Value::Object((*schema).clone())).unwrap();
            assert!(validator.is_valid(default), "{path}: the default is illegal");
        }
        if let Some(required) = schema.get("required").and_then(Value::as_array) {
            for name in required {
                assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{path}: {name}");
            }
        }
    });
}

#[test]
fn every_rule_compiles_sees_only_what_it_may_and_has_a_message() {
    let seen = std::cell::Cell::new(0);
    walk(|node| {
        let rules = node.rules();
        seen.set(seen.get() + rules.len());
        let schema = Value::Object(node.schema.clone());
        let compiled = kube_cel::compile_schema(&schema);
        assert!(!compiled.has_errors(), "{}: {:?}", node.path, compiled.compilation_errors());
        for rule in rules {
            let warnings = kube_cel::analyze_rule(rule, &compiled, kube_cel::ScopeContext::CrdValidation);
            assert!(warnings.is_empty(), "{}: {warnings:?}", node.path);
        }
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(rule["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", node.path);
        }
    });
    assert!(seen.get() > 25, "rules are gone: {}", seen.get());
}

/// The API server multiplies a rule's cost by how often it may run: a rule on the entries of a list needs a bounded list, and one
/// that reads text needs bounded text.
#[test]
fn rules_stand_only_below_bounded_lists() {
    fn visit(path: &str, schema: &Value, bounded: bool) {
        assert!(bounded || schema.get("x-kubernetes-validations").is_none(), "{path}");
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            visit(&format!("{path}.{name}"), property, bounded);
        }
        if let Some(items) = schema.get("items") {
            visit(&format!("{path}[]"), items, bounded && schema.get("maxItems").is_some());
        }
        if let Some(values) = schema.get("additionalProperties") {
            visit(&format!("{path}{{}}"), values, bounded && schema.get("maxProperties").is_some());
        }
    }
    for crd in crds() {
        let schema = crd.spec.versions[0].schema.as_ref().unwrap();
        visit(&crd.spec.names.kind, &serde_json::to_value(&schema.open_api_v3_schema).unwrap(), true);
    }
}

//! The CEL rules, run over the writes of `tests/fixtures/objects/rules.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{crds, walk};
use crate::core::fixtures::merge;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    bases: BTreeMap<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kind: String,
    old: Option<Value>,
    new: Value,
    breaks: Option<String>,
}

fn table() -> Table {
    serde_saphyr::from_str(include_str!("../../../../tests/fixtures/objects/rules.yaml")).unwrap()
}

fn schema(kind: &str) -> Value {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    serde_json::to_value(&crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema).unwrap()
}

#[test]
fn each_write_breaks_exactly_the_rule_that_it_says() {
    let Table { bases, cases } = table();
    for case in cases {
        let object = |patch: &Value| {
            let mut object = bases[&case.kind].clone();
            merge(&mut object, patch);
            object
        };
        let (old, new) = (case.old.as_ref().map(object), object(&case.new));
        let schema = schema(&case.kind);
        assert!(
            jsonschema::validator_for(&schema).unwrap().is_valid(&new),
            "{}: not of the schema",
            case.name
        );
        let outcome = kube_cel::Validator::new().validate(&schema, &new, old.as_ref());
        let broken = outcome.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default();
        let broken: BTreeSet<String> = broken.into_iter().map(|error| error.message).collect();
        match &case.breaks {
            None => assert!(broken.is_empty(), "{}: {broken:?}", case.name),
            Some(rule) => assert!(broken.contains(rule), "{}: {broken:?}", case.name),
        }
    }
}

#[test]
fn every_rule_is_broken_by_some_write() {
    let broken: BTreeSet<String> = table().cases.into_iter().filter_map(|case| case.breaks).collect();
    let rules = std::cell::RefCell::new(BTreeSet::new());
    walk(|node| {
        for rule in
            node.schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten()
        {
            rules.borrow_mut().insert(rule["message"].as_str().unwrap().to_owned());
        }
    });
    assert_eq!(broken, rules.into_inner());
}

//! What a digest is about, and known answers that no release may change.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::core::fixtures::{TASK, leaves, yaml};

/// A subject as JSON, which a test can change anywhere.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Owned {
    uid: String,
    namespace: String,
    name: String,
    spec: AgentCliTaskSpec,
    prompt_sha256: String,
    contract_hash: String,
    release: Release,
}

fn digest_of(value: Value) -> String {
    let owned: Owned = serde_json::from_value(value).unwrap();
    digest(&Subject {
        uid: &owned.uid,
        namespace: &owned.namespace,
        name: &owned.name,
        spec: &owned.spec,
        prompt_sha256: &owned.prompt_sha256,
        contract_hash: &owned.contract_hash,
        release: &owned.release,
    })
}

/// Computed once by another program from the description in the module. They never change: an approval names each.
#[test]
fn known_subjects_have_their_known_digests() {
    #[derive(Deserialize)]
    struct Vector {
        name: String,
        subject: Value,
        digest: String,
    }
    let vectors = include_str!("../../../tests/fixtures/vectors/digests.json");
    for vector in serde_json::from_str::<Vec<Vector>>(vectors).unwrap() {
        assert_eq!(digest_of(vector.subject), vector.digest, "{}", vector.name);
    }
}

fn full() -> Value {
    json!({
        "uid": "u", "namespace": "n", "name": "t", "spec": yaml(TASK)["spec"], "promptSha256": "p",
        "contractHash": "c", "release": {"version": "1", "image": "i", "binary": "b"},
    })
}

#[test]
fn every_leaf_counts() {
    let before = digest_of(full());
    let mut seen = std::collections::BTreeSet::from([before]);
    let leaves = leaves(&full());
    assert!(leaves.len() > 30, "the fixture has lost fields");
    for pointer in leaves {
        let mut value = full();
        let leaf = value.pointer_mut(&pointer).unwrap();
        *leaf = match leaf.clone() {
            Value::Bool(value) => json!(!value),
            Value::Number(number) => json!(number.as_i64().unwrap() + 1),
            Value::String(text) => json!(format!("1{text}")),
            other => other,
        };
        assert!(seen.insert(digest_of(value)), "{pointer}");
    }
}

#[test]
fn leaving_an_optional_field_out_counts() {
    let before = digest_of(full());
    for name in full()["spec"].as_object().unwrap().keys().filter(|name| *name != "definition") {
        let mut value = full();
        value["spec"].as_object_mut().unwrap().remove(name);
        assert_ne!(digest_of(value), before, "{name}");
    }
}

//! What counts for the contract hash, and known answers that no release may change.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::core::fixtures::{DEFINITION, leaves, yaml};

fn spec(value: Value) -> AgentCliDefinitionSpec {
    serde_json::from_value(value).unwrap()
}

fn full() -> Value {
    yaml(DEFINITION)["spec"].clone()
}

/// Computed once by another program from the description in the module. They never change: an approval rests on each.
#[test]
fn known_definitions_have_their_known_hashes() {
    #[derive(Deserialize)]
    struct Vector {
        name: String,
        spec: Value,
        hash: String,
    }
    let vectors = include_str!("../../../tests/fixtures/vectors/contracts.json");
    for vector in serde_json::from_str::<Vec<Vector>>(vectors).unwrap() {
        assert_eq!(hash(&spec(vector.spec)), vector.hash, "{}", vector.name);
    }
}

/// Leaves that don't count; everything else does.
const FREE: [&str; 17] = [
    "/description",
    "/version",
    "/image",
    "/binary",
    "/options/0/description",
    "/rateLimit",
    "/maxConcurrent",
    "/allowedNamespaces/matchLabels/team",
    "/allowedNamespaces/matchExpressions/",
    "/logs",
    "/podRetention",
    "/pod/imagePullSecrets/0",
    "/pod/nodeSelector/pool",
    "/pod/tolerations/0/",
    "/pod/priorityClassName",
    "/retired",
    "/promptDelivery/argument",
];

/// Another legal value in the same place.
fn other(pointer: &str, value: &Value) -> Value {
    match (pointer, value) {
        ("/logs", _) => json!("Redacted"),
        ("/output/format", _) => json!("JsonLines"),
        (_, Value::Bool(value)) => json!(!value),
        (_, Value::Number(number)) => json!(number.as_i64().unwrap() + 1),
        ("/options/0/schema/type" | "/options/2/schema/type", _) => json!("string"),
        ("/options/1/schema/type", _) => json!("integer"),
        (_, Value::String(text)) if pointer.starts_with("/limits") || pointer == "/podRetention" => {
            // A quantity or duration: one digit more.
            json!(format!("1{text}"))
        }
        (_, Value::String(text)) => json!(format!("{text}x")),
        (_, other) => other.clone(),
    }
}

#[test]
fn every_leaf_counts_but_those_that_are_named() {
    let before = hash(&spec(full()));
    for pointer in leaves(&full()) {
        let mut value = full();
        let leaf = value.pointer_mut(&pointer).unwrap();
        *leaf = other(&pointer, leaf);
        let free =
            FREE.iter().any(|free| pointer == *free || free.ends_with('/') && pointer.starts_with(free));
        assert_eq!(hash(&spec(value)) == before, free, "{pointer}");
    }
}

#[test]
fn leaving_a_field_out_counts_where_changing_it_does() {
    let before = hash(&spec(full()));
    for name in full().as_object().unwrap().keys() {
        let mut value = full();
        value.as_object_mut().unwrap().remove(name);
        // Defaults that are what the fixture states.
        let same = ["requiresApproval", "requiresPinnedRevision"].contains(&name.as_str());
        let free = FREE.iter().any(|free| free[1..].split('/').next() == Some(name));
        let required = ["version", "binary"].contains(&name.as_str());
        let counts = ["options", "pod", "promptDelivery"].contains(&name.as_str());
        if required {
            continue;
        }
        assert_eq!(hash(&spec(value)) == before, (same || free) && !counts, "{name}");
    }
}

proptest! {
    #[test]
    fn the_order_and_description_of_options_do_not_count(
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
        texts in prop::collection::vec(prop::option::of(".{0,40}"), 3),
    ) {
        let mut value = full();
        let options = value["options"].as_array().unwrap().clone();
        value["options"] = order.iter().zip(&texts).map(|(index, text)| {
            let mut option = options[*index].clone();
            match text {
                Some(text) => option["description"] = json!(text),
                None => { option.as_object_mut().unwrap().remove("description"); }
            }
            option
        }).collect();
        prop_assert_eq!(hash(&spec(value)), hash(&spec(full())));
    }

    #[test]
    fn scheduling_quotas_and_release_do_not_count(text in "[a-z]{1,20}", number in 1_i64..10_000, flag: bool) {
        let mut value = full();
        for name in ["description", "version", "image", "binary"] {
            value[name] = json!(text);
        }
        value["rateLimit"] = json!(format!("{number}/day"));
        value["maxConcurrent"] = json!(number);
        value["retired"] = json!(flag);
        value["pod"]["priorityClassName"] = json!(text);
        value["pod"]["nodeSelector"] = json!({ text.clone(): text });
        prop_assert_eq!(hash(&spec(value)), hash(&spec(full())));
    }
}

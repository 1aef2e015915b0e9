//! The custom resource definitions, generated from the types, and their YAML.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use super::{AgentCliDefinition, AgentCliTask};

/// Every custom resource definition, in the order in which they are installed.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![of::<AgentCliTask>(), of::<AgentCliDefinition>()]
}

/// The custom resource definition of one kind.
pub(crate) fn of<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = K::crd();
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let Some(schema) = schema else { continue };
        // What people read about the kind is what the spec's type says about it.
        let spec = schema.properties.as_ref().and_then(|properties| properties.get("spec"));
        schema.description = spec.and_then(|spec| spec.description.clone());
        let tidied = serde_json::to_value(&*schema).map(|mut value| {
            tidy(&mut value);
            value
        });
        if let Ok(tidied) = tidied.and_then(serde_json::from_value) {
            *schema = tidied;
        }
    }
    crd
}

/// The definition as YAML: keys sorted, whole numbers without a fraction, one form for one content.
///
/// # Errors
/// When the definition has no YAML form, which the tests rule out for those of [`crds`].
pub fn yaml(crd: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser::Error> {
    let value = with_whole_numbers(serde_json::to_value(crd).unwrap_or_default());
    let options = serde_saphyr::ser_options! { folded_wrap_chars: 100, indent_step: 2 };
    serde_saphyr::to_string_with_options(&value, options)
}

/// Takes out what generation leaves behind: optional fields may be absent but not null, and a description's lines are the
/// source's, not the reader's.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    object.remove("nullable");
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    subschemas(object).for_each(tidy);
}

/// The schemas directly inside one.
fn subschemas(schema: &mut serde_json::Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    schema.iter_mut().flat_map(|(keyword, value)| match (keyword.as_str(), value) {
        ("properties", Value::Object(properties)) => properties.values_mut().collect(),
        ("items" | "additionalProperties", value) => vec![value],
        _ => Vec::new(),
    })
}

/// Bounds are floats in the API's type; those of integers are shown as integers.
pub(crate) fn with_whole_numbers(value: Value) -> Value {
    match value {
        // A whole number prints without an exponent up to 1e16, above every bound here.
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().and_then(|float| float.to_string().parse::<i64>().ok());
            whole.map_or(Value::Number(number), Value::from)
        }
        Value::Array(values) => values.into_iter().map(with_whole_numbers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_whole_numbers(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;

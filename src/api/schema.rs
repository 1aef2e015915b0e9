//! Small pieces of schema that the derive can't express.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Any JSON value, kept as it is: option values, whose type the definition declares.
pub(super) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Values by name, each kept as it is.
pub(super) fn values_by_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
        "maxProperties": 64,
    })
}

/// An empty object: its presence is the whole statement.
pub(super) fn empty_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 0})
}

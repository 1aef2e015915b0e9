//! CEL over an agent's output.

use std::collections::HashMap;
use std::sync::Arc;

use cel::Context;
use cel::objects::{Key, Map, Value as CelValue};
use serde_json::Value;

/// Most characters of a decimal that a usage may have.
const MAX_DECIMAL: usize = 32;

/// The variable that programs see.
pub(super) struct Subject {
    name: &'static str,
    value: CelValue,
}

impl Subject {
    pub(super) fn out(value: &Value) -> Self {
        Self { name: "out", value: convert(value) }
    }

    pub(super) fn events(events: &[Value]) -> Self {
        let list = events.iter().map(convert).collect();
        Self { name: "events", value: CelValue::List(Arc::new(list)) }
    }
}

/// JSON as CEL: every whole number that fits is an `int`, so that `out.turns + 1` means what it says.
fn convert(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => CelValue::Int(whole),
            (None, Some(float)) => CelValue::Float(float),
            (None, None) => CelValue::Null,
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(fields) => {
            let map: HashMap<Key, CelValue> =
                fields.iter().map(|(name, value)| (Key::from(name.clone()), convert(value))).collect();
            CelValue::Map(Map { map: Arc::new(map) })
        }
    }
}

pub(super) struct Program(cel::Program);

impl Program {
    /// `None` when it isn't CEL; definitions are checked before, so that this is rare.
    pub(super) fn compile(source: &str) -> Option<Self> {
        cel::Program::compile(source).ok().map(Self)
    }

    fn run(&self, subject: &Subject) -> Option<CelValue> {
        let mut context = Context::default();
        context.add_variable_from_value(subject.name, subject.value.clone());
        self.0.execute(&context).ok()
    }

    pub(super) fn boolean(&self, subject: &Subject) -> Option<bool> {
        match self.run(subject)? {
            CelValue::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    pub(super) fn text(&self, subject: &Subject) -> Option<String> {
        match self.run(subject)? {
            CelValue::String(text) => Some(text.as_ref().clone()),
            _ => None,
        }
    }

    pub(super) fn integer(&self, subject: &Subject) -> Option<i64> {
        match self.run(subject)? {
            CelValue::Int(number) => Some(number),
            CelValue::UInt(number) => i64::try_from(number).ok(),
            _ => None,
        }
    }

    /// A number or a decimal string, as a plain decimal.
    pub(super) fn decimal(&self, subject: &Subject) -> Option<String> {
        let text = match self.run(subject)? {
            CelValue::Int(number) => number.to_string(),
            CelValue::UInt(number) => number.to_string(),
            // `Display` of a float never uses an exponent.
            CelValue::Float(number) => number.to_string(),
            CelValue::String(text) => text.as_ref().clone(),
            _ => return None,
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        (digits(whole) && digits(fraction) && text.len() <= MAX_DECIMAL).then_some(text)
    }
}

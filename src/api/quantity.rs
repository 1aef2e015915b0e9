//! Durations, byte sizes and CPU shares: one type each, no floats, one canonical text.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why a quantity's text was refused. The text itself is not part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not of the documented form.
    #[error("not of the form {form}")]
    Form {
        /// The accepted form, for people.
        form: &'static str,
    },
    /// The value doesn't fit the type.
    #[error("larger than can be represented")]
    Overflow,
}

const DURATION_FORM: &str = "1h30m, 15m or 45s";
const DURATION_PATTERN: &str = "^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$";
const SIZE_FORM: &str = "a whole number of bytes, or one with Ki, Mi, Gi, Ti, k, M, G or T";
// No text of this form overflows: what a schema accepts, every reader of the object can represent.
const SIZE_PATTERN: &str = "^([0-9]{1,15}|[0-9]{1,12}(Ki|Mi|k|M)|[0-9]{1,9}(Gi|G)|[0-9]{1,6}(Ti|T))$";
/// Largest size as a bare number of bytes: 4Ti.
const MAX_SIZE: i64 = 4 << 40;
const CPU_FORM: &str = "a whole number of CPUs, or of thousandths with m";
const CPU_PATTERN: &str = "^[0-9]{1,9}m?$";
/// Most CPUs as a bare number.
const MAX_CPUS: i64 = 256;

/// A span of whole seconds, written `1h30m`, `15m` or `45s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration {
    seconds: i64,
}

impl Duration {
    /// A span of `seconds`; negative values count as zero.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self { seconds: if seconds < 0 { 0 } else { seconds } }
    }

    /// Whole seconds, never negative.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// The same span as the standard library's type.
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.seconds.unsigned_abs())
    }
}

impl FromStr for Duration {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = ParseQuantityError::Form { form: DURATION_FORM };
        let mut rest = text;
        let mut seconds: i64 = 0;
        for (unit, factor) in [('h', 3600), ('m', 60), ('s', 1)] {
            let Some((number, tail)) = rest.split_once(unit) else { continue };
            let number = whole(number).ok_or(form)?;
            seconds = number
                .checked_mul(factor)
                .and_then(|part| seconds.checked_add(part))
                .ok_or(ParseQuantityError::Overflow)?;
            rest = tail;
        }
        if text.is_empty() || !rest.is_empty() {
            return Err(form);
        }
        Ok(Self { seconds })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if seconds > 0 || self.seconds == 0 {
            write!(f, "{seconds}s")?;
        }
        Ok(())
    }
}

/// A number of bytes as a Kubernetes quantity: `1048576`, `1Mi` or `1M`. Fractions and exponents are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize {
    bytes: i64,
}

impl ByteSize {
    /// A size of `bytes`; negative values count as zero.
    pub const fn from_bytes(bytes: i64) -> Self {
        Self { bytes: if bytes < 0 { 0 } else { bytes } }
    }

    /// A size of `count` MiB.
    pub const fn mebibytes(count: i64) -> Self {
        Self::from_bytes(count * 1024 * 1024)
    }

    /// Bytes, never negative.
    pub const fn bytes(self) -> i64 {
        self.bytes
    }

    /// Bytes as a length in memory.
    pub fn to_usize(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

const SIZE_SUFFIXES: [(&str, i64); 8] = [
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1_000),
];

impl FromStr for ByteSize {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, factor) = SIZE_SUFFIXES
            .iter()
            .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)))
            .unwrap_or((text, 1));
        let number = whole(number).ok_or(ParseQuantityError::Form { form: SIZE_FORM })?;
        let bytes = number.checked_mul(factor).ok_or(ParseQuantityError::Overflow)?;
        Ok(Self { bytes })
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = SIZE_SUFFIXES.iter().take(4);
        match binary.copied().find(|(_, factor)| self.bytes > 0 && self.bytes % factor == 0) {
            Some((suffix, factor)) => write!(f, "{}{suffix}", self.bytes / factor),
            None => write!(f, "{}", self.bytes),
        }
    }
}

/// A share of CPUs as a Kubernetes quantity: `2` or `500m`. Fractions are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cpu {
    millis: i64,
}

impl Cpu {
    /// A share of `millis` thousandths of a CPU; negative values count as zero.
    pub const fn from_millis(millis: i64) -> Self {
        Self { millis: if millis < 0 { 0 } else { millis } }
    }

    /// Thousandths of a CPU, never negative.
    pub const fn millis(self) -> i64 {
        self.millis
    }
}

impl FromStr for Cpu {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, factor) = text.strip_suffix('m').map_or((text, 1000), |number| (number, 1));
        let number = whole(number).ok_or(ParseQuantityError::Form { form: CPU_FORM })?;
        let millis = number.checked_mul(factor).ok_or(ParseQuantityError::Overflow)?;
        Ok(Self { millis })
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.millis % 1000 == 0 {
            write!(f, "{}", self.millis / 1000)
        } else {
            write!(f, "{}m", self.millis)
        }
    }
}

/// Decimal digits only: `i64::from_str` alone would take `+5` and `-5`.
fn whole(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor {
            form: DURATION_FORM,
            from_text: str::parse,
            from_integer: |_| None,
        })
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor {
            form: SIZE_FORM,
            from_text: str::parse,
            from_integer: |bytes| Some(Self { bytes }),
        })
    }
}

impl Serialize for Cpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cpu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor {
            form: CPU_FORM,
            from_text: str::parse,
            from_integer: |cpus| cpus.checked_mul(1000).map(|millis| Self { millis }),
        })
    }
}

/// Takes the text form and, where it makes sense, a bare non-negative integer.
struct TextVisitor<T> {
    form: &'static str,
    from_text: fn(&str) -> Result<T, ParseQuantityError>,
    from_integer: fn(i64) -> Option<T>,
}

impl<T> de::Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.from_text)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        let form = ParseQuantityError::Form { form: self.form };
        (value >= 0).then(|| (self.from_integer)(value)).flatten().ok_or_else(|| E::custom(form))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        i64::try_from(value)
            .map_err(|_| E::custom(ParseQuantityError::Overflow))
            .and_then(|value| self.visit_i64(value))
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": DURATION_PATTERN, "minLength": 2, "maxLength": 20})
    }
}

impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "pattern": SIZE_PATTERN, "minimum": 0, "maximum": MAX_SIZE, "maxLength": 17})
    }
}

impl JsonSchema for Cpu {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cpu".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "pattern": CPU_PATTERN, "minimum": 0, "maximum": MAX_CPUS, "maxLength": 10})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_form_and_one_canonical_text() {
        for (text, seconds, canonical) in [
            ("15m", 900, "15m"),
            ("90s", 90, "1m30s"),
            ("1h30m", 5400, "1h30m"),
            ("0s", 0, "0s"),
            ("24h", 86400, "24h"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.seconds(), seconds, "{text}");
            assert_eq!(duration.to_string(), canonical);
            assert_eq!(canonical.parse::<Duration>().unwrap(), duration);
        }
        for text in [
            "",
            "15",
            "m",
            "-5m",
            "+5m",
            "1.5h",
            "1e3s",
            "5m1h",
            "15 m",
            "15M",
            "1h2",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_take_integers_and_suffixes_but_no_fractions() {
        for (text, bytes, canonical) in [
            ("0", 0, "0"),
            ("1024", 1024, "1Ki"),
            ("1Mi", 1 << 20, "1Mi"),
            ("1500", 1500, "1500"),
            ("2G", 2_000_000_000, "1953125Ki"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, canonical));
        }
        for text in ["", "-1", "+1", "1.5Gi", "1e3", "1 Mi", "Mi", "1mi", "1Pi", "9999999Ti", "0x10"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text:?}");
        }
        assert_eq!(serde_json::from_str::<ByteSize>("1048576").unwrap(), ByteSize::mebibytes(1));
        for json in ["-1", "1.5", "true", "null", "[]", "1e3", "18446744073709551615"] {
            assert!(serde_json::from_str::<ByteSize>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn cpus_are_whole_or_thousandths() {
        for (text, millis, canonical) in [("1", 1000, "1"), ("500m", 500, "500m"), ("2000m", 2000, "2")] {
            let cpu: Cpu = text.parse().unwrap();
            assert_eq!((cpu.millis(), cpu.to_string().as_str()), (millis, canonical));
        }
        for text in ["", "0.5", "m", "-1", "1e3", "1M"] {
            assert!(text.parse::<Cpu>().is_err(), "{text:?}");
        }
        assert_eq!(serde_json::from_str::<Cpu>("2").unwrap(), Cpu::from_millis(2000));
    }
}

//! Fields of dumped values.

use serde_json::Value;
use windlass_core::Timestamp;

/// A field that is present and not null, under the first of these names that there is.
pub(super) fn field<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| value.get(name)).filter(|value| !value.is_null())
}

pub(super) fn text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    field(value, names).and_then(Value::as_str)
}

/// An id, written as a text or as a number.
pub(super) fn id(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

pub(super) fn whole(value: &Value, names: &[&str]) -> Option<i64> {
    let found = field(value, names)?;
    found.as_i64().or_else(|| found.as_str()?.parse().ok())
}

/// A whole number that is not negative.
pub(super) fn count(value: &Value, names: &[&str]) -> u64 {
    whole(value, names).map_or(0, |number| u64::try_from(number).unwrap_or(0))
}

/// A moment as Postgres writes it in JSON: `2026-11-17T15:59:10.5+00:00`.
pub(super) fn moment(value: &Value, names: &[&str]) -> Result<Option<Timestamp>, String> {
    let Some(found) = field(value, names) else { return Ok(None) };
    let read = found.as_str().and_then(Timestamp::parse);
    read.map(Some).ok_or_else(|| format!("`{}` is not a time: {found}", names[0]))
}

/// A moment in seconds since 1970.
pub(super) fn seconds(seconds: f64) -> Timestamp {
    Timestamp::from_millis((seconds * 1000.0).round() as i64)
}

//! An example of a schema: the one it gives, or one put together from the examples of its fields.

use serde_json::{Map, Value, json};

/// Deeper parts are left out.
const MAX_DEPTH: usize = 6;

pub(super) fn example(document: &Value, schema: &Value) -> Value {
    build(document, schema, 0)
}

fn build(document: &Value, schema: &Value, depth: usize) -> Value {
    if let Some(given) = schema.get("example").or_else(|| schema.pointer("/examples/0")) {
        return given.clone();
    }
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return document
            .pointer(reference.trim_start_matches('#'))
            .map_or(Value::Null, |of| build(document, of, depth + 1));
    }
    if let Some(value) = schema.pointer("/enum/0") {
        return value.clone();
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let objects = parts.iter().map(|part| build(document, part, depth + 1));
        return Value::Object(objects.filter_map(|part| part.as_object().cloned()).flatten().collect());
    }
    if let Some(forms) = ["oneOf", "anyOf"].into_iter().find_map(|name| schema.get(name)?.as_array()) {
        // A field that may be null is shown as null: most of them are.
        let null = forms.iter().any(|form| form.get("type") == Some(&json!("null")));
        return if null {
            Value::Null
        } else {
            forms.first().map_or(Value::Null, |form| build(document, form, depth + 1))
        };
    }
    of_type(document, schema, depth)
}

fn of_type(document: &Value, schema: &Value, depth: usize) -> Value {
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(_)) => return Value::Null,
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => "object",
    };
    match kind {
        "array" => schema.get("items").map_or_else(|| json!([]), |items| json!([build(document, items, depth + 1)])),
        "object" => Value::Object(fields(document, schema, depth)),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        "boolean" => json!(false),
        "string" if schema.get("format") == Some(&json!("date-time")) => json!("2026-01-01T12:00:00Z"),
        "string" => json!("…"),
        _ => Value::Null,
    }
}

fn fields(document: &Value, schema: &Value, depth: usize) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, property)| (name.clone(), build(document, property, depth + 1))).collect()
}

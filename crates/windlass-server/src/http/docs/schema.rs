//! One schema of the API reference: its fields with their types and descriptions.

use super::Part;
use super::example::example;
use super::text::{escape, prose};
use serde_json::Value;
use std::fmt::Write as _;

const PLACE: &str = "#/components/schemas/";

/// All schemas by name.
pub(super) fn parts(document: &Value) -> Vec<Part> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten();
    schemas.map(|(name, schema)| part(document, name, schema)).collect()
}

fn part(document: &Value, name: &str, schema: &Value) -> Part {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut html = format!("<summary><code>{}</code></summary><p>{}</p>", escape(name), prose(description));
    let mut rows = String::new();
    fields(&mut rows, document, schema);
    if rows.is_empty() {
        let _ = write!(html, "<p>{}</p>", type_of(schema));
    } else {
        let _ = write!(html, "<table>{rows}</table>");
    }
    let text = serde_json::to_string_pretty(&example(document, schema)).unwrap_or_default();
    let _ = write!(html, "<h4>Example</h4><pre>{}</pre>", escape(&text));
    Part { group: "Schemas".to_owned(), anchor: anchor(name), name: escape(name), html }
}

fn anchor(name: &str) -> String {
    format!("schema-{}", escape(name))
}

fn fields(rows: &mut String, document: &Value, schema: &Value) {
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        if part.get("$ref").is_some() {
            let _ = write!(rows, "<tr><td colspan=\"3\">All fields of {}, and:</td></tr>", type_of(part));
        }
        fields(rows, document, part);
    }
    let needed: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mark = if needed.contains(&name.as_str()) { "<br><small>always</small>" } else { "" };
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ = write!(
            rows,
            "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{}</td></tr>",
            escape(name),
            type_of(property),
            prose(&words(document, description, property)),
        );
    }
}

/// A description with the bounds of the schema.
pub(super) fn words(document: &Value, description: &str, schema: &Value) -> String {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|r| document.pointer(r.trim_start_matches('#')));
    let mut text = description.to_owned();
    if let Some(Value::String(of)) = target.and_then(|target| target.get("description"))
        && !of.is_empty()
        && target.is_some_and(|target| target.get("properties").is_none())
    {
        text = format!("{text} {of}");
    }
    let bounds = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("maxLength", "characters at most"),
        ("maxItems", "items at most"),
    ];
    for (name, word) in bounds {
        if let Some(bound) = schema.get(name) {
            let _ = write!(text, " ({word} {bound})");
        }
    }
    text
}

/// The type of a schema in words, with links to other schemas.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(PLACE)) {
        return format!("<a href=\"#{}\">{}</a>", anchor(name), escape(name));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(|value| escape(value.as_str().unwrap_or("null"))).collect();
        return values.join(" | ");
    }
    if let Some(forms) = ["oneOf", "anyOf", "allOf"].into_iter().find_map(|name| schema.get(name)?.as_array()) {
        return forms.iter().map(type_of).collect::<Vec<_>>().join(" | ");
    }
    let one = |kind: &str| match kind {
        "array" => format!("list of {}", schema.get("items").map_or_else(|| "anything".into(), type_of)),
        _ => escape(kind),
    };
    match schema.get("type") {
        Some(Value::String(kind)) => one(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(one).collect::<Vec<_>>().join(" | "),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => "any JSON".to_owned(),
    }
}

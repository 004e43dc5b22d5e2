//! Describes what has no description of its own. A field or parameter of the same name means the same everywhere, so
//! each is described once, in `fields.json` and `parameters.json`; `Schema.field` or `operationId.parameter`
//! describes one that differs.

use super::complete::{operations, read, schemas};
use serde_json::{Map, Value, json};

const FIELDS: &str = include_str!("fields.json");
const PARAMETERS: &str = include_str!("parameters.json");

pub(super) fn describe(document: &mut Value) {
    describe_fields(document);
    describe_parameters(document);
    describe_responses(document);
}

fn describe_fields(document: &mut Value) {
    let words = read(FIELDS);
    for (name, schema) in schemas(document).into_iter().flatten() {
        describe_object(name, schema, &words);
        for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
            describe_object(name, part, &words);
        }
    }
}

fn describe_object(name: &str, schema: &mut Value, words: &Map<String, Value>) {
    for (field, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(property) = property.as_object_mut() else { continue };
        let known = words.get(&format!("{name}.{field}")).or_else(|| words.get(field)).and_then(Value::as_object);
        lift_description(property);
        let is_text = is(property, "string");
        for (word, value) in known.into_iter().flatten() {
            let applies = match word.as_str() {
                "description" => true,
                "format" | "enum" => is_text,
                "items" => is(property, "array"),
                "additionalProperties" => is(property, "object"),
                _ => !property.contains_key("$ref") && !property.contains_key("oneOf"),
            };
            if applies && (word == "items" || !property.contains_key(word)) {
                property.insert(word.clone(), value.clone());
            }
        }
        // An enumeration of a field that may be absent lists null too.
        if is(property, "null")
            && is_text
            && let Some(Value::Array(values)) = property.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
}

/// The description of a field that may be null is given with one of its forms; readers look for it on the field.
fn lift_description(property: &mut Map<String, Value>) {
    let form = property.get_mut("oneOf").and_then(|forms| forms.get_mut(0)).and_then(Value::as_object_mut);
    if let Some(description) = form.and_then(|form| form.remove("description")) {
        property.entry("description").or_insert(description);
    }
}

fn is(property: &Map<String, Value>, kind: &str) -> bool {
    match property.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|k| k == kind),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

fn describe_parameters(document: &mut Value) {
    let words = read(PARAMETERS);
    for (_, _, operation) in operations(document) {
        let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(parameter) = parameter.as_object_mut() else { continue };
            let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
            let Some(known) = words.get(&format!("{id}.{name}")).or_else(|| words.get(name)) else { continue };
            parameter.entry("description").or_insert_with(|| known["description"].clone());
            parameter.insert("schema".into(), known["schema"].clone());
            refuse_empty(parameter);
        }
    }
}

/// What every free text of a query has in common: an empty one is refused, and so is NUL, which cannot be stored.
fn refuse_empty(parameter: &mut Map<String, Value>) {
    let is_query = parameter.get("in").is_some_and(|place| place == "query");
    let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut).filter(|_| is_query) else { return };
    let is_free = is(schema, "string") && !schema.contains_key("enum") && !schema.contains_key("pattern");
    if is_free {
        schema.insert("minLength".into(), json!(1));
        schema.insert("pattern".into(), json!("^[^\\u0000]+$"));
    }
}

/// A success is described by what it contains.
fn describe_responses(document: &mut Value) {
    let described: Map<String, Value> = schemas(document)
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("description")?.clone())))
        .collect();
    for (_, _, operation) in operations(document) {
        for (status, response) in operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten() {
            let is_described = response["description"].as_str().is_some_and(|text| !text.is_empty());
            if is_described || response.get("$ref").is_some() {
                continue;
            }
            let schema = response.pointer("/content/application~1json/schema/$ref").and_then(Value::as_str);
            let name = schema.and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
            let fallback = if status == "204" { "Done; the answer is empty." } else { "Done." };
            response["description"] = described.get(name).cloned().unwrap_or_else(|| json!(fallback));
        }
    }
}

//! Adds what every operation shares: written schemas, common errors, and strict request bodies.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const SCHEMAS: &str = include_str!("schemas.json");
const RESPONSES: &str = include_str!("responses.json");
/// Operations without a token.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];
const SCHEMA_REF: &str = "#/components/schemas/";

pub(super) fn complete(document: &mut Value) {
    add_schemas(document);
    add_family_fields(document);
    add_responses(document);
    close_request_bodies(document);
    correct(document);
}

/// Corrects what the derived schemas get wrong: an unsigned number of 32 bits does not fit `int32`, and a value may fit
/// several forms of an untagged enumeration (an empty list is a list of anything).
fn correct(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_unsigned = fields.get("minimum").and_then(Value::as_u64).is_some();
            if is_unsigned && fields.get("format").is_some_and(|format| format == "int32") {
                fields.insert("format".into(), "int64".into());
            }
            let lists = |forms: &Value| forms.to_string().contains("/Listing_");
            if fields.get("oneOf").is_some_and(lists)
                && let Some(forms) = fields.remove("oneOf")
            {
                fields.insert("anyOf".into(), forms);
            }
            fields.values_mut().for_each(correct);
        }
        Value::Array(items) => items.iter_mut().for_each(correct),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One of the files of this folder.
pub(super) fn read(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("the files of this folder are JSON objects")
}

/// Every operation with its path and method.
pub(super) fn operations(document: &mut Value) -> impl Iterator<Item = (&str, &str, &mut Map<String, Value>)> {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object_mut().into_iter().flatten();
        methods.filter_map(|(method, operation)| Some((path.as_str(), method.as_str(), operation.as_object_mut()?)))
    })
}

pub(super) fn schemas(document: &mut Value) -> Option<&mut Map<String, Value>> {
    document.pointer_mut("/components/schemas")?.as_object_mut()
}

fn add_schemas(document: &mut Value) {
    let Some(schemas) = schemas(document) else { return };
    schemas.extend(read(SCHEMAS));
}

/// A job may have other systems' names of a policy's fields next to its own fields.
fn add_family_fields(document: &mut Value) {
    let Some(Value::Object(properties)) = document.pointer_mut("/components/schemas/NewJob/properties") else { return };
    for name in windlass_core::policy::FAMILY_FIELDS {
        let schema = match *name {
            "retryStrategy" => {
                json!({"type": ["string", "null"], "enum": ["exponential", "linear", "fixed", "fibonacci", null]})
            }
            "jitterEnabled" | "useExponentialBackoff" => json!({"type": ["boolean", "null"]}),
            "jitterFactor" => json!({"type": ["number", "null"], "minimum": 0, "maximum": 1}),
            _ => json!({"type": ["integer", "null"], "minimum": 0}),
        };
        let described = format!("Another system's name for a field of `retry`: `{name}`.");
        properties.insert((*name).to_owned(), with(schema, "description", described.into()));
    }
    let recurring =
        json!({"type": ["boolean", "null"], "description": "Another system's field; true needs a `schedule`."});
    properties.insert("isRecurring".into(), recurring);
    let schedule =
        json!({"type": ["string", "null"], "description": "A cron line. The body then creates a schedule, not a job."});
    properties.insert("schedule".into(), schedule);
}

fn with(mut schema: Value, name: &str, value: Value) -> Value {
    schema[name] = value;
    schema
}

/// Every operation may answer the errors that are checked before its handler runs. Errors are problems.
fn add_responses(document: &mut Value) {
    let errors = read(RESPONSES);
    let mut components = Map::new();
    for (status, error) in &errors {
        let name = error["name"].as_str().unwrap_or(status).to_owned();
        let problem = json!({"application/problem+json": {"schema": {"$ref": format!("{SCHEMA_REF}Problem")}}});
        components.insert(name, json!({"description": error["description"], "content": problem}));
    }
    for (path, _, operation) in operations(document) {
        let has_body = operation.contains_key("requestBody");
        if OPEN.contains(&path) {
            operation.insert("security".into(), json!([]));
        }
        let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { continue };
        for (status, error) in &errors {
            let applies = match error["when"].as_str() {
                Some("token") => !OPEN.contains(&path),
                Some("path") => path.contains('{'),
                Some("body") => has_body,
                Some("always") => true,
                _ => responses.contains_key(status),
            };
            let is_described =
                responses.get(status).is_some_and(|r| r["description"].as_str().is_some_and(|d| !d.is_empty()));
            if is_described {
                as_problem(&mut responses[status]);
            } else if applies || responses.contains_key(status) {
                let name = error["name"].as_str().unwrap_or(status);
                responses.insert(status.clone(), json!({"$ref": format!("#/components/responses/{name}")}));
            }
        }
    }
    document["components"]["responses"] = Value::Object(components);
}

fn as_problem(response: &mut Value) {
    if let Some(content) = response.get_mut("content").and_then(Value::as_object_mut)
        && let Some(body) = content.remove("application/json")
    {
        content.insert("application/problem+json".into(), body);
    }
}

/// Bodies with unknown fields are refused, and the document says so.
fn close_request_bodies(document: &mut Value) {
    let mut open: Vec<String> = Vec::new();
    for (_, _, operation) in operations(document) {
        references(operation.get("requestBody").unwrap_or(&Value::Null), &mut open);
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(schema) = schemas(document).and_then(|schemas| schemas.get_mut(&name)) else { continue };
        references(schema, &mut open);
        if let Some(object) = schema.as_object_mut()
            && object.contains_key("properties")
        {
            object.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(SCHEMA_REF));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

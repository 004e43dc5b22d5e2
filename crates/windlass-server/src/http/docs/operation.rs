//! One operation of the API reference: parameters, body and responses, with examples.

use super::Part;
use super::example::example;
use super::schema::{type_of, words};
use super::text::{escape, prose};
use serde_json::Value;
use std::fmt::Write as _;

/// All operations by tag, in the order of the tags.
pub(super) fn parts(document: &Value) -> Vec<Part> {
    let tags: Vec<&str> = list(document, "tags").filter_map(|tag| tag.get("name")?.as_str()).collect();
    let mut parts = Vec::new();
    for tag in tags {
        for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                if operation.pointer("/tags/0").and_then(Value::as_str) == Some(tag) {
                    parts.push(part(document, tag, method, path, operation));
                }
            }
        }
    }
    parts
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn part(document: &Value, tag: &str, method: &str, path: &str, operation: &Value) -> Part {
    let word = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, method) = (word("operationId"), method.to_uppercase());
    let mut html = format!(
        "<summary><b class=\"{}\">{method}</b> <code>{}</code> {}</summary><p>{}</p><p class=\"quiet\">Operation \
         <code>{}</code></p>",
        method.to_lowercase(),
        escape(path),
        prose(word("summary")),
        prose(word("description")),
        escape(id),
    );
    parameters(&mut html, document, operation);
    if let Some(body) = operation.pointer("/requestBody/content/application~1json/schema") {
        let _ = write!(html, "<h4>Body: {}</h4>{}", type_of(body), shown(document, body));
    }
    html.push_str("<h4>Responses</h4><table>");
    for (status, response) in operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
        html.push_str(&response_row(document, status, response));
    }
    html.push_str("</table>");
    if let Some(body) = success(operation) {
        let _ = write!(html, "<h4>Example answer: {}</h4>{}", type_of(body), shown(document, body));
    }
    let name = format!("<b class=\"{}\">{method}</b> {}", method.to_lowercase(), escape(short(path)));
    Part { group: tag.to_owned(), anchor: escape(id), name, html }
}

fn short(path: &str) -> &str {
    path.strip_prefix("/api/v1").unwrap_or(path)
}

fn parameters(html: &mut String, document: &Value, operation: &Value) {
    let mut rows = String::new();
    for parameter in list(operation, "parameters") {
        let word = |name: &str| parameter.get(name).and_then(Value::as_str).unwrap_or_default();
        let schema = parameter.get("schema").unwrap_or(&Value::Null);
        let _ = write!(
            rows,
            "<tr><td><code>{}</code><br><small>{}</small></td><td>{}</td><td>{}</td></tr>",
            escape(word("name")),
            escape(word("in")),
            type_of(schema),
            prose(&words(document, word("description"), schema)),
        );
    }
    if !rows.is_empty() {
        let _ = write!(html, "<h4>Parameters</h4><table>{rows}</table>");
    }
}

fn response_row(document: &Value, status: &str, response: &Value) -> String {
    let named = response.get("$ref").and_then(Value::as_str).and_then(|r| document.pointer(r.trim_start_matches('#')));
    let response = named.unwrap_or(response);
    let description = response.get("description").and_then(Value::as_str).unwrap_or_default();
    let schema = response.get("content").and_then(Value::as_object).and_then(|content| content.values().next());
    let kind = schema.and_then(|content| content.get("schema")).map(type_of).unwrap_or_default();
    format!("<tr><td><b>{}</b></td><td>{kind}</td><td>{}</td></tr>", escape(status), prose(description))
}

/// The body of a success.
fn success(operation: &Value) -> Option<&Value> {
    let responses = operation.get("responses")?.as_object()?;
    responses.iter().find(|(status, _)| status.starts_with('2'))?.1.pointer("/content/application~1json/schema")
}

fn shown(document: &Value, schema: &Value) -> String {
    let text = serde_json::to_string_pretty(&example(document, schema)).unwrap_or_default();
    format!("<pre>{}</pre>", escape(&text))
}

//! Pages that need no scripts: the API reference, rendered from the OpenAPI document, and a plain status page.

use super::app::App;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1f24;background:#fff}\
    code,pre{font:14px ui-monospace,monospace}pre{background:#f4f5f7;padding:.75rem;overflow:auto;border-radius:6px}\
    details{border:1px solid #d8dce2;border-radius:6px;margin:.5rem 0;padding:.5rem .75rem}summary{cursor:pointer}\
    summary b{display:inline-block;min-width:4.5rem}h2{margin-top:2rem}table{border-collapse:collapse}\
    td,th{border-bottom:1px solid #e4e7eb;padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top}\
    @media(prefers-color-scheme:dark){body{background:#14171a;color:#e6e8ea}pre{background:#1d2125}details,td,th{border-color:#333a41}a{color:#7ab7ff}}";

/// The OpenAPI document of the routes as text, and the page rendered from it.
#[derive(Debug, Clone)]
pub(crate) struct Reference(Arc<Texts>);

#[derive(Debug)]
struct Texts {
    json: Bytes,
    page: OnceLock<Bytes>,
}

impl Reference {
    pub(crate) fn new(json: String) -> Self {
        Self(Arc::new(Texts { json: json.into(), page: OnceLock::new() }))
    }

    pub(crate) fn json(&self) -> Response {
        ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")], self.0.json.clone()).into_response()
    }

    pub(crate) fn page(&self) -> Response {
        let render = || Bytes::from(render(&serde_json::from_slice(&self.0.json).unwrap_or_default()));
        Html(self.0.page.get_or_init(render).clone()).into_response()
    }
}

/// A plain status page.
pub(crate) async fn status(State(app): State<App>) -> Html<String> {
    let store = match app.windlass().health().await {
        Ok(health) => format!("{} is ready", health.engine),
        Err(_) => "the store cannot be used now".to_owned(),
    };
    let body = format!(
        "<h1>Windlass</h1><p>Version {}. {}.</p><ul><li><a href=\"/docs\">API reference</a> \
         (<a href=\"/openapi.json\">OpenAPI 3.1</a>)</li><li><a href=\"/readyz\">Readiness</a></li>\
         <li><a href=\"/metrics\">Metrics</a></li></ul>",
        env!("CARGO_PKG_VERSION"),
        escape(&store)
    );
    Html(page("Windlass", &body))
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{}</title><style>{STYLE}</style><body>{body}</body></html>",
        escape(title)
    )
}

fn render(document: &Value) -> String {
    let mut body = String::from("<h1>Windlass API</h1><p><a href=\"/openapi.json\">OpenAPI document</a></p>");
    let mut tag = "";
    let mut operations = operations(document);
    operations.sort_by_key(|(tag, ..)| tag.to_owned());
    for (of, method, path, operation) in operations {
        if of != tag {
            tag = of;
            let _ = write!(body, "<h2>{}</h2>", escape(tag));
        }
        render_operation(&mut body, document, method, path, operation);
    }
    page("Windlass API", &body)
}

fn operations(document: &Value) -> Vec<(&str, &str, &str, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let tag = operation.pointer("/tags/0").and_then(Value::as_str).unwrap_or_default();
            found.push((tag, method.as_str(), path.as_str(), operation));
        }
    }
    found
}

fn render_operation(body: &mut String, document: &Value, method: &str, path: &str, operation: &Value) {
    let text = |name: &str| escape(operation.get(name).and_then(Value::as_str).unwrap_or_default());
    let _ = write!(
        body,
        "<details><summary><b>{}</b> <code>{}</code> {}</summary><p>{}</p>",
        escape(&method.to_uppercase()),
        escape(path),
        prose(&text("summary")),
        prose(&text("description"))
    );
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let rows = parameters.into_iter().flatten().map(|parameter| {
        let of = |name: &str| escape(parameter.get(name).and_then(Value::as_str).unwrap_or_default());
        format!("<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>", of("name"), of("in"), of("description"))
    });
    let rows: String = rows.collect();
    if !rows.is_empty() {
        let _ = write!(body, "<table><tr><th>Parameter</th><th>In</th><th></th></tr>{rows}</table>");
    }
    if let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") {
        let _ = write!(body, "<h4>Body</h4>{}", render_schema(document, schema));
    }
    for (status, response) in operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
        let description = response.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ = write!(body, "<h4>{} {}</h4>", escape(status), escape(description));
        if let Some(schema) = response.pointer("/content/application~1json/schema") {
            body.push_str(&render_schema(document, schema));
        }
    }
    body.push_str("</details>");
}

fn render_schema(document: &Value, schema: &Value) -> String {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/components/schemas/"));
    let shown = name.and_then(|name| document.pointer(&format!("/components/schemas/{name}"))).unwrap_or(schema);
    let text = serde_json::to_string_pretty(shown).unwrap_or_default();
    format!("<p>{}</p><pre>{}</pre>", escape(name.unwrap_or_default()), escape(&text))
}

/// Escaped text, with parts between backticks as code.
fn prose(escaped: &str) -> String {
    let mut html = String::new();
    for (index, part) in escaped.split('`').enumerate() {
        match index % 2 {
            0 => html.push_str(part),
            _ => {
                let _ = write!(html, "<code>{part}</code>");
            }
        }
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

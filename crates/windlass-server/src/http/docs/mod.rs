//! GET /docs: the API reference, rendered from the OpenAPI document. It needs no script: the search is a form, and the
//! server answers the parts that match.

mod example;
mod operation;
mod schema;
mod text;

use super::input::query::Query;
use axum::body::Bytes;
use axum::response::{Html, IntoResponse, Response};
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use text::escape;

const STYLE: &str = include_str!("style.css");
/// Like every page, but its search form may be sent to this server.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// The most characters of a search that are used.
const MAX_SEARCH: usize = 100;

/// The OpenAPI document as text, and the parts of the page rendered from it.
#[derive(Debug, Clone)]
pub(crate) struct Reference(Arc<Texts>);

#[derive(Debug)]
struct Texts {
    document: Value,
    json: Bytes,
    parts: OnceLock<Vec<Part>>,
    /// The page without a search. Its readers share the bytes.
    page: OnceLock<Bytes>,
}

/// One operation or schema of the page.
#[derive(Debug)]
pub(super) struct Part {
    /// The heading it belongs under.
    pub(super) group: String,
    /// The element's id, for links.
    pub(super) anchor: String,
    /// Its name in the list of contents, as HTML.
    pub(super) name: String,
    pub(super) html: String,
}

impl Reference {
    pub(crate) fn new(document: Value) -> Self {
        let json = Bytes::from(document.to_string());
        Self(Arc::new(Texts { document, json, parts: OnceLock::new(), page: OnceLock::new() }))
    }

    pub(crate) fn json(&self) -> Response {
        ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")], self.0.json.clone()).into_response()
    }

    pub(crate) fn page(&self, query: &Query) -> Response {
        let search: String = query.text("q").unwrap_or_default().chars().take(MAX_SEARCH).collect();
        let parts = self.0.parts.get_or_init(|| parts(&self.0.document));
        let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
        let found = || parts.iter().filter(|part| part.has(&words)).collect::<Vec<&Part>>();
        let page = match search.is_empty() {
            true => self.0.page.get_or_init(|| page("", &found()).into()).clone(),
            false => page(&search, &found()).into(),
        };
        ([(CONTENT_SECURITY_POLICY, POLICY)], Html(page)).into_response()
    }
}

impl Part {
    fn has(&self, words: &[String]) -> bool {
        let text = if words.is_empty() { String::new() } else { text::plain(&self.html).to_lowercase() };
        words.iter().all(|word| text.contains(word.as_str()))
    }
}

fn parts(document: &Value) -> Vec<Part> {
    let mut parts = operation::parts(document);
    parts.extend(schema::parts(document));
    parts
}

fn page(search: &str, parts: &[&Part]) -> String {
    let (mut contents, mut body, mut group) = (String::new(), String::new(), "");
    for part in parts {
        if part.group != group {
            group = &part.group;
            let _ = write!(contents, "<h3>{}</h3>", escape(group));
            let _ = write!(body, "<h2>{}</h2>", escape(group));
        }
        let _ = write!(contents, "<a href=\"#{}\">{}</a>", part.anchor, part.name);
        let open = if search.is_empty() { "" } else { " open" };
        let _ = write!(body, "<details id=\"{}\"{open}>{}</details>", part.anchor, part.html);
    }
    let found = match (search.is_empty(), parts.len()) {
        (true, _) => String::new(),
        (false, 0) => "<p>Nothing matches. <a href=\"?\">Show everything</a></p>".to_owned(),
        (false, count) => format!("<p>{count} found. <a href=\"?\">Show everything</a></p>"),
    };
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Windlass API</title><style>{STYLE}</style><body><nav aria-label=\"Contents\">{contents}</nav><main>\
         <h1>Windlass API</h1><p>Version {}. <a href=\"openapi.json\">OpenAPI 3.1 document</a>. Errors are problem details; \
         tokens are sent as <code>Authorization: Bearer wl_…</code>.</p>\
         <form role=\"search\"><input type=\"search\" name=\"q\" value=\"{}\" maxlength=\"{MAX_SEARCH}\" \
         placeholder=\"Search paths, fields and descriptions\" aria-label=\"Search\"><button>Search</button></form>\
         {found}{body}</main></body></html>",
        env!("CARGO_PKG_VERSION"),
        escape(search),
    )
}

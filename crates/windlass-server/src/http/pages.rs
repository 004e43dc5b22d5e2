//! The plain status page.

use super::app::App;
use axum::extract::State;
use axum::response::Html;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1f24;background:#fff}\
    code,pre{font:14px ui-monospace,monospace}pre{background:#f4f5f7;padding:.75rem;overflow:auto;border-radius:6px}\
    details{border:1px solid #d8dce2;border-radius:6px;margin:.5rem 0;padding:.5rem .75rem}summary{cursor:pointer}\
    summary b{display:inline-block;min-width:4.5rem}h2{margin-top:2rem}table{border-collapse:collapse}\
    td,th{border-bottom:1px solid #e4e7eb;padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top}\
    @media(prefers-color-scheme:dark){body{background:#14171a;color:#e6e8ea}pre{background:#1d2125}details,td,th{border-color:#333a41}a{color:#7ab7ff}}";

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

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

//! The stylesheet, the script and the icon: embedded, and cached by browsers until their content changes.

use crate::http::App;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/app.js");
const ICON: &str = include_str!("assets/icon.svg");
/// The names contain a hash of the content, so a copy never becomes stale.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A hash of all assets, part of their addresses.
pub(super) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).chain_update(ICON).finalize();
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

pub(super) fn router() -> Router<App> {
    let version = &*VERSION;
    Router::new()
        .route(&format!("/assets/{version}/style.css"), get(async || asset("text/css; charset=utf-8", STYLE)))
        .route(&format!("/assets/{version}/app.js"), get(async || asset("text/javascript; charset=utf-8", SCRIPT)))
        .route(&format!("/assets/{version}/icon.svg"), get(async || asset("image/svg+xml", ICON)))
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, FOR_EVER)], text).into_response()
}

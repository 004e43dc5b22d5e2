//! The layers around every route: add request ids, render problems, catch panics, refuse requests from other sites.

use crate::http::app::App;
use crate::http::connection::guard;
use crate::http::output::problem::{Kind, Problem};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use std::any::Any;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest request id that is accepted from a caller.
const MAX_REQUEST_ID: usize = 128;
/// The content security policy: nothing from other sites, no scripts, only inline styles.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn around(router: Router<App>, app: App) -> Router {
    let base = app.base_path().to_owned();
    let router = router
        .fallback(async |request: Request| {
            Problem::new(Kind::NotFound, format!("there is no {}; see /docs", shown(request.uri().path())))
        })
        .method_not_allowed_fallback(async || Problem::new(Kind::MethodNotAllowed, "see /docs for what is allowed"))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .layer(from_fn_with_state(app.clone(), finish))
        .with_state(app);
    within(router, base)
}

/// The routes under a base path, too. A proxy may pass it on or remove it.
fn within(router: Router, base: String) -> Router {
    if base.is_empty() {
        return router;
    }
    let strip = move |mut request: Request| {
        let rest = request.uri().path_and_query().and_then(|path| path.as_str().strip_prefix(&base));
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let path = rest.map(|rest| if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") });
        if let Some(path) = path.and_then(|path| path.parse().ok()) {
            *request.uri_mut() = path;
        }
        request
    };
    Router::new().fallback_service(tower::ServiceBuilder::new().map_request(strip).service(router))
}

/// Gives the request an id, renders problems, and adds headers to the answer.
async fn finish(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = request_id(&app, &request);
    let path = shown(request.uri().path());
    let method = request.method().clone();
    let began = app.windlass().clock().monotonic();
    let around = tracing::info_span!("request", request_id = %id);
    let mut response = next.run(request).instrument(around).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let allow = response.headers_mut().remove(ALLOW);
        response = problem.with_allow(allow).render(&path, &id);
    } else if (response.status().is_client_error() || response.status() == StatusCode::INTERNAL_SERVER_ERROR)
        && !is_page(&response)
    {
        // An error that a library answered without a problem.
        let kind = match response.status() {
            StatusCode::NOT_FOUND => Kind::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Kind::MethodNotAllowed,
            StatusCode::INTERNAL_SERVER_ERROR => Kind::Internal,
            _ => Kind::InvalidQuery,
        };
        response = Problem::new(kind, "the request cannot be understood").render(&path, &id);
    }
    let elapsed_ms = (app.windlass().clock().monotonic() - began).get();
    let status = response.status().as_u16();
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        // Counted, not logged one by one.
        app.windlass().note_refused();
    }
    if response.status().is_server_error() && response.status() != StatusCode::SERVICE_UNAVAILABLE {
        tracing::warn!(request_id = %id, %method, path, status, elapsed_ms, "request answered with {status}");
    } else {
        tracing::debug!(request_id = %id, %method, path, status, elapsed_ms, "request answered with {status}");
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    // The dashboard and the reference set their own.
    headers.entry("referrer-policy").or_insert(HeaderValue::from_static("no-referrer"));
    // Answers contain payloads, which must not stay in caches. Assets set their own.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    response
}

fn is_page(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

fn request_id(app: &App, request: &Request) -> String {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_plain = |id: &&str| {
        !id.is_empty()
            && id.len() <= MAX_REQUEST_ID
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    given.filter(is_plain).map_or_else(|| format!("{:016x}", app.random().number()), str::to_owned)
}

fn shown(path: &str) -> String {
    path.chars().take(200).collect()
}

fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(Kind::Internal, "an internal error; see the server's log").into_response()
}

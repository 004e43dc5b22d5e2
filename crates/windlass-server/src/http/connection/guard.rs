//! Protects a server without tokens from pages of other sites that reach this machine through a browser. Only requests
//! that were sent to a name of this machine, by its own pages or by no page, are served.

use crate::http::app::App;
use crate::http::output::problem::{Kind, Problem};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::Method;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use std::net::IpAddr;

/// It says only that the process is alive, to everyone.
const LIVENESS: &str = "/healthz";

pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    // Proxies and servers differ in which of two they believe.
    if request.headers().get_all(HOST).iter().count() > 1 {
        return Problem::new(Kind::UntrustedOrigin, "the request names two hosts").into_response();
    }
    // Probes call a pod by its address, and a process whose store hangs must not be restarted for it.
    let is_liveness = request.uri().path() == LIVENESS;
    if !is_liveness
        && app.is_open().await
        && let Err(problem) = check(&app, &request)
    {
        return problem.into_response();
    }
    next.run(request).await
}

fn check(app: &App, request: &Request) -> Result<(), Problem> {
    let host = host(request);
    if let Some(host) = &host
        && !is_own(app, host)
    {
        let detail = format!("`{host}` is not a name of this server; without tokens it answers only to localhost");
        return Err(Problem::new(Kind::UntrustedOrigin, detail));
    }
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if is_safe || is_same_site(request.headers(), host.as_deref()) {
        return Ok(());
    }
    Err(Problem::new(Kind::UntrustedOrigin, "a page of another site may not change anything here"))
}

fn host(request: &Request) -> Option<String> {
    let header = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let named = header.or_else(|| request.uri().authority().map(hyper::http::uri::Authority::as_str));
    named.map(str::to_ascii_lowercase)
}

/// The name or address. What is neither, such as `[::1].example`, stays whole and is nobody's name.
fn without_port(host: &str) -> &str {
    let Some((address, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return host.rsplit_once(':').map_or(host, |(name, _)| name);
    };
    let is_port = |text: &str| text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    if rest.is_empty() || is_port(rest) { address } else { host }
}

fn is_own(app: &App, host: &str) -> bool {
    let name = without_port(host).trim_end_matches('.');
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name == "localhost" || name.ends_with(".localhost") || app.allowed_hosts().iter().any(|h| h == name)
}

/// Whether a form was sent by one of the server's own pages. A proxy may change the host, so the browser's own word
/// counts where it has one; pages cannot set it.
pub(crate) fn is_from_own_page(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-site") {
        Some(site) => matches!(site.as_bytes(), b"same-origin" | b"none"),
        None => is_same_site(headers, headers.get(HOST).and_then(|host| host.to_str().ok())),
    }
}

fn is_same_site(headers: &HeaderMap, host: Option<&str>) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
    let authority = origin.split_once("://").map(|(_, rest)| rest);
    authority.is_some() && authority == host
}

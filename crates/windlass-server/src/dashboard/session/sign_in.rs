//! Sign in with a token, and sign out.

use super::{Cookie, LASTS, Visitor, hash};
use crate::dashboard::error::PageError;
use crate::dashboard::form::{Form, Posted};
use crate::dashboard::frame::Frame;
use crate::http::connection::guard;
use crate::http::{App, ProblemKind, Query, Scope};
use crate::token;
use askama::Template;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use hyper::StatusCode;
use hyper::header::{HeaderMap, SET_COOKIE};
use hyper::http::uri::PathAndQuery;
use windlass::client::Session;
use windlass_core::Millis;

#[derive(Template)]
#[template(path = "session/sign_in.html")]
struct Page {
    frame: Frame,
    next: String,
    fault: Option<&'static str>,
}

/// The sign-in page that continues at `from`.
pub(super) fn address(app: &App, from: Option<&PathAndQuery>) -> String {
    let from = from.map_or("/", PathAndQuery::as_str);
    let next: String = url::form_urlencoded::byte_serialize(from.as_bytes()).collect();
    format!("{}/sign-in?next={next}", app.base_path())
}

pub(crate) async fn page(State(app): State<App>, query: Query, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let next = own_path(query.text("next"));
    if Visitor::from_request_parts(&mut parts, &app).await.is_ok() {
        return Redirect::to(&format!("{}{next}", app.base_path())).into_response();
    }
    show(&app, next, None, StatusCode::OK)
}

pub(crate) async fn sign_in(State(app): State<App>, request: Request) -> Result<Response, PageError> {
    if !guard::is_from_own_page(request.headers()) {
        return Err(PageError::new(ProblemKind::UntrustedOrigin, "sign in on this server's own page"));
    }
    let headers = request.headers().clone();
    let form = Form::from_request(request, &app).await?;
    let next = own_path(form.text("next"));
    let refused = |fault| Ok(show(&app, next.clone(), Some(fault), StatusCode::UNAUTHORIZED));
    let Some((id, secret)) = form.text("token").and_then(token::split) else {
        return refused("This is not a token. A token looks like wl_7347d1e71ddc_…, all on one line.");
    };
    let tokens = app.newest_tokens().await?;
    let Some(caller) = tokens.check(id, secret, app.now()) else {
        return refused("This token is not known, has expired, or was revoked.");
    };
    if !caller.may(Scope::Read) {
        return refused("This token may not read. The dashboard needs a token with the scope read or admin.");
    }
    let secret = token::hex(&app.random().bytes::<32>());
    let now = app.now();
    let session = Session { hash: hash(&secret), token: id.to_owned(), created_at: now, expires_at: now + LASTS };
    app.windlass().sessions().add(&session).await?;
    app.windlass().audit().by(&caller.by).record("sign in", 1, "dashboard").await?;
    let to = Redirect::to(&format!("{}{next}", app.base_path()));
    Ok(([(SET_COOKIE, Cookie::set(&app, &headers, &secret, LASTS))], to).into_response())
}

pub(crate) async fn sign_out(State(app): State<App>, headers: HeaderMap, _: Posted) -> Result<Response, PageError> {
    if let Some(secret) = Cookie::read(&headers) {
        app.windlass().sessions().remove(&hash(&secret)).await?;
        // The copy in this process must not accept it any more.
        app.newest_tokens().await?;
    }
    let to = Redirect::to(&format!("{}/sign-in", app.base_path()));
    Ok(([(SET_COOKIE, Cookie::set(&app, &headers, "", Millis::ZERO))], to).into_response())
}

fn show(app: &App, next: String, fault: Option<&'static str>, status: StatusCode) -> Response {
    let page = Page { frame: Frame::without_places(app, "Sign in"), next, fault };
    (status, Html(page.render().unwrap_or_default())).into_response()
}

/// A path of this server, without its base path; anything else could lead to another site.
fn own_path(next: Option<&str>) -> String {
    let is_own = |path: &&str| path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\n', '\r']);
    next.filter(is_own).unwrap_or("/").to_owned()
}

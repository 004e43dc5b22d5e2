//! The dashboard: pages for operators, rendered on the server. One folder per page: its handler, its view model and its
//! template. Everything is read and done through the client; scripts only make pages live and add keys.

mod alerts;
mod assets;
mod audit;
mod dead;
mod error;
mod form;
mod frame;
mod job;
mod jobs;
pub(crate) mod live;
mod operations;
mod overview;
mod plot;
mod policies;
mod queues;
mod schedules;
mod search;
mod session;
mod show;
mod workers;

pub(crate) use live::Live;
pub(crate) use operations::Operations;

use crate::http::App;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use hyper::header::HeaderValue;

/// Nothing from other sites, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// All routes of the dashboard.
pub(crate) fn router(app: &App) -> Router<App> {
    pages()
        .route("/live", get(live::stream))
        .route("/sign-in", get(session::sign_in::page).post(session::sign_in::sign_in))
        .route("/sign-out", post(session::sign_in::sign_out))
        .merge(assets::router())
        .layer(from_fn_with_state(app.clone(), finish))
}

/// Renders errors and adds the headers of pages.
async fn finish(State(app): State<App>, request: Request, next: Next) -> Response {
    protect(error::rendered(&app, next.run(request).await))
}

/// The pages that can be watched live, and their actions.
fn pages() -> Router<App> {
    Router::new()
        .route("/", get(overview::page))
        .route("/search", get(search::go))
        .route("/operations/{id}", get(operations::page::page))
        .route("/operations/{id}/undo", post(operations::page::undo))
        .merge(queues::router())
        .merge(jobs::router())
        .merge(job::router())
        .merge(dead::router())
        .merge(schedules::router())
        .merge(policies::router())
        .route("/workers", get(workers::page))
        .merge(alerts::router())
        .route("/audit", get(audit::page))
}

fn protect(mut response: Response) -> Response {
    let headers = response.headers_mut();
    if headers.contains_key("cache-control") {
        return response;
    }
    headers.insert("content-security-policy", HeaderValue::from_static(POLICY));
    // `no-referrer` would hide the origin of the dashboard's own forms, by which they are recognised.
    headers.insert("referrer-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

//! Jobs: enqueue one or many; show, change, cancel and replay them.

mod batch;
mod enqueue;
mod history;
mod list;
mod one;
mod traced;
mod why;

use super::app::App;
use super::auth::{Caller, Scope};
use super::output::problem::{Fault, Problem};
use super::output::view::JobView;
use axum::Json;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use enqueue::{MinimalJob, StoredJob};
use hyper::http::request::Parts;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::Job;
use windlass_core::JobId;

pub(crate) use list::filter;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list, enqueue::enqueue))
        .routes(routes!(batch::batch))
        .routes(routes!(one::get, one::amend, one::cancel))
        .routes(routes!(one::retry))
        .routes(routes!(history::history))
        .routes(routes!(why::why))
}

/// The `{id}` of a path. A text that is not a number cannot be an id, so the answer is 404.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id(pub(crate) JobId);

impl FromRequestParts<App> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, app).await;
        let text = path.map_or_else(|_| String::new(), |axum::extract::Path(text)| text);
        let id = text.parse().ok().filter(|id| *id > 0).map(JobId);
        id.map(Id).ok_or_else(|| Problem::not_found("job or schedule", text.chars().take(60).collect::<String>()))
    }
}

/// The answer to a change of a job. A caller who may not read jobs learns what became of it and nothing else.
fn answer(caller: &Caller, job: &Job) -> Response {
    let answer = if caller.may(Scope::Read) {
        StoredJob::Whole(Box::new(JobView::from(job)))
    } else {
        StoredJob::Minimal(MinimalJob::from(job))
    };
    Json(answer).into_response()
}

/// An item of a batch that was not stored, and why.
pub(crate) fn first_detail(detail: &str, faults: &[Fault]) -> String {
    faults.first().map_or_else(|| detail.to_owned(), |f| format!("{}: {}", f.pointer, f.detail))
}

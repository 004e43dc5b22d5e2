//! GET /jobs/{id}/why: why a job is where it is, in two sentences.

use super::Id;
use crate::http::app::App;
use crate::http::auth::{May, Read};
use crate::http::output::problem::{Problem, ProblemBody};
use crate::http::output::view::moment;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Why a job is where it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Why)]
pub(crate) struct WhyView {
    id: i64,
    state: &'static str,
    /// What it waits for, as in the job; null if nothing holds it back.
    waiting_for: Option<&'static str>,
    /// Until when it waits, if that is known.
    until: Option<String>,
    /// Two sentences: what is the case, and what follows from it.
    sentences: [String; 2],
}

/// Say why a job is where it is.
///
/// What it waits for and until when, who runs it, or why it gave up.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/why", operation_id = "whyJob", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = WhyView), (status = 404, body = ProblemBody)))]
pub(crate) async fn why(State(app): State<App>, caller: May<Read>, id: Id) -> Result<Json<WhyView>, Problem> {
    let why = app.windlass().jobs().within(&caller.tenants()).why(id.0).await?;
    let why = why.ok_or_else(|| Problem::not_found("job", id.0))?;
    let waiting = why.waiting.as_ref();
    Ok(Json(WhyView {
        id: id.0.0,
        state: why.state.as_str(),
        waiting_for: waiting.map(|waiting| waiting.waiting_for.as_str()),
        until: moment(waiting.and_then(|waiting| waiting.until)),
        sentences: why.sentences,
    }))
}

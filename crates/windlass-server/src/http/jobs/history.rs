//! GET /jobs/{id}/history: every attempt of a job, or of all runs of a schedule.

use super::Id;
use crate::http::app::App;
use crate::http::auth::{May, Read};
use crate::http::input::query::{MAX_LIMIT, Query};
use crate::http::output::page::Listing;
use crate::http::output::problem::{Problem, ProblemBody};
use crate::http::output::view::AttemptView;
use axum::Json;
use axum::extract::State;
use windlass_core::{Attempt, JobId};

/// The default number of attempts shown.
const DEFAULT_ATTEMPTS: u32 = 10;

/// The latest attempts, oldest first.
///
/// For a schedule's id: the attempts of all its runs.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/history", operation_id = "getJobHistory", tag = "jobs",
    params(("id" = i64, Path, description = "The id of a job or a schedule"), ("limit" = Option<u32>, Query),
        ("trace" = Option<bool>, Query, description = "Show the stack traces of errors")),
    responses((status = 200, body = Listing<AttemptView>), (status = 404, body = ProblemBody)))]
pub(crate) async fn history(
    State(app): State<App>,
    caller: May<Read>,
    id: Id,
    query: Query,
) -> Result<Json<Listing<AttemptView>>, Problem> {
    query.only(&["limit", "trace"])?;
    let with_trace = query.flag("trace")?;
    let view = |attempt: &Attempt, of: Option<JobId>| {
        let view = AttemptView::new(attempt, of);
        if with_trace { view.traced(attempt) } else { view }
    };
    let limit = query.limit(DEFAULT_ATTEMPTS, MAX_LIMIT)?;
    let scope = caller.tenants();
    let (jobs, schedules) = (app.windlass().jobs().within(&scope), app.windlass().schedules().within(&scope));
    let attempts = jobs.latest_attempts(id.0, limit).await?;
    if !attempts.is_empty() {
        return Ok(Json(Listing::whole(attempts.iter().map(|a| view(a, None)).collect())));
    }
    // A one-shot schedule is removed after its run; the run stays.
    let runs = schedules.history(id.0, limit).await?;
    let is_known = !runs.is_empty() || jobs.get(id.0).await?.is_some() || schedules.get(id.0).await?.is_some();
    if !is_known {
        return Err(Problem::not_found("job or schedule", id.0));
    }
    Ok(Json(Listing::whole(runs.iter().map(|(job, a)| view(a, Some(*job))).collect())))
}

//! Actions on a schedule: pause, resume, trigger, preview.

use super::read::read_cadence_only;
use super::view::ScheduleView;
use super::{PreviewBody, schedules, shown};
use crate::http::app::App;
use crate::http::auth::{Manage, May, Read};
use crate::http::input::body::Body;
use crate::http::input::fields::{Faults, Fields};
use crate::http::input::query::Query;
use crate::http::jobs::Id;
use crate::http::output::problem::{Problem, ProblemBody};
use crate::http::output::view::JobView;
use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use windlass_core::Timestamp;
use windlass_core::schedule::MAX_FIRINGS;

/// The default number of firings shown.
const DEFAULT_FIRINGS: usize = 10;

/// The next firings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FiringTimes)]
pub(crate) struct Firings {
    firings: Vec<String>,
}

/// Pause a schedule.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/pause", operation_id = "pauseSchedule", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody)))]
pub(crate) async fn pause(State(app): State<App>, caller: May<Manage>, id: Id) -> Result<Json<ScheduleView>, Problem> {
    let paused = schedules(&app, &caller).pause(id.0).await?;
    shown(&app, paused.ok_or_else(|| Problem::not_found("schedule", id.0))?).await.map(Json)
}

/// Resume a schedule. Firings missed during the pause are skipped.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/resume", operation_id = "resumeSchedule", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody)))]
pub(crate) async fn resume(State(app): State<App>, caller: May<Manage>, id: Id) -> Result<Json<ScheduleView>, Problem> {
    let resumed = schedules(&app, &caller).resume(id.0).await?;
    shown(&app, resumed.ok_or_else(|| Problem::not_found("schedule", id.0))?).await.map(Json)
}

/// Fire a schedule now, independent of its cadence. Returns the run.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/trigger", operation_id = "triggerSchedule", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 201, body = JobView), (status = 404, body = ProblemBody)))]
pub(crate) async fn trigger(
    State(app): State<App>,
    caller: May<Manage>,
    id: Id,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let run = schedules(&app, &caller).trigger(id.0).await?;
    let run = run.ok_or_else(|| Problem::not_found("schedule", id.0))?;
    Ok((StatusCode::CREATED, Json(JobView::from(&run))))
}

/// The next firings of a schedule.
#[utoipa::path(get, path = "/api/v1/schedules/{id}/preview", operation_id = "previewSchedule", tag = "schedules",
    params(("id" = i64, Path), ("count" = Option<usize>, Query)),
    responses((status = 200, body = Firings), (status = 404, body = ProblemBody)))]
pub(crate) async fn preview(
    State(app): State<App>,
    caller: May<Read>,
    id: Id,
    query: Query,
) -> Result<Json<Firings>, Problem> {
    query.only(&["count"])?;
    let read = |text: &str| text.parse().ok().filter(|n| (1..=MAX_FIRINGS).contains(n));
    let count = query.parsed("count", |text| read(text).ok_or(format!("must be 1 to {MAX_FIRINGS}")))?;
    let firings = schedules(&app, &caller).preview(id.0, count.unwrap_or(DEFAULT_FIRINGS)).await?;
    firings.map(|firings| Json(firings.into())).ok_or_else(|| Problem::not_found("schedule", id.0))
}

/// Show the firings that a schedule would have.
#[utoipa::path(post, path = "/api/v1/schedules/preview", operation_id = "previewNewSchedule", tag = "schedules", request_body = PreviewBody,
    responses((status = 200, body = Firings), (status = 422, body = ProblemBody)))]
pub(crate) async fn preview_new(
    State(app): State<App>,
    _caller: May<Read>,
    body: Body,
) -> Result<Json<Firings>, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["cron", "schedule", "every", "timezone", "count"]);
    let count = fields.whole("count", 1..=MAX_FIRINGS as u64).map_or(DEFAULT_FIRINGS, |n| n as usize);
    let cadence = read_cadence_only(&fields, app.now());
    if cadence.is_none() && faults.is_empty() {
        fields.fault("cron", "is needed: a cron line such as \"*/10 * * * *\" (or give `every`)");
    }
    faults.finish()?;
    let cadence = cadence.ok_or_else(|| faults.problem())?;
    Ok(Json(cadence.next_n(app.now(), count).into()))
}

impl From<Vec<Timestamp>> for Firings {
    fn from(firings: Vec<Timestamp>) -> Self {
        Self { firings: firings.iter().map(ToString::to_string).collect() }
    }
}

//! What people do with a schedule: pause, resume, trigger, preview.

use super::read::read_cadence_only;
use super::view::ScheduleView;
use super::{ScheduleBody, apply, cadence};
use crate::http::app::App;
use crate::http::auth::{Enqueue, May, Read};
use crate::http::input::body::Body;
use crate::http::input::fields::{Faults, Fields};
use crate::http::input::query::Query;
use crate::http::jobs::Id;
use crate::http::output::problem::{Kind, Problem, ProblemBody};
use crate::http::output::view::JobView;
use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::job::RunAt;
use windlass::store::{Fired, Firing, ScheduleChange, Trigger};
use windlass_core::schedule::MAX_FIRINGS;
use windlass_core::{Cadence, Timestamp};

/// Firings shown when no count is asked for.
const DEFAULT_FIRINGS: usize = 10;

/// The next firings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Firings {
    firings: Vec<String>,
}

/// Pause a schedule.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/pause", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody)))]
pub(crate) async fn pause(State(app): State<App>, caller: May<Enqueue>, id: Id) -> Result<Json<ScheduleView>, Problem> {
    let change = ScheduleChange { paused: Some(true), ..ScheduleChange::default() };
    apply(&app, &caller.tenants(), id.0, change).await
}

/// Resume a schedule. Firings that fell into the pause are not made up for.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/resume", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody)))]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: May<Enqueue>,
    id: Id,
) -> Result<Json<ScheduleView>, Problem> {
    let scope = caller.tenants();
    let schedule = app.store().schedule(&scope, id.0).await?.ok_or_else(|| Problem::not_found("schedule", id.0))?;
    let cadence = cadence::of(&schedule.spec, schedule.created_at).ok();
    let next_at = cadence.and_then(|cadence| cadence.next_after(app.now()));
    let next_at = schedule.paused.then_some(next_at);
    let change = ScheduleChange { paused: Some(false), next_at, ..ScheduleChange::default() };
    apply(&app, &scope, id.0, change).await
}

/// Fire a schedule now, whatever its cadence says. Answers the run.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/trigger", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 201, body = JobView), (status = 404, body = ProblemBody)))]
pub(crate) async fn trigger(
    State(app): State<App>,
    caller: May<Enqueue>,
    id: Id,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let scope = caller.tenants();
    let schedule = app.store().schedule(&scope, id.0).await?.ok_or_else(|| Problem::not_found("schedule", id.0))?;
    let mut job = schedule.spec.template.clone();
    (job.run_at, job.schedule) = (RunAt::Now, Some(schedule.id));
    let firing = Firing { schedule: schedule.id, trigger: Trigger::Operator, job: Some(job) };
    match app.store().fire(firing).await? {
        Fired::Enqueued(run) => {
            let run = app.store().job(&scope, run).await?.ok_or_else(|| Problem::not_found("job", run))?;
            Ok((StatusCode::CREATED, Json(JobView::from(&run))))
        }
        Fired::Skipped | Fired::NotOurs => Err(Problem::not_found("schedule", id.0)),
    }
}

/// The next firings of a schedule.
#[utoipa::path(get, path = "/api/v1/schedules/{id}/preview", tag = "schedules",
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
    let scope = caller.tenants();
    let schedule = app.store().schedule(&scope, id.0).await?.ok_or_else(|| Problem::not_found("schedule", id.0))?;
    let cadence = cadence::of(&schedule.spec, schedule.created_at)
        .map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
    Ok(Json(firings(&cadence, app.now(), count.unwrap_or(DEFAULT_FIRINGS))))
}

/// The firings a schedule would have: `cron` and `timezone`, or `every`; and `count`.
#[utoipa::path(post, path = "/api/v1/schedules/preview", tag = "schedules", request_body = ScheduleBody,
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
    cadence.map(|cadence| Json(firings(&cadence, app.now(), count))).ok_or_else(|| faults.problem())
}

fn firings(cadence: &Cadence, now: Timestamp, count: usize) -> Firings {
    Firings { firings: cadence.next_n(now, count).iter().map(ToString::to_string).collect() }
}

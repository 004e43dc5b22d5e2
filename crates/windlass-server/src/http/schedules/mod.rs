//! Schedules: create, show, change, pause, trigger and preview them.

mod actions;
pub(crate) mod as_job;
mod read;
mod view;

use super::app::App;
use super::auth::{Caller, Manage, May, Read};
use super::input::body::Body;
use super::input::draft::{JOB_FIELDS, JobBody};
use super::input::fields::{Faults, Fields};
use super::input::query::Query;
use super::jobs::Id;
use super::openapi::types;
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::LOCATION;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::{Schedule, Schedules};
use windlass_core::policy::FAMILY_FIELDS;

pub(crate) use read::{SCHEDULE_FIELDS, ScheduleFields, read_new};
use view::ScheduleView;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, change, remove))
        .routes(routes!(actions::pause))
        .routes(routes!(actions::resume))
        .routes(routes!(actions::trigger))
        .routes(routes!(actions::preview))
        .routes(routes!(actions::preview_new))
}

/// A schedule: when it fires, and the job that each firing enqueues (under `job`, or as fields next to the others).
#[derive(Debug, ToSchema)]
#[schema(as = NewSchedule, rename_all = "camelCase", example = json!({"cron": "*/10 * * * *", "timezone": "Europe/Berlin", "job": {"kind": "report"}}))]
#[expect(dead_code, reason = "documents what `read_new` accepts")]
pub(crate) struct ScheduleBody {
    /// A cron line of 5 fields, or 6 (seconds first).
    cron: Option<String>,
    /// Instead of `cron`: an interval, such as `30s`.
    #[schema(value_type = Option<types::Duration>)]
    every: Option<String>,
    /// IANA name; UTC if absent.
    timezone: Option<String>,
    /// False: the schedule is removed after its one run has ended.
    recurring: Option<bool>,
    /// `skip` (default: no new run while the last one is live) or `allow`.
    #[schema(pattern = "^(skip|allow)$")]
    overlap: Option<String>,
    /// What to do about firings missed while no node was running: `one` (default) or `skip`.
    #[schema(pattern = "^(one|skip)$")]
    missed: Option<String>,
    /// Which failed runs of a recurring schedule stay dead letters: `latest` (default; the one before is discarded as
    /// `superseded`) or `all`.
    #[schema(pattern = "^(latest|all)$")]
    dead_letters: Option<String>,
    /// Only in a change: pauses or resumes the schedule.
    paused: Option<bool>,
    /// The job that each firing enqueues. A change replaces the whole job.
    job: Option<JobBody>,
    /// Another system's name for `cron`.
    schedule: Option<String>,
    /// Another system's name for `recurring`.
    is_recurring: Option<bool>,
}

/// When a schedule would fire: `cron` and `timezone`, or `every`.
#[derive(Debug, ToSchema)]
#[schema(as = SchedulePreviewRequest, example = json!({"cron": "0 9 * * mon-fri", "timezone": "Europe/Berlin", "count": 3}))]
#[expect(dead_code, reason = "documents what `preview_new` accepts")]
pub(crate) struct PreviewBody {
    /// A cron line of 5 fields, or 6 (seconds first).
    cron: Option<String>,
    /// Instead of `cron`: an interval, such as `30s`.
    #[schema(value_type = Option<types::Duration>)]
    every: Option<String>,
    /// IANA name; UTC if absent.
    timezone: Option<String>,
    /// Another system's name for `cron`.
    schedule: Option<String>,
    /// How many firings to show; 10 if absent.
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<u64>,
}

/// List schedules.
#[utoipa::path(get, path = "/api/v1/schedules", operation_id = "listSchedules", tag = "schedules",
    params(("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query), ("order" = Option<String>, Query)),
    responses((status = 200, body = Listing<ScheduleView>)))]
async fn list(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Json<Listing<ScheduleView>>, Problem> {
    query.only(&["limit", "cursor", "order"])?;
    let page = query.page()?;
    let schedules = schedules(&app, &caller);
    let rows = schedules.list(Listing::<ScheduleView>::one_more(page)).await?;
    let mut shown = Vec::with_capacity(rows.len());
    for schedule in rows {
        let retry_at = schedules.retry_at(&schedule).await?;
        shown.push((schedule, retry_at));
    }
    Ok(Json(Listing::new(&shown, page, |(s, _)| s.id, |(s, retry_at)| ScheduleView::new(s, *retry_at))))
}

/// Create a schedule.
#[utoipa::path(post, path = "/api/v1/schedules", operation_id = "createSchedule", tag = "schedules", request_body = ScheduleBody,
    responses((status = 201, body = ScheduleView), (status = 422, body = ProblemBody)))]
async fn create(State(app): State<App>, caller: May<Manage>, body: Body) -> Result<Response, Problem> {
    let catalogue = app.catalogue().await?;
    let new = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&[SCHEDULE_FIELDS, JOB_FIELDS, FAMILY_FIELDS].concat());
        let new = read_new(&fields, &caller, &catalogue, app.now())?;
        faults.finish()?;
        new.ok_or_else(|| faults.problem())?
    };
    add(&app, &caller, new).await
}

async fn add(app: &App, caller: &Caller, new: ScheduleFields) -> Result<Response, Problem> {
    let schedule = new.fill(schedules(app, caller).create()).await?;
    let location = format!("/api/v1/schedules/{}", schedule.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(ScheduleView::new(&schedule, None))).into_response())
}

/// Show a schedule.
#[utoipa::path(get, path = "/api/v1/schedules/{id}", operation_id = "getSchedule", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody)))]
async fn get(State(app): State<App>, caller: May<Read>, id: Id) -> Result<Json<ScheduleView>, Problem> {
    let schedule = schedules(&app, &caller).get(id.0).await?;
    shown(&app, schedule.ok_or_else(|| Problem::not_found("schedule", id.0))?).await.map(Json)
}

/// Change a schedule.
///
/// Omitted fields do not change; `job` replaces the whole job.
#[utoipa::path(patch, path = "/api/v1/schedules/{id}", operation_id = "changeSchedule", tag = "schedules", params(("id" = i64, Path)),
    request_body = ScheduleBody,
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody), (status = 422, body = ProblemBody)))]
async fn change(
    State(app): State<App>,
    caller: May<Manage>,
    id: Id,
    body: Body,
) -> Result<Json<ScheduleView>, Problem> {
    let Some(schedule) = schedules(&app, &caller).get(id.0).await? else {
        return Err(Problem::not_found("schedule", id.0));
    };
    change_one(&app, &caller, &schedule, &body).await.map(Json)
}

async fn change_one(app: &App, caller: &Caller, schedule: &Schedule, body: &Body) -> Result<ScheduleView, Problem> {
    let catalogue = app.catalogue().await?;
    let change = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        let change = read::read_change(&fields, caller, &catalogue, schedule, app.now())?;
        faults.finish()?;
        change
    };
    let changed = change.fill(schedules(app, caller).change(schedule.id)).await?;
    shown(app, changed).await
}

/// Remove a schedule. Its runs stay in history.
#[utoipa::path(delete, path = "/api/v1/schedules/{id}", operation_id = "removeSchedule", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 204), (status = 404, body = ProblemBody)))]
async fn remove(State(app): State<App>, caller: May<Manage>, id: Id) -> Result<StatusCode, Problem> {
    if schedules(&app, &caller).remove(id.0).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found("schedule", id.0))
    }
}

fn schedules<'a>(app: &'a App, caller: &Caller) -> Schedules<'a> {
    app.windlass().schedules().within(&caller.tenants())
}

async fn shown(app: &App, schedule: Schedule) -> Result<ScheduleView, Problem> {
    let retry_at = app.windlass().schedules().retry_at(&schedule).await?;
    Ok(ScheduleView::new(&schedule, retry_at))
}

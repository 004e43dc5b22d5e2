//! Schedules: make, look at, change, pause, trigger and preview them.

mod cadence;
mod read;
mod verbs;
mod view;

use super::app::App;
use super::auth::{Enqueue, May, Read};
use super::input::body::Body;
use super::input::draft::{JOB_FIELDS, JobBody};
use super::input::fields::{Faults, Fields};
use super::input::query::Query;
use super::jobs::Id;
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
use windlass::store::{ScheduleChange, ScheduleSpec, Scope};
use windlass_core::JobId;
use windlass_core::policy::FAMILY_FIELDS;

pub(crate) use read::{SCHEDULE_FIELDS, read_new};
use view::ScheduleView;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, change, remove))
        .routes(routes!(verbs::pause))
        .routes(routes!(verbs::resume))
        .routes(routes!(verbs::trigger))
        .routes(routes!(verbs::preview))
        .routes(routes!(verbs::preview_new))
}

/// A schedule: when it fires, and the job each firing enqueues (under `job`, or its fields beside the others).
#[derive(Debug, ToSchema)]
#[schema(as = NewSchedule, rename_all = "camelCase", example = json!({"cron": "*/10 * * * *", "timezone": "Europe/Berlin", "job": {"kind": "report"}}))]
#[expect(dead_code, reason = "documents what `read_new` accepts")]
pub(crate) struct ScheduleBody {
    /// A cron line of 5 fields, or 6 (seconds first).
    cron: Option<String>,
    /// Instead of `cron`: an interval, such as `30s`.
    every: Option<String>,
    /// IANA name; UTC if absent.
    timezone: Option<String>,
    /// False: removed after its one run has ended.
    recurring: Option<bool>,
    /// `skip` (default: no new run while the last is live) or `allow`
    overlap: Option<String>,
    /// What to do with firings nobody was up for: `one` (default) or `skip`.
    missed: Option<String>,
    paused: Option<bool>,
    job: Option<JobBody>,
    /// Another system's name for `cron`.
    schedule: Option<String>,
    /// Another system's name for `recurring`.
    is_recurring: Option<bool>,
}

/// List schedules.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "schedules",
    params(("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query), ("order" = Option<String>, Query)),
    responses((status = 200, body = Listing<ScheduleView>)))]
async fn list(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Json<Listing<ScheduleView>>, Problem> {
    query.only(&["limit", "cursor", "order"])?;
    let page = query.page()?;
    let rows = app.store().schedules(&caller.tenants(), Listing::<ScheduleView>::one_more(page)).await?;
    let mut shown = Vec::with_capacity(rows.len());
    for schedule in rows {
        let retry_at = view::retry_at(&app, &schedule).await?;
        shown.push((schedule, retry_at));
    }
    Ok(Json(Listing::new(&shown, page, |(s, _)| s.id, |(s, retry_at)| ScheduleView::new(s, *retry_at))))
}

/// Make a schedule.
#[utoipa::path(post, path = "/api/v1/schedules", tag = "schedules", request_body = ScheduleBody,
    responses((status = 201, body = ScheduleView), (status = 422, body = ProblemBody)))]
async fn create(State(app): State<App>, caller: May<Enqueue>, body: Body) -> Result<Response, Problem> {
    let catalogue = app.catalogue().await?;
    let spec = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&[SCHEDULE_FIELDS, JOB_FIELDS, FAMILY_FIELDS].concat());
        let spec = read_new(&fields, &caller, &catalogue, app.now())?;
        faults.finish()?;
        spec.ok_or_else(|| faults.problem())?
    };
    add(&app, spec).await
}

pub(crate) async fn add(app: &App, spec: ScheduleSpec) -> Result<Response, Problem> {
    let now = app.now();
    let next_at = cadence::of(&spec, now).map_err(|error| Problem::field("/cron", error.to_string()))?.next_after(now);
    let schedule = app.store().add_schedule(spec, next_at).await?;
    let location = format!("/api/v1/schedules/{}", schedule.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(ScheduleView::new(&schedule, None))).into_response())
}

/// Look at a schedule.
#[utoipa::path(get, path = "/api/v1/schedules/{id}", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody)))]
async fn get(State(app): State<App>, caller: May<Read>, id: Id) -> Result<Json<ScheduleView>, Problem> {
    show(&app, &caller.tenants(), id.0).await.map(Json)
}

/// Change a schedule.
///
/// Fields left out stay as they are; `job` replaces the whole job.
#[utoipa::path(patch, path = "/api/v1/schedules/{id}", tag = "schedules", params(("id" = i64, Path)),
    request_body = ScheduleBody,
    responses((status = 200, body = ScheduleView), (status = 404, body = ProblemBody), (status = 422, body = ProblemBody)))]
async fn change(
    State(app): State<App>,
    caller: May<Enqueue>,
    id: Id,
    body: Body,
) -> Result<Json<ScheduleView>, Problem> {
    let catalogue = app.catalogue().await?;
    let Some(schedule) = app.store().schedule(&caller.tenants(), id.0).await? else {
        return Err(Problem::not_found("schedule", id.0));
    };
    let change = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        let change = read::read_change(&fields, &caller, &catalogue, &schedule, app.now())?;
        faults.finish()?;
        change
    };
    apply(&app, &caller.tenants(), id.0, change).await
}

async fn apply(app: &App, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Json<ScheduleView>, Problem> {
    match app.store().change_schedule(scope, id, change).await? {
        Some(_) => show(app, scope, id).await.map(Json),
        None => Err(Problem::not_found("schedule", id)),
    }
}

/// Remove a schedule. Its runs stay in history.
#[utoipa::path(delete, path = "/api/v1/schedules/{id}", tag = "schedules", params(("id" = i64, Path)),
    responses((status = 204), (status = 404, body = ProblemBody)))]
async fn remove(State(app): State<App>, caller: May<Enqueue>, id: Id) -> Result<StatusCode, Problem> {
    if app.store().remove_schedule(&caller.tenants(), id.0).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found("schedule", id.0))
    }
}

async fn show(app: &App, scope: &Scope, id: JobId) -> Result<ScheduleView, Problem> {
    let schedule = app.store().schedule(scope, id).await?.ok_or_else(|| Problem::not_found("schedule", id))?;
    let retry_at = view::retry_at(app, &schedule).await?;
    Ok(ScheduleView::new(&schedule, retry_at))
}

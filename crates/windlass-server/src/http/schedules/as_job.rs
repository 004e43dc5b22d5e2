//! Schedules under `/jobs`, as family D knows them: what `POST /jobs` made with a `schedule` is shown, changed and
//! removed by the id that it returned. The answers also have that family's names.

use super::view::ScheduleView;
use super::{ScheduleFields, change_one, schedules, shown};
use crate::http::app::App;
use crate::http::auth::Caller;
use crate::http::input::body::Body;
use crate::http::output::problem::Problem;
use axum::Json;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::LOCATION;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::client::{Recurrence, Schedule};
use windlass::http::mask_url;
use windlass_core::JobId;

/// A schedule, also with the names of another system.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ScheduleAsJob)]
pub(crate) struct ScheduleAsJob {
    #[serde(flatten)]
    schedule: ScheduleView,
    /// The URL that each run calls; null if workers run it.
    api: Option<String>,
    /// `AT_LEAST_ONCE` or `AT_MOST_ONCE`
    r#type: &'static str,
    /// Another system's name for `recurring`.
    is_recurring: bool,
    /// The most retries of a run; 0 if it is at-most-once.
    max_retry_count: u32,
}

impl ScheduleAsJob {
    fn new(schedule: &Schedule, view: ScheduleView) -> Self {
        let job = &schedule.spec.template;
        Self {
            schedule: view,
            api: job.http.as_ref().map(|call| mask_url(&call.url)),
            r#type: job.delivery.as_str(),
            is_recurring: schedule.spec.recurrence == Recurrence::Recurring,
            max_retry_count: job.max_attempts() - 1,
        }
    }
}

pub(crate) async fn add(app: &App, caller: &Caller, new: ScheduleFields) -> Result<Response, Problem> {
    let schedule = new.fill(schedules(app, caller).create()).await?;
    let location = format!("/api/v1/jobs/{}", schedule.id);
    let view = ScheduleView::new(&schedule, None);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(ScheduleAsJob::new(&schedule, view))).into_response())
}

/// The schedule with this id, if there is one.
pub(crate) async fn find(app: &App, caller: &Caller, id: JobId) -> Result<Option<Schedule>, Problem> {
    Ok(schedules(app, caller).get(id).await?)
}

pub(crate) async fn show(app: &App, schedule: Schedule) -> Result<ScheduleAsJob, Problem> {
    let view = shown(app, schedule.clone()).await?;
    Ok(ScheduleAsJob::new(&schedule, view))
}

pub(crate) async fn change(
    app: &App,
    caller: &Caller,
    schedule: &Schedule,
    body: &Body,
) -> Result<ScheduleAsJob, Problem> {
    change_one(app, caller, schedule, body).await?;
    let changed = find(app, caller, schedule.id).await?;
    show(app, changed.ok_or_else(|| Problem::not_found("schedule", schedule.id))?).await
}

/// Removes it; its runs stay. Returns whether it existed.
pub(crate) async fn remove(app: &App, caller: &Caller, id: JobId) -> Result<bool, Problem> {
    Ok(schedules(app, caller).remove(id).await?)
}

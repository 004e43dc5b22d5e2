//! One job: show it, change it while it waits, cancel it, replay it.

use super::Id;
use super::enqueue::StoredJob;
use crate::http::app::App;
use crate::http::auth::{Caller, Manage, May, Read};
use crate::http::deliveries::{self, JobWithDeliveries};
use crate::http::input::body::Body;
use crate::http::input::draft;
use crate::http::input::fields::{Faults, Fields};
use crate::http::openapi::types;
use crate::http::output::problem::{Problem, ProblemBody};
use crate::http::output::view::JobView;
use crate::http::schedules::as_job::{self, ScheduleAsJob};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::client::{Amend, Amended, Cancelled, Replayed};
use windlass_core::JobId;

/// A change to a waiting job.
#[derive(Debug, ToSchema)]
#[schema(as = JobChange, rename_all = "camelCase", example = json!({"priority": "high", "delay": "10s"}))]
#[expect(dead_code, reason = "documents what `amend` accepts")]
pub(crate) struct AmendBody {
    /// The new priority.
    #[schema(value_type = Option<types::PriorityInput>)]
    priority: Option<String>,
    /// The new time.
    #[schema(value_type = Option<types::Moment>)]
    run_at: Option<String>,
    /// Instead of `runAt`: how long from now.
    #[schema(value_type = Option<types::Duration>)]
    delay: Option<String>,
}

/// A job, or the schedule with that id.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum JobOrSchedule {
    Job(Box<JobWithDeliveries>),
    Schedule(Box<ScheduleAsJob>),
}

/// A stored job, or the schedule with that id.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = StoredJobOrSchedule)]
#[expect(dead_code, reason = "documents the answers of `amend` and `enqueue`")]
pub(crate) enum ChangedJobOrSchedule {
    Job(StoredJob),
    Schedule(Box<ScheduleAsJob>),
}

/// Show a job with its webhook deliveries, or a schedule.
///
/// Jobs and schedules share one sequence of ids, so an id names either.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", operation_id = "getJob", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = JobOrSchedule), (status = 404, body = ProblemBody)))]
pub(crate) async fn get(State(app): State<App>, caller: May<Read>, id: Id) -> Result<Json<JobOrSchedule>, Problem> {
    let scope = caller.tenants();
    let jobs = app.windlass().jobs().within(&scope);
    let Some(job) = jobs.get(id.0).await? else {
        let found =
            as_job::find(&app, &caller, id.0).await?.ok_or_else(|| Problem::not_found("job or schedule", id.0))?;
        return Ok(Json(JobOrSchedule::Schedule(Box::new(as_job::show(&app, found).await?))));
    };
    let deliveries = deliveries::of(&app, &scope, &job).await?;
    let one = std::slice::from_ref(&job);
    let (holders, waiting) = (jobs.holders(one).await?, jobs.waiting(one).await?);
    let job = JobView::from(&job).held_by(&holders).waiting(&waiting);
    Ok(Json(JobOrSchedule::Job(Box::new(JobWithDeliveries { job, deliveries }))))
}

/// Change the priority or time of a waiting job, or a schedule.
///
/// With a schedule's id, the body is that of a change of a schedule. The fields of its job may be given by themselves,
/// also with other systems' names (`{"maxRetryCount":5}`).
#[utoipa::path(patch, path = "/api/v1/jobs/{id}", operation_id = "changeJob", tag = "jobs", params(("id" = i64, Path)), request_body = AmendBody,
    responses((status = 200, body = ChangedJobOrSchedule), (status = 404, body = ProblemBody),
        (status = 409, description = "It is not waiting", body = ProblemBody)))]
pub(crate) async fn amend(
    State(app): State<App>,
    caller: May<Manage>,
    id: Id,
    body: Body,
) -> Result<Response, Problem> {
    let is_job = app.windlass().jobs().within(&caller.tenants()).get(id.0).await?.is_some();
    if !is_job {
        let found = as_job::find(&app, &caller, id.0).await?;
        let schedule = found.ok_or_else(|| Problem::not_found("job or schedule", id.0))?;
        return Ok(Json(as_job::change(&app, &caller, &schedule, &body).await?).into_response());
    }
    let change = read_change(&app, &body)?;
    match app.windlass().jobs().within(&caller.tenants()).amend(id.0, change).await? {
        Amended::Done => answer(&app, &caller, id.0, StatusCode::OK).await,
        Amended::NotWaiting(state) => Err(Problem::conflict(format!("job {} is {state}, not waiting", id.0))),
        Amended::NotFound => Err(Problem::not_found("job or schedule", id.0)),
    }
}

/// Cancel a job.
///
/// A waiting job ends at once (200). A running job is asked to stop (202). With a schedule's id: the schedule is
/// removed, and its runs stay (204).
#[utoipa::path(delete, path = "/api/v1/jobs/{id}", operation_id = "cancelJob", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, description = "Cancelled", body = StoredJob),
        (status = 202, description = "Asked to stop", body = StoredJob),
        (status = 204, description = "It was a schedule, and is removed"), (status = 404, body = ProblemBody),
        (status = 409, description = "It has finished", body = ProblemBody)))]
pub(crate) async fn cancel(State(app): State<App>, caller: May<Manage>, id: Id) -> Result<Response, Problem> {
    let status = match app.windlass().jobs().within(&caller.tenants()).cancel(id.0).await? {
        Cancelled::Now => StatusCode::OK,
        Cancelled::Requested => StatusCode::ACCEPTED,
        Cancelled::Finished(state) => return Err(Problem::conflict(format!("job {} is {state} already", id.0))),
        Cancelled::NotFound if as_job::remove(&app, &caller, id.0).await? => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        Cancelled::NotFound => return Err(Problem::not_found("job or schedule", id.0)),
    };
    answer(&app, &caller, id.0, status).await
}

/// Send a job again (replay).
///
/// The job keeps its id, and all its retries are available again. A waiting job becomes due now.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/retry", operation_id = "replayJob", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = StoredJob), (status = 404, body = ProblemBody),
        (status = 409, description = "It is running", body = ProblemBody)))]
pub(crate) async fn retry(State(app): State<App>, caller: May<Manage>, id: Id) -> Result<Response, Problem> {
    match app.windlass().jobs().within(&caller.tenants()).by(&caller.by).replay(id.0).await? {
        Replayed::Queued | Replayed::AlreadyLive | Replayed::NotDead => {
            answer(&app, &caller, id.0, StatusCode::OK).await
        }
        Replayed::Running => Err(Problem::conflict(format!("job {} is running", id.0))),
        Replayed::NotFound => Err(Problem::not_found("job", id.0)),
    }
}

/// The job after an action. It may be gone: some queues keep no finished jobs.
async fn answer(app: &App, caller: &Caller, id: JobId, status: StatusCode) -> Result<Response, Problem> {
    let job = app.windlass().jobs().within(&caller.tenants()).get(id).await?;
    Ok(match job {
        Some(job) => (status, super::answer(caller, &job)).into_response(),
        None => (status, Json(serde_json::json!({ "id": id.0, "state": "cancelled" }))).into_response(),
    })
}

fn read_change(app: &App, body: &Body) -> Result<Amend, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["priority", "runAt", "delay"]);
    let change = Amend { priority: draft::priority(&fields), run_at: draft::new_run_at(&fields, app.now()) };
    if change == Amend::default() && faults.is_empty() {
        faults.add("", "changes nothing; give priority, runAt or delay");
    }
    faults.finish()?;
    Ok(change)
}

//! POST /jobs: stores one job; it is durable when the request is answered. A body with `schedule`, as family D writes
//! it, creates a schedule.

use super::one::ChangedJobOrSchedule;
use super::traced::traced;
use crate::http::app::App;
use crate::http::auth::{Caller, Enqueue, May, Scope};
use crate::http::input::body::Body;
use crate::http::input::draft::{self, JOB_FIELDS, JobBody, RequestHeaders};
use crate::http::input::fields::{Faults, Fields};
use crate::http::output::problem::{Kind, Problem, ProblemBody};
use crate::http::output::view::JobView;
use crate::http::schedules::{self, SCHEDULE_FIELDS};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue, LOCATION};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass::Job;
use windlass::client::{Atomicity, Enqueued};
use windlass::protocol::{NewJob, QueueId};
use windlass_core::JobId;
use windlass_core::policy::FAMILY_FIELDS;

/// Store one job.
///
/// The job is durable when the request is answered. A body with `schedule` (a cron line) creates a schedule instead.
/// With `Prefer: return=minimal` the answer has only the job's id and state.
#[utoipa::path(post, path = "/api/v1/jobs", operation_id = "enqueueJob", tag = "jobs",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Like `idempotencyKey` in the body"),
        ("Prefer" = Option<String>, Header, description = "`return=minimal`: answer only the id and the state"),
    ),
    request_body = JobBody,
    responses(
        (status = 201, description = "Stored", body = ChangedJobOrSchedule),
        (status = 200, description = "The idempotency key already belongs to this job", body = StoredJob),
        (status = 409, description = "The key belongs to a job of another kind or payload", body = ProblemBody),
        (status = 422, description = "Wrong fields", body = ProblemBody),
    ))]
pub(crate) async fn enqueue(
    State(app): State<App>,
    caller: May<Enqueue>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    traced(&app, &headers, "/api/v1/jobs", async |traceparent| {
        enqueue_in_trace(&app, &caller, &headers, &body, traceparent).await
    })
    .await
}

async fn enqueue_in_trace(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    body: &Body,
    traceparent: Option<Arc<str>>,
) -> Result<Response, Problem> {
    let catalogue = app.catalogue().await?;
    let made = {
        let faults = Faults::default();
        let raw = body.json()?;
        let Some(fields) = Fields::open(raw, "", &faults) else { return Err(faults.problem()) };
        let request_headers = RequestHeaders { key: read_key(headers, &fields)?, traceparent };
        if fields.has("schedule") {
            caller.check(Scope::Manage)?;
            fields.refuse_unknown(&[JOB_FIELDS, FAMILY_FIELDS, SCHEDULE_FIELDS].concat());
            let made = schedules::read_new(&fields, caller, &catalogue, app.now())?;
            faults.finish()?;
            Made::Schedule(made)
        } else {
            let made = read_job(&fields, caller, &catalogue, &request_headers)?;
            faults.finish()?;
            Made::Job(made)
        }
    };
    match made {
        Made::Schedule(None) | Made::Job(None) => Err(Problem::new(Kind::Invalid, "the body is wrong")),
        Made::Schedule(Some(new)) => schedules::as_job::add(app, caller, new).await,
        Made::Job(Some(job)) => store(app, caller, job, Echo::of(headers)).await,
    }
}

/// A stored job: the whole job, or only its id and state if the caller prefers that or may not read jobs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum StoredJob {
    Whole(Box<JobView>),
    Minimal(MinimalJob),
}

/// The answer to `Prefer: return=minimal`, and to callers who may not read jobs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)] // In the document it has no other fields, so that a whole job is not one of these.
pub(crate) struct MinimalJob {
    /// Its number.
    id: i64,
    /// queued, running, retrying, succeeded, failed or cancelled
    state: &'static str,
}

impl From<&Job> for MinimalJob {
    fn from(job: &Job) -> Self {
        Self { id: job.id.0, state: job.state.as_str() }
    }
}

/// How much of the job an answer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    Whole,
    Minimal,
}

impl Echo {
    /// By the header `Prefer` (RFC 7240). Unknown preferences are ignored, as the standard asks for.
    fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let is_minimal = |preference: &str| preference.trim().eq_ignore_ascii_case("return=minimal");
        let mut preferences = values.flat_map(|value| value.split([',', ';']));
        if preferences.any(is_minimal) { Self::Minimal } else { Self::Whole }
    }

    fn answer(self, caller: &Caller, status: StatusCode, job: &Job) -> Response {
        match self {
            Self::Whole => (status, super::answer(caller, job)).into_response(),
            Self::Minimal => {
                let applied = [("preference-applied", "return=minimal")];
                (status, applied, Json(MinimalJob::from(job))).into_response()
            }
        }
    }
}

enum Made {
    Schedule(Option<schedules::ScheduleFields>),
    Job(Option<NewJob>),
}

fn read_job(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &windlass::protocol::Catalogue,
    request_headers: &RequestHeaders,
) -> Result<Option<NewJob>, Problem> {
    fields.refuse_unknown(&[JOB_FIELDS, FAMILY_FIELDS, &["isRecurring", "schedule"]].concat());
    if fields.flag("isRecurring") == Some(true) {
        fields.fault("isRecurring", "needs a `schedule`, such as \"*/10 * * * *\"");
    }
    let draft = draft::read(fields, caller, catalogue, request_headers)?;
    Ok(draft.and_then(|draft| draft::complete(fields, catalogue, draft)))
}

async fn store(app: &App, caller: &Caller, job: NewJob, echo: Echo) -> Result<Response, Problem> {
    let stored = app.windlass().enqueue_jobs(vec![job.clone()], Atomicity::Each).await?;
    match stored.into_iter().next() {
        Some(Enqueued::Created { id, created_at, due_at }) => {
            let mut response =
                echo.answer(caller, StatusCode::CREATED, &job.stored(id, QueueId(0), created_at, due_at));
            if let Ok(location) = HeaderValue::from_str(&format!("/api/v1/jobs/{id}")) {
                response.headers_mut().insert(LOCATION, location);
            }
            Ok(response)
        }
        Some(Enqueued::Existing(id)) => match app.windlass().jobs().within(&caller.tenants()).get(id).await? {
            Some(found) => Ok(echo.answer(caller, StatusCode::OK, &found)),
            // Its queue keeps no finished jobs, so the answer has only the id.
            None => Ok(Json(serde_json::json!({ "id": id.0 })).into_response()),
        },
        Some(Enqueued::KeyConflict(id)) => Err(key_conflict(id)),
        Some(Enqueued::OverQuota(refusal)) => Err(Problem::over_quota(&refusal)),
        Some(Enqueued::Refused(why)) => Err(Problem::new(Kind::Invalid, why)),
        Some(Enqueued::NotStored) | None => Err(Problem::new(Kind::Internal, "the store gave no answer for the job")),
    }
}

pub(crate) fn key_conflict(id: JobId) -> Problem {
    let detail = format!("the idempotency key belongs to job {id}, which has another kind or payload");
    Problem::new(Kind::KeyConflict, detail)
}

/// Reads the key of the headers, which must not contradict the key in the body.
fn read_key(headers: &HeaderMap, fields: &Fields<'_>) -> Result<Option<String>, Problem> {
    let key = headers.get("idempotency-key").map(|value| {
        let text = value.to_str().unwrap_or_default().trim();
        // The draft standard puts it in quotes; many clients do not.
        let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        bare.to_owned()
    });
    if let (Some(header), Some(own)) = (&key, fields.text("idempotencyKey"))
        && *header != own
    {
        let detail = "the header Idempotency-Key and the field idempotencyKey differ; give one of them";
        return Err(Problem::new(Kind::KeyMismatch, detail));
    }
    Ok(key)
}

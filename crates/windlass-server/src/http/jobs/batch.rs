//! POST /jobs/batch: up to 10,000 jobs in one commit, with a result for each.

use super::enqueue::key_conflict;
use super::first_detail;
use super::traced::traced;
use crate::http::app::App;
use crate::http::auth::{Caller, Enqueue, May};
use crate::http::input::body::Body;
use crate::http::input::draft::{self, JOB_FIELDS, JobBody, RequestHeaders};
use crate::http::input::fields::{Faults, Fields};
use crate::http::output::problem::{Fault, Kind, Problem, ProblemBody, retry_after};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass::client::{Atomicity, Enqueued, MAX_BATCH};
use windlass::protocol::{Catalogue, NewJob};
use windlass_core::policy::FAMILY_FIELDS;

/// The most jobs in one request.
const MAX_JOBS: usize = MAX_BATCH;

/// Many jobs at once.
#[derive(Debug, ToSchema)]
#[schema(as = NewJobs, example = json!({"jobs": [{"kind": "email", "payload": {"to": "ann@example.com"}}]}))]
#[expect(dead_code, reason = "documents what `batch` accepts")]
pub(crate) struct BatchBody {
    /// 1 to 10,000 jobs.
    #[schema(min_items = 1, max_items = 10000)]
    jobs: Vec<JobBody>,
    /// True (default): all jobs are stored, or none. False: each job is stored independently.
    atomic: Option<bool>,
}

/// The result for each job, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchResult {
    created: usize,
    results: Vec<ItemResult>,
}

/// The result for one job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemResult {
    /// created, existing, conflict, refused or `not_stored`
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_run_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
}

/// Store up to 10,000 jobs in one commit.
#[utoipa::path(post, path = "/api/v1/jobs/batch", operation_id = "enqueueJobs", tag = "jobs", request_body = BatchBody,
    responses(
        (status = 201, description = "All stored", body = BatchResult),
        (status = 200, description = "A result for each job; not all were created", body = BatchResult),
        (status = 409, description = "Atomic, and a key belongs to another job: nothing was stored", body = ProblemBody),
        (status = 429, description = "Atomic, and a quota of a tenant is used up: nothing was stored", body = ProblemBody),
        (status = 422, description = "Atomic, and a job is wrong: nothing was stored", body = ProblemBody),
    ))]
pub(crate) async fn batch(
    State(app): State<App>,
    caller: May<Enqueue>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    if headers.contains_key("idempotency-key") {
        return Err(Problem::new(
            Kind::KeyMismatch,
            "a batch cannot have an idempotency key; give each job an idempotencyKey",
        ));
    }
    traced(&app, &headers, "/api/v1/jobs/batch", async |traceparent| {
        batch_in_trace(&app, &caller, &body, traceparent).await
    })
    .await
}

async fn batch_in_trace(
    app: &App,
    caller: &Caller,
    body: &Body,
    traceparent: Option<Arc<str>>,
) -> Result<Response, Problem> {
    let catalogue = app.catalogue().await?;
    let request_headers = RequestHeaders { key: None, traceparent };
    let (atomicity, drafted) = read(body, caller, &catalogue, &request_headers)?;
    let mut jobs = Vec::with_capacity(drafted.len());
    let mut wrong: Vec<(usize, Problem)> = Vec::new();
    for (index, job) in drafted.into_iter().enumerate() {
        match job {
            Ok(job) => jobs.push(job),
            Err(problem) => wrong.push((index, problem)),
        }
    }
    let stored = app.windlass().enqueue_jobs(jobs, atomicity).await?;
    if atomicity == Atomicity::All {
        refuse_conflicts(&stored)?;
    }
    let waits = stored.iter().filter_map(|one| match one {
        Enqueued::OverQuota(refusal) => Some(retry_after(refusal)),
        Enqueued::Created { .. }
        | Enqueued::Existing(_)
        | Enqueued::KeyConflict(_)
        | Enqueued::Refused(_)
        | Enqueued::NotStored => None,
    });
    let wait = waits.max();
    let mut results: Vec<ItemResult> = stored.into_iter().map(item_result).collect();
    for (index, problem) in wrong {
        results.insert(index, refused(problem));
    }
    let created = results.iter().filter(|r| r.result == "created").count();
    let status = if created == results.len() { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = (status, Json(BatchResult { created, results })).into_response();
    response.headers_mut().extend(wait.map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds))));
    Ok(response)
}

type Drafted = Vec<Result<NewJob, Problem>>;

fn read(
    body: &Body,
    caller: &Caller,
    catalogue: &Catalogue,
    headers: &RequestHeaders,
) -> Result<(Atomicity, Drafted), Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["jobs", "atomic"]);
    let atomicity = if fields.flag("atomic").unwrap_or(true) { Atomicity::All } else { Atomicity::Each };
    let items = fields.needed("jobs", fields.list("jobs", MAX_JOBS), "a list of 1 to 10,000 jobs");
    let items = items.unwrap_or_default();
    if items.is_empty() && faults.is_empty() {
        fields.fault("jobs", "is empty; give 1 to 10,000 jobs");
    }
    faults.finish()?;
    let mut known = [JOB_FIELDS, FAMILY_FIELDS].concat();
    known.push("isRecurring");
    let mut drafted = Vec::with_capacity(items.len());
    for (index, raw) in items.into_iter().enumerate() {
        match (atomicity, read_item(raw, index, &known, caller, catalogue, headers)?) {
            // In an all-or-nothing batch, the first wrong job ends the request.
            (Atomicity::All, Err(problem)) => return Err(problem),
            (Atomicity::All | Atomicity::Each, read) => drafted.push(read),
        }
    }
    Ok((atomicity, drafted))
}

fn read_item(
    raw: &RawValue,
    index: usize,
    known: &[&str],
    caller: &Caller,
    catalogue: &Catalogue,
    headers: &RequestHeaders,
) -> Result<Result<NewJob, Problem>, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(raw, format!("/jobs/{index}"), &faults) else { return Ok(Err(faults.problem())) };
    fields.refuse_unknown(known);
    let draft = draft::read(&fields, caller, catalogue, headers)?;
    let job = draft.and_then(|draft| draft::complete(&fields, catalogue, draft));
    Ok(job.filter(|_| faults.is_empty()).ok_or_else(|| faults.problem()))
}

/// In an all-or-nothing batch one conflict means that nothing was stored.
fn refuse_conflicts(stored: &[Enqueued]) -> Result<(), Problem> {
    for (index, result) in stored.iter().enumerate() {
        match result {
            Enqueued::KeyConflict(id) => {
                let (detail, _) = key_conflict(*id).into_faults();
                return Err(Problem::new(Kind::KeyConflict, format!("/jobs/{index}: {detail}; nothing was stored")));
            }
            Enqueued::OverQuota(refusal) => return Err(Problem::over_quota(refusal)),
            Enqueued::Refused(why) => return Err(Problem::field(format!("/jobs/{index}"), why.clone())),
            Enqueued::Created { .. } | Enqueued::Existing(_) | Enqueued::NotStored => {}
        }
    }
    if stored.contains(&Enqueued::NotStored) {
        return Err(Problem::conflict("two jobs of the batch share a key and differ; nothing was stored"));
    }
    Ok(())
}

fn item_result(stored: Enqueued) -> ItemResult {
    let item = |result, id, detail| ItemResult { result, id, next_run_at: None, detail, errors: Vec::new() };
    match stored {
        Enqueued::Created { id, due_at, .. } => {
            ItemResult { next_run_at: Some(due_at.to_string()), ..item("created", Some(id.0), None) }
        }
        Enqueued::Existing(id) => item("existing", Some(id.0), None),
        Enqueued::KeyConflict(id) => item("conflict", Some(id.0), Some(key_conflict(id).into_faults().0)),
        Enqueued::Refused(why) => item("refused", None, Some(why)),
        Enqueued::OverQuota(refusal) => item("refused", None, Some(refusal.to_string())),
        Enqueued::NotStored => item("not_stored", None, None),
    }
}

fn refused(problem: Problem) -> ItemResult {
    let (detail, errors) = problem.into_faults();
    let detail = Some(first_detail(&detail, &errors));
    ItemResult { result: "refused", id: None, next_run_at: None, detail, errors }
}

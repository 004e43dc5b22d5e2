//! Reports of a remote worker about its leases: extend, complete, fail. Each item has its own result.

use super::read::{self, LeaseAction};
use crate::http::app::App;
use crate::http::auth::{Caller, May, Work};
use crate::http::input::body::Body;
use crate::http::openapi::types;
use crate::http::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::remote::{self, AttemptResult, HeldAttempt, RemoteWorker};

/// Leases to extend.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseExtension, rename_all = "camelCase", example = json!({"worker": "w1", "results": [{"id": 42, "attempt": 1, "lease": "…"}], "leaseMs": 30000}))]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct ExtendBody {
    /// The worker's name, as it was when the jobs were taken.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -~]+$")]
    worker: String,
    /// Up to 1000 attempts.
    #[schema(max_items = 1000)]
    results: Vec<HeldBody>,
    /// How long the leases last from now; 30000 if absent.
    #[schema(minimum = 1000, maximum = 43_200_000)]
    lease_ms: Option<u64>,
}

/// Attempts that succeeded.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseCompletion, rename_all = "camelCase", example = json!({"worker": "w1", "results": [{"id": 42, "attempt": 1, "lease": "…", "result": {"sent": true}}]}))]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct CompleteBody {
    /// The worker's name, as it was when the jobs were taken.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -~]+$")]
    worker: String,
    /// Up to 1000 attempts.
    #[schema(max_items = 1000)]
    results: Vec<SuccessBody>,
}

/// Attempts that failed, or that are given back.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseFailure, rename_all = "camelCase", example = json!({"worker": "w1", "results": [{"id": 42, "attempt": 1, "lease": "…", "class": "Timeout", "message": "no answer"}]}))]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct FailBody {
    /// The worker's name, as it was when the jobs were taken.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -~]+$")]
    worker: String,
    /// Up to 1000 attempts.
    #[schema(max_items = 1000)]
    results: Vec<FailureBody>,
}

/// An attempt that the worker holds.
#[derive(Debug, ToSchema)]
#[schema(as = HeldAttempt, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct HeldBody {
    /// The job's id.
    #[schema(minimum = 1)]
    id: i64,
    /// The attempt's number.
    #[schema(minimum = 1)]
    attempt: u32,
    /// The lease that came with the job.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    lease: String,
}

/// An attempt that succeeded.
#[derive(Debug, ToSchema)]
#[schema(as = SucceededAttempt, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct SuccessBody {
    /// The job's id.
    #[schema(minimum = 1)]
    id: i64,
    /// The attempt's number.
    #[schema(minimum = 1)]
    attempt: u32,
    /// The lease that came with the job.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    lease: String,
    /// A text up to 8 KiB, stored with the attempt.
    note: Option<String>,
    /// JSON up to 64 KiB, stored with the job.
    #[schema(value_type = types::AnyJson, required = false)]
    result: Option<serde_json::Value>,
}

/// An attempt that failed. At most one of `permanent`, `retryAfter`, `retryIn`, `snooze`, `release` and `cancel`.
#[derive(Debug, ToSchema)]
#[schema(as = FailedAttempt, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct FailureBody {
    /// The job's id.
    #[schema(minimum = 1)]
    id: i64,
    /// The attempt's number.
    #[schema(minimum = 1)]
    attempt: u32,
    /// The lease that came with the job.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    lease: String,
    /// A text up to 8 KiB, stored with the attempt.
    note: Option<String>,
    /// The failure's class, such as `ValidationError`; `Error` if absent.
    class: Option<String>,
    /// What went wrong.
    message: Option<String>,
    /// The stack trace, up to 32 KiB; kept with the attempt and shown on request.
    trace: Option<String>,
    /// Do not retry.
    permanent: Option<bool>,
    /// Retry after at least this long.
    #[schema(value_type = Option<types::Duration>)]
    retry_after: Option<String>,
    /// Retry after exactly this long.
    #[schema(value_type = Option<types::Duration>)]
    retry_in: Option<String>,
    /// Not a failure: attempt the job again after this long.
    #[schema(value_type = Option<types::Duration>)]
    snooze: Option<String>,
    /// Not a failure: the worker stops and gives the job back.
    release: Option<bool>,
    /// With `release`: false if the work on the job never began.
    started: Option<bool>,
    /// End the job as cancelled.
    cancel: Option<bool>,
}

/// The result for each item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answers {
    results: Vec<Answer>,
}

/// The result for one attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answer {
    id: i64,
    attempt: u32,
    /// `ok`; `stale`: the lease was lost, nothing changed; `cancel`: stop working on it.
    result: &'static str,
}

/// Extend leases.
#[utoipa::path(post, path = "/api/v1/leases/extend", operation_id = "extendLeases", tag = "remote workers", request_body = ExtendBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn extend(State(app): State<App>, caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    let (worker, lease_for, items) = read::items(&body, LeaseAction::Extend)?;
    let held: Vec<HeldAttempt> = items.iter().map(|item| item.held).collect();
    let worker = RemoteWorker::new(worker, caller.work_scope());
    Ok(Json(Answers::new(&items, &app.remote().extend(&worker, &held, lease_for).await?)))
}

/// Report that attempts succeeded.
#[utoipa::path(post, path = "/api/v1/leases/complete", operation_id = "completeLeases", tag = "remote workers", request_body = CompleteBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn complete(State(app): State<App>, caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    finish(&app, &caller, &body, LeaseAction::Complete).await
}

/// Report that attempts failed, or give jobs back.
#[utoipa::path(post, path = "/api/v1/leases/fail", operation_id = "failLeases", tag = "remote workers", request_body = FailBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn fail(State(app): State<App>, caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    finish(&app, &caller, &body, LeaseAction::Fail).await
}

async fn finish(app: &App, caller: &Caller, body: &Body, action: LeaseAction) -> Result<Json<Answers>, Problem> {
    let (worker, _, items) = read::items(body, action)?;
    let worker = RemoteWorker::new(worker, caller.work_scope());
    Ok(Json(Answers::new(&items, &app.remote().finish(&worker, &items).await?)))
}

impl Answers {
    fn new(items: &[AttemptResult], answers: &[remote::Answer]) -> Self {
        let answer = |(item, answer): (&AttemptResult, &remote::Answer)| Answer {
            id: item.held.job.0,
            attempt: item.held.attempt,
            result: match answer {
                remote::Answer::Ok => "ok",
                remote::Answer::Stale => "stale",
                remote::Answer::Cancel => "cancel",
            },
        };
        Self { results: items.iter().zip(answers).map(answer).collect() }
    }
}

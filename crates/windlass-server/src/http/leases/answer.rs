//! Reports of a remote worker about its leases: extend, complete, fail. Each item has its own result.

use super::read::{self, LeaseAction};
use crate::http::app::App;
use crate::http::auth::{Caller, May, Work};
use crate::http::input::body::Body;
use crate::http::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::remote::{self, AttemptResult, HeldAttempt, RemoteWorker};

/// Results of attempts.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseResults, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct ResultsBody {
    worker: String,
    results: Vec<ResultBody>,
    /// For `extend`: how long the leases last from now; 30000 if absent.
    lease_ms: Option<u64>,
}

/// One result. `note` and `result` belong to `complete`, the fields below them to `fail`.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseResult, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct ResultBody {
    id: i64,
    attempt: u32,
    lease: String,
    note: Option<String>,
    /// JSON up to 64 KiB, stored with the job.
    #[schema(value_type = Option<Object>)]
    result: Option<serde_json::Value>,
    /// The failure's class, such as `ValidationError`; `Error` if absent.
    class: Option<String>,
    message: Option<String>,
    /// Do not retry.
    permanent: Option<bool>,
    /// Retry after at least this long.
    retry_after: Option<String>,
    /// Retry after exactly this long.
    retry_in: Option<String>,
    /// Not a failure: attempt the job again after this long.
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

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answer {
    id: i64,
    attempt: u32,
    /// `ok`; `stale`: the lease was lost, nothing changed; `cancel`: stop working on it.
    result: &'static str,
}

/// Extend leases.
#[utoipa::path(post, path = "/api/v1/leases/extend", tag = "remote workers", request_body = ResultsBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn extend(State(app): State<App>, caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    let (worker, lease_for, items) = read::items(&body, LeaseAction::Extend)?;
    let held: Vec<HeldAttempt> = items.iter().map(|item| item.held).collect();
    let worker = RemoteWorker::new(worker, caller.work_scope());
    Ok(Json(Answers::new(&items, &app.remote().extend(&worker, &held, lease_for).await?)))
}

/// Report that attempts succeeded.
#[utoipa::path(post, path = "/api/v1/leases/complete", tag = "remote workers", request_body = ResultsBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn complete(State(app): State<App>, caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    finish(&app, &caller, &body, LeaseAction::Complete).await
}

/// Report that attempts failed, or give jobs back.
#[utoipa::path(post, path = "/api/v1/leases/fail", tag = "remote workers", request_body = ResultsBody,
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

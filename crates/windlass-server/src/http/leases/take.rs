//! POST /leases: takes due jobs, or waits until there are some.

use super::read;
use crate::http::app::App;
use crate::http::auth::{May, Work};
use crate::http::connection::connections::{ConnectionSlot, Waiting};
use crate::http::input::body::Body;
use crate::http::openapi::types;
use crate::http::output::problem::{Kind, Problem, ProblemBody};
use crate::http::output::view::raw;
use crate::http::shares::{self, Open};
use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use windlass::protocol::ClaimedJob;
use windlass::telemetry::Tracer;
use windlass_core::Millis;

/// A request for jobs.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseRequest, rename_all = "camelCase", example = json!({"worker": "w1", "queues": ["email"], "max": 10, "waitMs": 5000, "leaseMs": 30000}))]
#[expect(dead_code, reason = "documents what `take` accepts")]
pub(crate) struct LeaseBody {
    /// The worker's name, recorded with each attempt.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -~]+$")]
    worker: String,
    /// Any queue if absent or empty: of the token's queues, if it is limited to some. Naming another one is refused
    /// with 403.
    #[schema(value_type = Option<Vec<types::QueueName>>)]
    queues: Option<Vec<String>>,
    /// The kinds that the worker knows; any kind if absent. Jobs of other kinds stay as they are, so that a worker of
    /// an older version costs no job of a new kind an attempt.
    #[schema(value_type = Option<Vec<types::KindName>>, min_items = 1, max_items = 1000)]
    kinds: Option<Vec<String>>,
    /// 1 to 1000; 1 if absent.
    #[schema(minimum = 1, maximum = 1000)]
    max: Option<u32>,
    /// How long to wait for jobs, up to 60000; 0 if absent.
    #[schema(minimum = 0, maximum = 60000)]
    wait_ms: Option<u64>,
    /// How long the leases last without being extended; 30000 if absent.
    #[schema(minimum = 1000, maximum = 43_200_000)]
    lease_ms: Option<u64>,
}

/// Leased jobs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeasedJobs {
    jobs: Vec<LeasedJob>,
}

/// A leased job, to be run now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeasedJob {
    id: i64,
    attempt: u32,
    /// Required, together with the attempt, to report how the attempt ended.
    lease: String,
    tenant_id: String,
    queue: String,
    kind: String,
    #[schema(value_type = types::AnyJson)]
    payload: Box<RawValue>,
    failures: u32,
    max_attempts: u32,
    delivery: &'static str,
    priority: &'static str,
    /// The same for every attempt.
    idempotency_key: String,
    timeout_ms: Option<u64>,
    lease_ms: u64,
    created_at: String,
    run_at: String,
    schedule_id: Option<i64>,
    /// The W3C trace context to pass on: of this attempt, if the server traces, or of the request that enqueued the
    /// job.
    traceparent: Option<String>,
}

/// Take up to `max` due jobs.
///
/// Waits up to `waitMs` for the first job, or less if the server is busy. Each job has its own lease. Extend the lease
/// while the job runs, and report the result before the lease ends.
#[utoipa::path(post, path = "/api/v1/leases", operation_id = "takeLeases", tag = "remote workers", request_body = LeaseBody,
    responses((status = 200, body = LeasedJobs), (status = 422, body = ProblemBody),
        (status = 403, description = "The token has not the scope `work`, or is not for a queue that the request names", body = ProblemBody),
        (status = 429, description = "Too many requests wait for jobs", body = ProblemBody),
        (status = 503, description = "The server is stopping, or its store cannot be used", body = ProblemBody)))]
pub(crate) async fn take(
    State(app): State<App>,
    caller: May<Work>,
    slot: Option<Extension<ConnectionSlot>>,
    body: Body,
) -> Result<Json<LeasedJobs>, Problem> {
    let request = read::take_request(&body, caller.work_scope())?;
    // An empty answer would hide that such a worker never gets a job of that queue.
    request.queues.iter().try_for_each(|queue| caller.check_queue(queue))?;
    let lease_for = request.lease_for;
    let _counted = shares::open(&app, Open::LongPoll, &caller).await?;
    // Read first: once jobs are claimed, nothing may keep the worker from getting them.
    let installation = app.windlass().installation().await?;
    let waiting = slot.as_ref().map(|slot| slot.waiting());
    let jobs = tokio::select! {
        taken = app.remote().take(request) => taken?,
        // Another client needs the connection. Jobs that were claimed in the meantime are given back.
        () = Waiting::is_over(waiting.as_ref()) => Vec::new(),
        () = caller.is_shut_out(&app) => return Err(Problem::new(Kind::Unauthorized, "the token is revoked or has expired")),
    };
    if jobs.is_empty() && app.draining().is_cancelled() {
        // An empty answer would make the worker ask again at once.
        return Err(Problem::new(Kind::Draining, "the server gives out no more jobs; ask another, or later"));
    }
    let leased = |job: &ClaimedJob| {
        let own = Tracer::of(app.windlass()).map(|tracer| tracer.traceparent_of(job));
        let leased = LeasedJob::new(job, lease_for, &installation);
        LeasedJob { traceparent: own.or(leased.traceparent), ..leased }
    };
    Ok(Json(LeasedJobs { jobs: jobs.iter().map(leased).collect() }))
}

impl LeasedJob {
    fn new(job: &ClaimedJob, lease_for: Millis, installation: &str) -> Self {
        Self {
            id: job.id.0,
            attempt: job.attempt,
            lease: job.lease.to_string(),
            tenant_id: job.tenant.to_string(),
            queue: job.queue.to_string(),
            kind: job.kind.to_string(),
            payload: raw(&job.payload),
            failures: job.failures,
            max_attempts: job.max_attempts(),
            delivery: job.delivery.as_str(),
            priority: job.priority.as_str(),
            idempotency_key: job.stable_key(installation),
            timeout_ms: job.timeout.map(Millis::get),
            lease_ms: lease_for.get(),
            created_at: job.created_at.to_string(),
            run_at: job.due_at.to_string(),
            schedule_id: job.schedule.map(|id| id.0),
            traceparent: job.traceparent().map(str::to_owned),
        }
    }
}

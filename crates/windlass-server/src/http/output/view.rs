//! Jobs and attempts as the API shows them. Secrets are never shown; the payload is shown exactly as the caller sent
//! it.

use crate::http::openapi::types;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use utoipa::ToSchema;
use windlass::Job;
use windlass::client::{Holder, Waiting};
use windlass::http::{mask_headers, mask_url};
use windlass::protocol::{HttpCall, Webhook};
use windlass_core::{Attempt, JobId, Millis, State, Timestamp};

/// A job, live or archived.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Job)]
pub(crate) struct JobView {
    pub(crate) id: i64,
    /// queued, running, retrying, succeeded, failed or cancelled
    state: &'static str,
    tenant_id: String,
    queue: String,
    kind: String,
    /// lowest, low, normal, high or highest
    priority: &'static str,
    /// `AT_LEAST_ONCE` or `AT_MOST_ONCE`
    delivery: &'static str,
    /// The number of attempts claimed so far; while running, the number of the current attempt.
    attempt: u32,
    /// Attempts the policy has counted against the job.
    failures: u32,
    /// Attempts that have ended.
    read_count: u32,
    max_attempts: u32,
    replays: u32,
    /// When the next attempt is due; null while running and once finished.
    next_run_at: Option<String>,
    /// When the job is due, or was last due.
    run_at: String,
    start_by: Option<String>,
    created_at: String,
    first_attempt_at: Option<String>,
    finished_at: Option<String>,
    /// While running: the worker that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// While running: when the attempt was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// While running: when the lease ends, unless the worker renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<String>,
    /// The effective policy, stored with the job.
    #[schema(value_type = types::Policy)]
    retry: Value,
    /// Why the job was given up: permanent, exhausted, deadline, expired, `at_most_once` or `crash_loop`.
    reason: Option<&'static str>,
    /// The class and message of the last failure.
    error_class: Option<String>,
    error: Option<String>,
    timeout_ms: Option<u64>,
    idempotency_key: Option<String>,
    /// What per-key limits, holds and breakers apply to; absent if the job has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_key: Option<String>,
    /// While waiting, and if it could not start now: `runAt`, `retry`, `concurrency`, `rate`, `hold`, `breaker`,
    /// `budget`, `paused`, or `worker` (nobody works its queue).
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<&'static str>,
    /// Until when it waits, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    cancel_requested: bool,
    #[schema(value_type = types::AnyJson)]
    payload: Box<RawValue>,
    #[schema(value_type = types::AnyJson)]
    result: Option<Box<RawValue>>,
    http: Option<CallView>,
    /// Of a job that calls a URL: another system's name for `http.url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<String>,
    /// Of a job that calls a URL: another system's name for `delivery`.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    /// Of a job that calls a URL: false, because a job is one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_recurring: Option<bool>,
    webhook: Option<WebhookView>,
    schedule_id: Option<i64>,
    /// The job that this delivery reports on.
    parent_id: Option<i64>,
    discarded_at: Option<String>,
    discard_reason: Option<String>,
}

/// A call to a URL; headers that look secret are masked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HttpCall)]
pub(crate) struct CallView {
    method: String,
    url: String,
    #[schema(value_type = Object)]
    headers: serde_json::Map<String, Value>,
}

/// A completion webhook; its secret is never shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    url: String,
    events: Vec<&'static str>,
    signed: bool,
    #[schema(value_type = types::Policy)]
    policy: Value,
}

/// One attempt in a job's history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
pub(crate) struct AttemptView {
    /// In the history of a schedule: the run that the attempt belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<i64>,
    attempt: u32,
    retry_count: u32,
    /// `Initial`, `Retry #1`, …; after a replay `Replay 1: Initial`, …
    label: String,
    /// How often the job had been replayed before this attempt.
    replay: u32,
    /// SUCCESS, FAILED, SNOOZED or RELEASED
    status: &'static str,
    execution_time: String,
    duration_ms: u64,
    error_class: Option<String>,
    error: Option<String>,
    note: Option<String>,
    worker: String,
    next_run_at: Option<String>,
    delay_ms: Option<u64>,
    why: String,
    /// The stack trace of the error; only with `?trace=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
}

impl From<&Job> for JobView {
    fn from(job: &Job) -> Self {
        let is_waiting = matches!(job.state, State::Queued | State::Retrying);
        // Deliveries and notices are Windlass's own calls.
        let called = job.http.as_deref().filter(|call| call.webhook_id.is_none());
        Self {
            id: job.id.0,
            state: job.state.as_str(),
            tenant_id: job.tenant.to_string(),
            queue: job.queue.to_string(),
            kind: job.kind.to_string(),
            priority: job.priority.as_str(),
            delivery: job.delivery.as_str(),
            attempt: job.attempt,
            failures: job.failures,
            read_count: job.attempt.saturating_sub(u32::from(job.state == State::Running)),
            max_attempts: job.max_attempts(),
            replays: job.replays,
            next_run_at: is_waiting.then(|| job.due_at.to_string()),
            run_at: job.due_at.to_string(),
            start_by: moment(job.start_by),
            created_at: job.created_at.to_string(),
            first_attempt_at: moment(job.first_attempt_at),
            finished_at: moment(job.finished_at),
            worker: None,
            started_at: None,
            lease_until: None,
            retry: job.policy.to_json(),
            reason: job.reason.map(windlass_core::Reason::as_str),
            error_class: job.error_class.clone(),
            error: job.error.clone(),
            timeout_ms: job.timeout.map(Millis::get),
            idempotency_key: job.idempotency_key.as_deref().map(str::to_owned),
            limit_key: job.limit_key.as_deref().map(str::to_owned),
            waiting_for: None,
            until: None,
            cancel_requested: job.cancel_requested,
            payload: raw(&job.payload),
            result: job.result.as_deref().map(raw),
            http: job.http.as_deref().map(CallView::from).map(|call| call.at(job.shown_url())),
            api: called.and_then(|_| job.shown_url()),
            r#type: called.map(|_| job.delivery.as_str()),
            is_recurring: called.map(|_| false),
            webhook: job.webhook.as_deref().map(WebhookView::from),
            schedule_id: job.schedule.map(|id| id.0),
            parent_id: job.parent.map(|id| id.0),
            discarded_at: moment(job.discarded_at),
            discard_reason: job.discard_reason.clone(),
        }
    }
}

impl JobView {
    /// Adds what the job waits for, if it waits.
    pub(crate) fn waiting(mut self, waiting: &HashMap<JobId, Waiting>) -> Self {
        if let Some(waiting) = waiting.get(&JobId(self.id)) {
            self.waiting_for = Some(waiting.waiting_for.as_str());
            self.until = moment(waiting.until);
        }
        self
    }

    /// Adds who runs the job, if it is running.
    pub(crate) fn held_by(mut self, holders: &[Holder]) -> Self {
        if let Some(holder) = holders.iter().find(|holder| holder.job.0 == self.id) {
            self.worker = Some(holder.worker.clone());
            self.started_at = Some(holder.started_at.to_string());
            self.lease_until = Some(holder.lease_until.to_string());
        }
        self
    }
}

impl From<&HttpCall> for CallView {
    fn from(call: &HttpCall) -> Self {
        let shown = mask_headers(&call.headers).into_iter().map(|(name, value)| (name, Value::String(value)));
        Self { method: call.method.clone(), url: mask_url(&call.url), headers: shown.collect() }
    }
}

impl CallView {
    /// The same call with the URL that its job shows.
    fn at(self, shown: Option<String>) -> Self {
        Self { url: shown.unwrap_or(self.url), ..self }
    }
}

impl From<&Webhook> for WebhookView {
    fn from(webhook: &Webhook) -> Self {
        Self {
            url: mask_url(&webhook.url),
            events: webhook.events.iter().map(|state| state.as_str()).collect(),
            signed: webhook.secret.is_some(),
            policy: webhook.policy.to_json(),
        }
    }
}

impl AttemptView {
    pub(crate) fn new(attempt: &Attempt, of: Option<JobId>) -> Self {
        Self {
            job_id: of.map(|id| id.0),
            attempt: attempt.number,
            retry_count: attempt.retry,
            label: attempt.label(),
            replay: attempt.replay,
            status: attempt.status.as_str(),
            execution_time: attempt.started_at.to_string(),
            duration_ms: attempt.duration().get(),
            error_class: attempt.error_class.clone(),
            error: attempt.error.clone(),
            note: attempt.note.clone(),
            worker: attempt.worker.clone(),
            next_run_at: moment(attempt.next_run_at),
            delay_ms: attempt.delay.map(Millis::get),
            why: attempt.why.clone(),
            trace: None,
        }
    }
}

impl AttemptView {
    /// The same with the stack trace of the error.
    pub(crate) fn traced(self, attempt: &Attempt) -> Self {
        Self { trace: attempt.trace.clone(), ..self }
    }
}

pub(crate) fn moment(moment: Option<Timestamp>) -> Option<String> {
    moment.map(|at| at.to_string())
}

/// JSON as it was stored. A stored text that is not JSON, written by other means, is shown as a string.
pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(text))
        .expect("a string is a JSON value")
}

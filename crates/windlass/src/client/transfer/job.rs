//! A job with its history, as a record.

use super::fields::{Fault, Fields, Result, slim};
use crate::job::{Job, QueueId};
use crate::store::{JobCopy, KeyHeld, json};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::attempt::Status;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Delivery, Executor, Millis, Policy, Priority, Reason, State, Timestamp};

/// The greatest length of a limit key, in characters.
const MAX_KEY: usize = 128;
const STATES: &str = "queued, retrying, succeeded, failed, cancelled";

pub(super) fn to_json(copy: &JobCopy) -> Value {
    let JobCopy { job, attempts, key } = copy;
    let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
    let attempts: Vec<Value> = attempts.iter().map(attempt_to_json).collect();
    slim(json!({
        "id": job.id.0,
        "tenantId": job.tenant.as_str(),
        "queue": job.queue.as_str(),
        "executor": job.executor.as_str(),
        "kind": job.kind.as_str(),
        // Text inside text, so that the handler gets the payload's exact bytes.
        "payload": &*job.payload,
        "priority": job.priority.rank(),
        "state": job.state.as_str(),
        "reason": job.reason.map(Reason::as_str),
        "delivery": job.delivery.as_str(),
        "policy": job.policy.to_string(),
        "attempt": job.attempt,
        "failures": job.failures,
        "crashes": job.crashes,
        "replays": job.replays,
        "createdAt": job.created_at.as_millis(),
        "dueAt": job.due_at.as_millis(),
        "firstAttemptAt": ms(job.first_attempt_at),
        "claimedAt": ms(job.claimed_at),
        "finishedAt": ms(job.finished_at),
        "previousDelay": job.previous_delay.get(),
        "startBy": ms(job.start_by),
        "timeout": job.timeout.map(Millis::get),
        "idempotencyKey": job.idempotency_key.as_deref(),
        "keyHeld": key.map(|held| held.until().map_or_else(|| json!("live"), |until| json!(until.as_millis()))),
        "cancelRequested": job.cancel_requested,
        "errorClass": job.error_class,
        "error": job.error,
        "result": job.result.as_deref(),
        "discardedAt": ms(job.discarded_at),
        "discardReason": job.discard_reason,
        "http": job.http.as_deref().map(|call| parsed(json::call_to_text(call))),
        "webhook": job.webhook.as_deref().map(|webhook| parsed(json::webhook_to_text(webhook))),
        "scheduleId": job.schedule.map(|id| id.0),
        "parentId": job.parent.map(|id| id.0),
        "traceparent": job.traceparent.as_deref(),
        "limitKey": job.limit_key.as_deref(),
        "attempts": attempts,
    }))
}

fn ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

fn attempt_to_json(attempt: &Attempt) -> Value {
    slim(json!({
        "number": attempt.number,
        "retry": attempt.retry,
        "status": attempt.status.as_str(),
        "startedAt": attempt.started_at.as_millis(),
        "finishedAt": attempt.finished_at.as_millis(),
        "errorClass": attempt.error_class,
        "error": attempt.error,
        "note": attempt.note,
        "trace": attempt.trace,
        "replay": attempt.replay,
        "worker": attempt.worker,
        "nextRunAt": ms(attempt.next_run_at),
        "delay": attempt.delay.map(Millis::get),
        "why": attempt.why,
    }))
}

pub(super) fn from_json(value: &Value) -> Result<JobCopy> {
    let f = Fields::new("job", value)?;
    let executor = f.word("executor", Executor::parse, "worker, http")?;
    let payload = f.text("payload")?;
    if serde_json::from_str::<Value>(payload).is_err() {
        return f.fault("payload", "it must be the text of a JSON value");
    }
    let job = Job {
        id: f.id("id")?,
        tenant: f.checked("tenantId", Tenant::new(f.text("tenantId")?))?,
        queue: f.checked("queue", QueueName::new(f.text("queue")?))?,
        // The store has its own.
        queue_id: QueueId(0),
        executor,
        kind: f.checked("kind", Kind::new(f.text("kind")?))?,
        payload: payload.into(),
        priority: priority(&f)?,
        state: f.word("state", |word| State::parse(word).filter(|state| *state != State::Running), STATES)?,
        reason: reason(&f)?,
        delivery: f.word("delivery", Delivery::parse, "AT_LEAST_ONCE, AT_MOST_ONCE")?,
        policy: Arc::new(f.checked("policy", Policy::parse_canonical(f.text("policy")?))?),
        attempt: f.count("attempt")?,
        failures: f.count("failures")?,
        crashes: f.count("crashes")?,
        replays: f.count("replays")?,
        created_at: f.moment("createdAt")?,
        due_at: f.moment("dueAt")?,
        first_attempt_at: f.moment_if("firstAttemptAt")?,
        claimed_at: f.moment_if("claimedAt")?,
        finished_at: f.moment_if("finishedAt")?,
        previous_delay: f.span("previousDelay")?,
        start_by: f.moment_if("startBy")?,
        timeout: f.span_if("timeout")?,
        idempotency_key: f.shared_if("idempotencyKey")?,
        cancel_requested: f.flag("cancelRequested")?,
        error_class: f.owned_if("errorClass")?,
        error: f.owned_if("error")?,
        result: f.shared_if("result")?,
        discarded_at: f.moment_if("discardedAt")?,
        discard_reason: f.owned_if("discardReason")?,
        http: f.stored_if("http", json::call_from_text)?.map(Arc::new),
        webhook: f.stored_if("webhook", json::webhook_from_text)?.map(Arc::new),
        schedule: f.id_if("scheduleId")?,
        parent: f.id_if("parentId")?,
        traceparent: f.shared_if("traceparent")?,
        limit_key: f.shared_if("limitKey")?,
    };
    check(&f, &job)?;
    let attempts = attempts(&f, job.attempt)?;
    Ok(JobCopy { key: key(&f, &job)?, job, attempts })
}

/// What belongs together.
fn check(f: &Fields<'_>, job: &Job) -> Result<()> {
    let is_finished = !job.state.is_live();
    if (job.state == State::Failed) != job.reason.is_some() {
        return f.fault("reason", "failed jobs have one, and no others");
    }
    if is_finished != job.finished_at.is_some() {
        return f.fault("finishedAt", "finished jobs have it, and no others");
    }
    if job.discarded_at.is_some() && job.state != State::Failed {
        return f.fault("discardedAt", "only failed jobs have it");
    }
    if job.state == State::Succeeded && job.attempt == 0 {
        return f.fault("attempt", "a job that succeeded has had an attempt");
    }
    if (job.executor == Executor::Http) != job.http.is_some() {
        return f.fault("http", "jobs with the executor http have it, and no others");
    }
    if job.limit_key.as_deref().is_some_and(|key| key.is_empty() || key.chars().count() > MAX_KEY) {
        return f.fault("limitKey", format!("it must have 1 to {MAX_KEY} characters"));
    }
    Ok(())
}

fn priority(f: &Fields<'_>) -> Result<Priority> {
    let rank = f.value("priority").map_or(Some(0), Value::as_i64);
    rank.and_then(Priority::from_rank).map_or_else(|| f.fault("priority", "it must be a number from -2 to 2"), Ok)
}

fn reason(f: &Fields<'_>) -> Result<Option<Reason>> {
    let accepted = "permanent, exhausted, deadline, expired, at_most_once, crash_loop";
    f.value("reason").map(|_| f.word("reason", Reason::parse, accepted)).transpose()
}

fn key(f: &Fields<'_>, job: &Job) -> Result<Option<KeyHeld>> {
    let Some(held) = f.value("keyHeld") else { return Ok(None) };
    if job.idempotency_key.is_none() {
        return f.fault("keyHeld", "only jobs with an idempotencyKey have it");
    }
    if held.as_str() == Some("live") {
        return Ok(Some(KeyHeld::Live));
    }
    match held.as_u64() {
        Some(_) => f.moment("keyHeld").map(|until| Some(KeyHeld::Until(until))),
        None => f.fault("keyHeld", "it must be `live` or a time in milliseconds"),
    }
}

/// All attempts, which are numbered from 1 without gaps.
fn attempts(f: &Fields<'_>, count: u32) -> Result<Vec<Attempt>> {
    let none = Vec::new();
    let listed = f.value("attempts").map_or(Some(&none), Value::as_array);
    let Some(listed) = listed else { return f.fault("attempts", "it must be a list") };
    let attempts = listed.iter().map(attempt).collect::<Result<Vec<_>>>()?;
    let is_numbered = attempts.iter().zip(1..).all(|(attempt, number)| attempt.number == number);
    if !is_numbered || attempts.len() != count as usize {
        return f.fault("attempts", format!("there must be {count}, as `attempt` says, numbered from 1"));
    }
    Ok(attempts)
}

fn attempt(value: &Value) -> Result<Attempt> {
    let f = Fields::new("job.attempts", value)?;
    let (next_run_at, delay) = (f.moment_if("nextRunAt")?, f.span_if("delay")?);
    if next_run_at.is_some() != delay.is_some() {
        return Err(Fault { field: "job.attempts.delay".into(), why: "it goes with nextRunAt".into() });
    }
    Ok(Attempt {
        number: f.count("number")?,
        retry: f.count("retry")?,
        status: f.word("status", Status::parse, "SUCCESS, FAILED, SNOOZED, RELEASED")?,
        started_at: f.moment("startedAt")?,
        finished_at: f.moment("finishedAt")?,
        error_class: f.owned_if("errorClass")?,
        error: f.owned_if("error")?,
        note: f.owned_if("note")?,
        trace: f.owned_if("trace")?,
        replay: f.count("replay")?,
        worker: f.text("worker")?.to_owned(),
        next_run_at,
        delay,
        why: f.text("why")?.to_owned(),
    })
}

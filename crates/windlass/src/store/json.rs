//! JSON texts in the columns of SQL stores: calls, webhooks, job templates, retention. This file owns those formats;
//! domain types do not depend on them.

use super::StoreError;
use crate::job::{HttpCall, NewJob, RunAt, Webhook};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Delivery, Executor, JobId, Keep, Millis, Policy, Priority, Retention, RetentionLevel, State};

/// A call as text, with everything needed to make it.
#[must_use]
pub fn call_to_text(call: &HttpCall) -> String {
    call_to_json(call).to_string()
}

/// # Errors
/// [`StoreError::Corrupt`] if the text is not one of [`call_to_text`]'s.
pub fn call_from_text(text: &str) -> Result<HttpCall, StoreError> {
    call_from_json(&parse(text)?).ok_or_else(|| corrupt(text))
}

/// The JSON text of a webhook.
#[must_use]
pub fn webhook_to_text(webhook: &Webhook) -> String {
    webhook_to_json(webhook).to_string()
}

/// # Errors
/// [`StoreError::Corrupt`] if the text is not one of [`webhook_to_text`]'s.
pub fn webhook_from_text(text: &str) -> Result<Webhook, StoreError> {
    webhook_from_json(&parse(text)?).ok_or_else(|| corrupt(text))
}

/// A schedule's job template. Times are relative to the firing, so `run_at`, `start_by` and the idempotency key are
/// left out.
#[must_use]
pub fn template_to_text(job: &NewJob) -> String {
    json!({
        "tenant": job.tenant.as_str(),
        "queue": job.queue.as_str(),
        "executor": job.executor.as_str(),
        "kind": job.kind.as_str(),
        // Stored as text inside text, so that the handler gets the payload's exact bytes.
        "payload": &*job.payload,
        "priority": job.priority.rank(),
        "policy": job.policy.to_string(),
        "delivery": job.delivery.as_str(),
        "timeout": job.timeout.map(Millis::get),
        "http": job.http.as_deref().map(call_to_json),
        "webhook": job.webhook.as_deref().map(webhook_to_json),
        "traceparent": job.traceparent.as_deref(),
        "limitKey": job.limit_key.as_deref(),
    })
    .to_string()
}

/// # Errors
/// [`StoreError::Corrupt`] if the text is not one of [`template_to_text`]'s.
pub fn template_from_text(text: &str, schedule: JobId) -> Result<NewJob, StoreError> {
    template_from_json(&parse(text)?, schedule).ok_or_else(|| corrupt(text))
}

/// The retention in a queue's setting: `{"retention":{"succeeded":"7d","failed":"forever",…}}`. Missing or unreadable
/// values fall back to the next level.
#[must_use]
pub fn retention_level(setting: &str) -> RetentionLevel {
    let value: Value = serde_json::from_str(setting).unwrap_or_default();
    let keep = |name: &str| {
        let retention = value.get("retention")?;
        // One text means all three.
        let text = retention.as_str().or_else(|| retention.get(name)?.as_str());
        text.and_then(Keep::parse)
    };
    RetentionLevel { succeeded: keep("succeeded"), cancelled: keep("cancelled"), failed: keep("failed") }
}

/// A queue's retention, from the tenant's own setting and the one for all tenants, where there are any.
#[must_use]
pub fn retention_of(own: Option<&str>, shared: Option<&str>) -> Retention {
    Retention::resolve(own.map(retention_level).unwrap_or_default(), shared.map(retention_level).unwrap_or_default())
}

fn call_to_json(call: &HttpCall) -> Value {
    json!({
        "method": call.method,
        "url": call.url,
        "headers": call.headers,
        "secret": call.secret,
        "webhookId": call.webhook_id,
    })
}

fn call_from_json(value: &Value) -> Option<HttpCall> {
    let fields = value.as_object()?;
    let header = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
    Some(HttpCall {
        method: text(fields, "method")?,
        url: text(fields, "url")?,
        headers: fields.get("headers")?.as_array()?.iter().map(header).collect::<Option<_>>()?,
        secret: text(fields, "secret"),
        webhook_id: text(fields, "webhookId"),
    })
}

fn webhook_to_json(webhook: &Webhook) -> Value {
    let events: Vec<&str> = webhook.events.iter().map(|state| state.as_str()).collect();
    json!({ "url": webhook.url, "events": events, "secret": webhook.secret, "policy": webhook.policy.to_string() })
}

fn webhook_from_json(value: &Value) -> Option<Webhook> {
    let fields = value.as_object()?;
    let event = |word: &Value| State::parse(word.as_str()?);
    Some(Webhook {
        url: text(fields, "url")?,
        events: fields.get("events")?.as_array()?.iter().map(event).collect::<Option<_>>()?,
        secret: text(fields, "secret"),
        policy: Arc::new(Policy::parse_canonical(fields.get("policy")?.as_str()?).ok()?),
    })
}

fn template_from_json(value: &Value, schedule: JobId) -> Option<NewJob> {
    let fields = value.as_object()?;
    let present = |name: &str| fields.get(name).filter(|v| !v.is_null());
    let policy = Policy::parse_canonical(fields.get("policy")?.as_str()?).ok()?;
    Some(NewJob {
        tenant: Tenant::new(fields.get("tenant")?.as_str()?).ok()?,
        queue: QueueName::new(fields.get("queue")?.as_str()?).ok()?,
        executor: Executor::parse(fields.get("executor")?.as_str()?)?,
        priority: Priority::from_rank(fields.get("priority")?.as_i64()?)?,
        run_at: RunAt::Now,
        delivery: Delivery::parse(fields.get("delivery")?.as_str()?)?,
        timeout: present("timeout").and_then(Value::as_u64).map(Millis::new),
        http: present("http").map(|v| call_from_json(v).map(Arc::new)).transpose_some()?,
        webhook: present("webhook").map(|v| webhook_from_json(v).map(Arc::new)).transpose_some()?,
        schedule: Some(schedule),
        traceparent: text(fields, "traceparent").map(Into::into),
        limit_key: text(fields, "limitKey").map(Into::into),
        ..NewJob::new(
            Kind::new(fields.get("kind")?.as_str()?).ok()?,
            fields.get("payload")?.as_str()?,
            Arc::new(policy),
        )
    })
}

/// `Option<Option<T>>` where the inner `None` is an error and the outer one means absent.
trait TransposeSome<T> {
    fn transpose_some(self) -> Option<Option<T>>;
}

impl<T> TransposeSome<T> for Option<Option<T>> {
    fn transpose_some(self) -> Option<Option<T>> {
        match self {
            None => Some(None),
            Some(inner) => inner.map(Some),
        }
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn parse(text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|_| corrupt(text))
}

fn corrupt(text: &str) -> StoreError {
    let start: String = text.chars().take(40).collect();
    StoreError::corrupt(format!("JSON column starting `{start}`"), "columns hold what Windlass wrote")
}

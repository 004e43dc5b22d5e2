//! Completion webhooks: the delivery job that is enqueued by the commit that finishes a job. Pure. The HTTP executor
//! signs and sends.

use crate::job::{HttpCall, Job, NewJob, Webhook};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName};
use windlass_core::{Executor, Millis, Next, Timestamp};

/// The queue of deliveries, one per tenant.
pub const DELIVERY_QUEUE: &str = "webhooks";
/// The kind of a delivery.
pub const DELIVERY_KIND: &str = "webhook";
/// How long a receiver may take to answer.
pub const DELIVERY_TIMEOUT: Millis = Millis::from_secs(30);

/// The results of an attempt that the webhook reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ending<'a> {
    /// The class of the error.
    pub error_class: Option<&'a str>,
    /// The message of the error.
    pub error: Option<&'a str>,
    /// The JSON text of the job's result.
    pub result: Option<&'a str>,
}

/// The delivery to enqueue with the commit that moves `job` to `next`. `None` unless the job finishes and its webhook
/// wants that state.
#[must_use]
pub fn delivery(job: &Job, next: Next, ending: Ending<'_>, now: Timestamp) -> Option<NewJob> {
    let webhook = job.webhook.as_ref()?;
    if next.state().is_live() || !webhook.events.contains(&next.state()) {
        return None;
    }
    // Each time a job finishes it gets one id, so that the receiver can distinguish a repeated delivery from a new one.
    let webhook_id = format!("msg_{}_{}_{}", job.id, job.replays, job.attempt);
    Some(NewJob {
        tenant: job.tenant.clone(),
        queue: QueueName::new(DELIVERY_QUEUE).expect("the delivery queue has a name"),
        executor: Executor::Http,
        timeout: Some(DELIVERY_TIMEOUT),
        http: Some(Arc::new(call(webhook, webhook_id))),
        parent: Some(job.id),
        traceparent: job.traceparent.clone(),
        ..NewJob::new(
            Kind::new(DELIVERY_KIND).expect("the delivery kind has a name"),
            body(job, next, ending, now).to_string(),
            webhook.policy.clone(),
        )
    })
}

fn call(webhook: &Webhook, webhook_id: String) -> HttpCall {
    HttpCall {
        method: "POST".into(),
        url: webhook.url.clone(),
        headers: Vec::new(),
        secret: webhook.secret.clone(),
        webhook_id: Some(webhook_id),
    }
}

fn body(job: &Job, next: Next, ending: Ending<'_>, now: Timestamp) -> Value {
    let state = next.state();
    let reason = match next {
        Next::Failed(reason) => Some(reason.as_str()),
        Next::Succeeded | Next::Cancelled | Next::Wait { .. } => None,
    };
    json!({
        "type": format!("job.{state}"),
        "timestamp": now.to_string(),
        "data": {
            "id": job.id.0,
            "tenantId": job.tenant.as_str(),
            "queue": job.queue.as_str(),
            "kind": job.kind.as_str(),
            "state": state.as_str(),
            "reason": reason,
            "attempt": job.attempt,
            "maxAttempts": job.max_attempts(),
            "errorClass": ending.error_class,
            "error": ending.error,
            "result": ending.result.and_then(|text| serde_json::from_str::<Value>(text).ok()),
            "createdAt": job.created_at.to_string(),
            "finishedAt": now.to_string(),
            "scheduleId": job.schedule.map(|id| id.0),
        },
    })
}

//! Drafts: what a caller asks for, before policy levels are merged and the job is complete.

use crate::job::{HttpCall, Idempotency, Payload, RunAt};
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::Partial;
use windlass_core::{Delivery, JobId, Millis, Priority, State, Timestamp};

/// Largest payload, in bytes of JSON text.
pub const MAX_PAYLOAD: usize = 256 * 1024;
/// Longest idempotency key, in bytes.
pub const MAX_KEY: usize = 255;

/// A job as its caller describes it.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its owner.
    pub tenant: Tenant,
    /// Its queue.
    pub queue: Option<QueueName>,
    /// The kind, which chooses a handler.
    pub kind: Kind,
    /// Its JSON text.
    pub payload: Payload,
    /// Which due jobs of its queue it goes before.
    pub priority: Priority,
    /// When it is due.
    pub run_at: RunAt,
    /// Not started by then, it fails (`expired`).
    pub start_by: Option<Timestamp>,
    /// The job's own fields over the policy it names.
    pub retry: Partial,
    /// How often its effects may happen.
    pub delivery: Delivery,
    /// Longest an attempt may take.
    pub timeout: Option<Millis>,
    /// Its idempotency key.
    pub idempotency: Option<Idempotency>,
    /// Makes it a job that Windlass runs itself, by calling a URL.
    pub http: Option<HttpCall>,
    /// What is called when it has finished.
    pub webhook: Option<WebhookDraft>,
    /// The schedule it is a run of.
    pub schedule: Option<JobId>,
    /// W3C trace context of the producer.
    pub traceparent: Option<Arc<str>>,
    /// What per-key limits, holds and breakers apply to.
    pub limit_key: Option<String>,
}

impl Draft {
    /// A job with default values.
    #[must_use]
    pub fn new(kind: Kind, payload: impl Into<Payload>) -> Self {
        Self {
            tenant: Tenant::default(),
            queue: None,
            kind,
            payload: payload.into(),
            priority: Priority::Normal,
            run_at: RunAt::Now,
            start_by: None,
            retry: Partial::default(),
            delivery: Delivery::AtLeastOnce,
            timeout: None,
            idempotency: None,
            http: None,
            webhook: None,
            schedule: None,
            traceparent: None,
            limit_key: None,
        }
    }
}

/// A completion webhook as its caller describes it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookDraft {
    /// The URL to call.
    pub url: String,
    /// The final states that are reported.
    pub events: Vec<State>,
    /// The secret that signs the calls: `whsec_` and base64.
    pub secret: Option<String>,
    /// The delivery's own fields over the policy it names.
    pub policy: Partial,
}

impl WebhookDraft {
    /// An unsigned webhook for every final state, with the default policy of deliveries.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        let events = vec![State::Succeeded, State::Failed, State::Cancelled];
        Self { url: url.into(), events, secret: None, policy: Partial::default() }
    }
}

/// Leaves out the secret, because debug output may end up in a log.
impl std::fmt::Debug for WebhookDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookDraft").field("url", &self.url).field("events", &self.events).finish_non_exhaustive()
    }
}

/// A draft that cannot become a job: which field, and what would be accepted. Nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftError {
    /// The field, as a path with slashes: `retry/base`.
    pub field: String,
    /// What would be accepted.
    pub message: String,
}

impl std::error::Error for DraftError {}

impl std::fmt::Display for DraftError {
    /// A message that begins with its field does not repeat it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.message.strip_prefix(&self.field) {
            Some(rest) if rest.starts_with(' ') => f.write_str(&self.message),
            Some(_) | None => write!(f, "{}: {}", self.field, self.message),
        }
    }
}

impl DraftError {
    /// The field that is wrong, and what would be accepted.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

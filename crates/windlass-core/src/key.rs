//! Idempotency keys: the answer to a second enqueue with the same key. Pure.

use crate::job::{JobId, Kind};
use crate::sealed::Sealed;
use crate::time::Timestamp;
use serde_json::Value;

/// A used key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    /// The job that was stored under it.
    pub job: JobId,
    /// Until when it is valid; `None`: as long as its job is live.
    pub until: Option<Timestamp>,
    /// Whether its job is live.
    pub is_live: bool,
}

/// The answer to an enqueue with a key that belongs to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyVerdict {
    /// The same request: it gets the first job.
    Existing(JobId),
    /// Another kind or payload: it is refused.
    Conflict(JobId),
}

/// What identifies a request: its kind and payload.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The job's kind.
    pub kind: &'a str,
    /// The job's payload, JSON text.
    pub payload: &'a str,
}

impl<'a> Request<'a> {
    /// The request for a job of this kind and payload.
    #[must_use]
    pub fn new(kind: &'a Kind, payload: &'a str) -> Self {
        Self { kind: kind.as_str(), payload }
    }

    /// Whether both requests are for the same job: the same kind, and payloads that are the same JSON value.
    #[must_use]
    pub fn is_same(self, other: Request<'_>) -> bool {
        self.kind == other.kind && is_same_json(self.payload, other.payload)
    }
}

impl KeyHolder {
    /// Whether the key is still valid.
    #[must_use]
    pub fn stands(&self, now: Timestamp) -> bool {
        self.until.map_or(self.is_live, |until| until > now)
    }

    /// The answer to a request with this key; `None` if the key is free again. `first` is the stored request. It is
    /// `None` if its job is no longer kept: it was accepted once, so it must not be accepted again.
    #[must_use]
    pub fn verdict(&self, first: Option<Request<'_>>, request: Request<'_>, now: Timestamp) -> Option<KeyVerdict> {
        self.stands(now).then(|| judge(self.job, first, request))
    }
}

/// The answer to a request with a key that belongs to `job`.
#[must_use]
pub fn judge(job: JobId, first: Option<Request<'_>>, request: Request<'_>) -> KeyVerdict {
    if first.is_none_or(|first| first.is_same(request)) { KeyVerdict::Existing(job) } else { KeyVerdict::Conflict(job) }
}

/// Whether two texts are the same JSON value.
fn is_same_json(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    if let (Some(a), Some(b)) = (Sealed::parse(a), Sealed::parse(b)) {
        return a.is_same(b);
    }
    match (serde_json::from_str::<Value>(a), serde_json::from_str::<Value>(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

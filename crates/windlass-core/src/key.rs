//! Idempotency keys: what a second enqueue under a key gets. Pure.

use crate::job::{JobId, Kind};
use crate::time::Timestamp;
use serde_json::Value;

/// What a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    /// The job that was stored under it.
    pub job: JobId,
    /// Until when it stands; `None`: as long as its job is live.
    pub until: Option<Timestamp>,
    /// Whether its job is live.
    pub is_live: bool,
}

/// What an enqueue under a key that stands for a job gets.
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

    /// Whether both ask for the same job: the same kind, and payloads that are the same JSON value.
    #[must_use]
    pub fn is_same(self, other: Request<'_>) -> bool {
        self.kind == other.kind && is_same_json(self.payload, other.payload)
    }
}

impl KeyHolder {
    /// Whether the key still stands for its job.
    #[must_use]
    pub fn stands(&self, now: Timestamp) -> bool {
        self.until.map_or(self.is_live, |until| until > now)
    }

    /// What a request under this key gets; `None` if the key is free again. `first` is the stored request, `None` if its job is
    /// no longer kept: it was accepted once, so it must not be accepted again.
    #[must_use]
    pub fn verdict(&self, first: Option<Request<'_>>, request: Request<'_>, now: Timestamp) -> Option<KeyVerdict> {
        self.stands(now).then(|| judge(self.job, first, request))
    }
}

/// What a request gets under a key that stands for `job`.
#[must_use]
pub fn judge(job: JobId, first: Option<Request<'_>>, request: Request<'_>) -> KeyVerdict {
    if first.is_none_or(|first| first.is_same(request)) { KeyVerdict::Existing(job) } else { KeyVerdict::Conflict(job) }
}

/// Whether two texts are the same JSON value.
fn is_same_json(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (serde_json::from_str::<Value>(a), serde_json::from_str::<Value>(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

//! A span: one step of a trace, complete.

use super::{SpanId, TraceContext};
use crate::job::Job;
use windlass_core::Timestamp;

/// One step of a trace, from its start to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace and its own id.
    pub context: TraceContext,
    /// The span it is part of.
    pub parent: Option<SpanId>,
    /// What happened, in few words: `attempt email`.
    pub name: String,
    /// Its place between processes.
    pub kind: SpanKind,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Facts, under the names that logs use. Never payloads or secrets.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// How it ended.
    pub status: SpanStatus,
}

/// The place of a span between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that was answered here.
    Server,
    /// A call that was made from here.
    Client,
    /// An attempt of a job.
    Consumer,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for SpanValue {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl From<u32> for SpanValue {
    fn from(number: u32) -> Self {
        Self::Whole(number.into())
    }
}

impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// How a span ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    /// Neither well nor badly: a snoozed or cancelled attempt.
    Unset,
    /// Well.
    Ok,
    /// Badly, and why.
    Error(String),
}

/// What became of the spans that a sink was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanCounts {
    /// Spans that a collector has accepted.
    pub exported: u64,
    /// Spans that were dropped: the queue was full, or no collector accepted them.
    pub dropped: u64,
}

/// Which attempt of which job a span is about, under the names that logs use.
pub(super) fn job_facts(job: &Job) -> Vec<(&'static str, SpanValue)> {
    vec![
        ("jobId", job.id.0.into()),
        ("tenantId", job.tenant.as_str().into()),
        ("queue", job.queue.as_str().into()),
        ("kind", job.kind.as_str().into()),
        ("attempt", job.attempt.into()),
    ]
}

//! What the pages of queues show.

use crate::dashboard::plot::{Svg, spark};
use crate::dashboard::show::{self, Moment};
use serde_json::Value;
use windlass::client::{QueueStatus, Tally};
use windlass_core::Timestamp;

/// A queue.
#[derive(Debug)]
pub(super) struct QueueRow {
    pub(super) tenant: String,
    pub(super) name: String,
    pub(super) paused: bool,
    pub(super) due: String,
    pub(super) running: String,
    pub(super) later: String,
    pub(super) dead: String,
    pub(super) has_dead: bool,
    pub(super) waiting: u64,
    pub(super) oldest: Option<Moment>,
    pub(super) enqueued: String,
    pub(super) succeeded: String,
    pub(super) retried: String,
    pub(super) failed: String,
    pub(super) spark: Svg,
    /// The most that run at once, and all limits in words; absent without limits.
    pub(super) most: Option<u64>,
    pub(super) limits: Option<String>,
}

impl QueueRow {
    pub(super) fn new(queue: &QueueStatus, counts: Option<&[Tally]>, steps: usize, now: Timestamp) -> Self {
        let mut attempts: Vec<u64> =
            counts.unwrap_or_default().iter().map(|tally| tally.attempts.max(0) as u64).collect();
        attempts.resize(steps, 0);
        Self {
            tenant: queue.tenant.to_string(),
            name: queue.name.to_string(),
            paused: queue.paused,
            due: show::number(queue.due),
            running: show::number(queue.running),
            later: show::number(queue.later),
            dead: show::number(queue.dead),
            has_dead: queue.dead > 0,
            waiting: queue.due + queue.later,
            oldest: Moment::some(queue.oldest_due, now),
            enqueued: show::rate(queue.rates.enqueued),
            succeeded: show::rate(queue.rates.succeeded),
            retried: show::rate(queue.rates.retried),
            failed: show::rate(queue.rates.failed),
            spark: spark("Attempts in the last hour", &attempts),
            most: queue.flow.get("limits").and_then(|limits| limits.get("concurrency")).and_then(Value::as_u64),
            limits: (!queue.flow.is_empty()).then(|| super::limits::in_words(&queue.flow, None)),
        }
    }
}

/// The state of a queue in words.
#[derive(Debug)]
pub(super) struct Sentence(pub(super) String);

impl Sentence {
    pub(super) fn new(queue: &QueueRow) -> Self {
        let paused = if queue.paused { "Paused: none of its jobs start. " } else { "" };
        Self(format!(
            "{paused}{} due, {} running, {} later, {} dead letters.",
            queue.due, queue.running, queue.later, queue.dead
        ))
    }
}

//! The span of an attempt. Its place in a trace is derived from what every node knows about it: the job's context or
//! id, and the lease.

use super::span::job_facts;
use super::{Span, SpanId, SpanKind, SpanStatus, SpanValue, TraceContext, TraceId, Tracer};
use crate::event::{Ended, loggable};
use crate::job::{ClaimedJob, Job, LeaseId};
use crate::leases::text::clean;
use sha2::{Digest as _, Sha256};
use windlass_core::failure::WORKER_LOST;
use windlass_core::{JobId, Next, Status};

/// An attempt in its trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptTrace {
    pub context: TraceContext,
    pub parent: Option<SpanId>,
}

impl Tracer {
    /// The `traceparent` that an attempt hands on: to its handler, and to a worker elsewhere.
    #[must_use]
    pub fn traceparent_of(&self, job: &ClaimedJob) -> String {
        self.attempt(&job.job, job.lease).context.to_string()
    }

    pub(crate) fn attempt(&self, job: &Job, lease: LeaseId) -> AttemptTrace {
        let given = job.traceparent.as_deref().and_then(TraceContext::parse);
        match given {
            // Nobody looks for a span of its own in a trace that is not recorded.
            Some(context) if !context.is_sampled => AttemptTrace { context, parent: None },
            Some(given) => AttemptTrace { context: given.with_span(span_of(job, lease)), parent: Some(given.span) },
            None => {
                let trace = self.trace_of(job.parent.unwrap_or(job.id));
                let is_sampled = self.share.picks(trace);
                AttemptTrace { context: TraceContext { trace, span: span_of(job, lease), is_sampled }, parent: None }
            }
        }
    }

    /// The trace of a job that was enqueued without one. Its attempts and its delivery share it.
    fn trace_of(&self, id: JobId) -> TraceId {
        let hash = Sha256::new_with_prefix("windlass trace").chain_update([0]).chain_update(&*self.installation);
        let hash = hash.chain_update(id.0.to_be_bytes()).finalize();
        TraceId::new(first(&hash))
    }

    /// Hands over the span of an attempt that has ended.
    pub(crate) fn attempt_ended(&self, ended: &Ended<'_>, lease: LeaseId, worker: &str) {
        let job = ended.job;
        let AttemptTrace { context, parent } = self.attempt(job, lease);
        if !context.is_sampled {
            return;
        }
        self.record(Span {
            context,
            parent,
            name: format!("attempt {}", job.kind),
            kind: SpanKind::Consumer,
            started_at: ended.started_at,
            ended_at: ended.finished_at,
            attributes: facts(ended, worker),
            status: status(ended),
        });
    }
}

fn facts(ended: &Ended<'_>, worker: &str) -> Vec<(&'static str, SpanValue)> {
    let (job, transition) = (ended.job, &ended.transition);
    let mut facts = job_facts(job);
    facts.extend([
        ("maxAttempts", job.max_attempts().into()),
        ("retry", job.failures.into()),
        ("worker", worker.into()),
        ("waitMs", ended.started_at.since(job.due_at).get().into()),
        ("elapsedMs", ended.finished_at.since(ended.started_at).get().into()),
        ("outcome", outcome(ended).into()),
        ("state", transition.next.state().as_str().into()),
    ]);
    let mut add = |name, value: Option<SpanValue>| facts.extend(value.map(|value| (name, value)));
    add("errorClass", ended.error_class.map(|class| clean(class).into()));
    // The name that tracing tools know.
    add("error.type", ended.error_class.map(|class| clean(class).into()));
    match transition.next {
        Next::Wait { due_at, delay, .. } => {
            add("nextRunAt", Some(due_at.to_string().into()));
            add("delayMs", Some(delay.get().into()));
        }
        Next::Failed(reason) => add("verdict", Some(reason.as_str().into())),
        Next::Succeeded | Next::Cancelled => {}
    }
    add("scheduleId", job.schedule.map(|id| id.0.into()));
    add("parentId", job.parent.map(|id| id.0.into()));
    facts
}

/// How the attempt ended, in the word of the glossary.
fn outcome(ended: &Ended<'_>) -> &'static str {
    match (ended.transition.status, ended.transition.next) {
        (Status::Succeeded, _) => "succeeded",
        (Status::Snoozed, _) => "snoozed",
        (Status::Released, _) => "released",
        (Status::Failed, Next::Cancelled) => "cancelled",
        (Status::Failed, _) if ended.error_class == Some(WORKER_LOST) => "lost",
        (Status::Failed, _) => "failed",
    }
}

fn status(ended: &Ended<'_>) -> SpanStatus {
    match (ended.transition.status, ended.transition.next) {
        (Status::Succeeded, _) => SpanStatus::Ok,
        (Status::Snoozed | Status::Released, _) | (Status::Failed, Next::Cancelled) => SpanStatus::Unset,
        (Status::Failed, _) => {
            let text = ended.error.and_then(|error| loggable(ended.job, ended.error_class, error));
            let text = text.as_deref().or(ended.error_class).unwrap_or("failed");
            SpanStatus::Error(clean(text))
        }
    }
}

/// Leases are secrets of their holders: the id of a span does not show them.
fn span_of(job: &Job, lease: LeaseId) -> SpanId {
    let hash = Sha256::new_with_prefix("windlass span").chain_update([0]).chain_update(lease.0.to_be_bytes());
    let hash = hash.chain_update(job.id.0.to_be_bytes()).chain_update(job.attempt.to_be_bytes()).finalize();
    SpanId::new(u64::from_be_bytes(first(&hash)))
}

fn first<const N: usize>(hash: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(hash).for_each(|(byte, from)| *byte = *from);
    bytes
}

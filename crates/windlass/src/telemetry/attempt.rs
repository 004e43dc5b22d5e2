//! The span of an attempt. Its place in a trace is derived from what every node knows about it: the job's context or
//! id, and the lease.

use super::span::job_facts;
use super::{NOT_RECORDED, Span, SpanId, SpanKind, SpanStatus, SpanValue, TraceContext, TraceId, Tracer};
use crate::event::{Ended, loggable};
use crate::job::{ClaimedJob, Job, LeaseId};
use crate::leases::text::clean;
use sha2::{Digest as _, Sha256};
use windlass_core::failure::WORKER_LOST;
use windlass_core::{JobId, Next, Status};

/// What the ids of this installation's own traces are made from: its id, hashed once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed([u64; 3]);

impl Seed {
    pub(super) fn of(installation: &str) -> Self {
        let hash = Sha256::new_with_prefix("windlass trace").chain_update([0]).chain_update(installation).finalize();
        Self([0, 8, 16].map(|from| u64::from_be_bytes(first(&hash[from..]))))
    }

    /// The trace of a job, the same on every node, and a span in it. Mixed rather than hashed: each is as likely as any
    /// other, which is all that a share needs, and this runs for every attempt.
    fn ids(self, id: JobId) -> (TraceId, SpanId) {
        let [high, low, span] = self.0.map(|seed| mixed(seed ^ id.0.cast_unsigned()));
        let trace = u128::from(high) << 64 | u128::from(low);
        (TraceId::new(trace.to_be_bytes()), SpanId::new(span))
    }
}

/// The finalizer of SplitMix64: every bit of the number changes half of the bits of the result.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

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
        let text = job.traceparent.as_deref();
        let given = text.and_then(TraceContext::parse);
        let context = given.unwrap_or_else(|| {
            // Its attempts and its delivery share the trace of a job that was stored without one.
            let (trace, span) = self.seed.ids(job.parent.unwrap_or(job.id));
            TraceContext { trace, span, is_sampled: text != Some(NOT_RECORDED) && self.share.picks(trace) }
        });
        // Nobody looks for a span of its own in a trace that is not recorded, so the hash is saved.
        if !context.is_sampled {
            return AttemptTrace { context, parent: None };
        }
        AttemptTrace { context: context.with_span(span_of(job, lease)), parent: given.map(|given| given.span) }
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

#[cfg(test)]
mod tests {
    use super::Seed;
    use std::collections::HashSet;
    use windlass_core::JobId;
    use windlass_core::trace_context::SampleShare;

    #[test]
    fn jobs_have_traces_of_their_own_and_a_share_of_them_is_a_share() {
        let share = SampleShare::parse("0.01").unwrap();
        let mut traces = HashSet::new();
        for installation in ["one", "two", "three"] {
            let seed = Seed::of(installation);
            let ids: Vec<_> = (1..=100_000).map(|id| seed.ids(JobId(id))).collect();
            let picked = ids.iter().filter(|(trace, _)| share.picks(*trace)).count();
            // Four standard deviations of what chance would pick.
            assert!((874..=1126).contains(&picked), "{picked} of {installation}");
            assert_eq!(seed.ids(JobId(7)), Seed::of(installation).ids(JobId(7)), "on every node");
            traces.extend(ids);
        }
        assert_eq!(traces.len(), 300_000);
    }
}

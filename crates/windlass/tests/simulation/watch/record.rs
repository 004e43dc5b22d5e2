//! The record: what the stores were asked and said, kept outside of them. It follows every job with rules of its own,
//! as far as they can be stated without the library's, and remembers the first promise that was broken.

use crate::model::swarm::Limits;
use std::collections::{BTreeMap, BTreeSet};
use windlass::core::job::{QueueName, Tenant};
use windlass::core::{Delivery, JobId, Millis, State, Status, Timestamp};
use windlass::low_level::job::{Job, LeaseId, NewJob};
use windlass::low_level::stores::WorkerId;

#[derive(Debug, Default)]
pub struct Record {
    pub jobs: BTreeMap<JobId, Known>,
    pub leases: BTreeMap<LeaseId, Lease>,
    pub paused: BTreeSet<(Tenant, QueueName)>,
    /// Firings that enqueued a run, by nominal time; and runs that operators triggered.
    pub fired: BTreeSet<(JobId, Timestamp)>,
    /// Bodies and ids that receivers of webhooks saw, by delivery.
    pub received: BTreeMap<JobId, (String, String)>,
    pub counts: Counts,
    /// The first promise that was broken.
    pub broken: Option<String>,
    /// Whether a lost attempt would be a broken promise: nothing that may cost a lease happens.
    pub none_may_be_lost: bool,
    /// How long finished jobs are kept at least.
    pub retention: Millis,
    /// How many attempts of a queue, and of a limit key, may run at once.
    pub limits: Option<Limits>,
}

/// What happened, in numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub calls: u64,
    pub starts: u64,
    pub lost: u64,
    pub stale: u64,
    pub repeated: u64,
    pub operations: u64,
    pub firings: u64,
}

#[derive(Debug)]
pub struct Lease {
    pub worker: WorkerId,
    pub expires_at: Timestamp,
    pub length: Millis,
}

/// A job as it should be.
#[derive(Debug)]
pub struct Known {
    pub id: JobId,
    pub new: NewJob,
    pub state: State,
    pub attempt: u32,
    pub failures: u32,
    pub crashes: u32,
    pub replays: u32,
    pub created_at: Timestamp,
    pub due_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// When the first attempt of this allowance was claimed.
    pub first_attempt_at: Option<Timestamp>,
    pub start_by: Option<Timestamp>,
    pub open: Option<LeaseId>,
    pub cancel_requested: bool,
    pub discarded: bool,
    pub pruned: bool,
    pub lines: Vec<Line>,
    /// Attempts whose handlers started, with the allowance they belong to.
    pub starts: Vec<(u32, u32)>,
    /// How often it finished in a state its webhook reports.
    pub reported: usize,
}

/// One line that the ledger must have.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Line {
    pub number: u32,
    pub retry: u32,
    pub status: Status,
}

impl Record {
    /// Remembers a broken promise; the first one counts.
    pub fn breaks(&mut self, promise: impl Into<String>) {
        self.broken.get_or_insert_with(|| promise.into());
    }

    pub fn demand(&mut self, holds: bool, promise: impl FnOnce() -> String) {
        if !holds {
            self.breaks(promise());
        }
    }

    /// A new job was stored.
    pub fn stored(&mut self, id: JobId, new: &NewJob, now: Timestamp) {
        let due_at = new.run_at.moment(now);
        let known = Known {
            id,
            new: new.clone(),
            state: State::Queued,
            attempt: 0,
            failures: 0,
            crashes: 0,
            replays: 0,
            created_at: now,
            due_at,
            finished_at: None,
            first_attempt_at: None,
            start_by: new.start_by,
            open: None,
            cancel_requested: false,
            discarded: false,
            pruned: false,
            lines: Vec::new(),
            starts: Vec::new(),
            reported: 0,
        };
        let is_new = self.jobs.insert(id, known).is_none();
        self.demand(is_new, || format!("job {id} was stored twice: ids are never reused"));
    }

    /// A handler starts an attempt.
    pub fn started(&mut self, job: &Job) {
        let (id, attempt, replays) = (job.id, job.attempt, job.replays);
        self.counts.starts += 1;
        let Some(known) = self.jobs.get_mut(&id) else { return self.breaks(format!("phantom job {id} started")) };
        let is_again = known.starts.iter().any(|(number, _)| *number == attempt);
        let is_second = known.new.delivery == Delivery::AtMostOnce && known.starts.iter().any(|(_, r)| *r == replays);
        known.starts.push((attempt, replays));
        self.demand(!is_again, || format!("attempt {attempt} of job {id} started twice"));
        self.demand(!is_second, || format!("at-most-once job {id} started a second time, as attempt {attempt}"));
    }

    /// A receiver got a delivery.
    pub fn received(&mut self, job: &Job) {
        let webhook_id = job.http.as_ref().and_then(|call| call.webhook_id.clone()).unwrap_or_default();
        let seen = (webhook_id, job.payload.to_string());
        let first = self.received.entry(job.id).or_insert_with(|| seen.clone());
        let is_same = *first == seen;
        let is_shared = self.received.iter().any(|(id, (webhook, _))| *id != job.id && *webhook == seen.0);
        self.demand(is_same, || format!("delivery {} was sent with another webhook-id or body: {}", job.id, seen.0));
        self.demand(!is_shared, || format!("two deliveries share the webhook-id {}", seen.0));
    }

    pub fn live(&self) -> usize {
        self.jobs.values().filter(|known| known.state.is_live()).count()
    }
}

impl Known {
    /// The job ended in `state`. Whether a delivery must have been enqueued.
    pub fn finish(&mut self, state: State, now: Timestamp) -> bool {
        self.state = state;
        self.finished_at = Some(now);
        self.open = None;
        let is_reported = self.new.webhook.as_ref().is_some_and(|webhook| webhook.events.contains(&state));
        self.reported += usize::from(is_reported);
        is_reported
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Queued | State::Retrying)
    }

    /// Past its `start_by` before its first attempt.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.first_attempt_at.is_none() && self.start_by.is_some_and(|by| by <= now)
    }

    /// Where the stored job differs from what it should be.
    pub fn differs(&self, job: &Job) -> Option<String> {
        let mut differences = Differences(Vec::new());
        differences.note("state", &job.state, &self.state);
        differences.note("attempt", &job.attempt, &self.attempt);
        differences.note("failures", &job.failures, &self.failures);
        differences.note("replays", &job.replays, &self.replays);
        differences.note("tenant", &job.tenant, &self.new.tenant);
        differences.note("has a reason", &job.reason.is_some(), &(self.state == State::Failed));
        differences.note("discarded", &job.discarded_at.is_some(), &self.discarded);
        if self.state.is_live() {
            differences.note("crashes", &job.crashes, &self.crashes);
            differences.note("cancelRequested", &job.cancel_requested, &self.cancel_requested);
            differences.note("due time", &job.due_at, &self.due_at);
        }
        (!differences.0.is_empty()).then(|| format!("job {}: {}", self.id, differences.0.join("; ")))
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn note<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, stored: &T, expected: &T) {
        if stored != expected {
            self.0.push(format!("{what} is {stored:?}, should be {expected:?}"));
        }
    }
}

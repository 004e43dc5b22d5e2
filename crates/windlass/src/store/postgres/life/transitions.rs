//! Transitions as arrays, as the statements of `commit.sql` take them.

use crate::fingerprint::{fingerprint, normalise};
use crate::job::LeaseId;
use crate::store::postgres::statements::arrays::arrays;
use crate::store::postgres::upkeep::partitions::Class;
use crate::store::{Commit, Keep};
use windlass_core::job::{Kind, QueueName};
use windlass_core::{JobId, Millis, Next, State, Timestamp};

arrays!(
    /// Jobs that finish, as the statement `finish` takes them.
    Finishes<'a> {
        id: i64,
        attempt: i32,
        lease: Option<i64>,
        stands: bool,
        class: &'static str,
        state: &'static str,
        reason: Option<&'static str>,
        finished_at: Option<i64>,
        failures: i32,
        crashes: i32,
        error_class: Option<&'a str>,
        error: Option<&'a str>,
        result: Option<&'a str>,
        fingerprint: Option<String>,
        message: Option<String>,
        keep: bool,
        has_attempt: bool,
        status: Option<&'static str>,
        retry: Option<i32>,
        started_at: Option<i64>,
        worker: Option<&'a str>,
        why: Option<String>,
        note: Option<&'a str>,
        trace: Option<&'a str>,
    }
);

arrays!(
    /// Jobs that finish with a plain success, as the statement `succeed` takes them.
    Successes<'a> {
        id: i64,
        attempt: i32,
        lease: i64,
        retry: i32,
        started_at: i64,
        finished_at: i64,
        worker: &'a str,
    }
);

arrays!(
    /// Jobs that wait for another attempt, as the statement `wait` takes them.
    Waits<'a> {
        id: i64,
        attempt: i32,
        lease: i64,
        state: &'static str,
        due_at: i64,
        delay: i64,
        failures: i32,
        crashes: i32,
        error_class: Option<&'a str>,
        error: Option<&'a str>,
        status: &'static str,
        retry: i32,
        started_at: i64,
        finished_at: i64,
        worker: &'a str,
        why: String,
        note: Option<&'a str>,
        /// `None` leaves what the job remembers.
        remembered_delay: Option<i64>,
        trace: Option<&'a str>,
    }
);

/// How a job ends: what `finish` needs, with or without an attempt.
pub(in crate::store::postgres) struct Ending<'a> {
    pub(in crate::store::postgres) id: JobId,
    pub(in crate::store::postgres) attempt: u32,
    pub(in crate::store::postgres) lease: Option<LeaseId>,
    pub(in crate::store::postgres) stands: bool,
    pub(in crate::store::postgres) next: Next,
    pub(in crate::store::postgres) failures: u32,
    pub(in crate::store::postgres) crashes: u32,
    pub(in crate::store::postgres) keep: Keep,
    /// Class and message of the dead letter.
    pub(in crate::store::postgres) error: (Option<&'a str>, Option<&'a str>),
    pub(in crate::store::postgres) kind: &'a Kind,
    pub(in crate::store::postgres) queue: &'a QueueName,
}

impl<'a> Finishes<'a> {
    pub(in crate::store::postgres) fn end(&mut self, ending: &Ending<'_>) {
        let state = ending.next.state();
        let is_failed = state == State::Failed;
        let (class, message) = (ending.error.0.unwrap_or_default(), ending.error.1.unwrap_or_default());
        self.id.push(ending.id.0);
        self.attempt.push(ending.attempt as i32);
        self.lease.push(ending.lease.map(|lease| lease.0));
        self.stands.push(ending.stands);
        self.class.push(Class::of(state).unwrap_or(Class::Done).as_str());
        self.state.push(state.as_str());
        self.reason.push(match ending.next {
            Next::Failed(reason) => Some(reason.as_str()),
            Next::Succeeded | Next::Cancelled | Next::Wait { .. } => None,
        });
        self.failures.push(ending.failures as i32);
        self.crashes.push(ending.crashes as i32);
        self.fingerprint.push(is_failed.then(|| fingerprint(class, message, ending.kind, ending.queue)));
        self.message.push(is_failed.then(|| normalise(message)));
        self.keep.push(ending.keep != Keep::Drop);
    }

    pub(in crate::store::postgres) fn with_attempt(&mut self, commit: &'a Commit) {
        self.finished_at.push(Some(commit.finished_at.as_millis()));
        self.error_class.push(commit.error_class.as_deref());
        self.error.push(commit.error.as_deref());
        self.result.push(commit.result.as_deref());
        self.has_attempt.push(true);
        self.status.push(Some(commit.transition.status.as_str()));
        self.retry.push(Some(commit.retry as i32));
        self.started_at.push(Some(commit.started_at.as_millis()));
        self.worker.push(Some(&commit.worker));
        self.why.push(Some(commit.transition.why.to_string()));
        self.note.push(commit.note.as_deref());
        self.trace.push(commit.trace.as_deref());
    }

    pub(in crate::store::postgres) fn without_attempt(&mut self) {
        self.finished_at.push(None);
        self.error_class.push(None);
        self.error.push(None);
        self.result.push(None);
        self.has_attempt.push(false);
        self.status.push(None);
        self.retry.push(None);
        self.started_at.push(None);
        self.worker.push(None);
        self.why.push(None);
        self.note.push(None);
        self.trace.push(None);
    }
}

impl<'a> Successes<'a> {
    pub(in crate::store::postgres) fn push(&mut self, commit: &'a Commit) {
        self.id.push(commit.job.0);
        self.attempt.push(commit.attempt as i32);
        self.lease.push(commit.lease.0);
        self.retry.push(commit.retry as i32);
        self.started_at.push(commit.started_at.as_millis());
        self.finished_at.push(commit.finished_at.as_millis());
        self.worker.push(&commit.worker);
    }
}

impl<'a> Waits<'a> {
    pub(in crate::store::postgres) fn push(
        &mut self,
        commit: &'a Commit,
        state: State,
        due_at: Timestamp,
        delay: Millis,
    ) {
        let transition = &commit.transition;
        self.id.push(commit.job.0);
        self.attempt.push(commit.attempt as i32);
        self.lease.push(commit.lease.0);
        self.state.push(state.as_str());
        self.due_at.push(due_at.as_millis());
        self.delay.push(delay.get() as i64);
        self.failures.push(transition.failures as i32);
        self.crashes.push(transition.crashes as i32);
        self.error_class.push(commit.error_class.as_deref());
        self.error.push(commit.error.as_deref());
        self.status.push(transition.status.as_str());
        self.retry.push(commit.retry as i32);
        self.started_at.push(commit.started_at.as_millis());
        self.finished_at.push(commit.finished_at.as_millis());
        self.worker.push(&commit.worker);
        self.why.push(transition.why.to_string());
        self.note.push(commit.note.as_deref());
        self.trace.push(commit.trace.as_deref());
        self.remembered_delay.push(transition.next.remembered_delay().map(|delay| delay.get() as i64));
    }
}

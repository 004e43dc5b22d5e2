//! Transitions as arrays, as the statements of `commit.sql` take them.

use crate::fingerprint::{Left, fingerprint, normalise};
use crate::job::Job;
use crate::store::postgres::life::fence::Held;
use crate::store::postgres::statements::arrays::arrays;
use crate::store::{Commit, Keep};
use windlass_core::job::{Kind, QueueName};
use windlass_core::{Millis, Next, State, Timestamp};

arrays!(
    /// First attempts of one lease that succeed plainly, as the statement `succeed_first` takes them.
    Firsts<'a> {
        id: i64,
        queue: i64,
        started_at: i64,
        finished_at: i64,
    }
);

arrays!(
    /// Attempts of one lease that succeed plainly, as the statement `succeed` takes them.
    Successes<'a> {
        id: i64,
        queue: i64,
        started_at: i64,
        finished_at: i64,
        number: i32,
        retry: i32,
        due_at: Option<i64>,
        first_attempt_at: i64,
        previous_delay: Option<i64>,
        replays: Option<i32>,
        priority: Option<i16>,
    }
);

arrays!(
    /// Attempts that end their jobs, as the statement `finish` takes them.
    Finishes<'a> {
        id: i64,
        lease: i64,
        claimed_at: i64,
        started_at: i64,
        finished_at: i64,
        number: i32,
        retry: i32,
        worker: &'a str,
        status: &'static str,
        why: String,
        error_class: Option<&'a str>,
        error: Option<&'a str>,
        note: Option<&'a str>,
        state: &'static str,
        queue: i64,
        due_at: Option<i64>,
        first_attempt_at: i64,
        previous_delay: Option<i64>,
        failures: i32,
        crashes: i32,
        replays: Option<i32>,
        priority: Option<i16>,
        cancel_requested: bool,
        reason: Option<&'static str>,
        result: Option<&'a str>,
        fingerprint: Option<String>,
        message: Option<String>,
        keep: bool,
        trace: Option<&'a str>,
    }
);

arrays!(
    /// Attempts after which their jobs wait, as the statement `wait` takes them.
    Waits<'a> {
        id: i64,
        lease: i64,
        claimed_at: i64,
        started_at: i64,
        finished_at: i64,
        number: i32,
        retry: i32,
        worker: &'a str,
        status: &'static str,
        why: String,
        next_run_at: i64,
        delay: i64,
        error_class: Option<&'a str>,
        error: Option<&'a str>,
        note: Option<&'a str>,
        trace: Option<&'a str>,
        replay: Option<i32>,
    }
);

arrays!(
    /// Jobs that wait again, as the statement `wait_again` takes them.
    Waiting<'a> {
        id: i64,
        due_at: i64,
        /// `None`: as it was stored.
        priority: Option<i16>,
        is_retrying: bool,
        attempt: i32,
        failures: i32,
        crashes: i32,
        replays: Option<i32>,
        previous_delay: Option<i64>,
        first_attempt_at: i64,
    }
);

arrays!(
    /// Waiting jobs that end without an attempt, as the statement `end_waiting` takes them.
    Endings<'a> {
        id: i64,
        number: i32,
        state: &'static str,
        reason: Option<&'static str>,
        queue: i64,
        due_at: i64,
        first_attempt_at: Option<i64>,
        previous_delay: i64,
        failures: i32,
        crashes: i32,
        replays: i32,
        priority: i16,
        fingerprint: Option<String>,
        message: Option<String>,
    }
);

impl Firsts<'_> {
    pub(in crate::store::postgres) fn push(&mut self, commit: &Commit) {
        self.id.push(commit.job.0);
        self.queue.push(commit.queue.0);
        self.started_at.push(commit.started_at.as_millis());
        self.finished_at.push(commit.finished_at.as_millis());
    }
}

impl Successes<'_> {
    pub(in crate::store::postgres) fn push(&mut self, commit: &Commit, held: &Held) {
        self.id.push(commit.job.0);
        self.queue.push(commit.queue.0);
        self.started_at.push(commit.started_at.as_millis());
        self.finished_at.push(commit.finished_at.as_millis());
        self.number.push(held.attempt);
        self.retry.push(commit.retry as i32);
        self.due_at.push(held.due_at);
        self.first_attempt_at.push(held.began_at());
        self.previous_delay.push(held.previous_delay);
        self.replays.push(held.replays);
        self.priority.push(held.priority);
    }
}

/// What a dead letter is known by: class and message of its error, its kind and its queue.
pub(in crate::store::postgres) struct Dead<'a> {
    pub(in crate::store::postgres) error: (Option<&'a str>, Option<&'a str>),
    pub(in crate::store::postgres) trace: Option<&'a str>,
    pub(in crate::store::postgres) kind: &'a Kind,
    pub(in crate::store::postgres) queue: &'a QueueName,
}

impl Dead<'_> {
    /// The fingerprint and message of a job that ends in this state, if it fails.
    pub(in crate::store::postgres) fn marks(&self, state: State) -> (Option<String>, Option<String>) {
        if state != State::Failed {
            return (None, None);
        }
        let (class, message) = (self.error.0.unwrap_or_default(), self.error.1.unwrap_or_default());
        let left = Left { class, message, trace: self.trace };
        (Some(fingerprint(left, self.kind, self.queue)), Some(normalise(message)))
    }
}

const fn reason(next: Next) -> Option<&'static str> {
    match next {
        Next::Failed(reason) => Some(reason.as_str()),
        Next::Succeeded | Next::Cancelled | Next::Wait { .. } => None,
    }
}

impl<'a> Finishes<'a> {
    pub(in crate::store::postgres) fn push(&mut self, commit: &'a Commit, held: &Held, dead: &Dead<'_>, keep: Keep) {
        let transition = &commit.transition;
        let state = transition.next.state();
        let (fingerprint, message) = dead.marks(state);
        self.id.push(commit.job.0);
        self.lease.push(commit.lease.0);
        self.claimed_at.push(held.claimed_at);
        self.started_at.push(commit.started_at.as_millis());
        self.finished_at.push(commit.finished_at.as_millis());
        self.number.push(held.attempt);
        self.retry.push(commit.retry as i32);
        self.worker.push(&commit.worker);
        self.status.push(transition.status.as_str());
        self.why.push(transition.why.to_string());
        self.error_class.push(commit.error_class.as_deref());
        self.error.push(commit.error.as_deref());
        self.note.push(commit.note.as_deref());
        self.state.push(state.as_str());
        self.queue.push(commit.queue.0);
        self.due_at.push(held.due_at);
        self.first_attempt_at.push(held.began_at());
        self.previous_delay.push(held.previous_delay);
        self.failures.push(transition.failures as i32);
        self.crashes.push(transition.crashes as i32);
        self.replays.push(held.replays);
        self.priority.push(held.priority);
        self.cancel_requested.push(held.is_cancelled);
        self.reason.push(reason(transition.next));
        self.result.push(commit.result.as_deref());
        self.fingerprint.push(fingerprint);
        self.message.push(message);
        self.keep.push(keep != Keep::Drop);
        self.trace.push(commit.trace.as_deref());
    }
}

impl<'a> Waits<'a> {
    pub(in crate::store::postgres) fn push(
        &mut self,
        commit: &'a Commit,
        held: &Held,
        due_at: Timestamp,
        delay: Millis,
    ) {
        let transition = &commit.transition;
        self.id.push(commit.job.0);
        self.lease.push(commit.lease.0);
        self.claimed_at.push(held.claimed_at);
        self.started_at.push(commit.started_at.as_millis());
        self.finished_at.push(commit.finished_at.as_millis());
        self.number.push(held.attempt);
        self.retry.push(commit.retry as i32);
        self.worker.push(&commit.worker);
        self.status.push(transition.status.as_str());
        self.why.push(transition.why.to_string());
        self.next_run_at.push(due_at.as_millis());
        self.delay.push(delay.get() as i64);
        self.error_class.push(commit.error_class.as_deref());
        self.error.push(commit.error.as_deref());
        self.note.push(commit.note.as_deref());
        self.trace.push(commit.trace.as_deref());
        self.replay.push(held.replays);
    }
}

impl Waiting<'_> {
    pub(in crate::store::postgres) fn push(&mut self, commit: &Commit, held: &Held, state: State, due_at: Timestamp) {
        let transition = &commit.transition;
        let remembered = transition.next.remembered_delay().map(|delay| delay.get() as i64);
        self.id.push(commit.job.0);
        self.due_at.push(due_at.as_millis());
        self.priority.push(held.priority);
        self.is_retrying.push(state == State::Retrying);
        self.attempt.push(held.attempt);
        self.failures.push(transition.failures as i32);
        self.crashes.push(transition.crashes as i32);
        self.replays.push(held.replays);
        self.previous_delay.push(remembered.or(held.previous_delay));
        self.first_attempt_at.push(held.began_at());
    }
}

impl Endings<'_> {
    pub(in crate::store::postgres) fn push(&mut self, job: &Job, next: Next) {
        let state = next.state();
        let error = (job.error_class.as_deref(), job.error.as_deref());
        let (fingerprint, message) = Dead { error, trace: None, kind: &job.kind, queue: &job.queue }.marks(state);
        self.id.push(job.id.0);
        self.number.push(job.attempt as i32);
        self.state.push(state.as_str());
        self.reason.push(reason(next));
        self.queue.push(job.queue_id.0);
        self.due_at.push(job.due_at.as_millis());
        self.first_attempt_at.push(job.first_attempt_at.map(Timestamp::as_millis));
        self.previous_delay.push(job.previous_delay.get() as i64);
        self.failures.push(job.failures as i32);
        self.crashes.push(job.crashes as i32);
        self.replays.push(job.replays as i32);
        self.priority.push(job.priority.rank());
        self.fingerprint.push(fingerprint);
        self.message.push(message);
    }
}

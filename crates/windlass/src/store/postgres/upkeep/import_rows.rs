//! The rows of imported jobs and schedules, as their statements take them.

use crate::job::Job;
use crate::store::json::{call_to_text, template_to_text, webhook_to_text};
use crate::store::postgres::life::names::Numbers;
use crate::store::postgres::life::transitions::Dead;
use crate::store::postgres::statements::arrays::arrays;
use crate::store::{JobCopy, Recurrence, Schedule};
use std::collections::HashMap;
use windlass_core::{Delivery, Millis, Reason, State, Timestamp};

arrays!(
    ScheduleRows<'a> {
        id: i64,
        tenant: &'a str,
        cadence: &'a str,
        zone: &'a str,
        one_shot: bool,
        overlap: &'a str,
        missed: &'a str,
        dead_letters: &'a str,
        template: String,
        paused: bool,
        next_at: Option<i64>,
        last_at: Option<i64>,
        last_job: Option<i64>,
        last_dead: Option<i64>,
        created_at: i64,
    }
);

arrays!(
    /// What is known of jobs when they are stored.
    JobRows<'a> {
        id: i64,
        queue: i64,
        due_at: i64,
        created_at: i64,
        policy: i64,
        start_by: Option<i64>,
        timeout: Option<i64>,
        schedule: Option<i64>,
        parent: Option<i64>,
        priority: i16,
        at_most_once: bool,
        kind: &'a str,
        payload: &'a str,
        key: Option<&'a str>,
        http: Option<String>,
        webhook: Option<String>,
        traceparent: Option<&'a str>,
        limit_key: Option<&'a str>,
    }
);

arrays!(
    /// How jobs wait.
    WaitingRows<'a> {
        id: i64,
        queue: i64,
        due_at: i64,
        priority: i16,
        at_most_once: bool,
        is_retrying: bool,
        start_by: Option<i64>,
        attempt: Option<i32>,
        failures: Option<i32>,
        crashes: Option<i32>,
        replays: Option<i32>,
        previous_delay: Option<i64>,
        first_attempt_at: Option<i64>,
    }
);

arrays!(
    /// Attempts that have ended.
    LedgerRows<'a> {
        job: i64,
        claimed_at: Option<i64>,
        started_at: i64,
        finished_at: i64,
        number: i32,
        retry: i32,
        worker: &'a str,
        status: &'a str,
        why: &'a str,
        next_run_at: Option<i64>,
        delay: Option<i64>,
        error_class: Option<&'a str>,
        error: Option<&'a str>,
        note: Option<&'a str>,
        trace: Option<&'a str>,
        replay: i32,
    }
);

arrays!(
    /// How jobs ended.
    OutcomeRows<'a> {
        id: i64,
        number: i32,
        state: &'a str,
        reason: Option<&'a str>,
        queue: i64,
        ended_at: Option<i64>,
        due_at: i64,
        first_attempt_at: Option<i64>,
        previous_delay: i64,
        failures: i32,
        crashes: i32,
        replays: i32,
        priority: i16,
        cancel_requested: bool,
        result: Option<&'a str>,
        fingerprint: Option<String>,
        message: Option<String>,
        discarded_at: Option<i64>,
        discard_reason: Option<&'a str>,
    }
);

arrays!(
    Keys<'a> {
        tenant: &'a str,
        key: &'a str,
        job: i64,
        until: Option<i64>,
    }
);

arrays!(
    /// How many live jobs and dead letters queues have got.
    Balances<'a> {
        queue: i64,
        live: i64,
        dead: i64,
    }
);

fn ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

const fn count(number: u32) -> i32 {
    // Imported numbers were checked when they were read.
    number as i32
}

const fn length(span: Millis) -> i64 {
    span.get() as i64
}

/// Whether a job is a dead letter.
pub(super) fn is_dead(job: &Job) -> bool {
    job.state == State::Failed && job.discarded_at.is_none()
}

impl<'a> ScheduleRows<'a> {
    pub(super) fn of(schedules: &'a [Schedule]) -> Self {
        let mut rows = Self::default();
        for schedule in schedules {
            let spec = &schedule.spec;
            rows.id.push(schedule.id.0);
            rows.tenant.push(spec.tenant.as_str());
            rows.cadence.push(&spec.cadence);
            rows.zone.push(&spec.zone);
            rows.one_shot.push(spec.recurrence == Recurrence::OneShot);
            rows.overlap.push(spec.overlap.as_str());
            rows.missed.push(spec.missed.as_str());
            rows.dead_letters.push(spec.dead_letters.as_str());
            rows.template.push(template_to_text(&spec.template));
            rows.paused.push(schedule.paused);
            rows.next_at.push(ms(schedule.next_at));
            rows.last_at.push(ms(schedule.last_at));
            rows.last_job.push(schedule.last_job.map(|id| id.0));
            rows.last_dead.push(schedule.last_dead.map(|id| id.0));
            rows.created_at.push(schedule.created_at.as_millis());
        }
        rows
    }
}

impl<'a> JobRows<'a> {
    pub(super) fn of(jobs: &'a [JobCopy], numbers: &[Numbers]) -> Self {
        let mut rows = Self::default();
        for (JobCopy { job, .. }, numbers) in jobs.iter().zip(numbers) {
            rows.id.push(job.id.0);
            rows.queue.push(numbers.queue);
            rows.due_at.push(job.due_at.as_millis());
            rows.created_at.push(job.created_at.as_millis());
            rows.policy.push(numbers.policy);
            rows.start_by.push(ms(job.start_by));
            rows.timeout.push(job.timeout.map(length));
            rows.schedule.push(job.schedule.map(|id| id.0));
            rows.parent.push(job.parent.map(|id| id.0));
            rows.priority.push(job.priority.rank());
            rows.at_most_once.push(job.delivery == Delivery::AtMostOnce);
            rows.kind.push(job.kind.as_str());
            rows.payload.push(&job.payload);
            rows.key.push(job.idempotency_key.as_deref());
            rows.http.push(job.http.as_deref().map(call_to_text));
            rows.webhook.push(job.webhook.as_deref().map(webhook_to_text));
            rows.traceparent.push(job.traceparent.as_deref());
            rows.limit_key.push(job.limit_key.as_deref());
        }
        rows
    }
}

impl WaitingRows<'_> {
    pub(super) fn push(&mut self, job: &Job, queue: i64) {
        // A job that was never claimed or replayed has nothing but NULL here.
        let is_fresh = job.attempt == 0 && job.replays == 0 && job.failures == 0 && job.first_attempt_at.is_none();
        let number = |number: u32| (!is_fresh).then_some(count(number));
        self.id.push(job.id.0);
        self.queue.push(queue);
        self.due_at.push(job.due_at.as_millis());
        self.priority.push(job.priority.rank());
        self.at_most_once.push(job.delivery == Delivery::AtMostOnce);
        self.is_retrying.push(job.state == State::Retrying);
        self.start_by.push(ms(job.start_by.filter(|_| job.first_attempt_at.is_none())));
        self.attempt.push(number(job.attempt));
        self.failures.push(number(job.failures));
        self.crashes.push(number(job.crashes));
        self.replays.push(number(job.replays));
        self.previous_delay.push((!is_fresh).then_some(length(job.previous_delay)));
        self.first_attempt_at.push(ms(job.first_attempt_at));
    }
}

impl<'a> LedgerRows<'a> {
    pub(super) fn push(&mut self, copy: &'a JobCopy) {
        for attempt in &copy.attempts {
            let is_last = attempt.number == copy.job.attempt;
            self.job.push(copy.job.id.0);
            self.claimed_at.push(ms(copy.job.claimed_at.filter(|_| is_last)));
            self.started_at.push(attempt.started_at.as_millis());
            self.finished_at.push(attempt.finished_at.as_millis());
            self.number.push(count(attempt.number));
            self.retry.push(count(attempt.retry));
            self.worker.push(&attempt.worker);
            self.status.push(attempt.status.as_str());
            self.why.push(&attempt.why);
            self.next_run_at.push(ms(attempt.next_run_at));
            self.delay.push(attempt.delay.map(length));
            self.error_class.push(attempt.error_class.as_deref());
            self.error.push(attempt.error.as_deref());
            self.note.push(attempt.note.as_deref());
            self.trace.push(attempt.trace.as_deref());
            self.replay.push(count(attempt.replay));
        }
    }
}

impl<'a> OutcomeRows<'a> {
    pub(super) fn push(&mut self, copy: &'a JobCopy, queue: i64) {
        let job = &copy.job;
        let error = (job.error_class.as_deref(), job.error.as_deref());
        let dead = Dead { error, trace: copy.last_trace(), kind: &job.kind, queue: &job.queue };
        let (fingerprint, message) = dead.marks(job.state);
        self.id.push(job.id.0);
        self.number.push(count(job.attempt));
        self.state.push(job.state.as_str());
        self.reason.push(job.reason.map(Reason::as_str));
        self.queue.push(queue);
        self.ended_at.push(ms(job.finished_at));
        self.due_at.push(job.due_at.as_millis());
        self.first_attempt_at.push(ms(job.first_attempt_at));
        self.previous_delay.push(length(job.previous_delay));
        self.failures.push(count(job.failures));
        self.crashes.push(count(job.crashes));
        self.replays.push(count(job.replays));
        self.priority.push(job.priority.rank());
        self.cancel_requested.push(job.cancel_requested);
        self.result.push(job.result.as_deref());
        self.fingerprint.push(fingerprint);
        self.message.push(message);
        self.discarded_at.push(ms(job.discarded_at));
        self.discard_reason.push(job.discard_reason.as_deref());
    }
}

impl<'a> Keys<'a> {
    pub(super) fn push(&mut self, copy: &'a JobCopy) {
        if let (Some(held), Some(key)) = (copy.key, &copy.job.idempotency_key) {
            self.tenant.push(copy.job.tenant.as_str());
            self.key.push(key);
            self.job.push(copy.job.id.0);
            self.until.push(ms(held.until()));
        }
    }
}

impl Balances<'_> {
    pub(super) fn of(balances: HashMap<i64, (i64, i64)>) -> Self {
        let mut rows = Self::default();
        for (queue, (live, dead)) in balances {
            rows.queue.push(queue);
            rows.live.push(live);
            rows.dead.push(dead);
        }
        rows
    }
}

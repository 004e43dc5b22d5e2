//! Rows ⇄ domain: what columns mean. Queues and policies are looked up by number in `names`.

use crate::job::{Job, LeaseId, Payload, QueueId, Webhook};
use crate::store::json::{call_from_text, template_from_text, webhook_from_text};
use crate::store::{Missed, Overlap, Queue, Recurrence, Schedule, ScheduleSpec, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use windlass_core::attempt::Status;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Delivery, Executor, JobId, Millis, Policy, Priority, Reason, State, Timestamp};

/// Reads columns one after another.
pub(in crate::store::postgres) struct Columns<'a> {
    row: &'a Row,
    place: usize,
}

impl<'a> Columns<'a> {
    pub(in crate::store::postgres) fn new(row: &'a Row) -> Self {
        Self::from(row, 0)
    }

    pub(in crate::store::postgres) fn from(row: &'a Row, place: usize) -> Self {
        Self { row, place }
    }

    pub(in crate::store::postgres) fn next<T: FromSql<'a>>(&mut self) -> Result<T, StoreError> {
        let place = self.place;
        self.place += 1;
        self.row.try_get(place).map_err(|error| StoreError::corrupt(format!("column {place}"), error.to_string()))
    }

    fn skip(&mut self) {
        self.place += 1;
    }

    pub(in crate::store::postgres) fn text(&mut self) -> Result<&'a str, StoreError> {
        self.next()
    }

    pub(in crate::store::postgres) fn count(&mut self) -> Result<u32, StoreError> {
        let number: i32 = self.next()?;
        u32::try_from(number).map_err(|_| StoreError::corrupt(format!("count {number}"), "counts are not negative"))
    }

    pub(in crate::store::postgres) fn moment(&mut self) -> Result<Timestamp, StoreError> {
        self.next().map(Timestamp::from_millis)
    }

    pub(in crate::store::postgres) fn moment_if(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.next::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    pub(in crate::store::postgres) fn span_if(&mut self) -> Result<Option<Millis>, StoreError> {
        Ok(self.next::<Option<i64>>()?.map(|ms| Millis::new(ms.max(0) as u64)))
    }

    pub(in crate::store::postgres) fn id_if(&mut self) -> Result<Option<JobId>, StoreError> {
        Ok(self.next::<Option<i64>>()?.map(JobId))
    }

    fn string_if(&mut self) -> Result<Option<String>, StoreError> {
        self.next()
    }

    fn shared_if(&mut self) -> Result<Option<Arc<str>>, StoreError> {
        Ok(self.next::<Option<&str>>()?.map(Into::into))
    }

    fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let word = self.text()?;
        parse(word).ok_or_else(|| unknown_word(word))
    }
}

/// The queues and policies that rows refer to by number.
pub(in crate::store::postgres) struct Known {
    pub(in crate::store::postgres) queues: HashMap<i64, Arc<Queue>>,
    pub(in crate::store::postgres) policies: HashMap<i64, Arc<Policy>>,
    /// Policies of jobs that the SQL function enqueued and nobody has claimed yet, by their line.
    pub(in crate::store::postgres) lines: HashMap<Line, Arc<Policy>>,
    /// Their tenants' webhooks, by queue.
    pub(in crate::store::postgres) webhooks: HashMap<i64, Arc<Webhook>>,
}

/// The queue, kind and retry line of a job whose policy is not settled yet.
pub(in crate::store::postgres) type Line = (i64, String, String);

/// Where a job's queue, policy and line stand in a row that begins with a job at `first`.
pub(in crate::store::postgres) fn references(row: &Row, first: usize) -> Result<(i64, Result<i64, Line>), StoreError> {
    let broken = |error: tokio_postgres::Error| StoreError::corrupt("job", error.to_string());
    let queue = row.try_get(first + 1).map_err(broken)?;
    if let Some(policy) = row.try_get(first + 8).map_err(broken)? {
        return Ok((queue, Ok(policy)));
    }
    let kind = row.try_get(first + 2).map_err(broken)?;
    let line: Option<String> = row.try_get(first + 9).map_err(broken)?;
    Ok((queue, Err((queue, kind, line.unwrap_or_default()))))
}

/// A job, in the order of `sql::JOB`, from column `first` on.
pub(in crate::store::postgres) fn job(row: &Row, first: usize, known: &Known) -> Result<Job, StoreError> {
    let mut c = Columns::from(row, first);
    let id = JobId(c.next()?);
    let queue_id: i64 = c.next()?;
    let queue = known.queues.get(&queue_id).ok_or_else(|| missing(id, "its queue exists"))?;
    Ok(Job {
        id,
        tenant: queue.tenant.clone(),
        queue: queue.name.clone(),
        queue_id: QueueId(queue_id),
        executor: queue.executor,
        kind: Kind::new(c.text()?).map_err(|error| StoreError::corrupt(format!("job {id}"), error.to_string()))?,
        payload: Payload::from(c.text()?),
        priority: Priority::from_rank(c.next::<i16>()?.into()).ok_or_else(|| missing(id, "priorities are -2..=2"))?,
        state: c.word(State::parse)?,
        reason: c
            .next::<Option<&str>>()?
            .map(|word| Reason::parse(word).ok_or_else(|| unknown_word(word)))
            .transpose()?,
        delivery: if c.next()? { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        policy: policy(&mut c, row, first, known)
            .and_then(|found| found.ok_or_else(|| missing(id, "its policy exists")))?,
        attempt: c.count()?,
        failures: c.count()?,
        crashes: c.count()?,
        replays: c.count()?,
        created_at: c.moment()?,
        due_at: c.moment()?,
        first_attempt_at: c.moment_if()?,
        claimed_at: c.moment_if()?,
        finished_at: c.moment_if()?,
        previous_delay: c.span_if()?.unwrap_or_default(),
        start_by: c.moment_if()?,
        timeout: c.span_if()?,
        idempotency_key: c.shared_if()?,
        cancel_requested: c.next()?,
        error_class: {
            // The lease, which `lease_of` reads.
            c.skip();
            c.string_if()?
        },
        error: c.string_if()?,
        result: c.shared_if()?,
        discarded_at: c.moment_if()?,
        discard_reason: c.string_if()?,
        http: c.next::<Option<&str>>()?.map(|text| call_from_text(text).map(Arc::new)).transpose()?,
        webhook: match c.next::<Option<&str>>()? {
            Some(text) => Some(Arc::new(webhook_from_text(text)?)),
            // Empty but for the jobs of SQL callers, which nobody has completed yet.
            None if known.webhooks.is_empty() || references(row, first)?.1.is_ok() => None,
            None => known.webhooks.get(&queue_id).cloned(),
        },
        schedule: c.id_if()?,
        parent: c.id_if()?,
        traceparent: c.shared_if()?,
    })
}

/// The lease of the running job that begins at column `first`.
pub(in crate::store::postgres) fn lease_of(row: &Row, first: usize) -> Result<LeaseId, StoreError> {
    const LEASE_AT: usize = 24;
    let lease = row.try_get(first + LEASE_AT);
    lease.map(LeaseId).map_err(|error| StoreError::corrupt("running job", error.to_string()))
}

fn policy(c: &mut Columns<'_>, row: &Row, first: usize, known: &Known) -> Result<Option<Arc<Policy>>, StoreError> {
    let id: Option<i64> = c.next()?;
    c.skip();
    Ok(match id {
        Some(id) => known.policies.get(&id).cloned(),
        None => match references(row, first)?.1 {
            Ok(_) => None,
            Err(line) => known.lines.get(&line).cloned(),
        },
    })
}

/// An attempt and its job, in the order of `sql::ATTEMPT`.
pub(in crate::store::postgres) fn attempt(row: &Row) -> Result<(JobId, Attempt), StoreError> {
    let mut c = Columns::new(row);
    let job = JobId(c.next()?);
    let attempt = Attempt {
        number: c.count()?,
        retry: c.count()?,
        status: c.word(Status::parse)?,
        started_at: c.moment()?,
        finished_at: c.moment()?,
        error_class: c.string_if()?,
        error: c.string_if()?,
        note: c.string_if()?,
        worker: c.next()?,
        next_run_at: c.moment_if()?,
        delay: c.span_if()?,
        why: c.next()?,
    };
    Ok((job, attempt))
}

pub(in crate::store::postgres) fn queue(row: &Row) -> Result<Queue, StoreError> {
    let mut c = Columns::new(row);
    Ok(Queue {
        id: QueueId(c.next()?),
        tenant: c.word(|text| Tenant::new(text).ok())?,
        name: c.word(|text| QueueName::new(text).ok())?,
        executor: c.word(Executor::parse)?,
        paused: c.next()?,
        created_at: c.moment()?,
    })
}

/// A schedule, in the order of `sql::SCHEDULE`.
pub(in crate::store::postgres) fn schedule(row: &Row) -> Result<Schedule, StoreError> {
    let mut c = Columns::new(row);
    let id = JobId(c.next()?);
    let spec = ScheduleSpec {
        tenant: c.word(|text| Tenant::new(text).ok())?,
        cadence: c.next()?,
        zone: c.next()?,
        recurrence: if c.next()? { Recurrence::OneShot } else { Recurrence::Recurring },
        overlap: c.word(Overlap::parse)?,
        missed: c.word(Missed::parse)?,
        template: template_from_text(c.text()?, id)?,
    };
    Ok(Schedule {
        id,
        spec,
        paused: c.next()?,
        next_at: c.moment_if()?,
        last_at: c.moment_if()?,
        last_job: c.id_if()?,
        created_at: c.moment()?,
    })
}

fn unknown_word(word: &str) -> StoreError {
    StoreError::corrupt(format!("word `{word}`"), "columns hold words Windlass knows")
}

fn missing(id: JobId, rule: &str) -> StoreError {
    StoreError::corrupt(format!("job {id}"), rule)
}

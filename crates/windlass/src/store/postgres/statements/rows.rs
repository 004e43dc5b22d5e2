//! Rows to domain values: what columns mean. Queues and policies are looked up by number in `names`.

use crate::job::{ClaimedJob, Job, LeaseId, Payload, QueueId, Webhook};
use crate::store::json::{call_from_text, template_from_text, webhook_from_text};
use crate::store::postgres::statements::columns::{AttemptColumn, Columns, JobColumn, QueueColumn, ScheduleColumn};
use crate::store::postgres::statements::row::Row;
use crate::store::{DeadRuns, Missed, Overlap, Queue, Recurrence, Schedule, ScheduleSpec, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::attempt::Status;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Delivery, Executor, JobId, Policy, Priority, Reason, State};

/// The queues and policies that rows refer to by number.
pub(in crate::store::postgres) struct Known {
    pub(in crate::store::postgres) queues: HashMap<i64, Arc<Queue>>,
    pub(in crate::store::postgres) policies: HashMap<i64, Arc<Policy>>,
    /// Policies of jobs that the SQL function enqueued and nobody has claimed yet, by their line.
    pub(in crate::store::postgres) lines: HashMap<Line, Arc<Policy>>,
    /// Their tenants' webhooks, by queue.
    pub(in crate::store::postgres) webhooks: HashMap<i64, Arc<Webhook>>,
}

/// The queue, kind and retry line of a job whose policy is not fixed yet.
pub(in crate::store::postgres) type Line = (i64, String, String);

/// The queue of a job's row, and its policy's number or, if it has none yet, its line.
pub(in crate::store::postgres) fn references(row: &Row) -> Result<(i64, Result<i64, Line>), StoreError> {
    let c = Columns::new(row);
    let queue = c.get(JobColumn::QueueId)?;
    if let Some(policy) = c.get(JobColumn::PolicyId)? {
        return Ok((queue, Ok(policy)));
    }
    let line: Option<String> = c.get(JobColumn::RetryLine)?;
    Ok((queue, Err((queue, c.get(JobColumn::Kind)?, line.unwrap_or_default()))))
}

/// A job, from a row that begins with the columns of one.
pub(in crate::store::postgres) fn job(row: &Row, known: &Known) -> Result<Job, StoreError> {
    use JobColumn as C;
    let c = Columns::new(row);
    let id = JobId(c.get(C::Id)?);
    let queue_id: i64 = c.get(C::QueueId)?;
    let queue = known.queues.get(&queue_id).ok_or_else(|| missing(id, "its queue exists"))?;
    let corrupt = |error: windlass_core::NameError| StoreError::corrupt(format!("job {id}"), error.to_string());
    let reason = |word| Reason::parse(word).ok_or_else(|| missing(id, "reasons are known words"));
    Ok(Job {
        id,
        tenant: queue.tenant.clone(),
        queue: queue.name.clone(),
        queue_id: QueueId(queue_id),
        executor: queue.executor,
        kind: Kind::new(c.text(C::Kind)?).map_err(corrupt)?,
        payload: Payload::from(c.text(C::Payload)?),
        priority: Priority::from_rank(c.get::<i16>(C::Priority)?.into())
            .ok_or_else(|| missing(id, "priorities are -2..=2"))?,
        state: c.word(C::State, State::parse)?,
        reason: c.get::<Option<&str>>(C::Reason)?.map(reason).transpose()?,
        delivery: if c.get(C::AtMostOnce)? { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        policy: policy(row, known)?.ok_or_else(|| missing(id, "its policy exists"))?,
        attempt: c.count(C::Attempt)?,
        failures: c.count(C::Failures)?,
        crashes: c.count(C::Crashes)?,
        replays: c.count(C::Replays)?,
        created_at: c.moment(C::CreatedAt)?,
        due_at: c.moment(C::DueAt)?,
        first_attempt_at: c.moment_if(C::FirstAttemptAt)?,
        claimed_at: c.moment_if(C::ClaimedAt)?,
        finished_at: c.moment_if(C::FinishedAt)?,
        previous_delay: c.span_if(C::PreviousDelay)?.unwrap_or_default(),
        start_by: c.moment_if(C::StartBy)?,
        timeout: c.span_if(C::TimeoutMs)?,
        idempotency_key: c.shared_if(C::IdempotencyKey)?,
        cancel_requested: c.get(C::CancelRequested)?,
        error_class: c.get(C::ErrorClass)?,
        error: c.get(C::Error)?,
        result: c.shared_if(C::Result)?,
        discarded_at: c.moment_if(C::DiscardedAt)?,
        discard_reason: c.get(C::DiscardReason)?,
        http: c.get::<Option<&str>>(C::Http)?.map(|text| call_from_text(text).map(Arc::new)).transpose()?,
        webhook: webhook(row, queue_id, known)?,
        schedule: c.id_if(C::ScheduleId)?,
        parent: c.id_if(C::ParentId)?,
        traceparent: c.shared_if(C::Traceparent)?,
        limit_key: c.shared_if(C::LimitKey)?,
    })
}

/// A running job, from a row that begins with the columns of one.
pub(in crate::store::postgres) fn claimed(row: &Row, known: &Known) -> Result<ClaimedJob, StoreError> {
    let lease = LeaseId(Columns::new(row).get(JobColumn::LeaseId)?);
    Ok(ClaimedJob { job: job(row, known)?, lease, is_probe: false })
}

fn policy(row: &Row, known: &Known) -> Result<Option<Arc<Policy>>, StoreError> {
    Ok(match Columns::new(row).get::<Option<i64>>(JobColumn::PolicyId)? {
        Some(id) => known.policies.get(&id).cloned(),
        None => match references(row)?.1 {
            Ok(_) => None,
            Err(line) => known.lines.get(&line).cloned(),
        },
    })
}

fn webhook(row: &Row, queue: i64, known: &Known) -> Result<Option<Arc<Webhook>>, StoreError> {
    match Columns::new(row).get::<Option<&str>>(JobColumn::Webhook)? {
        Some(text) => Ok(Some(Arc::new(webhook_from_text(text)?))),
        // Only the jobs of SQL callers that were never claimed have a webhook to be filled in.
        None if known.webhooks.is_empty() || references(row)?.1.is_ok() => Ok(None),
        None => Ok(known.webhooks.get(&queue).cloned()),
    }
}

/// An attempt and its job.
pub(in crate::store::postgres) fn attempt(row: &Row) -> Result<(JobId, Attempt), StoreError> {
    use AttemptColumn as C;
    let c = Columns::new(row);
    let attempt = Attempt {
        number: c.count(C::Number)?,
        retry: c.count(C::Retry)?,
        status: c.word(C::Status, Status::parse)?,
        started_at: c.moment(C::StartedAt)?,
        finished_at: c.moment(C::FinishedAt)?,
        error_class: c.get(C::ErrorClass)?,
        error: c.get(C::Error)?,
        note: c.get(C::Note)?,
        worker: c.get(C::Worker)?,
        next_run_at: c.moment_if(C::NextRunAt)?,
        delay: c.span_if(C::DelayMs)?,
        why: c.get(C::Why)?,
        trace: c.get(C::Trace)?,
        replay: c.count(C::Replay)?,
    };
    Ok((JobId(c.get(C::JobId)?), attempt))
}

pub(in crate::store::postgres) fn queue(row: &Row) -> Result<Queue, StoreError> {
    use QueueColumn as C;
    let c = Columns::new(row);
    Ok(Queue {
        id: QueueId(c.get(C::Id)?),
        tenant: c.word(C::Tenant, |text| Tenant::new(text).ok())?,
        name: c.word(C::Name, |text| QueueName::new(text).ok())?,
        executor: c.word(C::Executor, Executor::parse)?,
        paused: c.get(C::Paused)?,
        created_at: c.moment(C::CreatedAt)?,
    })
}

pub(in crate::store::postgres) fn schedule(row: &Row) -> Result<Schedule, StoreError> {
    use ScheduleColumn as C;
    let c = Columns::new(row);
    let id = JobId(c.get(C::Id)?);
    let spec = ScheduleSpec {
        tenant: c.word(C::Tenant, |text| Tenant::new(text).ok())?,
        cadence: c.get(C::Cadence)?,
        zone: c.get(C::Zone)?,
        recurrence: if c.get(C::OneShot)? { Recurrence::OneShot } else { Recurrence::Recurring },
        overlap: c.word(C::Overlap, Overlap::parse)?,
        missed: c.word(C::Missed, Missed::parse)?,
        dead_letters: c.word(C::DeadLetters, DeadRuns::parse)?,
        template: template_from_text(c.text(C::Template)?, id)?,
    };
    Ok(Schedule {
        id,
        spec,
        paused: c.get(C::Paused)?,
        next_at: c.moment_if(C::NextAt)?,
        last_at: c.moment_if(C::LastAt)?,
        last_job: c.id_if(C::LastJob)?,
        last_dead: c.id_if(C::LastDead)?,
        created_at: c.moment(C::CreatedAt)?,
    })
}

fn missing(id: JobId, rule: &str) -> StoreError {
    StoreError::corrupt(format!("job {id}"), rule)
}

//! Transfer: jobs read with their history, and stored as they were elsewhere.

use crate::job::{Job, QueueId};
use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::claim::lane;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::life::finish;
use crate::store::sqlite::reads::{rows, settings};
use crate::store::{
    IMPORT, Import, Imported, JobCopy, JobFilter, KeyHeld, Order, Page, Recurrence, Schedule, Scope, SettingKey,
    StoreError, json,
};
use rusqlite::{OptionalExtension, params};
use windlass_core::{Attempt, Delivery, JobId, Reason, State, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// The lease of imported attempts: leases stay behind, and no lease has this number.
const NO_LEASE: i64 = 0;

impl Reader {
    pub(in crate::store::sqlite) fn last_id(&self) -> Result<JobId> {
        let last = self.conn.prepare_cached(sql!("enqueue.sql", "ids_last"))?.query_row([], rows::only)?;
        Ok(JobId(last))
    }

    pub(in crate::store::sqlite) fn copies(
        &mut self,
        after: Option<JobId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<JobCopy>> {
        let page = Page { after, limit, order: Order::OldestFirst };
        let jobs = self.jobs(&Scope::All, &JobFilter::default(), page)?;
        jobs.into_iter().map(|job| self.copy(job, now)).collect()
    }

    fn copy(&self, job: Job, now: Timestamp) -> Result<JobCopy> {
        let mut select = self.conn.prepare_cached(sql!("attempts.sql", "attempts"))?;
        let mut attempts = rows::all(select.query(params![job.id.0, i64::MAX])?, rows::attempt)?;
        attempts.reverse();
        let key = match &job.idempotency_key {
            Some(key) => self.key_held(&job, key, now)?,
            None => None,
        };
        Ok(JobCopy { job, attempts, key })
    }

    fn key_held(&self, job: &Job, key: &str, now: Timestamp) -> Result<Option<KeyHeld>> {
        let mut select = self.conn.prepare_cached(sql!("transfer.sql", "key_held"))?;
        let values = params![job.tenant.as_str(), key, job.id.0, now.as_millis()];
        let found: Option<Option<i64>> = select.query_row(values, rows::only).optional()?;
        let held = found.map(|until| KeyHeld::from_until(until.map(Timestamp::from_millis)));
        Ok(held.filter(|held| *held != KeyHeld::Live || job.state.is_live()))
    }
}

pub(in crate::store::sqlite) fn import(tx: &mut Tx<'_>, import: &Import) -> Result<Imported> {
    let mut select = tx.conn.prepare_cached(sql!("transfer.sql", "import_mark"))?;
    let mark: Option<String> = select.query_row([IMPORT], rows::only).optional()?;
    if mark != import.before {
        return Ok(Imported::Overtaken);
    }
    if let Some(origin) = &import.origin {
        let is_empty: bool = tx.conn.prepare_cached(sql!("transfer.sql", "is_empty"))?.query_row([], rows::only)?;
        if !is_empty {
            return Ok(Imported::NotEmpty);
        }
        tx.conn.prepare_cached(sql!("transfer.sql", "installation_put"))?.execute([&origin.installation])?;
        tx.conn.prepare_cached(sql!("transfer.sql", "ids_raise"))?.execute([origin.last_id.0])?;
    }
    settings::put_setting(tx, &SettingKey::Server { name: IMPORT.into() }, Some(&import.after))?;
    let mut existing = 0;
    for schedule in &import.schedules {
        existing += u64::from(!put_schedule(tx, schedule)?);
    }
    for copy in &import.jobs {
        existing += u64::from(!put_job(tx, copy)?);
    }
    tx.rings = true;
    Ok(Imported::Done { existing })
}

/// Returns whether there was no schedule with this id.
fn put_schedule(tx: &Tx<'_>, schedule: &Schedule) -> Result<bool> {
    let spec = &schedule.spec;
    let put = tx.conn.prepare_cached(sql!("transfer.sql", "schedule_put"))?.execute(params![
        schedule.id.0,
        spec.tenant.as_str(),
        spec.cadence,
        spec.zone,
        spec.recurrence == Recurrence::OneShot,
        spec.overlap.as_str(),
        spec.missed.as_str(),
        spec.dead_letters.as_str(),
        json::template_to_text(&spec.template),
        schedule.paused,
        schedule.next_at.map(Timestamp::as_millis),
        schedule.last_at.map(Timestamp::as_millis),
        schedule.last_job.map(|id| id.0),
        schedule.last_dead.map(|id| id.0),
        schedule.created_at.as_millis(),
    ])?;
    Ok(put > 0)
}

/// Returns whether there was no job with this id.
fn put_job(tx: &mut Tx<'_>, copy: &JobCopy) -> Result<bool> {
    let job = &copy.job;
    let queue = tx.names.queue_id(tx.conn, (&job.tenant, &job.queue, job.executor), tx.now)?;
    let policy = tx.names.policy_id(tx.conn, &job.policy)?;
    let put = tx.conn.prepare_cached(sql!("transfer.sql", "job_put"))?.execute(params![
        job.id.0,
        queue.0,
        job.priority.rank(),
        job.delivery == Delivery::AtMostOnce,
        job.created_at.as_millis(),
        policy,
        job.kind.as_str(),
        job.timeout.map(millis),
        job.idempotency_key.as_deref(),
        job.traceparent.as_deref(),
        job.limit_key.as_deref(),
        job.http.as_deref().map(json::call_to_text),
        job.webhook.as_deref().map(json::webhook_to_text),
        &*job.payload,
    ])?;
    if put == 0 {
        return Ok(false);
    }
    for attempt in &copy.attempts {
        put_attempt(tx, job.id, attempt)?;
    }
    if let (Some(held), Some(key)) = (copy.key, &job.idempotency_key) {
        let until = held.until().map(Timestamp::as_millis);
        let mut keep = tx.conn.prepare_cached(sql!("transfer.sql", "key_keep"))?;
        keep.execute(params![job.tenant.as_str(), &**key, job.id.0, until])?;
    }
    if job.state.is_live() {
        wait(tx, job, queue)?;
    } else {
        archive(tx, copy, queue)?;
    }
    Ok(true)
}

fn put_attempt(tx: &Tx<'_>, job: JobId, attempt: &Attempt) -> Result<()> {
    tx.conn.prepare_cached(sql!("attempts.sql", "attempt_add"))?.execute(params![
        job.0,
        attempt.number,
        NO_LEASE,
        attempt.retry,
        attempt.status.as_str(),
        attempt.started_at.as_millis(),
        attempt.finished_at.as_millis(),
        attempt.error_class,
        attempt.error,
        attempt.note,
        attempt.worker,
        attempt.next_run_at.map(Timestamp::as_millis),
        attempt.delay.map(millis),
        attempt.why,
        attempt.trace,
        attempt.replay,
    ])?;
    Ok(())
}

fn wait(tx: &mut Tx<'_>, job: &Job, queue: QueueId) -> Result<()> {
    let lane = lane(queue, job.priority, job.delivery, job.crashes);
    tx.conn.prepare_cached(sql!("transfer.sql", "waiter_put"))?.execute(params![
        job.id.0,
        lane,
        job.due_at.as_millis(),
        job.start_by.map(Timestamp::as_millis),
        job.schedule.map(|id| id.0),
        job.parent.map(|id| id.0),
        job.claimed_at.map(Timestamp::as_millis),
        job.first_attempt_at.map(Timestamp::as_millis),
        job.attempt,
        job.state == State::Retrying,
        job.failures,
        job.crashes,
        job.replays,
        millis(job.previous_delay),
        job.error_class,
        job.error,
    ])?;
    tx.conn.prepare_cached(sql!("enqueue.sql", "waiting_put"))?.execute([lane, job.due_at.as_millis(), job.id.0])?;
    tx.waiting(lane, 1);
    Ok(())
}

fn archive(tx: &mut Tx<'_>, copy: &JobCopy, queue: QueueId) -> Result<()> {
    let job = &copy.job;
    let print = match job.reason {
        Some(_) => {
            let left = finish::left((job.error_class.as_deref(), job.error.as_deref()), copy.last_trace());
            Some(finish::fingerprint(tx, queue, &job.kind, left)?)
        }
        None => None,
    };
    tx.conn.prepare_cached(sql!("transfer.sql", "outcome_put"))?.execute(params![
        job.id.0,
        queue.0,
        job.state.as_str(),
        job.finished_at.map(Timestamp::as_millis),
        job.due_at.as_millis(),
        job.attempt,
        job.claimed_at.map(Timestamp::as_millis),
        job.first_attempt_at.map(Timestamp::as_millis),
        job.failures,
        job.crashes,
        job.replays,
        millis(job.previous_delay),
        job.cancel_requested,
        job.start_by.map(Timestamp::as_millis),
        job.schedule.map(|id| id.0),
        job.parent.map(|id| id.0),
        job.error_class,
        job.error,
        job.reason.map(Reason::as_str),
        print,
        job.discarded_at.map(Timestamp::as_millis),
        job.discard_reason,
        job.result.as_deref(),
    ])?;
    Ok(())
}

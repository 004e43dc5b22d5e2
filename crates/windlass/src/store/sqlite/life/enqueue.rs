//! Enqueue: new jobs and their idempotency keys.

use crate::job::{Idempotency, KeyWindow, NewJob};
use crate::store::sqlite::connection::fault;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::{SavepointEnd, Tx};
use crate::store::sqlite::life::claim::lane;
use crate::store::sqlite::reads::columns::{body, key};
use crate::store::sqlite::reads::rows;
use crate::store::{Atomicity, Enqueued, StoreError, json};
use crate::tally::Tally;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use windlass_core::key::{KeyHolder, KeyVerdict, Request};
use windlass_core::{Delivery, JobId, Millis, Timestamp};

/// The prepared statements that store a job.
struct Inserts<'t> {
    job: CachedStatement<'t>,
    live: CachedStatement<'t>,
    waiting: CachedStatement<'t>,
    /// Lane, due time and id of the jobs stored so far, which do not wait yet.
    entries: Vec<[i64; 3]>,
}

impl<'t> Inserts<'t> {
    fn new(conn: &'t Connection) -> Result<Self, StoreError> {
        Ok(Self {
            job: conn.prepare_cached(sql!("enqueue.sql", "enqueue"))?,
            live: conn.prepare_cached(sql!("enqueue.sql", "live_put"))?,
            waiting: conn.prepare_cached(sql!("enqueue.sql", "waiting_put"))?,
            entries: Vec::new(),
        })
    }

    /// The stored jobs wait, lane after lane: jobs of many queues would otherwise be on another page each.
    fn wait(mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        self.entries.sort_unstable();
        for same in self.entries.chunk_by(|a, b| a[0] == b[0]) {
            for entry in same {
                self.waiting.execute(*entry)?;
            }
            tx.waiting(same[0][0], same.len() as i64);
        }
        Ok(())
    }
}

pub(in crate::store::sqlite) fn enqueue(
    tx: &mut Tx<'_>,
    jobs: &[NewJob],
    atomicity: Atomicity,
) -> Result<Vec<Enqueued>, StoreError> {
    match atomicity {
        Atomicity::Each => store_all(tx, jobs),
        Atomicity::All => tx.all_or_nothing(|tx| {
            let stored = store_all(tx, jobs)?;
            let is_refused = |one: &Enqueued| matches!(one, Enqueued::KeyConflict(_) | Enqueued::Refused(_));
            if stored.iter().any(is_refused) {
                Ok((undone(stored), SavepointEnd::Undo))
            } else {
                Ok((stored, SavepointEnd::Keep))
            }
        }),
    }
}

fn store_all(tx: &mut Tx<'_>, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
    let conn = tx.conn;
    let last: i64 = conn.prepare_cached(sql!("enqueue.sql", "ids_last"))?.query_row([], rows::only)?;
    let mut next = JobId(last + 1);
    let mut inserts = Inserts::new(conn)?;
    let mut stored = Vec::with_capacity(jobs.len());
    for job in jobs {
        let known = match &job.idempotency {
            Some(idempotency) => known(tx, job, idempotency)?,
            None => None,
        };
        let one = match known {
            Some(known) => known,
            None => insert(tx, &mut inserts, next, job)?,
        };
        next.0 += i64::from(matches!(one, Enqueued::Created { .. }));
        stored.push(one);
    }
    inserts.wait(tx)?;
    let used = next.0 - last - 1;
    if used > 0 {
        tx.draw_ids(used)?;
    }
    Ok(stored)
}

/// Stores a job without checking its key, which must be free.
pub(in crate::store::sqlite) fn store(tx: &mut Tx<'_>, job: &NewJob) -> Result<Enqueued, StoreError> {
    let id = tx.draw_ids(1)?;
    let mut inserts = Inserts::new(tx.conn)?;
    let stored = insert(tx, &mut inserts, id, job)?;
    inserts.wait(tx)?;
    Ok(stored)
}

fn insert(tx: &mut Tx<'_>, inserts: &mut Inserts<'_>, id: JobId, job: &NewJob) -> Result<Enqueued, StoreError> {
    let queue = tx.names.queue_id(tx.conn, (&job.tenant, &job.queue, job.executor), tx.now)?;
    let policy = tx.names.policy_id(tx.conn, &job.policy)?;
    let due_at = job.run_at.moment(tx.now);
    let inserted = inserts.job.execute(params![
        id.0,
        queue.0,
        job.priority.rank(),
        job.delivery == Delivery::AtMostOnce,
        tx.now.as_millis(),
        policy,
        job.kind.as_str(),
        job.timeout.map(millis),
        job.idempotency.as_ref().map(|i| &*i.key),
        job.traceparent.as_deref(),
        job.limit_key.as_deref(),
        job.http.as_deref().map(json::call_to_text),
        job.webhook.as_deref().map(json::webhook_to_text),
        &*job.payload,
    ]);
    match inserted {
        Ok(_) => {}
        // Only this statement is undone; the other jobs stay.
        Err(error) if fault::is_refusal(&error) => return Ok(Enqueued::Refused(error.to_string())),
        Err(error) => return Err(error.into()),
    }
    let lane = lane(queue, job.priority, job.delivery, 0);
    inserts.live.execute(params![
        id.0,
        lane,
        due_at.as_millis(),
        job.start_by.map(Timestamp::as_millis),
        job.schedule.map(|id| id.0),
        job.parent.map(|id| id.0),
    ])?;
    inserts.entries.push([lane, due_at.as_millis(), id.0]);
    if let Some(idempotency) = &job.idempotency {
        put_key(tx, job, idempotency, id)?;
    }
    tx.count(queue, &job.kind, Tally { enqueued: 1, ..Tally::default() });
    // Also for a job that is due later: an idle worker must know how long to sleep.
    tx.rings = true;
    Ok(Enqueued::Created { id, created_at: tx.now, due_at })
}

fn put_key(tx: &Tx<'_>, job: &NewJob, idempotency: &Idempotency, id: JobId) -> Result<(), StoreError> {
    let until = match idempotency.window {
        KeyWindow::For(span) => Some((tx.now + span).as_millis()),
        KeyWindow::Live => None,
    };
    let mut put = tx.conn.prepare_cached(sql!("enqueue.sql", "key_put"))?;
    put.execute(params![job.tenant.as_str(), &*idempotency.key, id.0, until])?;
    Ok(())
}

/// The answer to an enqueue whose key already belongs to a job.
fn known(tx: &Tx<'_>, job: &NewJob, idempotency: &Idempotency) -> Result<Option<Enqueued>, StoreError> {
    let mut find = tx.conn.prepare_cached(sql!("enqueue.sql", "key_find"))?;
    let found = find.query_row(params![job.tenant.as_str(), &*idempotency.key], |row| {
        Ok(KeyHolder {
            job: JobId(row.get(key::job_id)?),
            until: row.get::<_, Option<i64>>(key::expires_at)?.map(Timestamp::from_millis),
            is_live: row.get(key::is_live)?,
        })
    });
    let Some(holder) = found.optional()?.filter(|holder| holder.stands(tx.now)) else { return Ok(None) };
    let mut select = tx.conn.prepare_cached(sql!("enqueue.sql", "key_body"))?;
    let mut found = select.query([holder.job.0])?;
    let first = match found.next()? {
        Some(row) => Some(Request { kind: rows::must(row, body::kind)?, payload: rows::must(row, body::payload)? }),
        None => None,
    };
    let verdict = holder.verdict(first, Request::new(&job.kind, &job.payload), tx.now);
    Ok(verdict.map(|verdict| match verdict {
        KeyVerdict::Existing(id) => Enqueued::Existing(id),
        KeyVerdict::Conflict(id) => Enqueued::KeyConflict(id),
    }))
}

/// The answers of a batch that was rolled back.
fn undone(stored: Vec<Enqueued>) -> Vec<Enqueued> {
    let made: Vec<JobId> = stored
        .iter()
        .filter_map(|one| match one {
            Enqueued::Created { id, .. } => Some(*id),
            Enqueued::Existing(_)
            | Enqueued::KeyConflict(_)
            | Enqueued::Refused(_)
            | Enqueued::OverQuota(_)
            | Enqueued::NotStored => None,
        })
        .collect();
    let is_made = |id: &JobId| made.contains(id);
    stored
        .into_iter()
        .map(|one| match one {
            // It referred to another job of the batch, which is not stored either.
            Enqueued::Created { .. } => Enqueued::NotStored,
            Enqueued::Existing(id) | Enqueued::KeyConflict(id) if is_made(&id) => Enqueued::NotStored,
            Enqueued::Existing(_)
            | Enqueued::KeyConflict(_)
            | Enqueued::Refused(_)
            | Enqueued::OverQuota(_)
            | Enqueued::NotStored => one,
        })
        .collect()
}

pub(in crate::store::sqlite) fn millis(span: Millis) -> i64 {
    i64::try_from(span.get()).unwrap_or(i64::MAX)
}

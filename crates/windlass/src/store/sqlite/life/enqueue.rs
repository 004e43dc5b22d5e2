//! Enqueue: new jobs and their idempotency keys.

use crate::job::{Idempotency, KeyWindow, NewJob};
use crate::store::sqlite::connection::fault;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::{SavepointEnd, Tx};
use crate::store::sqlite::life::claim::lane;
use crate::store::{Atomicity, Enqueued, StoreError, json};
use crate::tally::Tally;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use windlass_core::{Delivery, JobId, Millis, Timestamp};

/// What stores a job, ready to run again and again.
struct Inserts<'t> {
    job: CachedStatement<'t>,
    waiting: CachedStatement<'t>,
}

impl<'t> Inserts<'t> {
    fn new(conn: &'t Connection) -> Result<Self, StoreError> {
        let (job, waiting) = (conn.prepare_cached(sql!("job_insert"))?, conn.prepare_cached(sql!("waiting_put"))?);
        Ok(Self { job, waiting })
    }
}

impl Tx<'_> {
    pub(in crate::store::sqlite) fn enqueue(
        &mut self,
        jobs: &[NewJob],
        atomicity: Atomicity,
    ) -> Result<Vec<Enqueued>, StoreError> {
        match atomicity {
            Atomicity::Each => self.store_all(jobs),
            Atomicity::All => self.all_or_nothing(|tx| {
                let stored = tx.store_all(jobs)?;
                let is_refused = |one: &Enqueued| matches!(one, Enqueued::KeyConflict(_) | Enqueued::Refused(_));
                if stored.iter().any(is_refused) {
                    Ok((undone(stored), SavepointEnd::Undo))
                } else {
                    Ok((stored, SavepointEnd::Keep))
                }
            }),
        }
    }

    fn store_all(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let conn = self.conn;
        let last: i64 = conn.prepare_cached(sql!("ids_last"))?.query_row([], |row| row.get(0))?;
        let mut next = JobId(last + 1);
        let mut insert = Inserts::new(conn)?;
        let mut stored = Vec::with_capacity(jobs.len());
        for job in jobs {
            let known = match &job.idempotency {
                Some(idempotency) => self.known(job, idempotency)?,
                None => None,
            };
            let one = match known {
                Some(known) => known,
                None => self.insert(&mut insert, next, job)?,
            };
            next.0 += i64::from(matches!(one, Enqueued::Created { .. }));
            stored.push(one);
        }
        let used = next.0 - last - 1;
        if used > 0 {
            self.draw_ids(used)?;
        }
        Ok(stored)
    }

    /// Stores a job unasked: its key, if any, is free.
    pub(in crate::store::sqlite) fn store(&mut self, job: &NewJob) -> Result<Enqueued, StoreError> {
        let id = self.draw_ids(1)?;
        let mut insert = Inserts::new(self.conn)?;
        self.insert(&mut insert, id, job)
    }

    fn insert(&mut self, insert: &mut Inserts<'_>, id: JobId, job: &NewJob) -> Result<Enqueued, StoreError> {
        let queue = self.names.queue_id(self.conn, (&job.tenant, &job.queue, job.executor), self.now)?;
        let policy = self.names.policy_id(self.conn, &job.policy)?;
        let due_at = job.run_at.moment(self.now);
        let inserted = insert.job.execute(params![
            id.0,
            queue.0,
            job.priority.rank(),
            job.delivery == Delivery::AtMostOnce,
            due_at.as_millis(),
            self.now.as_millis(),
            policy,
            job.kind.as_str(),
            job.start_by.map(Timestamp::as_millis),
            job.timeout.map(millis),
            job.idempotency.as_ref().map(|i| &*i.key),
            job.schedule.map(|id| id.0),
            job.parent.map(|id| id.0),
            job.traceparent.as_deref(),
            job.http.as_deref().map(json::call_to_text),
            job.webhook.as_deref().map(json::webhook_to_text),
            &*job.payload,
        ]);
        match inserted {
            Ok(_) => {}
            // The statement alone is undone: the neighbours stand.
            Err(error) if fault::is_refusal(&error) => return Ok(Enqueued::Refused(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        let lane = lane(queue, job.priority, job.delivery, 0);
        insert.waiting.execute([lane, due_at.as_millis(), id.0])?;
        if let Some(idempotency) = &job.idempotency {
            self.put_key(job, idempotency, id)?;
        }
        self.count(queue, &job.kind, Tally { enqueued: 1, ..Tally::default() });
        // For one that is due later too: a worker at rest must learn until when to sleep.
        self.rings = true;
        Ok(Enqueued::Created { id, created_at: self.now, due_at })
    }

    fn put_key(&self, job: &NewJob, idempotency: &Idempotency, id: JobId) -> Result<(), StoreError> {
        let until = match idempotency.window {
            KeyWindow::For(span) => Some((self.now + span).as_millis()),
            KeyWindow::Live => None,
        };
        let mut put = self.conn.prepare_cached(sql!("key_put"))?;
        put.execute(params![job.tenant.as_str(), &*idempotency.key, id.0, until])?;
        Ok(())
    }

    /// What the job's key stands for already, if it does.
    fn known(&self, job: &NewJob, idempotency: &Idempotency) -> Result<Option<Enqueued>, StoreError> {
        let mut find = self.conn.prepare_cached(sql!("key_find"))?;
        let key = params![job.tenant.as_str(), &*idempotency.key, self.now.as_millis()];
        let Some(id) = find.query_row(key, |row| row.get::<_, i64>(0)).optional()? else { return Ok(None) };
        let mut body = self.conn.prepare_cached(sql!("job_body"))?;
        let is_same = body.query_row([id], |row| {
            let (kind, payload) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
            Ok(kind == job.kind.as_str() && json::same_payload(payload, &job.payload))
        });
        // A job that its queue no longer keeps was accepted once: it must not be accepted again.
        let is_same = is_same.optional()?.unwrap_or(true);
        Ok(Some(if is_same { Enqueued::Existing(JobId(id)) } else { Enqueued::KeyConflict(JobId(id)) }))
    }
}

/// The answers of a batch that was taken back.
fn undone(stored: Vec<Enqueued>) -> Vec<Enqueued> {
    let made: Vec<JobId> = stored
        .iter()
        .filter_map(|one| match one {
            Enqueued::Created { id, .. } => Some(*id),
            Enqueued::Existing(_) | Enqueued::KeyConflict(_) | Enqueued::Refused(_) | Enqueued::NotStored => None,
        })
        .collect();
    let is_made = |id: &JobId| made.contains(id);
    stored
        .into_iter()
        .map(|one| match one {
            // It named a neighbour that is not there after all.
            Enqueued::Created { .. } => Enqueued::NotStored,
            Enqueued::Existing(id) | Enqueued::KeyConflict(id) if is_made(&id) => Enqueued::NotStored,
            Enqueued::Existing(_) | Enqueued::KeyConflict(_) | Enqueued::Refused(_) | Enqueued::NotStored => one,
        })
        .collect()
}

pub(in crate::store::sqlite) fn millis(span: Millis) -> i64 {
    i64::try_from(span.get()).unwrap_or(i64::MAX)
}

//! What the store settles by itself: lost attempts, jobs that were not started in time, waiting jobs that are cancelled.

use crate::job::{Job, LeaseId};
use crate::leases::transition;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::claim::held;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::retention::keep;
use crate::store::{Keep, Reap, StoreError, Transitioned};
use crate::tally::Tally;
use rusqlite::params;
use windlass_core::{Millis, Next, Reason, State};

impl Tx<'_> {
    pub(in crate::store::sqlite) fn reap(&mut self, reap: &Reap, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
        let mut transitioned = Vec::new();
        let leases = self.leases_over(reap, limit)?;
        if leases.is_empty() {
            return Ok(transitioned);
        }
        let mut batch = self.batch()?;
        for (lease, worker) in leases {
            for job in held(self.conn, self.names, &[lease])? {
                let commit = transition::lost(&job, &worker, self.now, self.random.roll());
                self.commit_one(&commit, &mut batch)?;
                transitioned.push(Transitioned::new(job.job, &commit));
            }
            self.conn.prepare_cached(sql!("lease_delete"))?.execute([lease.0])?;
        }
        Ok(transitioned)
    }

    fn leases_over(&self, reap: &Reap, limit: u32) -> Result<Vec<(LeaseId, String)>, StoreError> {
        let read = |row: &rusqlite::Row<'_>| Ok((LeaseId(row.get(0)?), row.get(1)?));
        match reap {
            Reap::Expired { spared } => {
                let mut select = self.conn.prepare_cached(sql!("leases_expired"))?;
                let mut found = select.query([self.now.as_millis()])?;
                let mut over = Vec::new();
                while over.len() < limit as usize
                    && let Some(row) = found.next()?
                {
                    if !spared.holds(Millis::new(row.get::<_, i64>(2)? as u64)) {
                        over.push(read(row)?);
                    }
                }
                Ok(over)
            }
            Reap::Of(worker) => {
                let mut select = self.conn.prepare_cached(sql!("leases_of"))?;
                rows::all(select.query(params![&*worker.0, limit])?, read)
            }
        }
    }

    pub(in crate::store::sqlite) fn expire(&mut self, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("live_select", "expire_late"))?;
        let found = select.query(params![self.now.as_millis(), limit])?;
        let late = rows::all(found, |row| rows::live(row, self.conn, self.names))?;
        let batch = self.batch()?;
        late.into_iter().map(|job| self.end_waiting(job, transition::EXPIRED, &batch)).collect()
    }

    /// Ends a waiting job without an attempt.
    pub(in crate::store::sqlite) fn end_waiting(
        &mut self,
        job: Job,
        next: Next,
        batch: &Batch<'_>,
    ) -> Result<Transitioned, StoreError> {
        let (transition, delivery) = transition::ended_waiting(&job, next, self.now);
        let (reason, delta) = match next {
            Next::Failed(reason) => (Some(reason), Tally { failed: 1, ..Tally::default() }),
            Next::Succeeded | Next::Cancelled | Next::Wait { .. } => (None, Tally { cancelled: 1, ..Tally::default() }),
        };
        self.count(job.queue_id, &job.kind, delta);
        if let Some(new) = delivery {
            self.store_follow_up(&new)?;
        }
        self.archive_waiting(&job, next.state(), reason)?;
        if let Some(schedule) = job.schedule.filter(|schedule| batch.ending.contains(schedule)) {
            self.end_one_shot(schedule)?;
        }
        Ok(Transitioned { job, transition, error_class: None })
    }

    fn archive_waiting(&mut self, job: &Job, state: State, reason: Option<Reason>) -> Result<(), StoreError> {
        let retention = self.retentions.of(self.conn, self.names, job.queue_id)?;
        if keep(retention, state) == Keep::Drop {
            self.drop_attempts(job.id)?;
        } else {
            let print = match reason {
                Some(_) => {
                    let reported = (job.error_class.as_deref(), job.error.as_deref());
                    Some(self.fingerprint(job.queue_id, &job.kind, reported)?)
                }
                None => None,
            };
            let mut insert = self.conn.prepare_cached(sql!("archive_waiting"))?;
            insert.execute(params![
                job.id.0,
                state.as_str(),
                self.now.as_millis(),
                reason.map(Reason::as_str),
                print
            ])?;
        }
        self.conn.prepare_cached(sql!("waiting_leave"))?.execute([job.id.0])?;
        self.conn.prepare_cached(sql!("job_delete"))?.execute([job.id.0])?;
        Ok(())
    }
}

//! Waiting jobs that end without an attempt: not started in time, or cancelled.

use crate::job::Job;
use crate::leases::transition;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::commit;
use crate::store::sqlite::life::finish;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::life::operations;
use crate::store::sqlite::reads::rows;
use crate::store::{Keep, StoreError, Transitioned};
use crate::tally::Tally;
use rusqlite::params;
use windlass_core::{Next, Reason, State, verdict};

pub(in crate::store::sqlite) fn expire(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("upkeep.sql", "expired"))?;
    let found = select.query(params![tx.now.as_millis(), limit])?;
    let mut late = rows::all(found, |row| rows::live(row, tx.conn, tx.names))?;
    late.retain(|job| verdict::expires(&job.standing(), tx.now));
    let batch = finish::batch(tx)?;
    late.into_iter().map(|job| end_waiting(tx, job, transition::EXPIRED, &batch)).collect()
}

/// Ends a waiting job without an attempt.
pub(in crate::store::sqlite) fn end_waiting(
    tx: &mut Tx<'_>,
    job: Job,
    next: Next,
    batch: &Batch<'_>,
) -> Result<Transitioned, StoreError> {
    let (transition, delivery) = transition::ended_waiting(&job, next, tx.now);
    let (reason, delta) = match next {
        Next::Failed(reason) => (Some(reason), Tally { failed: 1, ..Tally::default() }),
        Next::Succeeded | Next::Cancelled | Next::Wait { .. } => (None, Tally { cancelled: 1, ..Tally::default() }),
    };
    tx.count(job.queue_id, &job.kind, delta);
    if let Some(new) = delivery {
        commit::store_follow_up(tx, &new)?;
    }
    archive_waiting(tx, &job, next.state(), reason)?;
    if let Some(schedule) = job.schedule.filter(|schedule| batch.ending.contains(schedule)) {
        finish::end_one_shot(tx, schedule)?;
    }
    Ok(Transitioned { job, transition, error_class: None, lease: None })
}

fn archive_waiting(tx: &mut Tx<'_>, job: &Job, state: State, reason: Option<Reason>) -> Result<(), StoreError> {
    let retention = tx.retentions.of(tx.conn, tx.names, job.queue_id)?;
    if retention.of(state) == Keep::Drop {
        finish::drop_job(tx, job.id)?;
    } else {
        let print = match reason {
            Some(_) => {
                let reported = (job.error_class.as_deref(), job.error.as_deref());
                Some(finish::fingerprint(tx, job.queue_id, &job.kind, finish::left(reported, None))?)
            }
            None => None,
        };
        let mut insert = tx.conn.prepare_cached(sql!("commit.sql", "finish_waiting"))?;
        insert.execute(params![job.id.0, state.as_str(), tx.now.as_millis(), reason.map(Reason::as_str), print])?;
    }
    operations::leave(tx, job.id)?;
    tx.conn.prepare_cached(sql!("commit.sql", "live_delete"))?.execute([job.id.0])?;
    Ok(())
}

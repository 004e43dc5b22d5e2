//! Commit: transitions whose attempts still hold, with ledger, tallies and follow-ups.

use crate::job::LeaseId;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk;
use crate::store::sqlite::life::bulk::Bulk;
use crate::store::sqlite::life::enqueue;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::life::finish;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::life::gates;
use crate::store::sqlite::life::wait;
use crate::store::{Commit, Committed, DISCARDED_BY_RULE, Enqueued, StoreError};
use crate::tally::Tally;
use rusqlite::{CachedStatement, params};
use windlass_core::{JobId, Next, Why};

/// The status that most attempts end with, ready to store.
const SUCCEEDED: &str = "succeeded";

pub(in crate::store::sqlite) fn commit(
    tx: &mut Tx<'_>,
    commits: &[Commit],
    ended: &[LeaseId],
) -> Result<Vec<Committed>, StoreError> {
    let mut batch = finish::batch(tx)?;
    let mut kept_leases = Vec::new();
    let mut results = Vec::with_capacity(commits.len());
    let in_bulk = bulk::bulk(tx, commits, &mut batch)?;
    for (commit, in_bulk) in commits.iter().zip(in_bulk) {
        let result = match in_bulk {
            Some(Bulk::Applied) => applied(tx, commit)?,
            Some(Bulk::Refused(refused)) => refused,
            None => commit_one(tx, commit, &mut batch)?,
        };
        if result == Committed::CancelRequested {
            // The job still runs under its lease. Without the lease, nobody would notice that its worker died.
            kept_leases.push(commit.lease);
        }
        results.push(result);
    }
    let is_applied = |result: &&Committed| matches!(result, Committed::Applied(_));
    let applied = results.iter().zip(commits).filter(|(result, _)| is_applied(result)).map(|(_, commit)| commit);
    gates::end(tx, applied)?;
    let mut delete = tx.conn.prepare_cached(sql!("leases.sql", "lease_end"))?;
    for lease in ended.iter().filter(|lease| !kept_leases.contains(lease)) {
        delete.execute([lease.0])?;
        gates::end_lease(tx, *lease)?;
    }
    Ok(results)
}

pub(in crate::store::sqlite) fn commit_one<'t>(
    tx: &mut Tx<'t>,
    commit: &Commit,
    batch: &mut Batch<'t>,
) -> Result<Committed, StoreError> {
    let refused = match commit.transition.next {
        Next::Wait { .. } => wait::wait_all(tx, &[commit], &mut batch.attempt)?.pop().flatten(),
        Next::Succeeded | Next::Cancelled => finish::end(tx, commit, None, batch)?,
        Next::Failed(reason) => finish::end(tx, commit, Some(reason), batch)?,
    };
    if let Some(refused) = refused {
        return Ok(refused);
    }
    applied(tx, commit)
}

/// What follows from a transition that was applied.
fn applied(tx: &mut Tx<'_>, commit: &Commit) -> Result<Committed, StoreError> {
    tx.count(commit.queue, &commit.kind, Tally::of(commit));
    if commit.is_discarded() {
        let mut discard = tx.conn.prepare_cached(sql!("operations.sql", "discard"))?;
        discard.execute(params![commit.job.0, tx.now.as_millis(), DISCARDED_BY_RULE])?;
    }
    let mut follow_ups = Vec::with_capacity(commit.follow_ups.len());
    for job in &commit.follow_ups {
        follow_ups.extend(store_follow_up(tx, job)?);
    }
    Ok(Committed::Applied(follow_ups))
}

/// A follow-up exists exactly if its commit happened, so a refused follow-up fails the commit too.
pub(in crate::store::sqlite) fn store_follow_up(
    tx: &mut Tx<'_>,
    job: &crate::job::NewJob,
) -> Result<Option<JobId>, StoreError> {
    match enqueue::store(tx, job)? {
        Enqueued::Refused(why) => Err(StoreError::Invalid(format!("a follow-up was refused: {why}"))),
        Enqueued::KeyConflict(_) | Enqueued::OverQuota(_) | Enqueued::NotStored => Ok(None),
        Enqueued::Created { id, .. } | Enqueued::Existing(id) => Ok(Some(id)),
    }
}

/// The attempt is not running under this lease. Checks whether this same result already ended it.
pub(in crate::store::sqlite) fn not_held(tx: &Tx<'_>, commit: &Commit) -> Result<Committed, StoreError> {
    let line = params![commit.job.0, commit.attempt, commit.lease.0, commit.transition.status.as_str()];
    let is_repeated = tx.conn.prepare_cached(sql!("attempts.sql", "recorded_outcome"))?.exists(line)?;
    Ok(if is_repeated { Committed::Repeated } else { Committed::Stale })
}

pub(in crate::store::sqlite) fn insert_attempt(
    insert: &mut CachedStatement<'_>,
    commit: &Commit,
) -> Result<(), StoreError> {
    let transition = &commit.transition;
    let wait = transition.next.wait();
    let reported;
    let why = if transition.why == Why::Succeeded {
        SUCCEEDED
    } else {
        reported = transition.why.to_string();
        &reported
    };
    insert.execute(params![
        commit.job.0,
        commit.attempt,
        commit.lease.0,
        commit.retry,
        transition.status.as_str(),
        commit.started_at.as_millis(),
        commit.finished_at.as_millis(),
        commit.error_class,
        commit.error,
        commit.note,
        commit.worker,
        wait.map(|(due_at, _)| due_at.as_millis()),
        wait.map(|(_, delay)| millis(delay)),
        why,
        commit.trace,
        commit.replay,
    ])?;
    Ok(())
}

//! Leases: renew them, read what they hold, and reap those that ran out.

use crate::job::{ClaimedJob, LeaseId};
use crate::leases::transition;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::commit;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::life::finish;
use crate::store::sqlite::life::gates;
use crate::store::sqlite::reads::columns;
use crate::store::sqlite::reads::names::Names;
use crate::store::sqlite::reads::rows;
use crate::store::{Committed, Reap, Renewed, StoreError, Transitioned};
use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::{JobId, Millis};

pub(in crate::store::sqlite) fn renew(
    tx: &mut Tx<'_>,
    leases: &[LeaseId],
    lease_for: Millis,
) -> Result<Renewed, StoreError> {
    let mut renewed = Renewed::default();
    let mut renew = tx.conn.prepare_cached(sql!("leases.sql", "renew"))?;
    let expires_at = (tx.now + lease_for).as_millis();
    for lease in leases {
        if renew.execute(params![lease.0, expires_at, millis(lease_for), tx.boot + millis(lease_for)])? == 0 {
            renewed.lost.push(*lease);
        }
    }
    renewed.cancel_requested = cancel_requests(tx.conn, leases)?;
    Ok(renewed)
}

/// The running jobs under leases whose cancel was requested.
pub(in crate::store::sqlite) fn cancel_requests(
    conn: &Connection,
    leases: &[LeaseId],
) -> Result<Vec<JobId>, StoreError> {
    let mut cancels = conn.prepare_cached(sql!("leases.sql", "renew_cancels"))?;
    let mut requested = Vec::new();
    for lease in leases {
        let asked: Vec<i64> = rows::column(cancels.query([lease.0])?)?;
        requested.extend(asked.into_iter().map(JobId));
    }
    Ok(requested)
}

/// The running jobs under leases.
pub(in crate::store::sqlite) fn held(
    conn: &Connection,
    names: &mut Names,
    leases: &[LeaseId],
) -> Result<Vec<ClaimedJob>, StoreError> {
    let mut covered = conn.prepare_cached(sql!("leases.sql", "lease_jobs"))?;
    let mut jobs = Vec::new();
    for lease in leases {
        let ids: Option<String> = covered.query_row([lease.0], rows::only).optional()?;
        for id in ids.iter().flat_map(|ids| ids.split(',')) {
            let id: i64 = id.parse().map_err(|_| StoreError::corrupt(format!("lease {lease}"), "it lists job ids"))?;
            jobs.push((JobId(id), *lease));
        }
    }
    running(conn, names, &jobs)
}

/// Those of the jobs that run under their leases, in order.
pub(in crate::store::sqlite) fn running(
    conn: &Connection,
    names: &mut Names,
    jobs: &[(JobId, LeaseId)],
) -> Result<Vec<ClaimedJob>, StoreError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut select = conn.prepare_cached(sql!("leases.sql", "held"))?;
    let mut found = select.query([list(jobs.iter().map(|(job, _)| *job))])?;
    let mut running = Vec::with_capacity(jobs.len());
    while let Some(row) = found.next()? {
        let place: i64 = row.get(columns::held::place)?;
        running.extend(rows::claimed(row, jobs[place as usize].1, conn, names)?);
    }
    gates::mark_probes(conn, &mut running)?;
    Ok(running)
}

pub(in crate::store::sqlite) fn reap(
    tx: &mut Tx<'_>,
    reap: &Reap,
    limit: u32,
) -> Result<Vec<Transitioned>, StoreError> {
    let mut transitioned = Vec::new();
    let leases = leases_over(tx, reap, limit)?;
    if leases.is_empty() {
        return Ok(transitioned);
    }
    let mut batch = finish::batch(tx)?;
    for (lease, worker) in leases {
        let mut ended = Vec::new();
        for job in held(tx.conn, tx.names, &[lease])? {
            let commit = transition::lost(&job, &worker, tx.now, tx.random.roll());
            let result = commit::commit_one(tx, &commit, &mut batch)?;
            transitioned.push(Transitioned::new(job.job, &commit));
            if matches!(result, Committed::Applied(_)) {
                ended.push(commit);
            }
        }
        gates::end(tx, ended.iter())?;
        tx.conn.prepare_cached(sql!("leases.sql", "lease_end"))?.execute([lease.0])?;
        gates::end_lease(tx, lease)?;
    }
    Ok(transitioned)
}

fn leases_over(tx: &Tx<'_>, reap: &Reap, limit: u32) -> Result<Vec<(LeaseId, String)>, StoreError> {
    let read = |row: &rusqlite::Row<'_>| Ok((LeaseId(row.get(columns::lease::id)?), row.get(columns::lease::worker)?));
    match reap {
        Reap::Expired { spared } => {
            let mut select = tx.conn.prepare_cached(sql!("leases.sql", "reap_expired"))?;
            let mut found = select.query([tx.boot])?;
            let mut over = Vec::new();
            while over.len() < limit as usize
                && let Some(row) = found.next()?
            {
                if !spared.holds(Millis::new(row.get::<_, i64>(columns::lease::length_ms)? as u64)) {
                    over.push(read(row)?);
                }
            }
            Ok(over)
        }
        Reap::Of(worker) => {
            let mut select = tx.conn.prepare_cached(sql!("leases.sql", "reap_worker"))?;
            rows::all(select.query(params![&*worker.0, limit])?, read)
        }
    }
}

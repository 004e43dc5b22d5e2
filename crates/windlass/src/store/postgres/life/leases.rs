//! Leases: renew them, read what they hold, and reap those that ran out.

use crate::job::{ClaimedJob, LeaseId};
use crate::leases::transition;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::{commit, gates, names};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Commit, Reap, Renewed, StoreError, Transitioned};
use futures_util::join;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use windlass_core::timekeeping::DRIFT;
use windlass_core::{JobId, Millis, Timestamp};

pub(in crate::store::postgres) async fn held(store: &Inner, leases: &[LeaseId]) -> Result<Vec<ClaimedJob>, StoreError> {
    let ids: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
    again(|| async {
        let lent = store.pool.get().await?;
        let rows = lent.query(Sql::Held, &[&ids]).await?;
        let mut jobs = names::claimed_in(store, On::Own(&lent), &rows).await?;
        gates::mark_probes(On::Own(&lent), &ids, &mut jobs).await?;
        Ok(jobs)
    })
    .await
}

pub(in crate::store::postgres) async fn renew(
    store: &Inner,
    leases: &[LeaseId],
    lease_for: Millis,
) -> Result<Renewed, StoreError> {
    let ids: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
    let length = lease_for.get() as i64;
    again(|| async {
        let lent = store.pool.get().await?;
        let now = store.fixed();
        let work = async {
            let renewed = lent.query(Sql::Renew, &[&now, &ids, &length]).await?;
            let asked = lent.query(Sql::RenewCancels, &[&ids]).await?;
            Ok((renewed, asked))
        };
        let (begun, done) = join!(lent.begin(), work);
        let (renewed, asked) = lent.conclude(begun, done).await?;
        let kept: Vec<i64> = renewed.iter().map(|row| Columns::new(row).get("id")).collect::<Result<_, _>>()?;
        let asked: Vec<i64> = asked.iter().map(|row| Columns::new(row).get("id")).collect::<Result<_, _>>()?;
        Ok(Renewed {
            lost: leases.iter().copied().filter(|lease| !kept.contains(&lease.0)).collect(),
            cancel_requested: asked.into_iter().map(JobId).collect(),
        })
    })
    .await
}

/// The running jobs under leases whose cancel was requested.
pub(in crate::store::postgres) async fn cancel_requests(
    store: &Inner,
    leases: &[LeaseId],
) -> Result<Vec<JobId>, StoreError> {
    let ids: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
    again(|| async {
        let lent = store.pool.get().await?;
        let asked = lent.query(Sql::RenewCancels, &[&ids]).await?;
        asked.iter().map(|row| Ok(JobId(Columns::new(row).get("id")?))).collect()
    })
    .await
}

pub(in crate::store::postgres) async fn reap(
    store: &Inner,
    reap: &Reap,
    limit: u32,
) -> Result<Vec<Transitioned>, StoreError> {
    let asked = store.clock.monotonic();
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, transitioned) = join!(lent.begin(), reap_on(store, On::Own(&lent), reap, limit, asked));
        lent.conclude(begun, transitioned).await
    })
    .await
}

async fn reap_on(
    store: &Inner,
    on: On<'_>,
    reap: &Reap,
    limit: u32,
    asked: Millis,
) -> Result<Vec<Transitioned>, StoreError> {
    let (now, limit) = (store.fixed(), i64::from(limit));
    let rows = match reap {
        Reap::Expired { spared } => {
            let (above, below) = spared.bounds();
            let params: Params<'_> = &[&now, &above, &below, &limit, &DRIFT];
            let (followed, found) = join!(store.now_on(on), on.query(Sql::ReapExpired, params));
            followed?;
            found?
        }
        Reap::Of(worker) => on.query(Sql::ReapWorker, &[&now, &&*worker.0, &limit]).await?,
    };
    let mut leases: Vec<LeaseRow> = rows.iter().map(LeaseRow::read).collect::<Result<_, _>>()?;
    // The statement may have waited for an unreachable database, while workers could not renew either.
    let reap = reap.clone().late(store.clock.monotonic() - asked, store.notice_time());
    if let Reap::Expired { spared } = reap.after_step(store.clock.since_step()) {
        leases.retain(|lease| !spared.holds(lease.length));
        store.ahead.watch(&mut leases, store.clock.monotonic());
    }
    if leases.is_empty() {
        return Ok(Vec::new());
    }
    let lost = lost(store, on, &leases).await?;
    let commits: Vec<Commit> = lost.iter().map(|(_, commit)| commit.clone()).collect();
    let ended: Vec<LeaseId> = leases.iter().map(|lease| LeaseId(lease.id)).collect();
    let numbers = commit::follow_up_numbers(store, &commits).await?;
    commit::apply(store, on, &commits, &numbers, &ended).await?;
    Ok(lost.into_iter().map(|(job, commit)| Transitioned::new(job.job, &commit)).collect())
}

/// The jobs still running under these leases, with the commits that record the loss: lease by lease, in the order of
/// the claim. The leases are locked, so no commit ends an attempt meanwhile.
async fn lost(store: &Inner, on: On<'_>, leases: &[LeaseRow]) -> Result<Vec<(ClaimedJob, Commit)>, StoreError> {
    let ids: Vec<i64> = leases.iter().map(|lease| lease.id).collect();
    let rows = on.query(Sql::Held, &[&ids]).await?;
    let jobs = names::claimed_in(store, on, &rows).await?;
    let by_id: HashMap<i64, &LeaseRow> = leases.iter().map(|lease| (lease.id, lease)).collect();
    let mut lost = Vec::with_capacity(jobs.len());
    for job in jobs {
        if let Some(lease) = by_id.get(&job.lease.0) {
            let commit = transition::lost(&job, &lease.worker, lease.now, store.random.roll());
            lost.push((job, commit));
        }
    }
    Ok(lost)
}

/// A lease that is over.
struct LeaseRow {
    id: i64,
    worker: String,
    now: Timestamp,
    length: Millis,
    expires_at: Timestamp,
}

/// Leases that end later than any lease granted now, because the server's clock was set back. Their holders renew
/// them, unless they are gone: then they are over when nothing has changed for the length of the lease.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Ahead(Mutex<HashMap<i64, (Timestamp, Millis)>>);

impl Ahead {
    /// Keeps leases that have run out, and those watched for long enough.
    fn watch(&self, leases: &mut Vec<LeaseRow>, now: Millis) {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashMap::new();
        leases.retain(|lease| {
            if lease.expires_at <= lease.now {
                return true;
            }
            let before = watched.get(&lease.id).filter(|(end, _)| *end == lease.expires_at);
            let since = before.map_or(now, |(_, since)| *since);
            seen.insert(lease.id, (lease.expires_at, since));
            now - since >= lease.length && !lease.length.is_zero()
        });
        *watched = seen;
    }
}

impl LeaseRow {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        Ok(Self {
            id: c.get("id")?,
            worker: c.get("worker")?,
            now: c.moment("now")?,
            length: Millis::new(c.large_count("length_ms")?),
            expires_at: c.moment("expires_at")?,
        })
    }
}

//! Reap and expire: what ends without its worker saying so.

use crate::job::{ClaimedJob, LeaseId, NewJob};
use crate::leases::transition;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::upkeep::partitions::Class;
use crate::store::{Commit, Reap, StoreError, Transitioned};
use futures_util::join;
use std::collections::HashMap;
use tokio_postgres::Row;
use windlass_core::{Millis, Timestamp};

impl Inner {
    pub(in crate::store::postgres) async fn reap(
        &self,
        reap: &Reap,
        limit: u32,
    ) -> Result<Vec<Transitioned>, StoreError> {
        let asked = self.clock.monotonic();
        self.finishing(|| async {
            self.ensure_partitions(Class::ALL).await?;
            let lent = self.pool.get().await?;
            let (begun, transitioned) = join!(lent.begin(), self.reap_on(On::Own(&lent), reap, limit, asked));
            lent.conclude(begun, transitioned).await
        })
        .await
    }

    async fn reap_on(
        &self,
        on: On<'_>,
        reap: &Reap,
        limit: u32,
        asked: Millis,
    ) -> Result<Vec<Transitioned>, StoreError> {
        let (now, limit) = (self.fixed(), i64::from(limit));
        let rows = match reap {
            Reap::Expired { spared } => {
                let (above, below) = spared.bounds();
                on.query(Sql::ReapExpired, &[&now, &above, &below, &limit]).await?
            }
            Reap::Of(worker) => on.query(Sql::ReapWorker, &[&now, &&*worker.0, &limit]).await?,
        };
        let mut leases: Vec<LeaseRow> = rows.iter().map(LeaseRow::read).collect::<Result<_, _>>()?;
        // The question may have waited for a database that was away: its workers have not had their chance to renew.
        if let Reap::Expired { spared } = reap.clone().late(self.clock.monotonic() - asked) {
            leases.retain(|lease| !spared.holds(lease.length));
        }
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let lost = self.lost(on, &leases).await?;
        let commits: Vec<Commit> = lost.iter().map(|(_, commit)| commit.clone()).collect();
        let ended: Vec<LeaseId> = leases.iter().map(|lease| LeaseId(lease.id)).collect();
        let numbers = self.follow_up_numbers(&commits).await?;
        self.apply(on, &commits, &numbers, &ended).await?;
        Ok(lost.into_iter().map(|(job, commit)| Transitioned::new(job.job, &commit)).collect())
    }

    /// The jobs still running under these leases with the commits of their loss: lease by lease, in the order of the claim.
    async fn lost(&self, on: On<'_>, leases: &[LeaseRow]) -> Result<Vec<(ClaimedJob, Commit)>, StoreError> {
        let ids: Vec<i64> = leases.iter().flat_map(|lease| lease.jobs.iter().copied()).collect();
        let lease_ids: Vec<i64> = leases.iter().map(|lease| lease.id).collect();
        let rows = on.query(Sql::ReapJobs, &[&ids, &lease_ids]).await?;
        let jobs = self.claimed_in(on, &rows).await?;
        let mut running: HashMap<i64, ClaimedJob> = jobs.into_iter().map(|job| (job.id.0, job)).collect();
        let mut lost = Vec::new();
        for lease in leases {
            for id in &lease.jobs {
                let is_held = running.get(id).is_some_and(|job| job.lease.0 == lease.id);
                if is_held && let Some(job) = running.remove(id) {
                    let commit = transition::lost(&job, &lease.worker, lease.now, self.random.roll());
                    lost.push((job, commit));
                }
            }
        }
        Ok(lost)
    }

    pub(in crate::store::postgres) async fn expire(&self, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
        self.finishing(|| async {
            self.ensure_partitions([Class::Failed]).await?;
            let lent = self.pool.get().await?;
            let (begun, transitioned) = join!(lent.begin(), self.expire_on(On::Own(&lent), limit));
            lent.conclude(begun, transitioned).await
        })
        .await
    }

    async fn expire_on(&self, on: On<'_>, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
        let rows = on.query(Sql::Expired, &[&self.fixed(), &i64::from(limit)]).await?;
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        let now = Columns::new(first).moment("now")?;
        let jobs = self.jobs_in(on, &rows).await?;
        let mut deliveries: Vec<NewJob> = Vec::new();
        let mut transitioned = Vec::new();
        for job in &jobs {
            let (transition, delivery) = transition::ended_waiting(job, transition::EXPIRED, now);
            deliveries.extend(delivery);
            transitioned.push(Transitioned { job: job.clone(), transition, error_class: None });
        }
        let numbers = self.numbers(&deliveries).await?;
        let endings: Vec<_> = jobs.into_iter().map(|job| (job, transition::EXPIRED)).collect();
        self.end_waiting(on, &endings, &deliveries, &numbers).await?;
        Ok(transitioned)
    }
}

/// A lease that is over.
struct LeaseRow {
    id: i64,
    worker: String,
    jobs: Vec<i64>,
    now: Timestamp,
    length: Millis,
}

impl LeaseRow {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        Ok(Self {
            id: c.get("id")?,
            worker: c.get("worker")?,
            jobs: c.get("job_ids")?,
            now: c.moment("now")?,
            length: Millis::new(c.large_count("length_ms")?),
        })
    }
}

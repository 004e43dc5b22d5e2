//! Claim: due jobs go to `running` under new leases, in one statement. Also renew, and what a lease holds.

use crate::job::{ClaimedJob, LeaseId};
use crate::store::json::webhook_to_text;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::frontier::Start;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::rows;
use crate::store::{Claim, Claimed, Leases, Renewed, StoreError};
use futures_util::join;
use std::cmp::Reverse;
use tokio_postgres::Row;
use windlass_core::{JobId, Millis, Timestamp};

impl Inner {
    pub(in crate::store::postgres) async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        if claim.shares.is_empty() || claim.limit == 0 {
            return Ok(Claimed::default());
        }
        let start = self.frontier.start(&claim.shares, &self.clock);
        let began = self.clock.monotonic();
        let claimed = again(|| self.claim_once(claim, &start)).await?;
        if start.is_full {
            let now = self.clock.monotonic();
            self.frontier.looked(now - began, now);
        }
        self.frontier.advance(&claimed.jobs);
        Ok(claimed)
    }

    async fn claim_once(&self, claim: &Claim, start: &Start) -> Result<Claimed, StoreError> {
        let lent = self.pool.get().await?;
        let (begun, claimed) = join!(lent.begin(), self.claim_on(On::Own(&lent), claim, start));
        lent.conclude(begun, claimed).await
    }

    async fn claim_on(&self, on: On<'_>, claim: &Claim, start: &Start) -> Result<Claimed, StoreError> {
        let asked = Asked::new(claim);
        let now = self.fixed();
        let params: Params<'_> = &[
            &now,
            &asked.queues,
            &asked.slots,
            &asked.ahead,
            &asked.limit,
            &asked.suspects,
            &asked.worker,
            &asked.length,
            &asked.leases,
            &asked.is_shared,
            &start.due_at,
            &start.id,
        ];
        let mut rows = on.query(Sql::ClaimDue, params).await?;
        let first = rows.first().ok_or_else(|| StoreError::corrupt("claim", "it answers at least the time"))?;
        let c = Columns::new(first);
        let (now, needs_full_walk) = (c.moment("now")?, c.get("needs_full_walk")?);
        self.clock.follow(now);
        if needs_full_walk {
            rows = self.claim_odd(on, claim, &asked, now).await?;
        }
        let rows = in_order(rows)?;
        let jobs = self.claimed_in(on, &rows).await?;
        self.freeze_policies(on, &rows, &jobs).await?;
        let next_due = self.next_due(on, claim, &jobs, now).await?;
        Ok(Claimed { jobs, next_due })
    }

    /// Suspects, or at-most-once jobs beyond the free slots, are among the due: look at all that could be taken, and walk
    /// them in order.
    async fn claim_odd(
        &self,
        on: On<'_>,
        claim: &Claim,
        asked: &Asked<'_>,
        now: Timestamp,
    ) -> Result<Vec<Row>, StoreError> {
        let now = now.as_millis();
        let params: Params<'_> = &[&now, &asked.queues, &asked.slots, &asked.ahead, &asked.suspects];
        let mut due: Vec<Due> =
            on.query(Sql::ClaimPick, params).await?.iter().map(Due::read).collect::<Result<_, _>>()?;
        due.sort_by_key(|due| (due.share, Reverse(due.priority), due.due_at, due.id));
        let ids = walk(claim, &due);
        let lease = |nth| if asked.is_shared { asked.leases.first() } else { asked.leases.get(nth) };
        let leases: Vec<i64> = (0..ids.len()).filter_map(lease).copied().collect();
        on.query(Sql::ClaimTake, &[&now, &ids, &leases, &asked.worker, &asked.length]).await
    }

    /// Stores the policy and webhook of jobs that came by the SQL function and are claimed for the first time.
    async fn freeze_policies(&self, on: On<'_>, rows: &[Row], jobs: &[ClaimedJob]) -> Result<(), StoreError> {
        let (mut ids, mut policies, mut webhooks) = (Vec::new(), Vec::new(), Vec::new());
        for (row, job) in rows.iter().zip(jobs) {
            if rows::references(row)?.1.is_err() {
                ids.push(job.id.0);
                policies.push(self.policy_number(&job.policy).await?);
                webhooks.push(job.webhook.as_deref().map(webhook_to_text));
            }
        }
        if !ids.is_empty() {
            on.query(Sql::FreezePolicy, &[&ids, &policies, &webhooks]).await?;
        }
        Ok(())
    }

    async fn next_due(
        &self,
        on: On<'_>,
        claim: &Claim,
        jobs: &[ClaimedJob],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let taken = |queue| jobs.iter().filter(|job| job.queue_id == queue).count() as u64;
        let is_unfilled =
            |share: &&crate::store::Share| taken(share.queue) < u64::from(share.slots) + u64::from(share.ahead);
        let queues: Vec<i64> = claim.shares.iter().filter(is_unfilled).map(|share| share.queue.0).collect();
        if queues.is_empty() {
            return Ok(None);
        }
        let rows = on.query(Sql::NextDue, &[&now.as_millis(), &queues]).await?;
        rows.first().map_or(Ok(None), |row| Columns::new(row).moment_if("due_at"))
    }

    pub(in crate::store::postgres) async fn held(&self, leases: &[LeaseId]) -> Result<Vec<ClaimedJob>, StoreError> {
        let ids: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
        again(|| async {
            let lent = self.pool.get().await?;
            let rows = lent.query(Sql::Held, &[&ids]).await?;
            self.claimed_in(On::Own(&lent), &rows).await
        })
        .await
    }

    pub(in crate::store::postgres) async fn renew(
        &self,
        leases: &[LeaseId],
        lease_for: Millis,
    ) -> Result<Renewed, StoreError> {
        let ids: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
        let length = lease_for.get() as i64;
        again(|| async {
            let lent = self.pool.get().await?;
            let now = self.fixed();
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
}

/// A claim as the statements take it.
struct Asked<'a> {
    queues: Vec<i64>,
    slots: Vec<i64>,
    ahead: Vec<i64>,
    limit: i64,
    suspects: i64,
    worker: &'a str,
    length: i64,
    leases: Vec<i64>,
    is_shared: bool,
}

impl<'a> Asked<'a> {
    fn new(claim: &'a Claim) -> Self {
        let (leases, is_shared) = match &claim.leases {
            Leases::Shared(lease) => (vec![lease.0], true),
            Leases::Each(leases) => (leases.iter().map(|lease| lease.0).collect(), false),
        };
        Self {
            queues: claim.shares.iter().map(|share| share.queue.0).collect(),
            slots: claim.shares.iter().map(|share| share.slots.into()).collect(),
            ahead: claim.shares.iter().map(|share| share.ahead.into()).collect(),
            limit: claim.limit.into(),
            suspects: claim.suspects.into(),
            worker: &claim.worker.0,
            length: claim.lease_for.get() as i64,
            leases,
            is_shared,
        }
    }
}

/// A due job, as far as taking it depends on it.
struct Due {
    share: i64,
    id: i64,
    priority: i16,
    due_at: i64,
    is_once: bool,
    crashes: i32,
}

impl Due {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        Ok(Self {
            share: c.get("share")?,
            id: c.get("id")?,
            priority: c.get("priority")?,
            due_at: c.get("due_at")?,
            is_once: c.get("at_most_once")?,
            crashes: c.get("crashes")?,
        })
    }
}

/// The rows of claimed jobs in the order of the claim. A row without a rank only says that nothing was due.
fn in_order(rows: Vec<Row>) -> Result<Vec<Row>, StoreError> {
    let mut ranked = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(rank) = Columns::new(&row).get::<Option<i64>>("rank")? {
            ranked.push((rank, row));
        }
    }
    ranked.sort_unstable_by_key(|(rank, _)| *rank);
    Ok(ranked.into_iter().map(|(_, row)| row).collect())
}

/// The ids a claim takes of due jobs in order: at-most-once jobs into free slots only, suspects up to their bound.
fn walk(claim: &Claim, due: &[Due]) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut suspects = claim.suspects;
    for (share, place) in claim.shares.iter().zip(1..) {
        let room = claim.limit as usize - ids.len();
        let wanted = ((share.slots + share.ahead) as usize).min(room);
        let mut taken = 0;
        for job in due.iter().filter(|job| job.share == place) {
            let is_without_slot = job.is_once && taken >= share.slots as usize;
            let is_suspect = job.crashes > 0;
            if taken == wanted || is_without_slot || (is_suspect && suspects == 0) {
                continue;
            }
            suspects -= u32::from(is_suspect);
            ids.push(job.id);
            taken += 1;
        }
    }
    ids
}

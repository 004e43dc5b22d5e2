//! Claim: due jobs go to `running` under new leases, in one statement. Also renew, and what a lease holds.

use super::Inner;
use super::fault::again;
use super::frontier::Start;
use super::pool::On;
use super::rows::Columns;
use super::sql::Sql;
use crate::job::{Job, LeaseId};
use crate::store::{Claim, Claimed, Leases, Renewed, StoreError};
use futures_util::join;
use windlass_core::{JobId, Millis, Timestamp};

/// Columns before the job in `claim.sql`: the time and the job's rank.
const JOB_AT: usize = 2;

impl Inner {
    pub(super) async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        if claim.turns.is_empty() || claim.limit == 0 {
            return Ok(Claimed::default());
        }
        let start = self.frontier.start(&claim.turns, &self.clock);
        let claimed = again(|| self.claim_once(claim, &start)).await?;
        self.frontier.advance(&claimed.jobs);
        Ok(claimed)
    }

    async fn claim_once(&self, claim: &Claim, start: &Start) -> Result<Claimed, StoreError> {
        let lent = self.pool.get().await?;
        let (begun, claimed) = join!(lent.begin(), self.claim_on(On::Own(&lent), claim, start));
        lent.conclude(begun, claimed).await
    }

    async fn claim_on(&self, on: On<'_>, claim: &Claim, start: &Start) -> Result<Claimed, StoreError> {
        let queues: Vec<i64> = claim.turns.iter().map(|turn| turn.queue.0).collect();
        let slots: Vec<i64> = claim.turns.iter().map(|turn| turn.slots.into()).collect();
        let ahead: Vec<i64> = claim.turns.iter().map(|turn| turn.ahead.into()).collect();
        let (leases, is_shared): (Vec<i64>, bool) = match &claim.leases {
            Leases::Shared(lease) => (vec![lease.0], true),
            Leases::Each(leases) => (leases.iter().map(|lease| lease.0).collect(), false),
        };
        let (limit, suspects) = (i64::from(claim.limit), i64::from(claim.suspects));
        let length = claim.lease_for.get() as i64;
        let worker: &str = &claim.worker.0;
        let now = self.fixed();
        let mut rows = on
            .query(
                Sql::Claim,
                &[
                    &now,
                    &queues,
                    &slots,
                    &ahead,
                    &limit,
                    &suspects,
                    &worker,
                    &length,
                    &leases,
                    &is_shared,
                    &start.due_at,
                    &start.id,
                ],
            )
            .await?;
        let now = match rows.first() {
            Some(row) => Columns::new(row).moment()?,
            None => return Err(StoreError::corrupt("claim", "it answers at least the time")),
        };
        self.clock.follow(now);
        // One row without a rank: nothing was due.
        rows.retain(|row| row.try_get::<_, i64>(1).is_ok());
        rows.sort_by_key(|row| row.get::<_, i64>(1));
        let jobs = self.jobs_in(on, &rows, JOB_AT).await?;
        self.freeze_policies(on, &rows, &jobs).await?;
        let next_due = self.next_due(on, claim, &jobs, now).await?;
        Ok(Claimed { jobs, next_due })
    }

    /// Stores the policy of jobs that came by the SQL function and are claimed for the first time.
    async fn freeze_policies(&self, on: On<'_>, rows: &[tokio_postgres::Row], jobs: &[Job]) -> Result<(), StoreError> {
        let (mut ids, mut policies) = (Vec::new(), Vec::new());
        for (row, job) in rows.iter().zip(jobs) {
            if super::rows::references(row, JOB_AT)?.1.is_err() {
                ids.push(job.id.0);
                policies.push(self.policy_number(&job.policy).await?);
            }
        }
        if !ids.is_empty() {
            on.query(Sql::FreezePolicy, &[&ids, &policies]).await?;
        }
        Ok(())
    }

    async fn next_due(
        &self,
        on: On<'_>,
        claim: &Claim,
        jobs: &[Job],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let taken = |queue| jobs.iter().filter(|job| job.queue_id == queue).count() as u64;
        let is_unfilled =
            |turn: &&crate::store::Turn| taken(turn.queue) < u64::from(turn.slots) + u64::from(turn.ahead);
        let queues: Vec<i64> = claim.turns.iter().filter(is_unfilled).map(|turn| turn.queue.0).collect();
        if queues.is_empty() {
            return Ok(None);
        }
        let rows = on.query(Sql::NextDue, &[&now.as_millis(), &queues]).await?;
        rows.first().map_or(Ok(None), |row| Columns::new(row).moment_if())
    }

    pub(super) async fn held(&self, lease: LeaseId) -> Result<Vec<Job>, StoreError> {
        again(|| async {
            let lent = self.pool.get().await?;
            let rows = lent.query(Sql::Held, &[&lease.0]).await?;
            self.jobs_in(On::Own(&lent), &rows, 0).await
        })
        .await
    }

    pub(super) async fn renew(&self, leases: &[LeaseId], lease_for: Millis) -> Result<Renewed, StoreError> {
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
            let kept: Vec<i64> = renewed.iter().map(|row| Columns::new(row).next()).collect::<Result<_, _>>()?;
            let asked: Vec<i64> = asked.iter().map(|row| Columns::new(row).next()).collect::<Result<_, _>>()?;
            Ok(Renewed {
                lost: leases.iter().copied().filter(|lease| !kept.contains(&lease.0)).collect(),
                cancel_requested: asked.into_iter().map(JobId).collect(),
            })
        })
        .await
    }
}

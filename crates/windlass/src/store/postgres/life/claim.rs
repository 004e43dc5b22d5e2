//! Claim: due jobs leave `waiting` and run under new leases, in one statement.

use crate::job::{ClaimedJob, QueueId};
use crate::store::json::webhook_to_text;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::frontier::{Drained, Start};
use crate::store::postgres::life::gates::Gated;
use crate::store::postgres::life::{claim_kinds, gates, names};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::rows;
use crate::store::{Claim, Claimed, Kinds, Leases, Share, StoreError};
use futures_util::join;
use std::cmp::Reverse;
use std::collections::HashMap;
use windlass_core::pick::{Candidate, Pick, Picker, order};
use windlass_core::{Delivery, JobId, Millis, Priority, Timestamp};

pub(in crate::store::postgres) async fn claim(store: &Inner, claim: &Claim) -> Result<Claimed, StoreError> {
    if claim.shares.is_empty() || claim.limit == 0 {
        return Ok(Claimed::default());
    }
    let gated = gates::gated(store, claim.shares.iter().map(|share| share.queue)).await?;
    if let Some(kinds) = &claim.kinds {
        return claim_of_kinds(store, claim, kinds, &gated).await;
    }
    if !gated.is_empty() {
        return claim_gated(store, claim, &gated).await;
    }
    let start = store.frontier.start(&claim.shares, &store.clock);
    let began = store.clock.monotonic();
    let claimed = again(|| claim_once(store, claim, &start)).await?;
    looked(store, &start, began);
    store.frontier.advance(claimed.jobs.iter().filter_map(Drained::by));
    Ok(claimed)
}

fn looked(store: &Inner, start: &Start, began: Millis) {
    if start.is_full {
        let now = store.clock.monotonic();
        store.frontier.looked(now - began, now);
    }
}

async fn claim_once(store: &Inner, claim: &Claim, start: &Start) -> Result<Claimed, StoreError> {
    let lent = store.pool.get().await?;
    let (begun, claimed) = join!(lent.begin(), claim_on(store, On::Own(&lent), claim, start));
    lent.conclude(begun, claimed).await
}

async fn claim_on(store: &Inner, on: On<'_>, claim: &Claim, start: &Start) -> Result<Claimed, StoreError> {
    let asked = Asked::new(claim);
    let now = store.fixed();
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
    let sent = store.clock.monotonic();
    let mut rows = on.query(Sql::ClaimDue, params).await?;
    let first = rows.first().ok_or_else(|| StoreError::corrupt("claim", "it answers at least the time"))?;
    let c = Columns::new(first);
    let (now, needs_full_walk) = (c.moment("now")?, c.get("needs_full_walk")?);
    store.clock.follow(now, sent);
    if needs_full_walk {
        rows = claim_walking(on, claim, &asked, now).await?;
    }
    let jobs = claimed(store, on, claim, rows).await?;
    let next_due = next_due(on, claim, &jobs, now).await?;
    Ok(Claimed { jobs, next_due, ..Claimed::default() })
}

/// The claimed jobs, from their rows.
pub(super) async fn claimed(
    store: &Inner,
    on: On<'_>,
    claim: &Claim,
    rows: Vec<Row>,
) -> Result<Vec<ClaimedJob>, StoreError> {
    let rows = in_order(rows)?;
    let jobs = names::claimed_in(store, on, &rows).await?;
    if !jobs.is_empty() {
        store.unfolded.wrote(claim.shares.len() as u64);
    }
    freeze_policies(store, on, &rows, &jobs).await?;
    Ok(jobs)
}

/// A claim of some kinds. Gated queues are claimed from after the others, under the leases that are left.
async fn claim_of_kinds(
    store: &Inner,
    claim: &Claim,
    kinds: &Kinds,
    gated: &HashMap<QueueId, Gated>,
) -> Result<Claimed, StoreError> {
    if gated.is_empty() {
        return again(|| claim_kinds::claim_once(store, claim, kinds)).await;
    }
    let (limited, open): (Vec<Share>, Vec<Share>) = claim.shares.iter().partition(|s| gated.contains_key(&s.queue));
    let mut first = Claimed::default();
    if !open.is_empty() {
        let open = Claim { shares: open, ..claim.clone() };
        first = again(|| claim_kinds::claim_once(store, &open, kinds)).await?;
    }
    let Some(rest) = rest_of(claim, limited, first.jobs.len()) else { return Ok(first) };
    match claim_gated(store, &rest, gated).await {
        Ok(second) => {
            first.jobs.extend(second.jobs);
            first.parked.extend(second.parked);
            first.next_due = [first.next_due, second.next_due].into_iter().flatten().min();
            Ok(first)
        }
        // The first jobs are claimed: whoever asks what happened finds them too.
        Err(error @ StoreError::Unknown(_)) => Err(error),
        Err(error) if first.jobs.is_empty() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "jobs of limited queues could not be claimed");
            Ok(first)
        }
    }
}

/// The same claim of these shares after so many jobs were taken; `None` if nothing more can be.
fn rest_of(claim: &Claim, shares: Vec<Share>, taken: usize) -> Option<Claim> {
    let leases = match &claim.leases {
        Leases::Each(leases) => Leases::Each(leases.get(taken..)?.to_vec()),
        // A lease is written once.
        Leases::Shared(_) if taken > 0 => return None,
        Leases::Shared(lease) => Leases::Shared(*lease),
    };
    let limit = claim.limit.saturating_sub(taken as u32);
    (limit > 0).then(|| Claim { shares, leases, limit, ..claim.clone() })
}

/// A claim that takes from gated queues too.
async fn claim_gated(store: &Inner, claim: &Claim, gated: &HashMap<QueueId, Gated>) -> Result<Claimed, StoreError> {
    let start = store.frontier.start(&claim.shares, &store.clock);
    let began = store.clock.monotonic();
    let (claimed, drained) = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, claimed) = join!(lent.begin(), claim_gated_on(store, On::Own(&lent), claim, gated, &start));
        lent.conclude(begun, claimed).await
    })
    .await?;
    looked(store, &start, began);
    store.frontier.advance(drained.into_iter());
    Ok(claimed)
}

async fn claim_gated_on(
    store: &Inner,
    on: On<'_>,
    claim: &Claim,
    gated: &HashMap<QueueId, Gated>,
    start: &Start,
) -> Result<(Claimed, Vec<Drained>), StoreError> {
    let asked = Asked::new(claim);
    let taken = gates::claim::claim(store, on, claim, &asked, gated, start).await?;
    let mut jobs = claimed(store, on, claim, taken.rows).await?;
    for job in &mut jobs {
        job.is_probe = taken.probes.contains(&job.job.id);
    }
    let next_due = next_due(on, claim, &jobs, taken.now).await?;
    let next_due = [next_due, taken.next].into_iter().flatten().min();
    Ok((Claimed { jobs, next_due, parked: taken.parked }, taken.drained))
}

/// Suspects, or at-most-once jobs beyond the free slots, are among the due jobs. So all candidates are read and picked
/// in order.
async fn claim_walking(on: On<'_>, claim: &Claim, asked: &Asked<'_>, now: Timestamp) -> Result<Vec<Row>, StoreError> {
    let now = now.as_millis();
    let params: Params<'_> = &[&now, &asked.queues, &asked.slots, &asked.ahead, &asked.suspects];
    let rows = on.query(Sql::ClaimPick, params).await?;
    let mut due: Vec<Due> = rows.iter().map(Due::read).collect::<Result<_, _>>()?;
    due.sort_by_key(Due::key);
    asked.take(on, now, &picked(claim, &due.iter()).ids).await
}

/// Stores the policy and webhook of jobs that came by the SQL function and are claimed for the first time.
async fn freeze_policies(store: &Inner, on: On<'_>, rows: &[Row], jobs: &[ClaimedJob]) -> Result<(), StoreError> {
    let (mut ids, mut policies, mut webhooks) = (Vec::new(), Vec::new(), Vec::new());
    for (row, job) in rows.iter().zip(jobs) {
        if rows::references(row)?.1.is_err() {
            ids.push(job.id.0);
            policies.push(names::policy_number(store, &job.policy).await?);
            webhooks.push(job.webhook.as_deref().map(webhook_to_text));
        }
    }
    if !ids.is_empty() {
        on.query(Sql::FreezePolicy, &[&ids, &policies, &webhooks]).await?;
    }
    Ok(())
}

pub(super) async fn next_due(
    on: On<'_>,
    claim: &Claim,
    jobs: &[ClaimedJob],
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let taken = |queue| jobs.iter().filter(|job| job.queue_id == queue).count() as u64;
    let is_unfilled = |share: &&Share| taken(share.queue) < u64::from(share.slots) + u64::from(share.ahead);
    let queues: Vec<i64> = claim.shares.iter().filter(is_unfilled).map(|share| share.queue.0).collect();
    if queues.is_empty() {
        return Ok(None);
    }
    let rows = on.query(Sql::NextDue, &[&now.as_millis(), &queues]).await?;
    rows.first().map_or(Ok(None), |row| Columns::new(row).moment_if("due_at"))
}

/// A claim as the statements take it.
pub(super) struct Asked<'a> {
    pub(super) queues: Vec<i64>,
    pub(super) slots: Vec<i64>,
    pub(super) ahead: Vec<i64>,
    pub(super) limit: i64,
    pub(super) suspects: i64,
    worker: &'a str,
    length: i64,
    leases: Vec<i64>,
    is_shared: bool,
}

impl<'a> Asked<'a> {
    /// Takes these locked jobs, in this order.
    pub(super) async fn take(&self, on: On<'_>, now: i64, ids: &[i64]) -> Result<Vec<Row>, StoreError> {
        let leases = self.leases(ids.len());
        on.query(Sql::ClaimTake, &[&now, &ids, &leases, &self.worker, &self.length]).await
    }

    /// The leases of the first so many jobs.
    pub(super) fn leases(&self, count: usize) -> Vec<i64> {
        let lease = |nth| if self.is_shared { self.leases.first() } else { self.leases.get(nth) };
        (0..count).filter_map(lease).copied().collect()
    }

    pub(super) fn new(claim: &'a Claim) -> Self {
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

/// The order in which jobs are picked: by share, then as the queue orders them.
pub(super) type Key = (i64, (Reverse<Priority>, Timestamp, JobId));

/// The columns of a due job that picking depends on.
pub(super) struct Due {
    /// Its queue's place in the claim, from 1.
    pub(super) share: i64,
    pub(super) id: JobId,
    pub(super) priority: Priority,
    pub(super) due_at: Timestamp,
    pub(super) candidate: Candidate,
}

impl Due {
    pub(super) const fn key(&self) -> Key {
        (self.share, order(self.priority, self.due_at, self.id))
    }

    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { share: Columns::new(row).get("share")?, ..Self::read_gated(row)? })
    }

    /// The same from a row of one queue.
    pub(super) fn read_gated(row: &Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        let rank: i16 = c.get("priority")?;
        let delivery = if c.get("at_most_once")? { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
        Ok(Self {
            share: 0,
            id: JobId(c.get("id")?),
            priority: Priority::from_rank(rank.into())
                .ok_or_else(|| StoreError::corrupt("job", "priorities are -2..=2"))?,
            due_at: c.moment("due_at")?,
            candidate: Candidate { delivery, is_suspect: c.count("crashes")? > 0 },
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

/// What a claim takes of due jobs.
#[derive(Debug, Default)]
pub(super) struct Picked {
    pub(super) ids: Vec<i64>,
    /// Whether jobs that lost a worker before were skipped.
    pub(super) skipped_suspects: bool,
    /// Whether at-most-once jobs were skipped.
    pub(super) skipped_at_most_once: bool,
}

/// What a claim takes of due jobs in order.
pub(super) fn picked<'d>(claim: &Claim, due: &(impl Iterator<Item = &'d Due> + Clone)) -> Picked {
    let mut picked = Picked::default();
    let mut picker = Picker::new(claim.limit, claim.suspects);
    for (share, place) in claim.shares.iter().zip(1..) {
        picker.next_queue(share.slots, share.ahead);
        for job in due.clone().filter(|job| job.share == place) {
            match picker.pick(job.candidate) {
                Pick::Take => picked.ids.push(job.id.0),
                Pick::PassOver => {
                    picked.skipped_suspects |= job.candidate.is_suspect;
                    picked.skipped_at_most_once |= job.candidate.delivery == Delivery::AtMostOnce;
                }
                Pick::Full => break,
            }
        }
    }
    picked
}

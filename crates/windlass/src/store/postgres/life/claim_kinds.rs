//! Claims of some kinds. They look at a bounded number of due jobs, lock those of the right kinds, and continue there
//! the next time (`passed_over`).

use crate::store::passed_over::{self, Place};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::claim::{Asked, Due, Key, claimed, next_due, picked};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::{Claim, Claimed, Kinds, Share, StoreError};
use futures_util::join;
use std::collections::BTreeMap;
use windlass_core::{Priority, Timestamp};

/// Priorities of a queue, each of which is read in one order.
pub(super) const LEVELS: i64 = Priority::HIGHEST_FIRST.len() as i64;

pub(super) async fn claim_once(store: &Inner, claim: &Claim, kinds: &Kinds) -> Result<Claimed, StoreError> {
    let lent = store.pool.get().await?;
    let (begun, claimed) = join!(lent.begin(), claim_on(store, On::Own(&lent), claim, kinds));
    lent.conclude(begun, claimed).await
}

async fn claim_on(store: &Inner, on: On<'_>, claim: &Claim, kinds: &Kinds) -> Result<Claimed, StoreError> {
    let asked = Asked::new(claim);
    let search = Search::new(store, claim, kinds);
    let mut due = BTreeMap::new();
    let (mut with_suspects, mut with_at_most_once) = (claim.suspects > 0, true);
    // Where jobs must be skipped, others may be due after those found, so it looks again for the others alone.
    let (ids, now) = loop {
        let now = search.find(store, on, &asked, (with_suspects, with_at_most_once), &mut due).await?;
        let picked = picked(claim, &due.values());
        let is_done = !(with_suspects && picked.skipped_suspects || with_at_most_once && picked.skipped_at_most_once);
        if is_done {
            break (picked.ids, now);
        }
        with_suspects &= !picked.skipped_suspects;
        with_at_most_once &= !picked.skipped_at_most_once;
    };
    let is_unfilled = (ids.len() as i64) < asked.limit;
    let has_more = is_unfilled && search.advance(store, on, &asked, &due, now).await?;
    let rows = if ids.is_empty() { Vec::new() } else { asked.take(on, now.as_millis(), &ids).await? };
    let jobs = claimed(store, on, claim, rows).await?;
    let next_due = if has_more { Some(now) } else { next_due(on, claim, &jobs, now).await? };
    Ok(Claimed { jobs, next_due, ..Claimed::default() })
}

/// Due jobs in the order they are picked.
type InOrder = BTreeMap<Key, Due>;

/// Which jobs one claim looks at.
struct Search<'c> {
    kinds: &'c Kinds,
    names: Vec<&'c str>,
    shares: &'c [Share],
    /// How many due jobs of each share and priority.
    look: i64,
    /// From where, for each share and priority.
    due_at: Vec<i64>,
    id: Vec<i64>,
}

impl<'c> Search<'c> {
    fn new(store: &Inner, claim: &'c Claim, kinds: &'c Kinds) -> Self {
        let wanted = claim.shares.iter().map(|share| share.slots.saturating_add(share.ahead)).max().unwrap_or_default();
        let now = store.clock.now();
        let places = claim.shares.iter().flat_map(|share| (1..=LEVELS).map(|place| lane(share, place)));
        let (due_at, id) = places.map(|lane| store.passed_over.start(kinds, lane, now)).unzip();
        let look = passed_over::look(wanted.min(claim.limit)).into();
        Self { kinds, names: kinds.iter().collect(), shares: &claim.shares, look, due_at, id }
    }

    /// Locks due jobs and adds them. Returns the time.
    async fn find(
        &self,
        store: &Inner,
        on: On<'_>,
        asked: &Asked<'_>,
        (with_suspects, with_at_most_once): (bool, bool),
        due: &mut InOrder,
    ) -> Result<Timestamp, StoreError> {
        let now = store.fixed();
        let params: Params<'_> = &[
            &now,
            &asked.queues,
            &asked.slots,
            &asked.ahead,
            &asked.limit,
            &self.names,
            &self.look,
            &self.due_at,
            &self.id,
            &with_suspects,
            &with_at_most_once,
        ];
        let sent = store.clock.monotonic();
        let rows = on.query(Sql::ClaimKinds, params).await?;
        let first = rows.first().ok_or_else(|| StoreError::corrupt("claim", "it answers at least the time"))?;
        let now = Columns::new(first).moment("now")?;
        store.clock.follow(now, sent);
        for row in &rows {
            // A row without a job only says the time.
            if Columns::new(row).get::<Option<i64>>("id")?.is_some() {
                let job = Due::read(row)?;
                due.insert(job.key(), job);
            }
        }
        Ok(now)
    }

    /// Remembers where the next claim starts, where there are more due jobs than this one looked at. Returns whether
    /// there are.
    async fn advance(
        &self,
        store: &Inner,
        on: On<'_>,
        asked: &Asked<'_>,
        due: &InOrder,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let params: Params<'_> = &[&now.as_millis(), &asked.queues, &self.look, &self.due_at, &self.id];
        let rows = on.query(Sql::ClaimLooked, params).await?;
        for row in &rows {
            let c = Columns::new(row);
            let (share, place): (i64, i64) = (c.get("share")?, c.get("place")?);
            let of_lane = |job: &&Due| {
                job.share == share && Priority::HIGHEST_FIRST.get(place as usize - 1) == Some(&job.priority)
            };
            let first: Option<Place> = due.values().find(of_lane).map(|job| (job.due_at.as_millis(), job.id.0));
            let unseen = (c.get("due_at")?, c.get("id")?);
            if let Some(share) = self.shares.get(share as usize - 1) {
                // The first job of these kinds, which may not be taken, or the first that nobody looked at.
                store.passed_over.advance(self.kinds, lane(share, place), first.unwrap_or(unseen), now);
            }
        }
        Ok(!rows.is_empty())
    }
}

/// The number of a queue's priority, counted from 1 for the highest.
pub(super) const fn lane(share: &Share, place: i64) -> i64 {
    share.queue.0 * LEVELS + place - 1
}

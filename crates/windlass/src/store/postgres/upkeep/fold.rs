//! Folding: deltas become seconds, seconds minutes, minutes hours. Deltas are folded as soon as there are many, by the
//! node that wrote or read them, so that a busy window is read in a few rows; upkeep does the rest. Folding changes no
//! sum.

use crate::store::StoreError;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::only;
use crate::tally::{DELTAS_FOR, HOUR, MINUTE, MINUTES_FOR, SECOND, fold_before, start_of};
use futures_util::join;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use windlass_core::{Millis, Timestamp};

/// Deltas that may wait for upkeep: reading this many takes a millisecond.
const MANY: u64 = 250;
/// The most deltas folded by one statement.
const BATCH: i64 = 20_000;
/// At least this long between two folds of one node.
const GAP: Duration = Duration::from_secs(1);
/// How often a node counts the live jobs: some may have been deleted by hand.
const RECOUNT_EVERY: Millis = Millis::from_secs(3600);

/// Deltas this node knows of that may not be folded yet.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Unfolded {
    count: AtomicU64,
    many: Notify,
}

impl Unfolded {
    /// This many deltas were written.
    pub(in crate::store::postgres) fn wrote(&self, deltas: u64) {
        if self.count.fetch_add(deltas, Ordering::Relaxed) + deltas >= MANY {
            self.many.notify_one();
        }
    }

    /// This many deltas were read.
    pub(in crate::store::postgres) fn saw(&self, deltas: u64) {
        if self.count.fetch_max(deltas, Ordering::Relaxed).max(deltas) >= MANY {
            self.many.notify_one();
        }
    }
}

/// Folds deltas whenever there are many.
pub(in crate::store::postgres) async fn fold_many(inner: Arc<Inner>) {
    loop {
        inner.unfolded.many.notified().await;
        inner.unfolded.count.store(0, Ordering::Relaxed);
        if let Err(error) = fold_now(&inner).await {
            tracing::debug!(%error, "tallies could not be folded");
        }
        tokio::time::sleep(GAP).await;
    }
}

/// Folds deltas into seconds, unless another node is doing it.
async fn fold_now(store: &Inner) -> Result<(), StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let work = async {
            let on = On::Own(&lent);
            let rows = on.query(Sql::TallyTryLock, &[]).await?;
            if only(&rows, "is_mine")?.unwrap_or(false) {
                let now = store.now_on(on).await?;
                fold_seconds(store, on, now).await?;
            }
            Ok(())
        };
        let (begun, folded) = join!(lent.begin(), work);
        lent.conclude(begun, folded).await
    })
    .await
}

async fn fold_seconds(store: &Inner, on: On<'_>, now: Timestamp) -> Result<(), StoreError> {
    let before = start_of(now, SECOND).as_millis();
    let rows = on.query(Sql::TallyFoldSeconds, &[&before, &BATCH]).await?;
    let folded: i64 = only(&rows, "folded")?.unwrap_or_default();
    if folded >= BATCH {
        store.unfolded.saw(BATCH as u64);
    }
    Ok(())
}

/// All that can be folded, a bounded amount, in an open transaction.
pub(in crate::store::postgres) async fn fold_all(store: &Inner, on: On<'_>, now: Timestamp) -> Result<(), StoreError> {
    on.query(Sql::TallyLock, &[]).await?;
    fold_seconds(store, on, now).await?;
    let minutes_before = fold_before(now, DELTAS_FOR, MINUTE).as_millis();
    on.query(Sql::TallyFoldMinutes, &[&minutes_before]).await?;
    let hours_before = fold_before(now, MINUTES_FOR, HOUR).as_millis();
    on.query(Sql::TallyFoldHours, &[&hours_before]).await.map(drop)
}

/// Corrects wrong balances from time to time. They affect depths, not jobs, so this may fail.
pub(in crate::store::postgres) async fn recount(store: &Inner) {
    if !store.recounted.is_due(store.clock.monotonic(), RECOUNT_EVERY) {
        return;
    }
    let recounted = again(|| async {
        let lent = store.pool.get().await?;
        let work = async {
            lent.query(Sql::TallyLock, &[]).await?;
            lent.query(Sql::BalancesRecount, &[]).await
        };
        let (begun, rows) = join!(lent.begin(), work);
        lent.conclude(begun, rows).await
    })
    .await;
    match recounted {
        Ok(rows) if rows.is_empty() => {}
        Ok(rows) => {
            let queues = rows.len();
            tracing::warn!(queues, "live jobs were recounted: jobs had been added or deleted without Windlass");
        }
        Err(error) => tracing::debug!(%error, "live jobs could not be recounted"),
    }
}

/// When something was last done.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Last(AtomicU64);

impl Last {
    /// Whether it is due; if so, it counts as done now. Not at first: a program may run for just a moment.
    fn is_due(&self, now: Millis, every: Millis) -> bool {
        let (now, last) = (now.get().max(1), self.0.load(Ordering::Relaxed));
        let is_due = last > 0 && now >= last + every.get();
        if is_due || last == 0 {
            self.0.store(now, Ordering::Relaxed);
        }
        is_due
    }
}

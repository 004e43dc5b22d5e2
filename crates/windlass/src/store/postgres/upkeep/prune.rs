//! Prune: removes what is past its retention, a batch at a time; also keys, workers and old tallies.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::gates;
use crate::store::postgres::registry;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::{Columns, only};
use crate::store::postgres::upkeep::fold;
use crate::store::postgres::upkeep::retention::retention;
use crate::store::{Keep, StoreError, WORKERS_FOR};
use futures_util::join;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use windlass_core::{Millis, State, Timestamp};

/// The most jobs deleted by one transaction.
const BATCH: i64 = 2000;
/// How long one prune goes on deleting. The rest is left to the next one.
const AT_MOST: Millis = Millis::from_secs(10);
/// Idle gates are kept this long, so that busy keys are not added again and again.
const IDLE_FOR: Millis = Millis::from_secs(60);
const FINISHED: [State; 3] = [State::Succeeded, State::Cancelled, State::Failed];

pub(in crate::store::postgres) async fn prune(store: &Inner) -> Result<u64, StoreError> {
    let (now, queues, settings) = again(|| async {
        let lent = store.pool.get().await?;
        let on = On::Own(&lent);
        Ok((store.now_on(on).await?, registry::queues(store).await?, registry::settings_on(on).await?))
    })
    .await?;
    // Queues by how long they keep what.
    let mut groups: BTreeMap<(&str, i64), Vec<i64>> = BTreeMap::new();
    for queue in &queues {
        let kept = retention(&settings, &queue.tenant, &queue.name);
        for state in FINISHED {
            if let Some(span) = span(kept.of(state)) {
                groups.entry((state.as_str(), span)).or_default().push(queue.id.0);
            }
        }
    }
    let until = store.clock.monotonic() + AT_MOST;
    let mut gone = 0;
    for ((state, span), queues) in groups {
        gone += prune_jobs(store, state, &queues, now.as_millis() - span, until).await?;
    }
    sweep(store, now).await?;
    fold::recount(store).await;
    Ok(gone)
}

/// Removes jobs of some queues that ended in a state at or before a moment.
async fn prune_jobs(store: &Inner, state: &str, queues: &[i64], cutoff: i64, until: Millis) -> Result<u64, StoreError> {
    let mut gone = 0;
    loop {
        let rows = if state == State::Failed.as_str() {
            store.write(Sql::PruneFailed, &[&store.fixed(), &state, &queues, &cutoff, &BATCH]).await?
        } else {
            store.write(Sql::PruneDone, &[&state, &queues, &cutoff, &BATCH]).await?
        };
        let count: i64 = only(&rows, "pruned")?.unwrap_or_default();
        gone += count.max(0) as u64;
        if count < BATCH || store.clock.monotonic() >= until {
            return Ok(gone);
        }
    }
}

async fn sweep(store: &Inner, now: Timestamp) -> Result<(), StoreError> {
    let workers_before = (now - WORKERS_FOR).as_millis();
    again(|| async {
        let lent = store.pool.get().await?;
        let work = async {
            lent.query(Sql::PruneKeys, &[&store.fixed(), &BATCH]).await?;
            lent.query(Sql::PruneWorkers, &[&workers_before]).await?;
            prune_gates(store, On::Own(&lent), now).await?;
            prune_replayed(store, On::Own(&lent)).await?;
            fold::fold_all(store, On::Own(&lent), now).await
        };
        let (begun, swept) = join!(lent.begin(), work);
        lent.conclude(begun, swept).await.map(drop)
    })
    .await
}

/// Removes gates that hold nothing.
async fn prune_gates(store: &Inner, on: On<'_>, now: Timestamp) -> Result<(), StoreError> {
    let rows = on.query(Sql::GatesOld, &[&store.fixed(), &(IDLE_FOR.get() as i64), &BATCH]).await?;
    let mut idle = Vec::new();
    for row in &rows {
        let (id, _, gate) = gates::rows::read(row)?;
        idle.extend(gate.is_idle(now).then_some(id));
    }
    if !idle.is_empty() {
        on.query(Sql::GatesRemove, &[&idle]).await?;
    }
    Ok(())
}

/// Forgets replayed jobs that ended without an attempt, a stretch per call.
async fn prune_replayed(store: &Inner, on: On<'_>) -> Result<(), StoreError> {
    let after = store.replayed_pruned.load(Ordering::Relaxed);
    let rows = on.query(Sql::ReplayedNext, &[&after, &BATCH]).await?;
    let mut gone = Vec::new();
    let mut last = 0;
    for row in &rows {
        let c = Columns::new(row);
        last = c.get("job_id")?;
        if !c.get::<bool>("is_live")? {
            gone.push(last);
        }
    }
    let is_end = rows.len() < BATCH as usize;
    store.replayed_pruned.store(if is_end { 0 } else { last }, Ordering::Relaxed);
    if !gone.is_empty() {
        on.query(Sql::ReplayedEnd, &[&gone]).await?;
    }
    Ok(())
}

fn span(keep: Keep) -> Option<i64> {
    match keep {
        Keep::Drop => Some(0),
        Keep::For(span) => Some(span.get() as i64),
        Keep::Forever => None,
    }
}

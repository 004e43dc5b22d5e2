//! Moves: the statements that end attempts. Which attempts they ended says the database, by the ids it returns.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::commit::Batch;
use crate::store::postgres::life::fence::Held;
use crate::store::postgres::life::transitions::{Dead, Finishes, Firsts, Successes, Waiting, Waits};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::{Gathered, at};
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::upkeep::retention;
use crate::store::{Commit, Keep, StoreError};
use futures_util::future::{try_join, try_join_all, try_join3};
use std::collections::{BTreeMap, HashMap, HashSet};
use windlass_core::{JobId, Next, State};

/// Plain successes of one lease that get a statement of their own. Fewer are finished together with all others.
const OWN_STATEMENT: usize = 4;

/// What the statements of a round ended.
pub(super) struct Moved {
    /// Jobs whose attempt ended now.
    pub(super) ids: HashSet<i64>,
    /// Those of them that are not kept.
    pub(super) dropped: Vec<i64>,
    /// The queue of each of these that failed.
    pub(super) dropped_dead: Vec<i64>,
}

/// Ends the attempts of a round that its leases still hold.
pub(super) async fn end_attempts(store: &Inner, on: On<'_>, batch: &Batch<'_>) -> Result<Moved, StoreError> {
    let retentions = retention::retentions(store, on, batch.finishing().map(|commit| commit.queue.0)).await?;
    let reported = earlier_errors(on, batch).await?;
    let mut finishes = Finishes::default();
    let mut waits = Waits::default();
    let mut plain: BTreeMap<(i64, &str), Vec<(&Commit, Held)>> = BTreeMap::new();
    let mut dropped: Vec<&Commit> = Vec::new();
    for (commit, held) in batch.held() {
        let next = commit.transition.next;
        if let Next::Wait { due_at, delay, .. } = next {
            waits.push(commit, &held, due_at, delay);
            continue;
        }
        let (queue, keeps) = &retentions[&commit.queue.0];
        let keep = keeps.of(next.state());
        if commit.is_plain() && keep != Keep::Drop && !held.is_cancelled {
            plain.entry((commit.lease.0, &commit.worker)).or_default().push((commit, held));
            continue;
        }
        if keep == Keep::Drop {
            dropped.push(commit);
        }
        finishes.push(commit, &held, &dead(commit, queue, &reported), keep);
    }
    for (commit, held) in plain.values().filter(|same| same.len() < OWN_STATEMENT).flatten() {
        let (queue, _) = &retentions[&commit.queue.0];
        finishes.push(commit, held, &dead(commit, queue, &reported), Keep::Forever);
    }
    plain.retain(|_, same| same.len() >= OWN_STATEMENT);
    let (finished, succeeded, waiting) =
        try_join3(run_finishes(store, on, &finishes), run_plain(store, on, &plain), run_waits(on, &waits)).await?;
    let ids: HashSet<i64> = finished.into_iter().chain(succeeded).chain(waiting).collect();
    dropped.retain(|commit| ids.contains(&commit.job.0));
    let is_dead = |commit: &&&Commit| commit.transition.next.state() == State::Failed;
    let dropped_dead = dropped.iter().filter(is_dead).map(|commit| commit.queue.0).collect();
    Ok(Moved { ids, dropped: dropped.iter().map(|commit| commit.job.0).collect(), dropped_dead })
}

/// Jobs of a round whose attempt has ended wait again.
pub(super) async fn wait_again(on: On<'_>, batch: &Batch<'_>, moved: &Moved) -> Result<(), StoreError> {
    let mut waiting = Waiting::default();
    for (commit, held) in batch.held().filter(|(commit, _)| moved.ids.contains(&commit.job.0)) {
        if let Next::Wait { state, due_at, .. } = commit.transition.next {
            waiting.push(commit, &held, state, due_at);
        }
    }
    if waiting.id.is_empty() {
        return Ok(());
    }
    on.query(Sql::WaitAgain, &waiting.params()).await.map(drop)
}

type Reported = HashMap<JobId, (Option<String>, Option<String>)>;

fn dead<'a>(commit: &'a Commit, queue: &'a windlass_core::job::QueueName, reported: &'a Reported) -> Dead<'a> {
    let own = (commit.error_class.as_deref(), commit.error.as_deref());
    let earlier = reported.get(&commit.job).map(|(class, error)| (class.as_deref(), error.as_deref()));
    let error = if own.0.is_some() { own } else { earlier.unwrap_or(own) };
    Dead { error, trace: commit.trace.as_deref(), kind: &commit.kind, queue }
}

/// What earlier attempts recorded, for the rare dead letter whose last attempt recorded nothing.
async fn earlier_errors(on: On<'_>, batch: &Batch<'_>) -> Result<Reported, StoreError> {
    let silent = |commit: &&Commit| matches!(commit.transition.next, Next::Failed(_)) && commit.error_class.is_none();
    let ids: Vec<i64> = batch.finishing().filter(silent).map(|commit| commit.job.0).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = on.query(Sql::EarlierErrors, &[&ids]).await?;
    let read = |row| {
        let c = Columns::new(row);
        Ok((JobId(c.get("id")?), (c.get("error_class")?, c.get("error")?)))
    };
    rows.iter().map(read).collect()
}

async fn run_finishes(store: &Inner, on: On<'_>, finishes: &Finishes<'_>) -> Result<Vec<i64>, StoreError> {
    if finishes.id.is_empty() {
        return Ok(Vec::new());
    }
    ended(&on.query(Sql::Finish, &at(&store.fixed(), finishes.params())).await?)
}

async fn run_waits(on: On<'_>, waits: &Waits<'_>) -> Result<Vec<i64>, StoreError> {
    if waits.id.is_empty() {
        return Ok(Vec::new());
    }
    ended(&on.query(Sql::Wait, &waits.params()).await?)
}

/// Plain successes, lease by lease.
async fn run_plain(
    store: &Inner,
    on: On<'_>,
    plain: &BTreeMap<(i64, &str), Vec<(&Commit, Held)>>,
) -> Result<Vec<i64>, StoreError> {
    let each = plain.iter().map(|((lease, worker), same)| run_lease(store, on, *lease, worker, same));
    Ok(try_join_all(each).await?.into_iter().flatten().collect())
}

async fn run_lease(
    store: &Inner,
    on: On<'_>,
    lease: i64,
    worker: &str,
    same: &[(&Commit, Held)],
) -> Result<Vec<i64>, StoreError> {
    let (mut firsts, mut others) = (Firsts::default(), Successes::default());
    let mut claimed_at = 0;
    for (commit, held) in same {
        claimed_at = held.claimed_at;
        if held.is_first() { firsts.push(commit) } else { others.push(commit, held) }
    }
    let now = store.fixed();
    let run = async |sql: Sql, count: usize, params: Gathered<'_>| {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut all: Gathered<'_> = vec![&now, &lease, &claimed_at, &worker];
        all.extend(params);
        ended(&on.query(sql, &all).await?)
    };
    let first = run(Sql::SucceedFirst, firsts.id.len(), firsts.params());
    let other = run(Sql::Succeed, others.id.len(), others.params());
    let (mut ids, more) = try_join(first, other).await?;
    ids.extend(more);
    Ok(ids)
}

fn ended(rows: &[Row]) -> Result<Vec<i64>, StoreError> {
    rows.iter().map(|row| Columns::new(row).get("job_id")).collect()
}

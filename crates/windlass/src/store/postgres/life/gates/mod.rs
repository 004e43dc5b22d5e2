//! Gated queues: which they are, claims that ask gates, and what the end of an attempt gives back.

pub(super) mod claim;
pub(in crate::store::postgres) mod looks;
pub(in crate::store::postgres) mod rows;

use crate::job::{ClaimedJob, QueueId};
use crate::store::gates::passes::Passes;
use crate::store::gates::{self, GateName, GateScope, QueueFlow};
use crate::store::json::call_from_text;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::{again, changed};
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::fence::Fence;
use crate::store::postgres::life::names;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::upkeep::retention;
use crate::store::{Commit, Queue, StoreError};
use futures_util::join;
use rows::GateRows;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use windlass_core::Timestamp;
use windlass_core::gate::{Ended, GateRule, Hold, destination};

/// A queue with what is in force for it.
pub(in crate::store::postgres) type Gated = (Arc<Queue>, Arc<QueueFlow>);

/// Those of these queues whose gates must be asked, by the settings and gates as this node last read them.
pub(in crate::store::postgres) async fn gated(
    store: &Inner,
    queues: impl Iterator<Item = QueueId>,
) -> Result<HashMap<QueueId, Gated>, StoreError> {
    let ids: HashSet<i64> = queues.map(|queue| queue.0).collect();
    let known = match store.remembered.flows(store.clock.monotonic()) {
        Some(known) if known.covers(&ids) => known,
        _ => {
            again(|| async {
                let lent = store.pool.get().await?;
                retention::remember_flows(store, On::Own(&lent)).await
            })
            .await?
        }
    };
    Ok(ids.into_iter().filter_map(|id| Some((QueueId(id), known.of(id)?))).collect())
}

/// The limit key of a row with `limit_key` and `http`.
pub(in crate::store::postgres) fn key_in(row: &Row, (queue, flow): &Gated) -> Result<Option<Arc<str>>, StoreError> {
    let c = Columns::new(row);
    let call = c.get::<Option<&str>>("http")?.map(call_from_text).transpose()?;
    let called = call.and_then(|call| destination(&call.url));
    Ok(flow.key_of(&queue.tenant, c.get::<Option<&str>>("limit_key")?, called.as_deref()))
}

/// Reads what the jobs of a lease passed.
pub(in crate::store::postgres) fn passes_in(lease: i64, text: &str) -> Result<Passes, StoreError> {
    Passes::read(text)
        .ok_or_else(|| StoreError::corrupt(format!("lease {lease}"), "it lists the gates that jobs passed"))
}

/// The attempts that ended at one gate: how each ended, and whether it was a probe.
#[derive(Debug, Default)]
struct Ends {
    /// The queue of one of them, whose settings apply.
    queue: i64,
    attempts: Vec<(Ended, bool)>,
}

/// Attempts have ended: what they used comes back, and an answer may hold a key. Returns whether claims should look
/// again.
pub(in crate::store::postgres) async fn end(
    store: &Inner,
    on: On<'_>,
    applied: &[&Commit],
    fence: &Fence,
) -> Result<bool, StoreError> {
    let mut ends: BTreeMap<i64, Ends> = BTreeMap::new();
    for commit in applied {
        let passed = fence.passed(commit);
        for row in passed.iter().flat_map(|passed| passed.rows()) {
            let at_gate = ends.entry(*row).or_default();
            at_gate.queue = commit.queue.0;
            at_gate.attempts.push((commit.ended, passed.is_some_and(|passed| passed.is_probe)));
        }
    }
    let concerned: Vec<&Commit> =
        applied.iter().copied().filter(|commit| commit.hold.is_some() || fence.passed(commit).is_some()).collect();
    if concerned.is_empty() {
        return Ok(false);
    }
    let queues: HashSet<i64> = concerned.iter().map(|commit| commit.queue.0).collect();
    names::look_up_queues(store, on, &queues).await?;
    let flows = retention::flows(store, on, &queues).await?;
    let now = store.now_on(on).await?;
    let (opens, replays) = end_at_gates(store, on, &ends, &flows, now).await?;
    let is_over = |commit: &&&Commit| commit.transition.next.is_finished();
    let is_replayed = |commit: &&&Commit| {
        fence.passed(commit).is_some_and(|passed| passed.rows().iter().any(|row| replays.contains(row)))
    };
    let over: Vec<i64> = concerned.iter().filter(is_over).filter(is_replayed).map(|commit| commit.job.0).collect();
    if !over.is_empty() {
        on.query(Sql::ReplayedEnd, &[&over]).await?;
    }
    let holds = holds(&concerned, &flows, now);
    if holds.is_empty() {
        return Ok(opens);
    }
    hold_all(store, on, holds, now).await?;
    // A hold may have given its queue its first gate.
    store.remembered.forget();
    Ok(true)
}

/// Counts what ended at each gate, and judges those that do more than count. Returns whether one of them let nothing go
/// before, and which are gates of replays.
async fn end_at_gates(
    store: &Inner,
    on: On<'_>,
    ends: &BTreeMap<i64, Ends>,
    flows: &HashMap<i64, Gated>,
    now: Timestamp,
) -> Result<(bool, HashSet<i64>), StoreError> {
    let (mut opens, mut replays, mut rows) = (false, HashSet::new(), GateRows::default());
    if ends.is_empty() {
        return Ok((opens, replays));
    }
    // In the order of their ids: all transactions lock gates in the same order.
    let (ids, counts): (Vec<i64>, Vec<i32>) = ends.iter().map(|(id, ends)| (*id, ends.attempts.len() as i32)).unzip();
    for row in &on.query(Sql::GatesEnd, &[&store.fixed(), &ids, &counts]).await? {
        let c = Columns::new(row);
        let (id, scope, state): (i64, _, &str) = (c.get("id")?, rows::scope(row)?, c.get("state")?);
        let Some(ends) = ends.get(&id) else { continue };
        let Some((_, flow)) = flows.get(&ends.queue) else { continue };
        let rule = flow.rule_of(scope, c.get("tenant")?, c.get("key")?);
        let mut gate = rows::gate_before(row, id, ends.attempts.len() as u32)?;
        let only_counts = gates::only_counts(&rule, &gate);
        for attempt in &ends.attempts {
            opens |= gates::end(&mut gate, (scope, &rule), *attempt, now);
        }
        if scope == GateScope::Replay {
            replays.insert(id);
        }
        if !only_counts && (c.get("has_parked")? || gate.to_text() != state) {
            rows.push(id, (scope, &gate, &rule), now);
        }
    }
    rows.write(store, on).await?;
    Ok((opens, replays))
}

fn holds(commits: &[&Commit], flows: &HashMap<i64, Gated>, now: Timestamp) -> Vec<(GateName, Hold, GateRule)> {
    let held = |commit: &&Commit| {
        let (queue, flow) = flows.get(&commit.queue.0)?;
        let (name, hold) = gates::hold(flow, (&queue.tenant, &queue.name, queue.executor), commit, now)?;
        let rule = flow.rule(&name);
        Some((name, hold, rule))
    };
    commits.iter().filter_map(held).collect()
}

/// Holds gates, which may be new.
async fn hold_all(
    store: &Inner,
    on: On<'_>,
    holds: Vec<(GateName, Hold, GateRule)>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let names: BTreeSet<&GateName> = holds.iter().map(|(name, ..)| name).collect();
    let names: Vec<&GateName> = names.into_iter().collect();
    rows::add(store, on, &names, &vec![0; names.len()]).await?;
    let mut known = rows::lock_named(on, &names).await?;
    for (name, hold, _) in &holds {
        known.get_mut(name).ok_or_else(changed)?.1.hold(hold.clone());
    }
    let rules: HashMap<&GateName, &GateRule> = holds.iter().map(|(name, _, rule)| (name, rule)).collect();
    let mut rows = GateRows::default();
    for (name, rule) in rules {
        if let Some((id, gate)) = known.get(name) {
            rows.push(*id, (name.scope(), gate, rule), now);
        }
    }
    rows.write(store, on).await
}

/// Marks those of the running jobs of these leases that are probes.
pub(in crate::store::postgres) async fn mark_probes(
    on: On<'_>,
    leases: &[i64],
    jobs: &mut [ClaimedJob],
) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    for row in &on.query(Sql::Passes, &[&leases]).await? {
        let c = Columns::new(row);
        let lease: i64 = c.get("lease_id")?;
        let passes = passes_in(lease, c.get("jobs")?)?;
        for job in jobs.iter_mut().filter(|job| job.lease.0 == lease) {
            job.is_probe = passes.of(job.job.id).is_some_and(|passed| passed.is_probe);
        }
    }
    Ok(())
}

/// Holds a gate, or ends its hold. Returns whether it was held before.
pub(in crate::store::postgres) async fn put_hold(
    store: &Inner,
    name: &GateName,
    hold: Option<&Hold>,
) -> Result<bool, StoreError> {
    let was_held = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, held) = join!(lent.begin(), put_hold_on(store, On::Own(&lent), name, hold));
        lent.conclude(begun, held).await
    })
    .await?;
    store.remembered.forget();
    Ok(was_held)
}

async fn put_hold_on(store: &Inner, on: On<'_>, name: &GateName, hold: Option<&Hold>) -> Result<bool, StoreError> {
    let now = store.now_on(on).await?;
    if hold.is_some() {
        rows::add(store, on, &[name], &[0]).await?;
    }
    let mut known = rows::lock_named(on, &[name]).await?;
    let Some((id, gate)) = known.get_mut(name) else {
        return if hold.is_some() { Err(changed()) } else { Ok(false) };
    };
    let was_held = gate.held(now).is_some();
    match hold {
        Some(hold) => gate.hold(hold.clone()),
        None => gate.release(now),
    }
    // A rule that enforces nothing: the next claim looks, whatever the queue's settings say.
    let mut rows = GateRows::default();
    rows.push(*id, (name.scope(), gate, &GateRule::default()), now);
    rows.write(store, on).await?;
    Ok(was_held)
}

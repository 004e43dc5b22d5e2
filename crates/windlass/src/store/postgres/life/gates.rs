//! Gated queues: which they are, claims that ask gates, and what the end of an attempt gives back.

use crate::job::QueueId;
use crate::store::gates::{self, GateName, Gates, QueueFlow};
use crate::store::json::call_from_text;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::names;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::{arrays, at};
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::upkeep::retention;
use crate::store::{Commit, Queue, StoreError};
use futures_util::join;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use windlass_core::Timestamp;
use windlass_core::gate::{Gate, Hold, destination};

/// A queue with what is in force for it.
pub(in crate::store::postgres) type Gated = (Arc<Queue>, Arc<QueueFlow>);

/// Those of these queues whose gates must be asked, by the settings and gates as this node last read them.
pub(in crate::store::postgres) async fn gated(
    store: &Inner,
    queues: impl Iterator<Item = QueueId>,
) -> Result<HashMap<QueueId, Gated>, StoreError> {
    let ids: HashSet<i64> = queues.map(|queue| queue.0).collect();
    let known = match store.remembered.flows(store.clock.monotonic()) {
        Some(known) => known,
        None => {
            again(|| async {
                let lent = store.pool.get().await?;
                retention::remember_flows(store, On::Own(&lent)).await
            })
            .await?
        }
    };
    if known.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(ids.into_iter().filter_map(|id| Some((QueueId(id), known.get(&id)?.clone()))).collect())
}

/// Gates that a transaction has locked, and their ids.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Known {
    pub(in crate::store::postgres) gates: Gates,
    ids: HashMap<GateName, i64>,
    names: HashMap<i64, GateName>,
}

impl Known {
    /// Locks the gates of these names that exist.
    pub(in crate::store::postgres) async fn lock(
        &mut self,
        on: On<'_>,
        names: &BTreeSet<GateName>,
    ) -> Result<(), StoreError> {
        let new: Vec<&GateName> = names.iter().filter(|name| !self.gates.contains_key(name)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let rows = on.query(Sql::GatesLock, &NameRows::of(&new).params()).await?;
        self.learn(&rows)
    }

    async fn lock_ids(&mut self, on: On<'_>, ids: &[i64]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let rows = on.query(Sql::GatesLockIds, &[&ids]).await?;
        self.learn(&rows)
    }

    fn learn(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            let (id, name, gate) = read(row)?;
            self.gates.insert(name.clone(), gate);
            self.names.insert(id, name.clone());
            self.ids.insert(name, id);
        }
        Ok(())
    }

    /// Adds the rows of gates that are new.
    async fn add(&mut self, store: &Inner, on: On<'_>) -> Result<(), StoreError> {
        let new: Vec<&GateName> = self.gates.keys().filter(|name| !self.ids.contains_key(name)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let rows = NameRows::of(&new);
        let (now, state) = (store.fixed(), Gate::default().to_text());
        let mut params = at(&now, rows.params());
        params.push(&state);
        on.query(Sql::GatesAdd, &params).await?;
        let found = on.query(Sql::GatesLock, &rows.params()).await?;
        for row in &found {
            let (id, name, _) = read(row)?;
            self.names.insert(id, name.clone());
            self.ids.insert(name, id);
        }
        Ok(())
    }

    pub(in crate::store::postgres) fn id(&self, name: &GateName) -> Result<i64, StoreError> {
        self.ids.get(name).copied().ok_or_else(|| StoreError::corrupt("a gate", "a gate that is asked has a row"))
    }

    /// Writes gates, and when a claim should look at what is parked behind them. Call it after parking.
    pub(in crate::store::postgres) async fn write(
        &mut self,
        store: &Inner,
        on: On<'_>,
        touched: &BTreeMap<GateName, Arc<QueueFlow>>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.add(store, on).await?;
        let mut rows = GateRows::default();
        for (name, flow) in touched {
            let Some(gate) = self.gates.get(name) else { continue };
            rows.id.push(self.id(name)?);
            rows.state.push(gate.to_text());
            rows.is_shut.push(gates::is_shut(gate, now));
            rows.opens_at.push(gates::opens_at(name, gate, &flow.rule(name), now).map(Timestamp::as_millis));
        }
        if !rows.id.is_empty() {
            on.query(Sql::GatesPut, &at(&store.fixed(), rows.params())).await?;
        }
        Ok(())
    }

    /// Gives rows to gates that are new, so that jobs can be parked behind them and pass them.
    pub(in crate::store::postgres) async fn give_rows(&mut self, store: &Inner, on: On<'_>) -> Result<(), StoreError> {
        self.add(store, on).await
    }
}

arrays!(
    /// The names of gates.
    NameRows<'a> {
        tenant: &'a str,
        queue: &'a str,
        scope: &'a str,
        key: &'a str,
    }
);

impl<'a> NameRows<'a> {
    fn of(names: &[&'a GateName]) -> Self {
        let mut rows = Self::default();
        for name in names {
            let (tenant, queue, scope, key) = name.parts();
            rows.tenant.push(tenant);
            rows.queue.push(queue);
            rows.scope.push(scope);
            rows.key.push(key);
        }
        rows
    }
}

arrays!(
    /// Gates, as the statement `gates_put` takes them.
    GateRows<'a> {
        id: i64,
        state: String,
        is_shut: bool,
        opens_at: Option<i64>,
    }
);

/// A gate's row: id, name and state.
pub(in crate::store::postgres) fn read(row: &Row) -> Result<(i64, GateName, Gate), StoreError> {
    let c = Columns::new(row);
    let id: i64 = c.get("id")?;
    let corrupt = |rule: String| StoreError::corrupt(format!("gate {id}"), rule);
    let name = GateName::from_parts(c.text("tenant")?, c.text("queue")?, c.text("scope")?, c.text("key")?);
    let gate = Gate::from_text(c.text("state")?).map_err(|error| corrupt(error.to_string()))?;
    Ok((id, name.ok_or_else(|| corrupt("it has a name Windlass knows".into()))?, gate))
}

/// The limit key of a row with `limit_key` and `http`.
pub(in crate::store::postgres) fn key_in(row: &Row, (queue, flow): &Gated) -> Result<Option<Arc<str>>, StoreError> {
    let c = Columns::new(row);
    let call = c.get::<Option<&str>>("http")?.map(call_from_text).transpose()?;
    let called = call.and_then(|call| destination(&call.url));
    Ok(flow.key_of(&queue.tenant, c.get::<Option<&str>>("limit_key")?, called.as_deref()))
}

/// Attempts have ended: what they used comes back, and an answer may hold a key. Returns whether claims should look
/// again.
pub(in crate::store::postgres) async fn end(
    store: &Inner,
    on: On<'_>,
    applied: &[&Commit],
    has_passes: bool,
) -> Result<bool, StoreError> {
    let concerned: Vec<&Commit> =
        applied.iter().copied().filter(|commit| has_passes || commit.hold.is_some()).collect();
    if concerned.is_empty() {
        return Ok(false);
    }
    let queues: HashSet<i64> = concerned.iter().map(|commit| commit.queue.0).collect();
    names::look_up_queues(store, on, &queues).await?;
    let flows = retention::flows(store, on, &queues).await?;
    let now = store.now_on(on).await?;
    let passes = if has_passes { passes(on, &concerned).await? } else { HashMap::new() };
    let holds = holds(&concerned, &flows, now);
    let mut known = Known::default();
    let ids: BTreeSet<i64> = passes.values().flat_map(|(ids, _)| ids.iter().copied()).collect();
    known.lock_ids(on, &ids.into_iter().collect::<Vec<i64>>()).await?;
    known.lock(on, &holds.iter().map(|(name, ..)| name.clone()).collect()).await?;
    let mut touched: BTreeMap<GateName, Arc<QueueFlow>> = BTreeMap::new();
    let mut opens = false;
    for commit in &concerned {
        let Some((_, flow)) = flows.get(&commit.queue.0) else { continue };
        let Some((ids, is_probe)) = passes.get(&commit.job.0) else { continue };
        let passed: Vec<GateName> = ids.iter().filter_map(|id| known.names.get(id).cloned()).collect();
        opens |= gates::end(flow, &mut known.gates, &passed, *is_probe, commit, now);
        touched.extend(passed.into_iter().map(|name| (name, flow.clone())));
    }
    let is_over = |commit: &&&Commit| commit.transition.next.is_finished();
    let is_replayed = |commit: &&&Commit| {
        let ids = passes.get(&commit.job.0).map(|(ids, _)| ids.as_slice()).unwrap_or_default();
        ids.iter().filter_map(|id| known.names.get(id)).any(GateName::is_replay)
    };
    let over: Vec<i64> = concerned.iter().filter(is_over).filter(is_replayed).map(|commit| commit.job.0).collect();
    if !over.is_empty() {
        on.query(Sql::ReplayedEnd, &[&over]).await?;
    }
    let has_holds = !holds.is_empty();
    for (name, hold, flow) in holds {
        known.gates.entry(name.clone()).or_default().hold(hold);
        touched.insert(name, flow);
    }
    known.write(store, on, &touched, now).await?;
    if has_holds {
        // A hold may have given its queue its first gate.
        store.remembered.forget();
    }
    Ok(opens || has_holds)
}

/// What ended attempts had passed, by job.
async fn passes(on: On<'_>, commits: &[&Commit]) -> Result<HashMap<i64, (Vec<i64>, bool)>, StoreError> {
    let jobs: Vec<i64> = commits.iter().map(|commit| commit.job.0).collect();
    let mut passes = HashMap::new();
    for row in &on.query(Sql::PassesEnd, &[&jobs]).await? {
        let c = Columns::new(row);
        passes.insert(c.get("job_id")?, (c.get("gate_ids")?, c.get("is_probe")?));
    }
    Ok(passes)
}

fn holds(commits: &[&Commit], flows: &HashMap<i64, Gated>, now: Timestamp) -> Vec<(GateName, Hold, Arc<QueueFlow>)> {
    let held = |commit: &&Commit| {
        let (queue, flow) = flows.get(&commit.queue.0)?;
        let (name, hold) = gates::hold(flow, (&queue.tenant, &queue.name, queue.executor), commit, now)?;
        Some((name, hold, flow.clone()))
    };
    commits.iter().filter_map(held).collect()
}

/// Marks those of these running jobs that are probes.
pub(in crate::store::postgres) async fn mark_probes(
    on: On<'_>,
    jobs: &mut [crate::job::ClaimedJob],
) -> Result<(), StoreError> {
    let ids: Vec<i64> = jobs.iter().map(|job| job.id.0).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let rows = on.query(Sql::Probes, &[&ids]).await?;
    let probes: Vec<i64> = rows.iter().map(|row| Columns::new(row).get("job_id")).collect::<Result<_, _>>()?;
    for job in jobs {
        job.is_probe = probes.contains(&job.job.id.0);
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
    let mut known = Known::default();
    known.lock(on, &BTreeSet::from([name.clone()])).await?;
    let was_held = known.gates.get(name).is_some_and(|gate| gate.held(now).is_some());
    if hold.is_none() && !known.gates.contains_key(name) {
        return Ok(false);
    }
    let gate = known.gates.entry(name.clone()).or_default();
    match hold {
        Some(hold) => gate.hold(hold.clone()),
        None => gate.release(now),
    }
    // A rule that enforces nothing: the next claim looks, whatever the queue's settings say.
    known.write(store, on, &BTreeMap::from([(name.clone(), Arc::default())]), now).await?;
    Ok(was_held)
}

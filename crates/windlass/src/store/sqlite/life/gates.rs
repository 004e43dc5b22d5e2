//! Gated queues: claims that ask gates, parked jobs, and what the end of an attempt gives back.

use crate::job::{ClaimedJob, QueueId};
use crate::store::gates::{self, Admitted, GateName, Gates, MAX_OPENED, Offered, QueueFlow};
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::claim::{
    Due, Eligible, FromShare, Front, Level, due, lanes_of, leave_each, look_for, next_due, parked_lane, queue_of,
};
use crate::store::sqlite::reads::columns::{due as due_job, gate, gate_state, offered, pass, replayed};
use crate::store::sqlite::reads::rows;
use crate::store::{Commit, Parking, Share, StoreError, json};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use windlass_core::gate::{Gate, Hold, destination};
use windlass_core::pick::Picker;
use windlass_core::{JobId, Millis, Priority, Timestamp, verdict};

/// The most due jobs of a gated queue that one claim looks at.
const MAX_OFFERED: u32 = 2000;
/// The fewest due jobs of a priority that it looks at first.
const FIRST_LOOK: u32 = 16;
/// How soon a claim goes on that could not look at everything.
const SOON: Millis = Millis::new(1);
/// Idle gates are kept this long, so that busy keys are not added again and again.
const IDLE_FOR: Millis = Millis::from_secs(60);
/// The most idle gates removed per call.
const MAX_PRUNED: u32 = 1000;

/// Whether there are any gates: usually none.
pub(super) fn any(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.conn.prepare_cached(sql!("gates.sql", "gates_any"))?.query_row([], rows::only)?)
}

/// The flow of a queue whose gates must be asked.
pub(super) fn flow_of(tx: &mut Tx<'_>, queue: QueueId, has_gates: bool) -> Result<Option<Arc<QueueFlow>>, StoreError> {
    let flow = tx.retentions.flow(tx.conn, tx.names, queue)?;
    if flow.as_ref().is_some_and(|flow| flow.is_gated()) {
        return Ok(flow);
    }
    if !has_gates {
        return Ok(None);
    }
    let key = tx.names.queue(tx.conn, queue)?;
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gates_of_queue"))?;
    let is_gated: bool = select.query_row(params![key.0.as_str(), key.1.as_str(), queue.0], rows::only)?;
    Ok(is_gated.then(|| flow.unwrap_or_default()))
}

/// Gates that a transaction has read, and their ids.
#[derive(Debug, Default)]
struct Known {
    gates: Gates,
    ids: HashMap<GateName, i64>,
    names: HashMap<i64, GateName>,
    /// Gates that were looked for and do not exist.
    missing: HashSet<GateName>,
}

impl Known {
    /// Reads a gate, if it exists.
    fn find(&mut self, tx: &Tx<'_>, name: &GateName) -> Result<(), StoreError> {
        if self.gates.contains_key(name) || self.missing.contains(name) {
            return Ok(());
        }
        let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gate_find"))?;
        let (tenant, queue, scope, key) = name.parts();
        let found = select.query_row(params![tenant, queue, scope, key], |row| {
            Ok((row.get::<_, i64>(gate_state::id)?, row.get::<_, String>(gate_state::state)?))
        });
        match found.optional()? {
            Some((id, state)) => self.add(id, name, read_state(id, &state)?),
            None => drop(self.missing.insert(name.clone())),
        }
        Ok(())
    }

    fn add(&mut self, id: i64, name: &GateName, gate: Gate) {
        self.gates.insert(name.clone(), gate);
        self.ids.insert(name.clone(), id);
        self.names.insert(id, name.clone());
    }

    /// The name of a gate, which is read if it is not known yet; `None` if it is gone.
    fn name(&mut self, tx: &Tx<'_>, id: i64) -> Result<Option<GateName>, StoreError> {
        if !self.names.contains_key(&id) {
            let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gate"))?;
            for (id, name, gate) in rows::all(select.query([id])?, read)? {
                self.add(id, &name, gate);
            }
        }
        Ok(self.names.get(&id).cloned())
    }

    /// Writes a gate, which may be new, and when a claim should look at what is parked behind it.
    fn write(&mut self, tx: &Tx<'_>, flow: &QueueFlow, name: &GateName) -> Result<i64, StoreError> {
        let id = self.id(tx, name)?;
        let fresh = Gate::default();
        let gate = self.gates.get(name).unwrap_or(&fresh);
        let opens_at = gates::opens_at(name, gate, &flow.rule(name), tx.now).map(Timestamp::as_millis);
        let mut put = tx.conn.prepare_cached(sql!("gates.sql", "gate_put"))?;
        put.execute(params![id, gate.to_text(), gates::is_shut(gate, tx.now), opens_at, tx.now.as_millis()])?;
        Ok(id)
    }

    fn id(&mut self, tx: &Tx<'_>, name: &GateName) -> Result<i64, StoreError> {
        if let Some(id) = self.ids.get(name) {
            return Ok(*id);
        }
        let (tenant, queue, scope, key) = name.parts();
        let mut add = tx.conn.prepare_cached(sql!("gates.sql", "gate_add"))?;
        let state = Gate::default().to_text();
        let id = add.query_row(params![tenant, queue, scope, key, state, tx.now.as_millis()], rows::only)?;
        self.ids.insert(name.clone(), id);
        Ok(id)
    }
}

fn read_state(id: i64, state: &str) -> Result<Gate, StoreError> {
    Gate::from_text(state).map_err(|error| StoreError::corrupt(format!("gate {id}"), error.to_string()))
}

/// A gate's row: id, name and state.
pub(in crate::store::sqlite) fn read(row: &Row<'_>) -> Result<(i64, GateName, Gate), StoreError> {
    let id = row.get(gate::id)?;
    let name = GateName::from_parts(
        rows::must(row, gate::tenant)?,
        rows::must(row, gate::queue)?,
        rows::must(row, gate::scope)?,
        rows::must(row, gate::key)?,
    );
    let name = name.ok_or_else(|| StoreError::corrupt(format!("gate {id}"), "it has a name Windlass knows"))?;
    Ok((id, name, read_state(id, rows::must(row, gate::state)?)?))
}

/// The jobs of a gated queue that start, when to look again, and the jobs that a gate refused.
type TakenShare = (Vec<JobId>, Option<Timestamp>, Vec<Parking>);

/// Takes the jobs of a gated queue that may start, and parks those that may not.
pub(super) fn take_share(
    tx: &mut Tx<'_>,
    share: &Share,
    flow: &QueueFlow,
    lanes: &[Front],
    picker: &mut Picker,
    eligible: Eligible<'_>,
) -> Result<TakenShare, StoreError> {
    let ahead = flow.ahead(share.ahead);
    let most = share.slots.saturating_add(ahead);
    picker.next_queue(share.slots, ahead);
    if most == 0 {
        return Ok(TakenShare::default());
    }
    let queue = tx.names.queue(tx.conn, share.queue)?;
    let mut known = Known::default();
    let mut opened = opened(tx, (queue.0.as_str(), queue.1.as_str()), &mut known)?;
    let mut parked = Vec::new();
    for (id, name) in &opened {
        let most = if name.is_of_key() { flow.per_key(most) } else { most };
        parked.extend(parked_due(tx, *id, share.queue, most, eligible)?);
    }
    // As many jobs as may start, and more if gates refuse many of them.
    let (mut window, mut looked) = (most.clamp(FIRST_LOOK, MAX_OFFERED), 0);
    let (mut started, mut refused) = (Vec::new(), Vec::new());
    let (stopped, has_more) = loop {
        let waiting = waiting(tx, share, lanes, window, eligible)?;
        let offered = offer(tx, flow, &queue.0, parked.iter().chain(&waiting.jobs))?;
        for job in &offered {
            for name in job.gates(flow, &queue.0, &queue.1) {
                known.find(tx, &name)?;
            }
        }
        let admitted = gates::admit((&queue.0, &queue.1), flow, &mut known.gates, &offered, picker, tx.now);
        apply(tx, share.queue, flow, &mut known, &admitted, (&waiting.jobs, std::mem::take(&mut opened)))?;
        started.extend(admitted.started.into_iter().map(|passed| passed.id));
        refused.extend(admitted.refusals);
        looked += window;
        let has_more = waiting.has_more && !admitted.is_enough;
        let is_over = admitted.stopped.is_some() || !has_more || picker.is_filled() || looked >= MAX_OFFERED;
        if is_over || matches!(eligible, Eligible::Kinds(..)) {
            break (admitted.stopped, has_more);
        }
        parked.clear();
        window = (window * 4).min(MAX_OFFERED - looked).max(FIRST_LOOK);
    };
    let next = match stopped {
        Some(refusal) => refusal.until,
        None if has_more && !picker.is_filled() => Some(tx.now + SOON),
        None => {
            let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gates_next"))?;
            let opens: Option<i64> =
                select.query_row(params![queue.1.as_str(), queue.0.as_str(), tx.now.as_millis()], rows::only)?;
            let opens = opens.map(Timestamp::from_millis);
            [next_due(tx, share.queue, lanes)?, opens].into_iter().flatten().min()
        }
    };
    Ok((started, next, refused))
}

/// The first due jobs of a queue that wait in its lanes.
fn waiting(
    tx: &Tx<'_>,
    share: &Share,
    lanes: &[Front],
    window: u32,
    eligible: Eligible<'_>,
) -> Result<FromShare, StoreError> {
    let mut all = FromShare { jobs: Vec::new(), has_more: false };
    for lane in lanes.iter().filter(|lane| lane.due_at <= tx.now.as_millis()) {
        let found = match eligible {
            Eligible::All | Eligible::InTime => {
                let jobs = due(tx, share.queue, lane.level, window, sql!("claim.sql", "claim_due"))?;
                FromShare { has_more: jobs.len() == window as usize, jobs }
            }
            Eligible::Kinds(kinds, passed_over) => look_for(tx, share, lane.level, window, kinds, passed_over)?,
        };
        all.has_more |= found.has_more;
        all.jobs.extend(found.jobs);
    }
    Ok(all)
}

/// The gates of a queue whose parked jobs may start now.
fn opened(tx: &Tx<'_>, (tenant, name): (&str, &str), known: &mut Known) -> Result<Vec<(i64, GateName)>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gates_open"))?;
    let ids: Vec<i64> = rows::column(select.query(params![name, tenant, tx.now.as_millis(), MAX_OPENED])?)?;
    let mut opened = Vec::with_capacity(ids.len());
    for id in ids {
        opened.extend(known.name(tx, id)?.map(|name| (id, name)));
    }
    Ok(opened)
}

/// The first jobs parked behind a gate, of each lane of a queue.
fn parked_due(
    tx: &Tx<'_>,
    gate: i64,
    queue: QueueId,
    most: u32,
    eligible: Eligible<'_>,
) -> Result<Vec<Due>, StoreError> {
    let kinds = match eligible {
        Eligible::Kinds(kinds, _) => Some(serde_json::json!(kinds.iter().collect::<Vec<&str>>()).to_string()),
        Eligible::All | Eligible::InTime => None,
    };
    let mut next = tx.conn.prepare_cached(sql!("gates.sql", "parked_lane"))?;
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "parked_due"))?;
    let (mut from, end) = lanes_of(queue);
    let mut found = Vec::new();
    while let Some(lane) = next.query_row([gate, from, end], rows::only::<i64>).optional()? {
        let rows = select.query(params![gate, lane, most, kinds])?;
        found.extend(rows::all(rows, |row| {
            Ok(Due { level: Level::of(lane), id: JobId(row.get(due_job::id)?), due_at: row.get(due_job::due_at)? })
        })?);
        from = lane + 1;
    }
    Ok(found)
}

/// Due jobs as gates see them, in the order of the queue, without those that are too late.
fn offer<'d>(
    tx: &Tx<'_>,
    flow: &QueueFlow,
    tenant: &windlass_core::job::Tenant,
    jobs: impl Iterator<Item = &'d Due>,
) -> Result<Vec<Offered>, StoreError> {
    let jobs: Vec<&Due> = jobs.collect();
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "offered"))?;
    let mut found = select.query([list(jobs.iter().map(|job| job.id))])?;
    let mut offers = Vec::with_capacity(jobs.len());
    while let Some(row) = found.next()? {
        let job = jobs[row.get::<_, i64>(offered::place)? as usize];
        let has_started = rows::moment(row, offered::first_attempt_at)?.is_some();
        if verdict::is_late(rows::moment(row, offered::start_by)?, has_started, tx.now) {
            continue;
        }
        let call = rows::maybe(row, offered::http)?.map(json::call_from_text).transpose()?;
        let called = call.and_then(|call| destination(&call.url));
        let rank = 2 - job.level.priority();
        offers.push(Offered {
            id: job.id,
            priority: Priority::from_rank(rank)
                .ok_or_else(|| StoreError::corrupt(format!("job {}", job.id), "a priority is -2 to 2"))?,
            due_at: Timestamp::from_millis(job.due_at),
            candidate: job.level.candidate(),
            is_retry: row.get::<_, i64>(offered::failures)? > 0,
            key: flow.key_of(tenant, rows::maybe(row, offered::limit_key)?, called.as_deref()),
            replay: rows::maybe(row, offered::gate_key)?.map(GateName::replay),
        });
    }
    offers.sort_by_key(Offered::order);
    Ok(offers)
}

fn apply(
    tx: &mut Tx<'_>,
    queue: QueueId,
    flow: &QueueFlow,
    known: &mut Known,
    admitted: &Admitted,
    (waiting, opened): (&[Due], Vec<(i64, GateName)>),
) -> Result<(), StoreError> {
    let mut touched: BTreeSet<GateName> = opened.into_iter().map(|(_, name)| name).collect();
    let places: HashMap<JobId, Due> = waiting.iter().map(|due| (due.id, *due)).collect();
    let mut leaving: BTreeMap<i64, Vec<Due>> = BTreeMap::new();
    let moved = admitted.started.iter().map(|passed| passed.id).chain(admitted.parked.iter().map(|(id, _)| *id));
    let mut unparked = HashMap::new();
    for id in moved {
        match places.get(&id) {
            Some(due) => leaving.entry(due.level.lane(queue)).or_default().push(*due),
            None => drop(unparked.insert(id, take_parked(tx, id)?)),
        }
    }
    for (lane, mut jobs) in leaving {
        jobs.sort_by_key(|due| (due.due_at, due.id));
        if leave_each(tx, lane, &jobs)? != jobs.len() {
            return Err(StoreError::corrupt(format!("lane {lane}"), "a claim takes the jobs it names"));
        }
        tx.waiting(lane, -(jobs.len() as i64));
    }
    let mut park = tx.conn.prepare_cached(sql!("gates.sql", "park"))?;
    for (id, name) in &admitted.parked {
        let gate = known.id(tx, name)?;
        let (lane, due_at) = match places.get(id) {
            Some(due) => (due.level.lane(queue), due.due_at),
            None => unparked[id],
        };
        park.execute([gate, lane, due_at, id.0])?;
        tx.waiting(parked_lane(queue), 1);
        touched.insert(name.clone());
    }
    let mut put = tx.conn.prepare_cached(sql!("gates.sql", "pass_put"))?;
    for passed in &admitted.started {
        let ids = passed.gates.iter().map(|name| Ok(known.id(tx, name)?.to_string()));
        let ids = ids.collect::<Result<Vec<String>, StoreError>>()?.join(",");
        put.execute(params![passed.id.0, ids, passed.is_probe])?;
        touched.extend(passed.gates.iter().cloned());
    }
    for name in touched {
        known.write(tx, flow, &name)?;
    }
    Ok(())
}

/// A parked job stops being parked. Returns its lane and due time.
fn take_parked(tx: &mut Tx<'_>, id: JobId) -> Result<(i64, i64), StoreError> {
    let mut delete = tx.conn.prepare_cached(sql!("gates.sql", "unpark"))?;
    let place = delete.query_row([id.0], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    tx.waiting(parked_lane(queue_of(place.0)), -1);
    Ok(place)
}

/// A job that is about to change stops being parked, if it is.
pub(super) fn unpark(tx: &mut Tx<'_>, id: JobId) -> Result<(), StoreError> {
    let mut delete = tx.conn.prepare_cached(sql!("gates.sql", "unpark"))?;
    let lane: Option<i64> = delete.query_row([id.0], rows::only).optional()?;
    if let Some(lane) = lane {
        tx.waiting(parked_lane(queue_of(lane)), -1);
    }
    Ok(())
}

/// Attempts have ended: what they used comes back, and an answer may hold a key.
pub(super) fn end<'c>(tx: &mut Tx<'_>, applied: impl Iterator<Item = &'c Commit>) -> Result<(), StoreError> {
    let has_passes: bool = tx.conn.prepare_cached(sql!("gates.sql", "passes_any"))?.query_row([], rows::only)?;
    let concerned: Vec<&Commit> = applied.filter(|commit| has_passes || commit.hold.is_some()).collect();
    let mut by_queue: BTreeMap<i64, Vec<&Commit>> = BTreeMap::new();
    for commit in concerned {
        by_queue.entry(commit.queue.0).or_default().push(commit);
    }
    for (queue, commits) in by_queue {
        end_in(tx, QueueId(queue), &commits)?;
    }
    Ok(())
}

fn end_in(tx: &mut Tx<'_>, queue: QueueId, commits: &[&Commit]) -> Result<(), StoreError> {
    let key = tx.names.queue(tx.conn, queue)?;
    let flow = tx.retentions.flow(tx.conn, tx.names, queue)?.unwrap_or_default();
    let mut known = Known::default();
    let mut touched = BTreeSet::new();
    for commit in commits {
        if let Some((passed, is_probe)) = passed(tx, commit.job, &mut known)? {
            // Waking claims for every end would make them small.
            tx.rings |= gates::end(&flow, &mut known.gates, &passed, is_probe, commit, tx.now);
            if commit.transition.next.is_finished() && passed.iter().any(GateName::is_replay) {
                tx.conn.prepare_cached(sql!("gates.sql", "replayed_end"))?.execute([commit.job.0])?;
            }
            touched.extend(passed);
        }
        if let Some((name, hold)) = gates::hold(&flow, (&key.0, &key.1, key.2), commit, tx.now) {
            known.find(tx, &name)?;
            known.gates.entry(name.clone()).or_default().hold(hold);
            touched.insert(name);
            tx.rings = true;
        }
    }
    for name in touched {
        known.write(tx, &flow, &name)?;
    }
    Ok(())
}

/// The gates that a running job passed; it has passed none afterwards.
fn passed(tx: &Tx<'_>, job: JobId, known: &mut Known) -> Result<Option<(Vec<GateName>, bool)>, StoreError> {
    let mut delete = tx.conn.prepare_cached(sql!("gates.sql", "pass_end"))?;
    let found = delete.query_row([job.0], |row| Ok((row.get::<_, String>(pass::gate_ids)?, row.get(pass::is_probe)?)));
    let Some((ids, is_probe)) = found.optional()? else { return Ok(None) };
    let mut names = Vec::new();
    for id in ids.split(',').filter_map(|id| id.parse::<i64>().ok()) {
        names.extend(known.name(tx, id)?);
    }
    Ok(Some((names, is_probe)))
}

/// Marks those running jobs that are probes.
pub(super) fn mark_probes(conn: &Connection, jobs: &mut [ClaimedJob]) -> Result<(), StoreError> {
    let has_passes: bool = conn.prepare_cached(sql!("gates.sql", "passes_any"))?.query_row([], rows::only)?;
    if !has_passes || jobs.is_empty() {
        return Ok(());
    }
    let mut select = conn.prepare_cached(sql!("gates.sql", "probes"))?;
    let probes: Vec<i64> = rows::column(select.query([list(jobs.iter().map(|job| job.id))])?)?;
    for job in jobs {
        job.is_probe = probes.contains(&job.job.id.0);
    }
    Ok(())
}

/// Settings have changed: the next claims look at everything parked again.
pub(in crate::store::sqlite) fn reopen(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    tx.retentions.forget();
    tx.rings = true;
    tx.conn.prepare_cached(sql!("gates.sql", "gates_reopen"))?.execute([tx.now.as_millis()])?;
    Ok(())
}

/// Holds a gate, or ends its hold. Returns whether it was held before.
pub(in crate::store::sqlite) fn put_hold(
    tx: &mut Tx<'_>,
    name: &GateName,
    hold: Option<&Hold>,
) -> Result<bool, StoreError> {
    let mut known = Known::default();
    known.find(tx, name)?;
    let was_held = known.gates.get(name).is_some_and(|gate| gate.held(tx.now).is_some());
    if hold.is_none() && !known.gates.contains_key(name) {
        return Ok(false);
    }
    let gate = known.gates.entry(name.clone()).or_default();
    match hold {
        Some(hold) => gate.hold(hold.clone()),
        None => gate.release(tx.now),
    }
    let text = gate.to_text();
    let is_shut = gates::is_shut(gate, tx.now);
    let id = known.id(tx, name)?;
    let now = tx.now.as_millis();
    // The next claim looks, whatever the queue's settings say.
    let mut put = tx.conn.prepare_cached(sql!("gates.sql", "gate_put"))?;
    put.execute(params![id, text, is_shut, now, now])?;
    tx.rings = true;
    Ok(was_held)
}

/// A job was sent again: at the rate of this gate, or without one.
pub(super) fn replayed(tx: &Tx<'_>, id: JobId, key: Option<&str>) -> Result<(), StoreError> {
    match key {
        Some(key) => tx.conn.prepare_cached(sql!("gates.sql", "replayed_put"))?.execute(params![id.0, key])?,
        None => tx.conn.prepare_cached(sql!("gates.sql", "replayed_end"))?.execute([id.0])?,
    };
    Ok(())
}

/// Forgets replayed jobs that ended without an attempt, a stretch per call. `after` is the last one looked at.
pub(in crate::store::sqlite) fn prune_replayed(tx: &Tx<'_>, after: &mut i64) -> Result<(), StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "replayed_next"))?;
    let found = rows::all(select.query(params![*after, MAX_PRUNED])?, |row| {
        Ok((row.get::<_, i64>(replayed::job_id)?, row.get::<_, bool>(replayed::is_live)?))
    })?;
    *after = if found.len() < MAX_PRUNED as usize { 0 } else { found.last().map_or(0, |(id, _)| *id) };
    let mut remove = tx.conn.prepare_cached(sql!("gates.sql", "replayed_end"))?;
    for (id, _) in found.into_iter().filter(|(_, is_live)| !is_live) {
        remove.execute([id])?;
    }
    Ok(())
}

/// Removes gates that hold nothing.
pub(in crate::store::sqlite) fn prune(tx: &Tx<'_>) -> Result<(), StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gates_old"))?;
    let before = (tx.now - IDLE_FOR).as_millis();
    let mut remove = tx.conn.prepare_cached(sql!("gates.sql", "gate_remove"))?;
    for (id, _, gate) in rows::all(select.query(params![before, MAX_PRUNED])?, read)? {
        if gate.is_idle(tx.now) {
            remove.execute([id])?;
        }
    }
    Ok(())
}

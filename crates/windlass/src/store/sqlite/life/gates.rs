//! Gated queues: claims that ask gates, parked jobs, and what the end of an attempt gives back.

use crate::job::{ClaimedJob, LeaseId, QueueId};
use crate::store::gates::passes::{Passed, Passes};
use crate::store::gates::{self, Admitted, ClaimGates, GateName, GateScope, MAX_OPENED, Offered, QueueFlow};
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::claim::{
    Due, Eligible, FromShare, Front, Level, due, lanes_of, leave_each, leave_first, look_for, next_due, parked_lane,
    queue_of,
};
use crate::store::sqlite::life::gate_rows;
use crate::store::sqlite::reads::columns::{due as due_job, gate, gate_ended, offered, replayed};
use crate::store::sqlite::reads::rows;
use crate::store::{Commit, Parking, Share, StoreError, json};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use windlass_core::gate::{Ended, Hold, destination};
use windlass_core::pick::Picker;
use windlass_core::{JobId, Millis, Priority, Timestamp, verdict};

/// The most due jobs of a gated queue that one claim looks at. A gate is written once per claim, however many of its
/// jobs start.
const MAX_OFFERED: u32 = 4000;
/// The most that it looks at before it asks the gates.
const MAX_WINDOW: u32 = 1000;
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

/// A job that starts, with the gates it has passed.
pub(super) type StartedJob = (JobId, Passed);

/// The jobs of a gated queue that start, when to look again, and the jobs that a gate refused.
type TakenShare = (Vec<StartedJob>, Option<Timestamp>, Vec<Parking>);

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
    let mut claim_gates = ClaimGates::default();
    let mut parked = Vec::new();
    for (id, name) in opened(tx, (queue.0.as_str(), queue.1.as_str()))? {
        let most = if name.is_of_key() { flow.per_key(most) } else { most };
        parked.extend(parked_due(tx, id, share.queue, most, eligible)?);
        let place = claim_gates.place(flow, name);
        claim_gates.entries_mut()[place].is_opened = true;
    }
    // As many jobs as may start, and more if gates refuse many of them.
    let (mut window, mut looked) = (most.clamp(FIRST_LOOK, MAX_WINDOW), 0);
    let (mut started, mut refused) = (Vec::new(), Vec::new());
    let (stopped, has_more) = loop {
        let waiting = waiting(tx, share, lanes, window, eligible)?;
        let offered = offer(tx, flow, &queue.0, parked.iter().chain(&waiting.jobs))?;
        let asked = claim_gates.ask(flow, (&queue.0, &queue.1), &offered);
        gate_rows::find_new(tx, &mut claim_gates)?;
        let admitted = gates::admit(&mut claim_gates, &offered, &asked, picker, tx.now);
        started.extend(apply(tx, share.queue, &mut claim_gates, &admitted, (&waiting.jobs, eligible))?);
        refused.extend(admitted.refusals);
        looked += window;
        let has_more = waiting.has_more && !admitted.is_enough;
        let is_over = admitted.stopped.is_some() || !has_more || picker.is_filled() || looked >= MAX_OFFERED;
        if is_over || matches!(eligible, Eligible::Kinds(..)) {
            break (admitted.stopped, has_more);
        }
        parked.clear();
        window = (window * 4).min(MAX_WINDOW).min(MAX_OFFERED - looked).max(FIRST_LOOK);
    };
    gate_rows::write_all(tx, &claim_gates)?;
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
fn opened(tx: &Tx<'_>, (tenant, queue): (&str, &str)) -> Result<Vec<(i64, GateName)>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gates_open"))?;
    rows::all(select.query(params![queue, tenant, tx.now.as_millis(), MAX_OPENED])?, |row| {
        Ok((row.get(gate::id)?, gate_rows::name(row)?))
    })
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

/// The first jobs that waited in the lanes of a queue, and which of them a claim may take.
type Seen<'s> = (&'s [Due], Eligible<'s>);

/// Starts and parks jobs. Returns those that start, with the gates they passed. What gates count is written at the end.
fn apply(
    tx: &mut Tx<'_>,
    queue: QueueId,
    claim_gates: &mut ClaimGates,
    admitted: &Admitted,
    waiting: Seen<'_>,
) -> Result<Vec<StartedJob>, StoreError> {
    let places: HashMap<JobId, Due> = waiting.0.iter().map(|due| (due.id, *due)).collect();
    let mut leaving: BTreeMap<i64, Vec<Due>> = BTreeMap::new();
    let moved = admitted.started.iter().map(|started| started.id).chain(admitted.parked.iter().map(|(id, _)| *id));
    let mut unparked = HashMap::new();
    for id in moved {
        match places.get(&id) {
            Some(due) => leaving.entry(due.level.lane(queue)).or_default().push(*due),
            None => {
                let place =
                    take_parked(tx, id)?.ok_or_else(|| StoreError::corrupt(format!("job {id}"), "it is parked"))?;
                unparked.insert(id, place);
            }
        }
    }
    for (lane, mut jobs) in leaving {
        jobs.sort_by_key(|due| (due.due_at, due.id));
        leave_lane(tx, lane, &jobs, waiting)?;
        tx.waiting(lane, -(jobs.len() as i64));
    }
    gate_rows::add_new(tx, claim_gates)?;
    let row = |place: usize| {
        claim_gates.entries()[place].row.ok_or_else(|| StoreError::corrupt("a gate", "a gate that is asked has a row"))
    };
    let mut park = tx.conn.prepare_cached(sql!("gates.sql", "park"))?;
    for (id, place) in &admitted.parked {
        let (lane, due_at) = match places.get(id) {
            Some(due) => (due.level.lane(queue), due.due_at),
            None => unparked[id],
        };
        park.execute([row(*place)?, lane, due_at, id.0])?;
        tx.waiting(parked_lane(queue), 1);
    }
    let mut started = Vec::with_capacity(admitted.started.len());
    for job in &admitted.started {
        let rows = job.gates.iter().map(|place| row(*place)).collect::<Result<Vec<i64>, _>>()?;
        started.push((job.id, Passed::new(rows.into_iter(), job.is_probe)));
    }
    Ok(started)
}

/// Removes jobs from a lane, in its order.
fn leave_lane(tx: &Tx<'_>, lane: i64, jobs: &[Due], (waiting, eligible): Seen<'_>) -> Result<(), StoreError> {
    let mut first = waiting.iter().filter(|due| due.level.lane(queue_of(lane)) == lane);
    let is_first = match eligible {
        Eligible::All | Eligible::InTime => jobs.iter().all(|job| first.next().is_some_and(|due| due.id == job.id)),
        // A claim of some kinds may not have looked at the first jobs of the lane.
        Eligible::Kinds(..) => false,
    };
    let left = if is_first { leave_first(tx, lane, jobs)? } else { leave_each(tx, lane, jobs)? };
    if left == jobs.len() {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!("lane {lane}"), "a claim takes the jobs it names"))
    }
}

/// Writes down which gates the jobs of leases have passed.
pub(super) fn put_passes(tx: &Tx<'_>, passed: &[(LeaseId, StartedJob)]) -> Result<(), StoreError> {
    let mut texts: BTreeMap<LeaseId, String> = BTreeMap::new();
    for (lease, (job, passed)) in passed {
        Passes::add(texts.entry(*lease).or_default(), *job, passed);
    }
    let mut put = tx.conn.prepare_cached(sql!("gates.sql", "passes_put"))?;
    for (lease, text) in texts {
        put.execute(params![lease.0, text])?;
    }
    Ok(())
}

/// A lease has ended.
pub(super) fn end_lease(tx: &Tx<'_>, lease: LeaseId) -> Result<(), StoreError> {
    tx.conn.prepare_cached(sql!("gates.sql", "passes_end"))?.execute([lease.0])?;
    Ok(())
}

fn has_passes(conn: &Connection) -> Result<bool, StoreError> {
    Ok(conn.prepare_cached(sql!("gates.sql", "passes_any"))?.query_row([], rows::only)?)
}

/// The gates that jobs of leases have passed.
fn passes(conn: &Connection, leases: impl Iterator<Item = LeaseId>) -> Result<HashMap<LeaseId, Passes>, StoreError> {
    let mut found = HashMap::new();
    if !has_passes(conn)? {
        return Ok(found);
    }
    let mut select = conn.prepare_cached(sql!("gates.sql", "passes"))?;
    let leases: BTreeSet<LeaseId> = leases.collect();
    for lease in leases {
        let mut listed = select.query([lease.0])?;
        let Some(row) = listed.next()? else { continue };
        let passes = Passes::read(rows::must(row, 0)?);
        let passes = passes
            .ok_or_else(|| StoreError::corrupt(format!("lease {lease}"), "it lists the gates that jobs passed"))?;
        found.insert(lease, passes);
    }
    Ok(found)
}

/// A parked job stops being parked. Returns its lane and due time; `None` if it is not parked.
fn take_parked(tx: &mut Tx<'_>, id: JobId) -> Result<Option<(i64, i64)>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "parked_at"))?;
    let place: Option<(i64, i64)> = select.query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    if let Some((lane, _)) = place {
        tx.conn.prepare_cached(sql!("gates.sql", "unpark"))?.execute([id.0])?;
        tx.waiting(parked_lane(queue_of(lane)), -1);
    }
    Ok(place)
}

/// A job that is about to change stops being parked, if it is.
pub(super) fn unpark(tx: &mut Tx<'_>, id: JobId) -> Result<(), StoreError> {
    take_parked(tx, id).map(drop)
}

/// Attempts have ended: what they used comes back, and an answer may hold a key.
pub(super) fn end<'c>(tx: &mut Tx<'_>, applied: impl Iterator<Item = &'c Commit>) -> Result<(), StoreError> {
    let applied: Vec<&Commit> = applied.collect();
    let passes = passes(tx.conn, applied.iter().map(|commit| commit.lease))?;
    let passed = |commit: &Commit| passes.get(&commit.lease).and_then(|passes| passes.of(commit.job));
    let mut by_queue: BTreeMap<i64, Vec<(&Commit, Option<&Passed>)>> = BTreeMap::new();
    for commit in applied {
        let passed = passed(commit);
        if passed.is_some() || commit.hold.is_some() {
            by_queue.entry(commit.queue.0).or_default().push((commit, passed));
        }
    }
    for (queue, commits) in by_queue {
        end_in(tx, QueueId(queue), &commits)?;
    }
    Ok(())
}

fn end_in(tx: &mut Tx<'_>, queue: QueueId, commits: &[(&Commit, Option<&Passed>)]) -> Result<(), StoreError> {
    let key = tx.names.queue(tx.conn, queue)?;
    let flow = tx.retentions.flow(tx.conn, tx.names, queue)?.unwrap_or_default();
    // By gate: how each attempt ended, and whether it was a probe.
    let mut ends: BTreeMap<i64, Vec<(Ended, bool)>> = BTreeMap::new();
    for (commit, passed) in commits {
        for row in passed.iter().flat_map(|passed| passed.rows()) {
            ends.entry(*row).or_default().push((commit.ended, passed.is_some_and(|passed| passed.is_probe)));
        }
    }
    let mut replays = HashSet::new();
    for (id, attempts) in ends {
        let scope = end_at(tx, &flow, id, &attempts)?;
        replays.extend((scope == Some(GateScope::Replay)).then_some(id));
    }
    for (commit, passed) in commits {
        let is_replayed = passed.is_some_and(|passed| passed.rows().iter().any(|row| replays.contains(row)));
        if is_replayed && commit.transition.next.is_finished() {
            tx.conn.prepare_cached(sql!("gates.sql", "replayed_end"))?.execute([commit.job.0])?;
        }
        if let Some((name, hold)) = gates::hold(&flow, (&key.0, &key.1, key.2), commit, tx.now) {
            let rule = flow.rule(&name);
            let (id, mut gate) = gate_rows::find_or_add(tx, &name)?;
            gate.hold(hold);
            gate_rows::put(tx, id, &gate, gates::opens_at(name.scope(), &gate, &rule, tx.now))?;
            tx.rings = true;
        }
    }
    Ok(())
}

/// Counts what ended at a gate, and judges it if it does more than count. Returns its scope, if it is still there.
fn end_at(
    tx: &mut Tx<'_>,
    flow: &QueueFlow,
    id: i64,
    attempts: &[(Ended, bool)],
) -> Result<Option<GateScope>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gate_ending"))?;
    let mut found = select.query([id])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let scope = GateScope::parse(rows::must(row, gate_ended::scope)?)
        .ok_or_else(|| StoreError::corrupt(format!("gate {id}"), "its scope is known"))?;
    let rule = flow.rule_of(scope, rows::must(row, gate_ended::tenant)?, rows::must(row, gate_ended::key)?);
    let mut gate = gate_rows::read_state(id, rows::must(row, gate_ended::state)?, row.get(gate_ended::in_use)?)?;
    let has_parked: bool = row.get(gate_ended::has_parked)?;
    drop(found);
    let only_counts = gates::only_counts(&rule, &gate);
    for attempt in attempts {
        // Waking claims for every end would make them small.
        tx.rings |= gates::end(&mut gate, (scope, &rule), *attempt, tx.now);
    }
    if has_parked || !only_counts {
        gate_rows::put(tx, id, &gate, gates::opens_at(scope, &gate, &rule, tx.now))?;
    } else {
        let mut count = tx.conn.prepare_cached(sql!("gates.sql", "gate_end"))?;
        count.execute(params![id, attempts.len() as u32, tx.now.as_millis()])?;
    }
    Ok(Some(scope))
}

/// Marks those running jobs that are probes.
pub(super) fn mark_probes(conn: &Connection, jobs: &mut [ClaimedJob]) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let passes = passes(conn, jobs.iter().map(|job| job.lease))?;
    for job in jobs {
        let passed = passes.get(&job.lease).and_then(|passes| passes.of(job.job.id));
        job.is_probe = passed.is_some_and(|passed| passed.is_probe);
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
    let found = match (gate_rows::find(tx, name)?, hold) {
        (None, None) => return Ok(false),
        (None, Some(_)) => gate_rows::find_or_add(tx, name)?,
        (Some(found), _) => found,
    };
    let (id, mut gate) = found;
    let was_held = gate.held(tx.now).is_some();
    match hold {
        Some(hold) => gate.hold(hold.clone()),
        None => gate.release(tx.now),
    }
    // The next claim looks, whatever the queue's settings say.
    gate_rows::put(tx, id, &gate, Some(tx.now))?;
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
    for (id, _, gate) in rows::all(select.query(params![before, MAX_PRUNED])?, gate_rows::read)? {
        if gate.is_idle(tx.now) {
            remove.execute([id])?;
        }
    }
    Ok(())
}

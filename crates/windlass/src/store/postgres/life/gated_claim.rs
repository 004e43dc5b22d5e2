//! A claim that takes from gated queues: the gates are asked in order, what may start is taken, what may not is parked.
//! One claim at a time asks the gates of a queue; commits only lock the gates that they change.

use crate::job::QueueId;
use crate::store::gates::{self, Admitted, GateName, MAX_OPENED, Offered, QueueFlow};
use crate::store::passed_over::{self, Place};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::claim::{Asked, Due};
use crate::store::postgres::life::claim_kinds::{LEVELS, lane};
use crate::store::postgres::life::gates::{Gated, Known, key_in};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::arrays;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Claim, Kinds, Parking, Share, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use windlass_core::pick::{Pick, Picker};
use windlass_core::{Millis, Timestamp};

/// The most due jobs of each priority of a gated queue that one claim looks at.
const MAX_OFFERED: u32 = 1000;
/// The fewest.
const MIN_OFFERED: u32 = 16;
/// The most due jobs that a claim looks at for each free slot, while gates refuse many of them.
const MAX_WINDOW: u32 = 64;
/// How soon a claim goes on that could not look at everything.
const SOON: Millis = Millis::new(1);

/// What was taken: the rows of the jobs, and when the gated queues should be looked at again.
pub(super) struct Taken {
    pub(super) rows: Vec<Row>,
    pub(super) next: Option<Timestamp>,
    /// Due jobs that a gate refused.
    pub(super) parked: Vec<Parking>,
}

/// A gated queue of a claim.
struct Gate<'c> {
    share: &'c Share,
    gated: &'c Gated,
    offered: Vec<Offered>,
    /// Whether there may be more due jobs than were offered.
    is_truncated: bool,
}

/// Claims from the shares of a claim, some of which are gated. `open` are candidates of the others.
pub(super) async fn claim(
    store: &Inner,
    on: On<'_>,
    claim: &Claim,
    asked: &Asked<'_>,
    gated: &HashMap<QueueId, Gated>,
    now: Timestamp,
) -> Result<Taken, StoreError> {
    let mut open = open_due(on, claim, asked, gated, now).await?;
    open.sort_by_key(Due::key);
    let locks: Vec<String> =
        gated.values().map(|(queue, _)| format!("{} gates {}", store.pool.texts().schema(), queue.name)).collect();
    on.query(Sql::GateClaimLock, &[&locks]).await?;
    let mut known = Known::default();
    let mut touched: BTreeMap<GateName, Arc<QueueFlow>> = BTreeMap::new();
    let mut queues = Vec::new();
    for share in &claim.shares {
        if let Some(gated) = gated.get(&share.queue)
            && most(share, gated) > 0
            && !is_paused(on, share).await?
        {
            let kinds = claim.kinds.as_ref();
            queues.push(offer(store, on, kinds, (share, gated), now, &mut touched).await?);
        }
    }
    let mut names: BTreeSet<GateName> = touched.keys().cloned().collect();
    for Gate { gated: (queue, flow), offered, .. } in &queues {
        names.extend(offered.iter().flat_map(|job| job.gates(flow, &queue.tenant, &queue.name)));
    }
    known.lock(on, &names).await?;
    let mut picks = Picks::default();
    let mut picker = Picker::new(claim.limit, claim.suspects);
    let (mut next, mut parked, mut is_short) = (None, Vec::new(), false);
    for (share, place) in claim.shares.iter().zip(1..) {
        match queues.iter().find(|gate| gate.share.queue == share.queue) {
            Some(gate) => {
                let mut admitted = admit(gate, &mut known, &mut picker, now);
                is_short |= gate.is_truncated && !admitted.is_enough && !picker.is_filled();
                parked.append(&mut admitted.refusals);
                next = [next, again_at(gate, &admitted, &picker, now)].into_iter().flatten().min();
                picks.admitted(admitted, &gate.gated.1, &mut touched);
            }
            None => {
                picker.next_queue(share.slots, share.ahead);
                picks.open(&open, place, &mut picker);
            }
        }
    }
    look_further(store, is_short);
    let rows = take(store, on, asked, &mut known, &picks, now).await?;
    known.write(store, on, &touched, now).await?;
    let opening = next_opening(on, &queues, now).await?;
    Ok(Taken { rows, next: [next, opening].into_iter().flatten().min(), parked })
}

/// How many jobs a claim may take from a gated queue.
fn most(share: &Share, (_, flow): &Gated) -> u32 {
    share.slots.saturating_add(flow.ahead(share.ahead))
}

/// Candidates of the shares that are not gated.
async fn open_due(
    on: On<'_>,
    claim: &Claim,
    asked: &Asked<'_>,
    gated: &HashMap<QueueId, Gated>,
    now: Timestamp,
) -> Result<Vec<Due>, StoreError> {
    if claim.shares.iter().all(|share| gated.contains_key(&share.queue)) {
        return Ok(Vec::new());
    }
    // A queue that does not exist stands in for a gated one, so that the others keep their places.
    let is_gated = |id: &i64| gated.contains_key(&QueueId(*id));
    let queues: Vec<i64> = asked.queues.iter().map(|id| if is_gated(id) { 0 } else { *id }).collect();
    let rows =
        on.query(Sql::ClaimPick, &[&now.as_millis(), &queues, &asked.slots, &asked.ahead, &asked.suspects]).await?;
    rows.iter().map(Due::read).collect()
}

async fn is_paused(on: On<'_>, share: &Share) -> Result<bool, StoreError> {
    let rows = on.query(Sql::QueuePaused, &[&share.queue.0]).await?;
    rows.first().map_or(Ok(true), |row| Columns::new(row).get("paused"))
}

/// The due jobs of a gated queue: those parked behind gates that may let something go, and those that wait.
async fn offer<'c>(
    store: &Inner,
    on: On<'_>,
    kinds: Option<&Kinds>,
    (share, gated): (&'c Share, &'c Gated),
    now: Timestamp,
    touched: &mut BTreeMap<GateName, Arc<QueueFlow>>,
) -> Result<Gate<'c>, StoreError> {
    let (queue, flow) = gated;
    let names: Option<Vec<&str>> = kinds.map(|kinds| kinds.iter().collect());
    let (moment, opened, most) = (now.as_millis(), i64::from(MAX_OPENED), most(share, gated));
    let (per_key, most) = (i64::from(flow.per_key(most)), i64::from(most));
    let (name, tenant) = (queue.name.as_str(), queue.tenant.as_str());
    let params: Params<'_> = &[&moment, &share.queue.0, &name, &tenant, &opened, &most, &names, &per_key];
    let parked = on.query(Sql::GatedParked, params).await?;
    let (mut offered, is_truncated) = waiting(store, on, kinds, (share, gated), now).await?;
    let mut opened = BTreeSet::new();
    for row in &parked {
        opened.insert(Columns::new(row).get::<i64>("gate_id")?);
        if Columns::new(row).get::<Option<i64>>("id")?.is_some() {
            offered.push(offered_in(row, gated)?);
        }
    }
    offered.sort_by_key(Offered::order);
    let ids: Vec<i64> = opened.into_iter().collect();
    if !ids.is_empty() {
        for row in &on.query(Sql::GatesNamed, &[&ids]).await? {
            touched.insert(super::gates::read(row)?.1, flow.clone());
        }
    }
    Ok(Gate { share, gated, offered, is_truncated })
}

/// The first due jobs that wait, of the right kinds, and whether there may be more. Claims of some kinds look at more
/// jobs, and continue where the last one of the same kinds ended.
async fn waiting(
    store: &Inner,
    on: On<'_>,
    kinds: Option<&Kinds>,
    (share, gated): (&Share, &Gated),
    now: Timestamp,
) -> Result<(Vec<Offered>, bool), StoreError> {
    let window =
        most(share, gated).saturating_mul(store.gate_window.load(Ordering::Relaxed)).clamp(MIN_OFFERED, MAX_OFFERED);
    let look = i64::from(if kinds.is_some() { passed_over::look(window) } else { window });
    let start = |place| kinds.map(|kinds| store.passed_over.start(kinds, lane(share, place), now)).unwrap_or_default();
    let (due_at, id): (Vec<i64>, Vec<i64>) = (1..=LEVELS).map(start).unzip();
    let rows = on.query(Sql::GatedDue, &[&now.as_millis(), &share.queue.0, &look, &due_at, &id]).await?;
    let mut offered = Vec::with_capacity(rows.len());
    let mut seen: BTreeMap<i64, (i64, Option<Place>, Place)> = BTreeMap::new();
    for row in &rows {
        let c = Columns::new(row);
        let place: Place = (c.get("due_at")?, c.get("id")?);
        let level = seen.entry(c.get("place")?).or_insert((0, None, place));
        (level.0, level.2) = (level.0 + 1, level.2.max(place));
        if kinds.is_none_or(|kinds| kinds.contains(c.text("kind").unwrap_or_default())) {
            level.1 = Some(level.1.map_or(place, |first| first.min(place)));
            offered.push(offered_in(row, gated)?);
        }
    }
    let mut has_more = false;
    for (level, (count, first, last)) in seen.into_iter().filter(|(_, (count, ..))| *count >= look) {
        has_more |= count >= look;
        if let Some(kinds) = kinds {
            let next = first.unwrap_or((last.0, last.1.saturating_add(1)));
            store.passed_over.advance(kinds, lane(share, level), next, now);
        }
    }
    Ok((offered, has_more))
}

fn offered_in(row: &Row, gated: &Gated) -> Result<Offered, StoreError> {
    let Due { id, priority, due_at, candidate, .. } = Due::read_gated(row)?;
    let is_retry = Columns::new(row).count("failures")? > 0;
    let replay = Columns::new(row).get::<Option<&str>>("gate_key")?.map(GateName::replay);
    Ok(Offered { id, priority, due_at, candidate, is_retry, key: key_in(row, gated)?, replay })
}

fn admit(gate: &Gate<'_>, known: &mut Known, picker: &mut Picker, now: Timestamp) -> Admitted {
    let (queue, flow) = gate.gated;
    picker.next_queue(gate.share.slots, flow.ahead(gate.share.ahead));
    gates::admit((&queue.tenant, &queue.name), flow, &mut known.gates, &gate.offered, picker, now)
}

/// Every job that a claim looks at is locked, so it looks at as many as it has slots, and at more after one that could
/// not fill them.
fn look_further(store: &Inner, is_short: bool) {
    let window = store.gate_window.load(Ordering::Relaxed);
    let next = if is_short { window.saturating_mul(4).min(MAX_WINDOW) } else { (window / 2).max(1) };
    store.gate_window.store(next, Ordering::Relaxed);
}

/// When a gated queue should be looked at again, unless a gate opens earlier.
fn again_at(gate: &Gate<'_>, admitted: &Admitted, picker: &Picker, now: Timestamp) -> Option<Timestamp> {
    match admitted.stopped {
        Some(refusal) => refusal.until,
        None if gate.is_truncated && !admitted.is_enough && !picker.is_filled() => Some(now + SOON),
        None => None,
    }
}

/// What a claim takes and parks.
#[derive(Default)]
struct Picks {
    ids: Vec<i64>,
    parked: Vec<(i64, GateName)>,
    /// Where a job that passed gates is among `ids`, the gates, and whether it is a probe.
    passed: Vec<(usize, Vec<GateName>, bool)>,
}

impl Picks {
    fn open(&mut self, due: &[Due], share: i64, picker: &mut Picker) {
        for job in due.iter().filter(|job| job.share == share) {
            match picker.pick(job.candidate) {
                Pick::Take => self.ids.push(job.id.0),
                Pick::PassOver => {}
                Pick::Full => break,
            }
        }
    }

    fn admitted(
        &mut self,
        admitted: Admitted,
        flow: &Arc<QueueFlow>,
        touched: &mut BTreeMap<GateName, Arc<QueueFlow>>,
    ) {
        for passed in admitted.started {
            touched.extend(passed.gates.iter().map(|name| (name.clone(), flow.clone())));
            self.passed.push((self.ids.len(), passed.gates, passed.is_probe));
            self.ids.push(passed.id.0);
        }
        for (id, name) in admitted.parked {
            touched.insert(name.clone(), flow.clone());
            self.parked.push((id.0, name));
        }
    }
}

arrays!(
    /// Jobs that have passed gates, as the statement `passes_put` takes them.
    Passes<'a> {
        job: i64,
        lease: i64,
        start: i32,
        length: i32,
        gates: i64,
        is_probe: bool,
    }
);

async fn take(
    store: &Inner,
    on: On<'_>,
    asked: &Asked<'_>,
    known: &mut Known,
    picks: &Picks,
    now: Timestamp,
) -> Result<Vec<Row>, StoreError> {
    known.give_rows(store, on).await?;
    let leases = asked.leases(picks.ids.len());
    let mut passes = Passes::default();
    for (nth, names, is_probe) in &picks.passed {
        passes.job.push(picks.ids[*nth]);
        passes.lease.push(leases[*nth]);
        passes.start.push(passes.gates.len() as i32);
        passes.length.push(names.len() as i32);
        passes.is_probe.push(*is_probe);
        for name in names {
            passes.gates.push(known.id(name)?);
        }
    }
    if !passes.job.is_empty() {
        on.query(Sql::PassesPut, &passes.params()).await?;
    }
    if !picks.parked.is_empty() {
        let ids: Vec<i64> = picks.parked.iter().map(|(id, _)| *id).collect();
        let behind: Vec<i64> = picks.parked.iter().map(|(_, name)| known.id(name)).collect::<Result<_, _>>()?;
        on.query(Sql::Park, &[&ids, &behind]).await?;
    }
    if picks.ids.is_empty() {
        return Ok(Vec::new());
    }
    asked.take(on, now.as_millis(), &picks.ids).await
}

/// When the next gate of these queues opens.
async fn next_opening(on: On<'_>, queues: &[Gate<'_>], now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let names: Vec<&str> = queues.iter().map(|gate| gate.gated.0.name.as_str()).collect();
    let tenants: Vec<&str> = queues.iter().map(|gate| gate.gated.0.tenant.as_str()).collect();
    let rows = on.query(Sql::GatesNext, &[&now.as_millis(), &names, &tenants]).await?;
    rows.first().map_or(Ok(None), |row| Columns::new(row).moment_if("opens_at"))
}

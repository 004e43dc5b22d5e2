//! A claim that takes from gated queues: the gates are asked in order, what may start is taken, what may not is parked.
//! One claim at a time asks the gates of a queue; commits change only the gates that their attempts had passed.

use crate::job::QueueId;
use crate::store::gates::admit::Started;
use crate::store::gates::claim_gates::{Entry, Places};
use crate::store::gates::passes::{Passed, Passes};
use crate::store::gates::{self, Admitted, ClaimGates, GateName, MAX_OPENED, Offered};
use crate::store::passed_over::{self, Place};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::claim::{Asked, Due};
use crate::store::postgres::life::claim_kinds::{LEVELS, lane};
use crate::store::postgres::life::gate_rows;
use crate::store::postgres::life::gates::{Gated, key_in};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Claim, Kinds, Parking, Share, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use windlass_core::pick::{Pick, Picker};
use windlass_core::{JobId, Millis, Timestamp};

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
    /// Those of the jobs that are probes.
    pub(super) probes: Vec<JobId>,
}

/// A gated queue of a claim.
struct Gate<'c> {
    share: &'c Share,
    gated: &'c Gated,
    offered: Vec<Offered>,
    /// The gates that each of them asks.
    asked: Vec<Places>,
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
    let (mut claim_gates, mut queues) = (ClaimGates::default(), Vec::new());
    for share in &claim.shares {
        if let Some(gated) = gated.get(&share.queue)
            && most(share, gated) > 0
            && !is_paused(on, share).await?
        {
            queues.push(offer(store, on, claim.kinds.as_ref(), (share, gated), now, &mut claim_gates).await?);
        }
    }
    gate_rows::find_all(on, &mut claim_gates).await?;
    // Gates that only count are not locked until the starts are counted; by then commits may have made more room, never
    // less. A rate, a hold or a breaker is asked under its lock.
    let mut is_counted = claim_gates.only_counts();
    if !is_counted {
        gate_rows::lock_all(on, &mut claim_gates).await?;
    }
    let mut picks = decide(claim, &queues, &open, &mut claim_gates, now);
    if is_counted && picks.has_refused {
        // Commits that are under way may free what was refused: waiting for them makes claims larger and fewer.
        is_counted = false;
        claim_gates.undo();
        gate_rows::lock_all(on, &mut claim_gates).await?;
        picks = decide(claim, &queues, &open, &mut claim_gates, now);
    }
    look_further(store, picks.is_short);
    if is_counted {
        gate_rows::count(store, on, &mut claim_gates).await?;
    }
    gate_rows::add_new(store, on, &mut claim_gates).await?;
    let rows = take(on, asked, &claim_gates, &picks, now).await?;
    let is_changed = |entry: &Entry| if is_counted { entry.is_contended() } else { entry.is_touched() };
    gate_rows::put_all(store, on, &claim_gates, is_changed, now).await?;
    let opening = next_opening(on, &queues, now).await?;
    let probes = picks.passed.iter().filter(|(_, started)| started.is_probe).map(|(_, started)| started.id).collect();
    Ok(Taken { rows, next: [picks.next, opening].into_iter().flatten().min(), parked: picks.refusals, probes })
}

/// Which jobs of which queues the claim takes and parks.
fn decide(claim: &Claim, queues: &[Gate<'_>], open: &[Due], claim_gates: &mut ClaimGates, now: Timestamp) -> Picks {
    let mut picks = Picks::default();
    let mut picker = Picker::new(claim.limit, claim.suspects);
    for (share, place) in claim.shares.iter().zip(1..) {
        match queues.iter().find(|gate| gate.share.queue == share.queue) {
            Some(gate) => {
                picker.next_queue(gate.share.slots, gate.gated.1.ahead(gate.share.ahead));
                let admitted = gates::admit(claim_gates, &gate.offered, &gate.asked, &mut picker, now);
                picks.is_short |= gate.is_truncated && !admitted.is_enough && !picker.is_filled();
                picks.next = [picks.next, again_at(gate, &admitted, &picker, now)].into_iter().flatten().min();
                picks.admitted(admitted);
            }
            None => {
                picker.next_queue(share.slots, share.ahead);
                picks.open(open, place, &mut picker);
            }
        }
    }
    picks
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
    claim_gates: &mut ClaimGates,
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
            let place = claim_gates.place(flow, gate_rows::name(row)?);
            claim_gates.entries_mut()[place].is_opened = true;
        }
    }
    let asked = claim_gates.ask(flow, (&queue.tenant, &queue.name), &offered);
    Ok(Gate { share, gated, offered, asked, is_truncated })
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
    /// Jobs with the place of the gate that refused each.
    parked: Vec<(JobId, usize)>,
    /// Jobs that passed gates, with their places among `ids`.
    passed: Vec<(usize, Started)>,
    /// Why gates refused the parked jobs.
    refusals: Vec<Parking>,
    /// When to look again.
    next: Option<Timestamp>,
    /// Whether there may have been more to take than was looked at.
    is_short: bool,
    /// Whether a gate refused anything.
    has_refused: bool,
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

    fn admitted(&mut self, admitted: Admitted) {
        for started in admitted.started {
            self.passed.push((self.ids.len(), started));
            self.ids.push(started.id.0);
        }
        self.parked.extend(admitted.parked);
        self.refusals.extend(admitted.refusals);
        self.has_refused |= admitted.has_refused;
    }
}

async fn take(
    on: On<'_>,
    asked: &Asked<'_>,
    claim_gates: &ClaimGates,
    picks: &Picks,
    now: Timestamp,
) -> Result<Vec<Row>, StoreError> {
    let row = |place: usize| {
        claim_gates.entries()[place].row.ok_or_else(|| StoreError::corrupt("a gate", "a gate that is asked has a row"))
    };
    let leases = asked.leases(picks.ids.len());
    let mut passes: BTreeMap<i64, String> = BTreeMap::new();
    for (nth, started) in &picks.passed {
        let rows = started.gates.iter().map(|place| row(*place)).collect::<Result<Vec<i64>, _>>()?;
        let text = passes.entry(leases[*nth]).or_default();
        Passes::add(text, started.id, &Passed::new(rows.into_iter(), started.is_probe));
    }
    if !passes.is_empty() {
        let (leases, texts): (Vec<i64>, Vec<String>) = passes.into_iter().unzip();
        on.query(Sql::PassesPut, &[&leases, &texts]).await?;
    }
    if !picks.parked.is_empty() {
        let ids: Vec<i64> = picks.parked.iter().map(|(id, _)| id.0).collect();
        let behind: Vec<i64> = picks.parked.iter().map(|(_, place)| row(*place)).collect::<Result<_, _>>()?;
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

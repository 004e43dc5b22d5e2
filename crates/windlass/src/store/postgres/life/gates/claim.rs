//! A claim that takes from gated queues: the gates are asked in order, what may start is taken, what may not is parked.
//! One claim at a time asks the gates of a queue; commits change only the gates that their attempts had passed.

use super::rows;
use crate::job::QueueId;
use crate::store::gates::admit::Started;
use crate::store::gates::claim_gates::{Entry, Places};
use crate::store::gates::passes::{Passed, Passes};
use crate::store::gates::{self, Admitted, ClaimGates, GateName, MAX_OPENED, Offered};
use crate::store::passed_over::{self, Place};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::claim::{Asked, Due};
use crate::store::postgres::life::claim_kinds::{LEVELS, lane};
use crate::store::postgres::life::frontier::{Drained, Start};
use crate::store::postgres::life::gates::{Gated, key_in};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Claim, Kinds, Parking, Share, StoreError};
use futures_util::future::{try_join, try_join_all, try_join3};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use windlass_core::pick::{Pick, Picker};
use windlass_core::{JobId, Millis, Priority, Timestamp};

/// How soon a claim goes on that could not look at everything.
const SOON: Millis = Millis::new(1);

/// What was taken: the rows of the jobs, and when the gated queues should be looked at again.
pub(in crate::store::postgres) struct Taken {
    pub(in crate::store::postgres) now: Timestamp,
    pub(in crate::store::postgres) rows: Vec<Row>,
    pub(in crate::store::postgres) next: Option<Timestamp>,
    /// Due jobs that a gate refused.
    pub(in crate::store::postgres) parked: Vec<Parking>,
    /// Those of the jobs that are probes.
    pub(in crate::store::postgres) probes: Vec<JobId>,
    /// How far the gated queues were drained.
    pub(in crate::store::postgres) drained: Vec<Drained>,
}

/// A gated queue of a claim.
struct Gate<'c> {
    share: &'c Share,
    gated: &'c Gated,
    offered: Vec<Offered>,
    /// Those of them that are not parked, in the order of the queue.
    waiting: Vec<(JobId, Priority, Timestamp)>,
    /// The gates that each offered job asks.
    asked: Vec<Places>,
    /// Whether there may be more due jobs than were offered.
    is_truncated: bool,
}

/// Claims from the shares of a claim, some of which are gated. `open` are candidates of the others.
pub(in crate::store::postgres) async fn claim(
    store: &Inner,
    on: On<'_>,
    claim: &Claim,
    asked: &Asked<'_>,
    gated: &HashMap<QueueId, Gated>,
    start: &Start,
) -> Result<Taken, StoreError> {
    let now = lock(store, on, gated).await?;
    // What one claim needs is sent together: every round trip holds up the commits and claims that wait for its locks.
    let shares =
        claim.shares.iter().enumerate().filter_map(|(nth, share)| Some((nth, share, gated.get(&share.queue)?)));
    let readings = shares.filter(|(_, share, gated)| most(share, gated) > 0).map(|(nth, share, gated)| {
        let from = place_of(store, claim.kinds.as_ref(), (share, nth), start, now);
        read(store, on, claim.kinds.as_ref(), (share, gated), from, now)
    });
    let (mut open, readings) = try_join(open_due(on, claim, asked, gated, now), try_join_all(readings)).await?;
    open.sort_by_key(Due::key);
    let (mut claim_gates, mut queues) = (ClaimGates::default(), Vec::new());
    for reading in readings.into_iter().flatten() {
        queues.push(offer(store, on, claim.kinds.as_ref(), reading, now, &mut claim_gates).await?);
    }
    rows::find_all(store, on, &mut claim_gates).await?;
    // Gates that only count are not locked until the starts are counted; by then commits may have made more room, never
    // less. A rate, a hold or a breaker is asked under its lock.
    let mut is_counted = claim_gates.only_counts();
    if !is_counted {
        rows::lock_all(on, &mut claim_gates).await?;
    }
    let mut picks = decide(claim, &queues, &open, &mut claim_gates, now);
    if is_counted && picks.has_refused {
        // Commits that are under way may free what was refused: waiting for them makes claims larger and fewer.
        is_counted = false;
        claim_gates.undo();
        rows::lock_all(on, &mut claim_gates).await?;
        picks = decide(claim, &queues, &open, &mut claim_gates, now);
    }
    store.gate_looks.looked(picks.is_short);
    picks.stopped.iter().for_each(|(queue, started)| store.gate_looks.stopped(*queue, *started));
    let mut is_to_be_counted = is_counted;
    if rows::has_new(&claim_gates) {
        // Gates that exist are locked first, like everywhere: a commit may wait for a new one while it holds others.
        if is_counted {
            rows::count(store, on, &mut claim_gates).await?;
            is_to_be_counted = false;
        }
        rows::add_new(store, on, &mut claim_gates).await?;
    }
    let writes = Writes::new(asked, &claim_gates, &picks)?;
    let counting = async { if is_to_be_counted { rows::count(store, on, &mut claim_gates).await } else { Ok(()) } };
    let ((), rows) = try_join(counting, writes.send(on, asked, now)).await?;
    let is_changed = |entry: &Entry| if is_counted { entry.is_contended() } else { entry.is_touched() };
    rows::put_all(store, on, &claim_gates, is_changed, now).await?;
    let opening = next_opening(on, &queues, now).await?;
    let probes = picks.passed.iter().filter(|(_, started)| started.is_probe).map(|(_, started)| started.id).collect();
    let drained = if claim.kinds.is_none() { drained(&queues, &picks) } else { Vec::new() };
    let next = [picks.next, opening].into_iter().flatten().min();
    Ok(Taken { now, rows, next, parked: picks.refusals, probes, drained })
}

/// Waits until no other claim asks the gates of these queues, then reads the time.
async fn lock(store: &Inner, on: On<'_>, gated: &HashMap<QueueId, Gated>) -> Result<Timestamp, StoreError> {
    let locks: Vec<String> =
        gated.values().map(|(queue, _)| format!("{} gates {}", store.pool.texts().schema(), queue.name)).collect();
    let sent = store.clock.monotonic();
    let rows = on.query(Sql::GateClaimLock, &[&store.fixed(), &locks]).await?;
    let first = rows.first().ok_or_else(|| StoreError::corrupt("claim", "a lock answers the time"))?;
    let now = Columns::new(first).moment("now")?;
    store.clock.follow(now, sent);
    Ok(now)
}

/// How far each queue and priority was drained: up to the first job that was offered and stays.
fn drained(queues: &[Gate<'_>], picks: &Picks) -> Vec<Drained> {
    let gone: HashSet<i64> = picks.ids.iter().copied().chain(picks.parked.iter().map(|(id, _)| id.0)).collect();
    let mut drained = Vec::new();
    for gate in queues {
        for level in gate.waiting.chunk_by(|one, next| one.1 == next.1) {
            let last = level.iter().take_while(|(id, ..)| gone.contains(&id.0)).last();
            drained.extend(last.map(|(id, priority, due_at)| Drained {
                queue: gate.share.queue.0,
                priority: priority.rank(),
                place: (due_at.as_millis(), id.0),
            }));
        }
    }
    drained
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
                let is_short = gate.is_truncated && !admitted.is_enough && !picker.is_filled();
                picks.is_short |= is_short;
                picks.next = [picks.next, again_at(gate, &admitted, &picker, now)].into_iter().flatten().min();
                let is_stopped = admitted.stopped.is_some() || admitted.is_enough;
                let started = is_stopped.then_some(admitted.started.len() as u32);
                if started.is_some() || is_short {
                    picks.stopped.push((share.queue.0, started));
                }
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

/// Where a claim starts in each priority of a queue: due times and ids.
type From = (Vec<i64>, Vec<i64>);

/// Claims of some kinds continue where the last one of the same kinds ended, others at the frontier.
fn place_of(
    store: &Inner,
    kinds: Option<&Kinds>,
    (share, nth): (&Share, usize),
    start: &Start,
    now: Timestamp,
) -> From {
    match kinds {
        Some(kinds) => (1..=LEVELS).map(|place| store.passed_over.start(kinds, lane(share, place), now)).unzip(),
        None => start.of_share(nth),
    }
}

/// What a claim reads of a gated queue.
struct Reading<'c> {
    share: &'c Share,
    gated: &'c Gated,
    /// Jobs behind gates that may let something go.
    parked: Vec<Row>,
    /// Due jobs, at most `look` of each priority.
    due: Vec<Row>,
    look: i64,
}

/// Reads a gated queue; `None` if it is paused. Every job that is read is locked. Claims of some kinds look at more
/// jobs.
async fn read<'c>(
    store: &Inner,
    on: On<'_>,
    kinds: Option<&Kinds>,
    (share, gated): (&'c Share, &'c Gated),
    (due_at, id): From,
    now: Timestamp,
) -> Result<Option<Reading<'c>>, StoreError> {
    let (queue, flow) = gated;
    let names: Option<Vec<&str>> = kinds.map(|kinds| kinds.iter().collect());
    let (moment, opened, most) = (now.as_millis(), i64::from(MAX_OPENED), most(share, gated));
    let window = store.gate_looks.look(share.queue.0, most);
    let look = i64::from(if kinds.is_some() { passed_over::look(window) } else { window });
    let (per_key, most) = (i64::from(flow.per_key(most)), i64::from(most));
    let (name, tenant) = (queue.name.as_str(), queue.tenant.as_str());
    let (paused, parked, due) = try_join3(
        on.query(Sql::QueuePaused, &[&share.queue.0]),
        on.query(Sql::GatedParked, &[&moment, &share.queue.0, &name, &tenant, &opened, &most, &names, &per_key]),
        on.query(Sql::GatedDue, &[&moment, &share.queue.0, &look, &due_at, &id]),
    )
    .await?;
    let is_paused = paused.first().map_or(Ok(true), |row| Columns::new(row).get("paused"))?;
    Ok((!is_paused).then_some(Reading { share, gated, parked, due, look }))
}

/// The due jobs of a gated queue: those parked behind gates that may let something go, and those that wait.
async fn offer<'c>(
    store: &Inner,
    on: On<'_>,
    kinds: Option<&Kinds>,
    reading: Reading<'c>,
    now: Timestamp,
    claim_gates: &mut ClaimGates,
) -> Result<Gate<'c>, StoreError> {
    let Reading { share, gated, .. } = reading;
    let (queue, flow) = gated;
    let (mut offered, is_truncated) = waiting(store, kinds, &reading, now)?;
    offered.sort_by_key(Offered::order);
    let waiting = offered.iter().map(|job| (job.id, job.priority, job.due_at)).collect();
    let mut opened = BTreeSet::new();
    for row in &reading.parked {
        opened.insert(Columns::new(row).get::<i64>("gate_id")?);
        if Columns::new(row).get::<Option<i64>>("id")?.is_some() {
            offered.push(offered_in(row, gated)?);
        }
    }
    let ids: Vec<i64> = opened.into_iter().collect();
    if !ids.is_empty() {
        offered.sort_by_key(Offered::order);
        for row in &on.query(Sql::GatesRead, &[&ids]).await? {
            let place = claim_gates.place(flow, rows::name(row)?);
            claim_gates.entries_mut()[place].is_opened = true;
        }
    }
    let asked = claim_gates.ask(flow, (&queue.tenant, &queue.name), &offered);
    Ok(Gate { share, gated, offered, waiting, asked, is_truncated })
}

/// The first due jobs that wait, of the right kinds, and whether there may be more.
fn waiting(
    store: &Inner,
    kinds: Option<&Kinds>,
    reading: &Reading<'_>,
    now: Timestamp,
) -> Result<(Vec<Offered>, bool), StoreError> {
    let mut offered = Vec::with_capacity(reading.due.len());
    let mut seen: BTreeMap<i64, (i64, Option<Place>, Place)> = BTreeMap::new();
    for row in &reading.due {
        let c = Columns::new(row);
        let place: Place = (c.get("due_at")?, c.get("id")?);
        let level = seen.entry(c.get("place")?).or_insert((0, None, place));
        (level.0, level.2) = (level.0 + 1, level.2.max(place));
        if kinds.is_none_or(|kinds| kinds.contains(c.text("kind").unwrap_or_default())) {
            level.1 = Some(level.1.map_or(place, |first| first.min(place)));
            offered.push(offered_in(row, reading.gated)?);
        }
    }
    let mut has_more = false;
    for (level, (_, first, last)) in seen.into_iter().filter(|(_, (count, ..))| *count >= reading.look) {
        has_more = true;
        if let Some(kinds) = kinds {
            let next = first.unwrap_or((last.0, last.1.saturating_add(1)));
            store.passed_over.advance(kinds, lane(reading.share, level), next, now);
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
    /// Queues whose gates stopped the claim, with how many jobs started before; and those that had too few to offer.
    stopped: Vec<(i64, Option<u32>)>,
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

/// What a claim writes besides the gates.
struct Writes {
    ids: Vec<i64>,
    /// What the jobs of each lease passed.
    passes: (Vec<i64>, Vec<String>),
    /// Jobs, and the gates that they are parked behind.
    parked: (Vec<i64>, Vec<i64>),
}

impl Writes {
    fn new(asked: &Asked<'_>, claim_gates: &ClaimGates, picks: &Picks) -> Result<Self, StoreError> {
        let row = |place: usize| {
            let row = claim_gates.entries()[place].row;
            row.ok_or_else(|| StoreError::corrupt("a gate", "a gate that is asked has a row"))
        };
        let leases = asked.leases(picks.ids.len());
        let mut passes: BTreeMap<i64, String> = BTreeMap::new();
        for (nth, started) in &picks.passed {
            let rows = started.gates.iter().map(|place| row(*place)).collect::<Result<Vec<i64>, _>>()?;
            let text = passes.entry(leases[*nth]).or_default();
            Passes::add(text, started.id, &Passed::new(rows.into_iter(), started.is_probe));
        }
        let behind: Vec<i64> = picks.parked.iter().map(|(_, place)| row(*place)).collect::<Result<_, _>>()?;
        let parked = (picks.parked.iter().map(|(id, _)| id.0).collect(), behind);
        Ok(Self { ids: picks.ids.clone(), passes: passes.into_iter().unzip(), parked })
    }

    /// Writes it, all at once. Returns the rows of the jobs that were taken.
    async fn send(&self, on: On<'_>, asked: &Asked<'_>, now: Timestamp) -> Result<Vec<Row>, StoreError> {
        let passes = async {
            if self.passes.0.is_empty() {
                return Ok(());
            }
            on.query(Sql::PassesPut, &[&self.passes.0, &self.passes.1]).await.map(drop)
        };
        let park = async {
            if self.parked.0.is_empty() {
                return Ok(());
            }
            on.query(Sql::Park, &[&self.parked.0, &self.parked.1]).await.map(drop)
        };
        let take = async {
            if self.ids.is_empty() {
                return Ok(Vec::new());
            }
            asked.take(on, now.as_millis(), &self.ids).await
        };
        let ((), (), rows) = try_join3(passes, park, take).await?;
        Ok(rows)
    }
}

/// When the next gate of these queues opens.
async fn next_opening(on: On<'_>, queues: &[Gate<'_>], now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let names: Vec<&str> = queues.iter().map(|gate| gate.gated.0.name.as_str()).collect();
    let tenants: Vec<&str> = queues.iter().map(|gate| gate.gated.0.tenant.as_str()).collect();
    let rows = on.query(Sql::GatesNext, &[&now.as_millis(), &names, &tenants]).await?;
    rows.first().map_or(Ok(None), |row| Columns::new(row).moment_if("opens_at"))
}

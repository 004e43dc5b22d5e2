//! Gated queues: claims that ask gates, parked jobs, and what the end of an attempt gives back.

use super::claim::{due_jobs, is_asked, late};
use super::state::{Place, State};
use crate::job::{Job, QueueId};
use crate::store::gates::{self, Admitted, ClaimGates, GateName, GateStatus, Offered, QueueFlow};
use crate::store::{Commit, Kinds, MAX_PARKED, ParkedJob, Parking, Queue, Scope, SettingKey, Share, in_force};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use windlass_core::gate::{Gate, Hold, destination};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::pick::{Candidate, Picker};
use windlass_core::{JobId, Timestamp};

/// The gates, what is parked behind them, and which running jobs passed them.
#[derive(Debug, Default)]
pub(super) struct GateState {
    gates: BTreeMap<GateName, Row>,
    parked: HashMap<JobId, (GateName, Place)>,
    behind: BTreeSet<(GateName, Place)>,
    passes: HashMap<JobId, Passed>,
    /// Jobs that a replay with a rate sent again, with the key of its gate, until they have finished.
    replayed: HashMap<JobId, Arc<str>>,
}

#[derive(Debug, Default)]
struct Row {
    gate: Gate,
    /// When a claim should look at what is parked behind it.
    opens_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Passed {
    gates: Vec<GateName>,
    is_probe: bool,
}

impl GateState {
    pub(super) fn is_probe(&self, id: JobId) -> bool {
        self.passes.get(&id).is_some_and(|passed| passed.is_probe)
    }

    pub(super) fn is_parked(&self, id: JobId) -> bool {
        self.parked.contains_key(&id)
    }

    /// A job that changes is no longer parked; the next claim asks its gates again.
    pub(super) fn unpark(&mut self, id: JobId) {
        if let Some(entry) = self.parked.remove(&id) {
            self.behind.remove(&entry);
        }
    }

    fn park(&mut self, id: JobId, name: GateName, place: Place) {
        self.unpark(id);
        self.behind.insert((name.clone(), place));
        self.parked.insert(id, (name, place));
    }

    fn has_parked(&self, name: &GateName) -> bool {
        self.behind(name).next().is_some()
    }

    fn behind(&self, name: &GateName) -> impl Iterator<Item = Place> {
        let first =
            (QueueId(i64::MIN), std::cmp::Reverse(windlass_core::Priority::Highest), Timestamp::EPOCH, JobId(0));
        self.behind.range((name.clone(), first)..).take_while(move |(of, _)| of == name).map(|(_, place)| *place)
    }

    /// A job was sent again: at the rate of this gate, or without one.
    pub(super) fn replayed(&mut self, id: JobId, key: Option<&Arc<str>>) {
        match key {
            Some(key) => self.replayed.insert(id, key.clone()),
            None => self.replayed.remove(&id),
        };
    }

    /// Looks at everything parked again: settings changed.
    pub(super) fn reopen(&mut self, now: Timestamp) {
        let names: Vec<GateName> = self.gates.keys().filter(|name| self.has_parked(name)).cloned().collect();
        for name in names {
            self.gates.entry(name).or_default().opens_at = Some(now);
        }
    }

    /// Forgets gates that hold nothing.
    pub(super) fn prune(&mut self, now: Timestamp) {
        let idle =
            |(name, row): (&GateName, &Row)| (row.gate.is_idle(now) && !self.has_parked(name)).then(|| name.clone());
        let idle: Vec<GateName> = self.gates.iter().filter_map(idle).collect();
        idle.iter().for_each(|name| drop(self.gates.remove(name)));
    }
}

/// The flow of a queue, and whether its gates must be asked.
pub(super) fn flow_of(state: &State, queue: &Queue) -> Option<QueueFlow> {
    let setting = |tenant: Option<&Tenant>| {
        let key = SettingKey::Queue { tenant: tenant.cloned(), name: queue.name.as_str().to_owned() };
        let named = state.settings.values().map(|named| &named.setting).filter(|setting| setting.key == key);
        in_force(named.cloned().collect()).pop().map(|(_, value)| value)
    };
    let flow = QueueFlow::read(setting(Some(&queue.tenant)).as_deref(), setting(None).as_deref());
    let is_of = |name: &GateName| name.queue == queue.name && name.tenant.as_ref().is_none_or(|t| *t == queue.tenant);
    let is_here = |id: &JobId| state.live.get(id).is_some_and(|job| job.queue_id == queue.id);
    let has_gates = state.gates.gates.keys().any(is_of) || state.gates.replayed.keys().any(is_here);
    match flow {
        Some(flow) if flow.is_gated() || has_gates => Some(flow),
        None if has_gates => Some(QueueFlow::default()),
        Some(_) | None => None,
    }
}

/// Takes the jobs of a gated queue that may start, and parks those that may not. Returns them, and when to look again.
pub(super) fn pick(
    state: &mut State,
    (share, queue, flow): (&Share, &Queue, &QueueFlow),
    kinds: Option<&Kinds>,
    picker: &mut Picker,
    now: Timestamp,
) -> (Vec<JobId>, Option<Timestamp>, Vec<Parking>) {
    picker.next_queue(share.slots, flow.ahead(share.ahead));
    let opened = opened(state, queue, now);
    let parked = opened.iter().flat_map(|name| state.gates.behind(name)).filter(|place| place.0 == queue.id);
    let ids: Vec<JobId> = parked.map(|place| place.3).chain(due_jobs(state, queue.id, now)).collect();
    let mut offered: Vec<Offered> = ids
        .iter()
        .map(|id| &state.live[id])
        .filter(|job| is_asked(job, kinds) && !late(job, now))
        .map(|job| offer(job, flow, &state.gates))
        .collect();
    offered.sort_by_key(Offered::order);
    let mut claim_gates = ClaimGates::default();
    for name in opened {
        let place = claim_gates.place(flow, name);
        claim_gates.entries_mut()[place].is_opened = true;
    }
    let asked = claim_gates.ask(flow, (&queue.tenant, &queue.name), &offered);
    for (entry, place) in claim_gates.entries_mut().iter_mut().zip(0..) {
        if let Some(row) = state.gates.gates.get(&entry.name) {
            entry.found(place, row.gate.clone());
        }
    }
    let admitted = gates::admit(&mut claim_gates, &offered, &asked, picker, now);
    let next = apply(state, queue, flow, &claim_gates, &admitted, now);
    (admitted.started.into_iter().map(|started| started.id).collect(), next, admitted.refusals)
}

fn apply(
    state: &mut State,
    queue: &Queue,
    flow: &QueueFlow,
    claim_gates: &ClaimGates,
    admitted: &Admitted,
    now: Timestamp,
) -> Option<Timestamp> {
    let name = |place: usize| claim_gates.entries()[place].name.clone();
    for (id, gate) in &admitted.parked {
        let place = super::state::place(&state.live[id]);
        state.waiting.remove(&place);
        state.gates.park(*id, name(*gate), place);
    }
    for started in &admitted.started {
        state.gates.unpark(started.id);
        let gates = started.gates.iter().map(|place| name(*place)).collect();
        state.gates.passes.insert(started.id, Passed { gates, is_probe: started.is_probe });
    }
    for entry in claim_gates.entries().iter().filter(|entry| entry.is_touched()) {
        state.gates.gates.entry(entry.name.clone()).or_default().gate = entry.gate.clone();
        note_opening(&mut state.gates, flow, &entry.name, now);
    }
    match admitted.stopped {
        Some(refusal) => refusal.until,
        None => {
            let later = next_opening(state, queue, now);
            [super::claim::next_due(state, queue.id, now), later].into_iter().flatten().min()
        }
    }
}

/// Gates of a queue whose parked jobs may start now.
fn opened(state: &State, queue: &Queue, now: Timestamp) -> Vec<GateName> {
    let is_open = |name: &GateName, row: &Row| is_of(name, queue) && row.opens_at.is_some_and(|at| at <= now);
    state.gates.gates.iter().filter(|(name, row)| is_open(name, row)).map(|(name, _)| name.clone()).collect()
}

fn next_opening(state: &State, queue: &Queue, now: Timestamp) -> Option<Timestamp> {
    let of_queue = state.gates.gates.iter().filter(|(name, _)| is_of(name, queue));
    of_queue.filter_map(|(_, row)| row.opens_at).filter(|at| *at > now).min()
}

fn is_of(name: &GateName, queue: &Queue) -> bool {
    if name.is_replay() {
        return true;
    }
    name.queue == queue.name && name.tenant.as_ref().is_none_or(|tenant| *tenant == queue.tenant)
}

/// Notes when to look at what is parked behind a gate.
fn note_opening(state: &mut GateState, flow: &QueueFlow, name: &GateName, now: Timestamp) {
    let has_parked = state.has_parked(name);
    if let Some(row) = state.gates.get_mut(name) {
        row.opens_at = if has_parked { gates::opens_at(name.scope(), &row.gate, &flow.rule(name), now) } else { None };
    }
}

fn offer(job: &Job, flow: &QueueFlow, gates: &GateState) -> Offered {
    let called = job.http.as_deref().and_then(|call| destination(&call.url));
    Offered {
        id: job.id,
        priority: job.priority,
        due_at: job.due_at,
        candidate: Candidate { delivery: job.delivery, is_suspect: job.crashes > 0 },
        is_retry: job.failures > 0,
        key: flow.key_of(&job.tenant, job.limit_key.as_deref(), called.as_deref()),
        replay: gates.replayed.get(&job.id).map(|key| GateName::replay(key)),
    }
}

/// An attempt has ended: what it used comes back, and its answer may hold its key.
pub(super) fn end(state: &mut State, job: &Job, commit: &Commit, now: Timestamp) {
    if commit.transition.next.is_finished() {
        state.gates.replayed(job.id, None);
    }
    let passed = state.gates.passes.remove(&job.id);
    if passed.is_none() && commit.hold.is_none() {
        return;
    }
    let Some(queue) = state.queues.iter().find(|queue| queue.id == job.queue_id).cloned() else { return };
    let flow = flow_of(state, &queue).unwrap_or_default();
    let mut touched = BTreeSet::new();
    if let Some(passed) = passed {
        for name in passed.gates {
            // A gate that is gone had nothing in use.
            if let Some(row) = state.gates.gates.get_mut(&name) {
                let rule = flow.rule(&name);
                gates::end(&mut row.gate, (name.scope(), &rule), (commit.ended, passed.is_probe), now);
                touched.insert(name);
            }
        }
    }
    if let Some((name, hold)) = gates::hold(&flow, (&queue.tenant, &queue.name, queue.executor), commit, now) {
        state.gates.gates.entry(name.clone()).or_default().gate.hold(hold);
        touched.insert(name);
    }
    for name in touched {
        note_opening(&mut state.gates, &flow, &name, now);
    }
}

pub(super) fn put_hold(state: &mut State, name: &GateName, hold: Option<&Hold>, now: Timestamp) -> bool {
    let was_held = state.gates.gates.get(name).is_some_and(|row| row.gate.held(now).is_some());
    match hold {
        Some(hold) => state.gates.gates.entry(name.clone()).or_default().gate.hold(hold.clone()),
        None => {
            if let Some(row) = state.gates.gates.get_mut(name) {
                row.gate.release(now);
            }
        }
    }
    if state.gates.has_parked(name)
        && let Some(row) = state.gates.gates.get_mut(name)
    {
        row.opens_at = Some(now);
    }
    was_held
}

pub(super) fn parked(state: &State, ids: &[JobId]) -> Vec<ParkedJob> {
    let parked = |id: &JobId| {
        let (name, _) = state.gates.parked.get(id)?;
        let gate = state.gates.gates.get(name).map(|row| row.gate.clone()).unwrap_or_default();
        Some(ParkedJob { job: *id, gate: name.clone(), state: gate })
    };
    ids.iter().filter_map(parked).collect()
}

pub(super) fn parked_before(state: &State, id: JobId) -> u64 {
    let Some((name, own)) = state.gates.parked.get(&id) else { return 0 };
    let is_before = |place: &Place| place.0 == own.0 && place < own;
    state.gates.behind(name).filter(is_before).take(MAX_PARKED as usize).count() as u64
}

pub(super) fn gates(
    state: &State,
    scope: &Scope,
    queue: Option<&QueueName>,
    limit: u32,
    now: Timestamp,
) -> Vec<GateStatus> {
    let is_meant = |name: &GateName, row: &Row| {
        let is_seen = name.tenant.as_ref().map_or(*scope == Scope::All, |tenant| scope.covers(tenant));
        is_seen && queue.map_or_else(|| gates::is_shut(&row.gate, now), |queue| name.queue == *queue)
    };
    let found = state.gates.gates.iter().filter(|(name, row)| is_meant(name, row)).take(limit as usize);
    let status = |(name, row): (&GateName, &Row)| GateStatus {
        name: name.clone(),
        rule: rule_of(state, name),
        gate: row.gate.clone(),
        parked: state.gates.behind(name).take(MAX_PARKED as usize).count() as u64,
    };
    found.map(status).collect()
}

fn rule_of(state: &State, name: &GateName) -> windlass_core::gate::GateRule {
    if name.is_replay() {
        return QueueFlow::default().rule(name);
    }
    let queue = state.queues.iter().find(|queue| is_of(name, queue));
    queue.and_then(|queue| flow_of(state, queue)).map(|flow| flow.rule(name)).unwrap_or_default()
}

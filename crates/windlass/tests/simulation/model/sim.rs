//! The simulation: nodes, a store, operators and faults in virtual time, one event after another. Everything follows
//! from the seed.

use crate::model::agenda::{Agenda, Event, Life};
use crate::model::node::{Alarm, Node};
use crate::model::swarm::{Spice, Swarm};
use crate::watch::store::Watched;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use windlass::Clock;
use windlass::Random;
use windlass::core::{JobId, Millis, Timestamp};
use windlass::low_level::stores::Store;
use windlass::testing::{FaultPlan, FaultRates, FaultyStore, StoreContact};

/// 2026-01-01T12:00:00Z
pub const START: Timestamp = Timestamp::from_millis(1_767_268_800_000);
/// How long everything may take to finish once nothing goes wrong any more.
const CALM_LIMIT: Millis = Millis::from_secs(4 * 3600);
/// More steps than any seed needs: a run that reaches them is in a loop.
const MAX_STEPS: u64 = 200_000;
/// Steps between two full checks.
const LOOK_EVERY: u64 = 64;
/// Lines of the trace that are kept.
const TRACE: usize = 80;

pub struct Sim {
    pub swarm: Swarm,
    pub random: Random,
    pub store: Arc<Watched>,
    pub operations: Arc<FaultyStore>,
    pub operator_plan: Arc<FaultPlan>,
    /// The store's clock, which may jump.
    pub clock: Clock,
    /// Real elapsed time, which nodes measure with.
    pub ticks: Clock,
    pub agenda: Agenda,
    pub nodes: Vec<Node>,
    pub is_calm: bool,
    /// When the last node died, or woke up after the storm.
    pub quiet_since: Timestamp,
    pub schedules: Vec<JobId>,
    /// How often each request was sent, and how often it was acknowledged with a new job.
    pub tags: BTreeMap<u64, Sent>,
    pub steps: u64,
    pub crashes: u64,
    trace: Option<Trace>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Sent {
    pub times: usize,
    pub acknowledged: usize,
}

/// What happened, to compare two runs and to show the last lines of a failed one.
#[derive(Debug, Default)]
struct Trace {
    hash: u64,
    lines: VecDeque<String>,
}

/// What a run came to.
#[derive(Debug, Default, Clone)]
pub struct Report {
    pub steps: u64,
    pub jobs: u64,
    pub crashes: u64,
    pub faults: u64,
    pub passed: Millis,
    pub counts: crate::watch::record::Counts,
    pub hash: u64,
    pub last_lines: Vec<String>,
    pub broken: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracing {
    On,
    Off,
}

impl Sim {
    /// A simulation over `inner`, whose clock must be `clock`.
    pub fn new(swarm: Swarm, inner: Arc<dyn Store>, tracing: Tracing) -> Self {
        let (clock, ticks) = (inner.clock().clone(), Clock::manual(START));
        let random = Random::seeded(swarm.seed);
        let store = Watched::new(inner, !swarm.may_cost_leases(), swarm.retention);
        store.record().limits = swarm.limits;
        let operator_plan = FaultPlan::new(Random::seeded(random.number()), swarm.rates);
        let operations = operator_plan.over(store.clone());
        let mut sim = Self {
            random,
            operations,
            operator_plan,
            clock,
            ticks,
            agenda: Agenda::default(),
            nodes: Vec::new(),
            is_calm: false,
            quiet_since: START,
            schedules: Vec::new(),
            tags: BTreeMap::new(),
            steps: 0,
            crashes: 0,
            trace: (tracing == Tracing::On).then(Trace::default),
            store,
            swarm,
        };
        for index in 0..sim.swarm.nodes {
            let node = sim.new_node(index);
            sim.nodes.push(node);
        }
        sim
    }

    fn new_node(&self, index: usize) -> Node {
        let rates = if self.is_calm { FaultRates::default() } else { self.swarm.rates };
        let plan = FaultPlan::new(Random::seeded(self.random.number()), rates);
        let store = plan.over(self.store.clone());
        Node {
            life: Life { node: index, epoch: 0 },
            is_up: false,
            is_draining: false,
            frozen_until: Millis::ZERO,
            worker: windlass::low_level::stores::WorkerId::new(&format!("node-{index}")),
            lock: None,
            store_contact: StoreContact::default(),
            plan,
            store,
            held: BTreeMap::new(),
            sent: Vec::new(),
            ending: Vec::new(),
            over: Vec::new(),
            is_claiming: false,
            next_fetch: Alarm::default(),
            next_renewal: Alarm::default(),
            troubles: 0,
            share: index,
        }
    }

    /// Storm, then calm: first everything may go wrong and nothing must break, then everything due must finish.
    pub async fn run(mut self) -> Report {
        self.begin().await;
        let storm_ends = self.swarm.storm;
        while self.broken().is_none() {
            let Some((at, event)) = self.agenda.next() else { break };
            if at >= storm_ends {
                self.agenda.plan(at, event);
                break;
            }
            self.happen(at, event).await;
        }
        self.calm_down().await;
        let limit = self.ticks.monotonic() + CALM_LIMIT;
        while self.broken().is_none() && self.store.record().live() > 0 {
            let Some((at, event)) = self.agenda.next() else { break };
            if at > limit {
                let live = self.unfinished();
                self.store.record().breaks(format!("not finished after {CALM_LIMIT} of calm: {live}"));
            }
            self.happen(at, event).await;
        }
        self.close().await
    }

    /// Ends the run: everything must add up.
    pub async fn close(self) -> Report {
        if self.broken().is_none() {
            self.store.look_at_records().await.expect("the store answers");
            self.check_tags();
        }
        self.report()
    }

    async fn happen(&mut self, at: Millis, event: Event) {
        self.steps += 1;
        let passed = at - self.ticks.monotonic();
        self.ticks.advance(passed);
        self.clock.advance(passed);
        if let Some(trace) = &mut self.trace {
            trace.add(format!("{at} {event:?}"));
        }
        self.step(event).await;
        if self.steps > MAX_STEPS {
            self.store.record().breaks(format!("{MAX_STEPS} steps without an end"));
        }
        if self.steps.is_multiple_of(LOOK_EVERY) {
            self.store.look_at_all().await.expect("the store answers");
            self.check_orphans();
        }
    }

    /// Adds a line to the trace.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.add(line());
        }
    }

    pub fn pick(&self, n: u64) -> u64 {
        self.random.number() % n.max(1)
    }

    /// Whether something that the seed switched on happens now, once in `n` times.
    pub fn strikes(&self, spice: Spice, n: u64) -> bool {
        !self.is_calm && self.swarm.has(spice) && self.pick(n) == 0
    }

    pub fn now(&self) -> Millis {
        self.ticks.monotonic()
    }

    pub fn plan_in(&mut self, span: Millis, event: Event) {
        self.agenda.plan(self.ticks.monotonic() + span, event);
    }

    pub fn fetch_in(&mut self, span: Millis, life: Life) {
        let at = self.now() + span;
        if let Some(number) = self.nodes[life.node].next_fetch.set(at) {
            self.agenda.plan(at, Event::Fetch(life, number));
        }
    }

    pub fn renew_in(&mut self, span: Millis, life: Life) {
        let at = self.now() + span;
        if let Some(number) = self.nodes[life.node].next_renewal.set(at) {
            self.agenda.plan(at, Event::Renew(life, number));
        }
    }

    pub fn broken(&self) -> Option<String> {
        self.store.record().broken.clone()
    }

    pub fn unfinished(&self) -> String {
        let record = self.store.record();
        let live = record.jobs.values().filter(|known| known.state.is_live());
        let reported = live.map(|k| format!("{} {} due {} under {:?}", k.id, k.state, k.due_at, k.open));
        reported.collect::<Vec<_>>().join(", ")
    }

    /// In the calm, a lease that has run out long ago must have been reaped: by a node whose contact with the store has
    /// been unbroken for long enough. (Poison jobs still kill nodes, which breaks contacts and leaves leases behind.)
    fn check_orphans(&self) {
        let (lease, now) = (self.swarm.lease, self.clock.now());
        let bound = lease + lease + Millis::from_secs(30);
        // In contact all the time, without a gap that is long compared with a lease.
        let could_reap = |node: &Node| {
            let spared = node.store_contact.spared(&self.ticks, Millis::ZERO);
            node.is_up && !spared.holds(bound) && !spared.holds(lease)
        };
        if !self.is_calm || now <= self.quiet_since + bound || !self.nodes.iter().any(could_reap) {
            return;
        }
        let mut record = self.store.record();
        let orphan = record.jobs.values().find(|known| {
            let ran_out = known.open.and_then(|id| record.leases.get(&id)).map(|l| l.expires_at);
            ran_out.is_some_and(|at| now.since(at) > bound)
        });
        if let Some(id) = orphan.map(|known| known.id) {
            record.breaks(format!("job {id} is still running under a lease that ran out more than {bound} ago"));
        }
    }

    /// As many jobs as were acknowledged for each request, and no more than were asked for.
    fn check_tags(&self) {
        let mut record = self.store.record();
        let mut stored: BTreeMap<u64, usize> = BTreeMap::new();
        for known in record.jobs.values().filter(|k| k.new.parent.is_none() && k.new.schedule.is_none()) {
            *stored.entry(crate::model::producer::tag(&known.new.payload)).or_default() += 1;
        }
        for (tag, sent) in &self.tags {
            let count = stored.remove(tag).unwrap_or(0);
            record.demand((sent.acknowledged..=sent.times).contains(&count), || {
                format!("request {tag}: {count} jobs, {sent:?}")
            });
        }
        record.demand(stored.is_empty(), || format!("jobs nobody asked for: {stored:?}"));
    }

    fn report(self) -> Report {
        let record = self.store.record();
        let trace = self.trace.unwrap_or_default();
        Report {
            steps: self.steps,
            jobs: record.jobs.len() as u64,
            crashes: self.crashes,
            faults: self.nodes.iter().map(|node| node.plan.injected()).sum::<u64>() + self.operator_plan.injected(),
            passed: self.clock.now().since(START),
            counts: record.counts,
            hash: trace.hash,
            last_lines: trace.lines.into(),
            broken: record.broken.clone(),
        }
    }
}

impl Trace {
    fn add(&mut self, line: String) {
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        if self.lines.len() == TRACE {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

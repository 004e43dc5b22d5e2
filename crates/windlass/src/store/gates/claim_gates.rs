//! The gates that a claim asks: what each enforces, its state, and what the claim does to it. Jobs name them by their
//! places, so that a claim of a thousand jobs looks up each name once.

use super::{GateName, Offered, QueueFlow};
use std::collections::HashMap;
use std::ops::Deref;
use windlass_core::Timestamp;
use windlass_core::gate::{Gate, GateRule, Pass, Refusal, Start};
use windlass_core::job::{QueueName, Tenant};

/// The most gates that one job asks: those of the queue of all tenants, of its own, of its key, and of a replay.
pub(crate) const MOST_GATES: usize = 4;

/// The places of the gates that a job asks, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Places {
    list: [usize; MOST_GATES],
    count: usize,
}

impl Places {
    fn push(&mut self, place: usize) {
        if let Some(free) = self.list.get_mut(self.count) {
            *free = place;
            self.count += 1;
        }
    }
}

impl Deref for Places {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.list[..self.count]
    }
}

/// One gate of a claim.
#[derive(Debug)]
pub(crate) struct Entry {
    pub name: GateName,
    pub rule: GateRule,
    pub gate: Gate,
    /// The number of its row, if it has one.
    pub row: Option<i64>,
    /// Whether its row is nothing but a number, which a start adds to.
    pub only_counts: bool,
    /// Whether its row was looked for.
    pub is_read: bool,
    /// How many of the started jobs its row counts already: this claim added it.
    pub counted: u32,
    /// How many jobs this claim starts.
    pub started: u32,
    /// Whether this claim parks jobs behind it.
    pub parks: bool,
    /// Whether this claim looks at the jobs parked behind it.
    pub is_opened: bool,
}

impl Entry {
    /// Whether the claim must write it.
    pub(crate) const fn is_touched(&self) -> bool {
        self.started > 0 || self.is_contended()
    }

    /// Whether jobs were or are parked behind it.
    pub(crate) const fn is_contended(&self) -> bool {
        self.parks || self.is_opened
    }

    /// Whether it is asked: it has a row, or begins to enforce something.
    const fn is_asked(&self) -> bool {
        self.row.is_some() || !self.rule.is_none()
    }

    /// Its row was added, with what was started.
    pub(crate) const fn added(&mut self, row: i64) {
        (self.row, self.counted) = (Some(row), self.started);
    }

    /// A row was found.
    pub(crate) fn found(&mut self, row: i64, gate: Gate) {
        self.only_counts = super::only_counts(&self.rule, &gate);
        (self.row, self.gate, self.is_read) = (Some(row), gate, true);
    }
}

/// The gates that a claim asks.
#[derive(Debug, Default)]
pub(crate) struct ClaimGates {
    entries: Vec<Entry>,
    places: HashMap<GateName, usize>,
}

impl ClaimGates {
    /// The gates that each of these jobs asks. Those that are new here have not been read yet.
    pub(crate) fn ask(
        &mut self,
        flow: &QueueFlow,
        (tenant, queue): (&Tenant, &QueueName),
        offered: &[Offered],
    ) -> Vec<Places> {
        let mut shared = Places::default();
        for name in flow.gates_of_queue(tenant, queue) {
            shared.push(self.place(flow, name));
        }
        let places = |job: &Offered| {
            let mut places = shared;
            places.push(self.place(flow, QueueFlow::gate_of_key(tenant, queue, job.key.as_ref())));
            if let Some(replay) = &job.replay {
                places.push(self.place(flow, replay.clone()));
            }
            places
        };
        offered.iter().map(places).collect()
    }

    /// The place of a gate, which may be new here.
    pub(crate) fn place(&mut self, flow: &QueueFlow, name: GateName) -> usize {
        if let Some(place) = self.places.get(&name) {
            return *place;
        }
        let (place, rule) = (self.entries.len(), flow.rule(&name));
        self.places.insert(name.clone(), place);
        self.entries.push(Entry {
            only_counts: rule.counts_only(),
            rule,
            name,
            gate: Gate::default(),
            row: None,
            is_read: false,
            counted: 0,
            started: 0,
            parks: false,
            is_opened: false,
        });
        place
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    /// Those of a job's gates that are asked.
    pub(super) fn asked(&self, places: &Places) -> Places {
        let mut asked = Places::default();
        places.iter().filter(|place| self.entries[**place].is_asked()).for_each(|place| asked.push(*place));
        asked
    }

    /// Asks every gate; a refusal consumes nothing. Returns whether the job would be a probe.
    pub(super) fn check(&self, places: &Places, start: Start, now: Timestamp) -> Result<bool, (usize, Refusal)> {
        let mut is_probe = false;
        for place in places.iter() {
            let entry = &self.entries[*place];
            let pass = entry.gate.check(&entry.rule, start, now).map_err(|refusal| (*place, refusal))?;
            is_probe |= pass.is_probe;
        }
        Ok(is_probe)
    }

    /// Records a start that every gate has agreed to.
    pub(super) fn start(&mut self, places: &Places, start: Start, is_probe: bool, now: Timestamp) {
        for place in places.iter() {
            let entry = &mut self.entries[*place];
            let pass = Pass { is_probe: is_probe && entry.name.is_of_key() };
            entry.gate.start(&entry.rule, start, pass, now);
            entry.started += 1;
        }
    }

    /// Notes that a job is parked behind a gate.
    pub(super) fn park(&mut self, place: usize) {
        self.entries[place].parks = true;
    }
}

/// What a store with several writers needs besides: it may have to lock gates and decide again.
#[cfg(feature = "postgres")]
impl ClaimGates {
    /// The place of a gate that is known here.
    pub(crate) fn find(&self, name: &GateName) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Whether every gate only counts what runs, so that starts can be added to its number without a look at its state.
    pub(crate) fn only_counts(&self) -> bool {
        self.entries.iter().filter(|entry| entry.is_asked()).all(|entry| entry.only_counts)
    }

    /// Forgets what the claim was going to do, so that it can decide again.
    pub(crate) fn undo(&mut self) {
        for entry in &mut self.entries {
            (entry.started, entry.parks) = (0, false);
        }
    }
}

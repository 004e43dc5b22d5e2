//! The agenda: what happens next, in virtual time. Things of the same moment happen in the order they were planned.

use crate::model::message::{Answer, Call};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use windlass::core::{JobId, Millis};
use windlass::low_level::job::NewJob;

/// One life of a node. Events planned by an earlier life do not reach the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub node: usize,
    pub epoch: u32,
}

/// An attempt that a node holds.
pub type Key = (JobId, u32);

#[derive(Debug)]
pub enum Event {
    Fetch(Life, u32),
    Renew(Life, u32),
    Upkeep(Life),
    SendOutcomes(Life),
    Finish(Life, Key),
    /// A call reaches the store, whether or not its sender still lives.
    Arrive(Life, Box<Call>, Reply),
    Answer(Life, Box<Answer>),
    Mishap(Mishap),
    Produce,
    Repeat(Vec<NewJob>),
    Operator,
}

/// What happens to nodes, the store and the clock.
#[derive(Debug, Clone, Copy)]
pub enum Mishap {
    Crash(usize),
    Restart(usize),
    Drain(usize),
    Freeze(usize),
    CutOff(usize),
    Rejoin(usize),
    OutageBegins,
    OutageEnds,
    ClockJumps,
}

/// Whether the sender of a call still waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Awaited,
    Ignored,
}

#[derive(Debug)]
struct Entry {
    at: Millis,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    /// The earliest is the greatest: it is taken first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

#[derive(Debug, Default)]
pub struct Agenda {
    entries: BinaryHeap<Entry>,
    planned: u64,
}

impl Agenda {
    pub fn plan(&mut self, at: Millis, event: Event) {
        self.planned += 1;
        self.entries.push(Entry { at, order: self.planned, event });
    }

    pub fn next(&mut self) -> Option<(Millis, Event)> {
        self.entries.pop().map(|entry| (entry.at, entry.event))
    }
}

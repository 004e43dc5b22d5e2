//! Picking: which due jobs a claim takes, and in what order. Pure.
//! A store offers the due jobs of each queue in order; the picker says which of them to take.

use crate::job::{Delivery, JobId, Priority};
use crate::time::Timestamp;
use std::cmp::Reverse;

/// The order of due jobs within a queue: higher priority first, then earlier due time, then insertion.
#[must_use]
pub const fn order(priority: Priority, due_at: Timestamp, id: JobId) -> (Reverse<Priority>, Timestamp, JobId) {
    (Reverse(priority), due_at, id)
}

/// The parts of a due job that picking depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// How often it may start.
    pub delivery: Delivery,
    /// Whether it has lost a worker before; it may have caused that.
    pub is_suspect: bool,
}

/// What to do with one due job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// It is claimed.
    Take,
    /// It stays; a later one may be taken.
    PassOver,
    /// The queue's share is used up: no later one is taken either.
    Full,
}

/// Picks the jobs of one claim, queue after queue.
#[derive(Debug, Clone)]
pub struct Picker {
    /// Jobs that the whole claim may still take.
    room: u32,
    /// Suspects that the whole claim may still take.
    suspects: u32,
    /// Free slots of the current queue.
    slots: u32,
    /// Jobs requested from the current queue, for slots and ahead.
    asked: u32,
    /// Jobs that may still be taken from the current queue.
    wanted: u32,
    taken: u32,
}

impl Picker {
    /// A claim of at most `limit` jobs, at most `suspects` of which have lost a worker before.
    #[must_use]
    pub const fn new(limit: u32, suspects: u32) -> Self {
        Self { room: limit, suspects, slots: 0, asked: 0, wanted: 0, taken: 0 }
    }

    /// Continues with the next queue: `slots` jobs can start at once, `ahead` more may wait for a slot.
    pub const fn next_queue(&mut self, slots: u32, ahead: u32) {
        self.slots = slots;
        self.asked = slots.saturating_add(ahead);
        self.wanted = if self.asked < self.room { self.asked } else { self.room };
        self.taken = 0;
    }

    /// What to do with the next due job of the queue.
    pub fn pick(&mut self, job: Candidate) -> Pick {
        if self.taken == self.wanted {
            return Pick::Full;
        }
        if self.most(job) == 0 {
            return Pick::PassOver;
        }
        self.suspects -= u32::from(job.is_suspect);
        self.taken += 1;
        self.room -= 1;
        Pick::Take
    }

    /// How many jobs like this one could still be taken from the queue if all others were skipped.
    #[must_use]
    pub fn most(&self, job: Candidate) -> u32 {
        let mut most = self.wanted - self.taken;
        if job.delivery == Delivery::AtMostOnce {
            // It must not wait for a slot: if the worker died meanwhile, its only attempt would be used up.
            most = most.min(self.slots.saturating_sub(self.taken));
        }
        if job.is_suspect {
            // A job that kills its process must not take other suspects with it.
            most = most.min(self.suspects);
        }
        most
    }

    /// Whether the next job taken from the queue can start at once.
    #[must_use]
    pub const fn has_slot(&self) -> bool {
        self.taken < self.slots
    }

    /// Whether the queue gave all the jobs that were requested.
    #[must_use]
    pub const fn is_filled(&self) -> bool {
        self.taken == self.asked
    }

    /// Whether nothing more can be taken from the queue.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.taken == self.wanted
    }
}

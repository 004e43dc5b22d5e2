//! Requests, answers and started attempts, recorded outside the system under test.

use crate::checks::leases::{Lease, Leases};
use crate::work::spec::Spec;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use windlass::low_level::clock::Stopwatch;

#[derive(Debug)]
pub struct History {
    watch: Stopwatch,
    tags: AtomicU64,
    acknowledged: AtomicU64,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
pub struct Record {
    /// Every job that was ever sent, by tag.
    pub sent: HashMap<u64, Spec>,
    /// The job id of each acknowledged tag.
    pub acknowledged: HashMap<u64, i64>,
    /// Attempts that began, by job, in the order in which they were seen.
    pub starts: HashMap<i64, Vec<Start>>,
    /// Attempts whose success was acknowledged with `ok`.
    pub completed: HashSet<(i64, u32)>,
    /// Webhooks that arrived: their bodies by id, and how often each arrived.
    pub hooks: HashMap<String, (HashSet<String>, u32)>,
    /// Cancels that were answered: when, and whether the job ended with it.
    pub cancels: HashMap<i64, (u64, Cancel)>,
    /// Replays that were answered.
    pub replays: HashMap<i64, Replays>,
    /// Queues that were purged.
    pub purges: u64,
    /// What remote workers held, and when.
    pub leases: Leases,
    /// Jobs whose worker was too slow without a fault.
    pub late: HashSet<i64>,
    /// Results that were refused.
    pub stale: u64,
    moment: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub attempt: u32,
    pub moment: u64,
}

/// Replays of one job that were answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replays {
    /// How many. A replay of a waiting job only makes it due.
    pub asked: u32,
    /// The highest number of replays that the server reported for the job.
    pub reported: u32,
}

/// The answer to a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// The job was waiting and has ended.
    Ended,
    /// The job was running and was asked to stop.
    Asked,
}

impl History {
    pub fn start() -> Self {
        let watch = Stopwatch::start();
        Self { watch, tags: AtomicU64::default(), acknowledged: AtomicU64::default(), record: Mutex::default() }
    }

    /// The time since the start.
    pub fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    /// The first of `count` new tags.
    pub fn new_tags(&self, count: u64) -> u64 {
        self.tags.fetch_add(count, Ordering::Relaxed)
    }

    pub fn sent(&self, specs: &[Spec]) {
        self.record().sent.extend(specs.iter().map(|spec| (spec.tag, *spec)));
    }

    /// Records that the server acknowledged these jobs.
    pub fn acknowledged(&self, stored: impl IntoIterator<Item = (u64, i64)>) {
        let mut record = self.record();
        for (tag, id) in stored {
            let before = record.acknowledged.insert(tag, id);
            assert!(before.is_none_or(|before| before == id), "tag {tag} was given {before:?} and then {id}");
            self.acknowledged.fetch_add(u64::from(before.is_none()), Ordering::Relaxed);
        }
    }

    pub fn count(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub fn started(&self, starts: impl IntoIterator<Item = (i64, u32)>) {
        let mut record = self.record();
        for (id, attempt) in starts {
            let moment = record.tick();
            record.starts.entry(id).or_default().push(Start { attempt, moment });
        }
    }

    /// A request sent at `asked` was answered with leases of these attempts, for `length`.
    pub fn leased(&self, attempts: impl IntoIterator<Item = (i64, u32)>, asked: Duration, length: Duration) {
        let from = self.now();
        let mut record = self.record();
        for (job, attempt) in attempts {
            record.leases.granted(job, Lease { attempt, asked, from, until: asked + length });
        }
    }

    pub fn hooked(&self, id: &str, body: &str) {
        let mut record = self.record();
        let (bodies, count) = record.hooks.entry(id.to_owned()).or_default();
        bodies.insert(body.to_owned());
        *count += 1;
    }

    pub fn cancelled(&self, id: i64, cancel: Cancel) {
        let mut record = self.record();
        let moment = record.tick();
        record.cancels.entry(id).or_insert((moment, cancel));
    }
}

impl Record {
    fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    pub fn start_count(&self) -> usize {
        self.starts.values().map(Vec::len).sum()
    }
}

//! The load: producers and remote workers that use a fleet until they are asked to stop and all jobs are done.

use crate::checks::history::History;
use crate::setup::fleet::Fleet;
use crate::tools::{asked, pause, progress};
use crate::work::producer::produce;
use crate::work::worker::{Habit, work};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// Producers wait while this many acknowledged jobs have not started. It is small in the short version, which ends
/// soon.
const BACKLOG: u64 = 500;
const PRODUCERS: u64 = 3;
const WORKERS: u64 = 3;

/// The state shared by all threads of a run.
#[derive(Debug)]
pub struct Shared {
    pub fleet: Fleet,
    pub history: Arc<History>,
    pub receiver: String,
    pub habit: Habit,
    backlog: u64,
    faults: Mutex<Faults>,
    producing: AtomicBool,
    working: AtomicBool,
}

impl Shared {
    pub fn new(fleet: Fleet, habit: Habit) -> Arc<Self> {
        let history = Arc::new(History::start());
        let receiver = crate::work::receiver::receive(history.clone());
        let (producing, working) = (AtomicBool::new(true), AtomicBool::new(true));
        let backlog = asked("BACKLOG", BACKLOG);
        Arc::new(Self { fleet, history, receiver, habit, backlog, faults: Mutex::default(), producing, working })
    }

    /// A fault is active while `during` runs.
    pub fn with_fault(&self, during: impl FnOnce()) {
        self.faults.lock().unwrap().now = Some(Stopwatch::start());
        during();
        let mut faults = self.faults.lock().unwrap();
        faults.before = faults.total();
        faults.now = None;
    }

    /// How long faults have been active in total.
    pub fn fault_time(&self) -> Duration {
        self.faults.lock().unwrap().total()
    }

    pub fn is_producing(&self) -> bool {
        self.producing.load(Ordering::Acquire)
    }

    pub fn is_working(&self) -> bool {
        self.working.load(Ordering::Acquire)
    }

    /// Whether producers should wait for the workers.
    pub fn is_full(&self) -> bool {
        self.history.count() > self.history.record().starts.len() as u64 + self.backlog
    }

    /// The number of unfinished jobs, or a very large number while no node can report it.
    fn left(&self, random: &Random) -> u64 {
        let Some(answer) = self.fleet.call(random, "GET", "/api/v1/queues", "") else { return u64::MAX - 1 };
        let queues = answer.json();
        let queues = queues["items"].as_array().cloned().unwrap_or_default();
        queues.iter().filter_map(|queue| queue["depth"].as_u64()).sum()
    }
}

/// When a fault was active.
#[derive(Debug, Default)]
struct Faults {
    before: Duration,
    now: Option<Stopwatch>,
}

impl Faults {
    fn total(&self) -> Duration {
        self.before + self.now.map_or(Duration::ZERO, |watch| watch.elapsed())
    }
}

/// The threads of a run.
#[derive(Debug)]
pub struct Load {
    pub shared: Arc<Shared>,
    producers: Vec<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let spawn = |number: u64, run: fn(&Shared, &Random, &str)| {
            let shared = shared.clone();
            std::thread::spawn(move || run(&shared, &Random::seeded(seed ^ (number << 32)), &format!("remote{number}")))
        };
        let producers = (1..=PRODUCERS).map(|n| spawn(n, |shared, random, _| produce(shared, random))).collect();
        let workers = (1..=WORKERS).map(|n| spawn(100 + n, work)).collect();
        Self { shared: shared.clone(), producers, workers }
    }

    /// Waits until this many jobs are acknowledged.
    pub fn wait_for(&self, count: u64) {
        progress("jobs are acknowledged", || {
            self.check_threads();
            count.saturating_sub(self.shared.history.count())
        });
    }

    /// Waits until this many more jobs are acknowledged, which shows that the fleet has recovered.
    pub fn wait_for_more(&self, count: u64) {
        self.wait_for(self.shared.history.count() + count);
    }

    /// Fails the test at once if a thread has failed.
    pub fn check_threads(&self) {
        let is_over = |thread: &JoinHandle<()>| thread.is_finished();
        assert!(!self.producers.iter().any(is_over), "a producer failed");
        assert!(!self.workers.iter().any(is_over), "a worker failed");
    }

    /// Stops the producers, waits until every job has finished, and then stops the workers.
    pub fn drain(mut self, random: &Random) {
        self.shared.producing.store(false, Ordering::Release);
        self.producers.drain(..).for_each(|producer| producer.join().expect("a producer failed"));
        progress("all jobs finish", || {
            pause(Duration::from_millis(50));
            self.shared.left(random)
        });
        self.shared.working.store(false, Ordering::Release);
        self.workers.drain(..).for_each(|worker| worker.join().expect("a worker failed"));
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.producing.store(false, Ordering::Release);
        self.shared.working.store(false, Ordering::Release);
    }
}

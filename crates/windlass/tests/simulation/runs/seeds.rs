//! Running seeds: many on the reference model, some twice, a few on the real stores.

use crate::model::sim::{Report, START, Sim, Tracing};
use crate::model::swarm::Swarm;
use futures_util::FutureExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windlass::Random;
use windlass::low_level::clock::{Clock, Stopwatch};
use windlass::low_level::stores::memory::MemoryStore;
use windlass::low_level::stores::{Options, Store};

/// Seeds of an ordinary run of the tests.
const SEEDS: u64 = 2000;
/// Seeds on a real store.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const STORE_SEEDS: u64 = 20;
/// Seeds that are run twice.
const TWICE: u64 = 50;

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

pub fn options(seed: u64) -> Options {
    Options { clock: Clock::manual(START), random: Random::seeded(seed), ..Options::default() }
}

/// One seed on the reference model.
fn in_memory(seed: u64, tracing: Tracing) -> Report {
    on_model(seed, MemoryStore::new(options(seed)), tracing)
}

/// One seed on a store that never waits. A panic anywhere is a broken promise too.
pub fn on_model(seed: u64, store: Arc<dyn Store>, tracing: Tracing) -> Report {
    let run = || {
        let sim = Sim::new(Swarm::new(seed), store, tracing);
        sim.run().now_or_never().expect("the model never waits")
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Report { broken: Some(format!("panic: {}", text.unwrap_or_default())), ..Report::default() }
    })
}

/// Prints the details of a seed that broke a promise, and fails.
fn fail(seed: u64, promise: &str) -> ! {
    let again = in_memory(seed, Tracing::On);
    for line in &again.last_lines {
        println!("{line}");
    }
    let is_same = again.broken.as_deref() == Some(promise);
    println!("replays exactly: {is_same}\n{:#?}", Swarm::new(seed));
    panic!(
        "seed {seed} breaks a promise: {promise}\nreplay it: WINDLASS_SEED={seed} cargo test -p windlass --test simulation"
    );
}

#[derive(Default)]
struct Sum {
    seeds: AtomicU64,
    steps: AtomicU64,
    jobs: AtomicU64,
    starts: AtomicU64,
    crashes: AtomicU64,
    lost: AtomicU64,
    stale: AtomicU64,
    repeated: AtomicU64,
    faults: AtomicU64,
    operations: AtomicU64,
    firings: AtomicU64,
    seconds: AtomicU64,
}

impl Sum {
    fn add(&self, report: &Report) {
        let counts = report.counts;
        let pairs = [
            (&self.seeds, 1),
            (&self.steps, report.steps),
            (&self.jobs, report.jobs),
            (&self.starts, counts.starts),
            (&self.crashes, report.crashes),
            (&self.lost, counts.lost),
            (&self.stale, counts.stale),
            (&self.repeated, counts.repeated),
            (&self.faults, report.faults),
            (&self.operations, counts.operations),
            (&self.firings, counts.firings),
            (&self.seconds, report.passed.get() / 1000),
        ];
        for (sum, value) in pairs {
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }

    fn print(&self, watch: &Stopwatch) {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        println!(
            "{} seeds, {} steps, {} jobs, {} starts, {} crashes, {} attempts lost, {} stale and {} repeated commits, \
             {} faults of the store, {} operations, {} firings, {} hours of virtual time, in {:.1} s",
            get(&self.seeds),
            get(&self.steps),
            get(&self.jobs),
            get(&self.starts),
            get(&self.crashes),
            get(&self.lost),
            get(&self.stale),
            get(&self.repeated),
            get(&self.faults),
            get(&self.operations),
            get(&self.firings),
            get(&self.seconds) / 3600,
            watch.elapsed().as_secs_f64(),
        );
    }
}

#[test]
fn whatever_goes_wrong_no_promise_is_broken() {
    if let Some(seed) = number("WINDLASS_SEED") {
        let report = in_memory(seed, Tracing::On);
        report.last_lines.iter().for_each(|line| println!("{line}"));
        println!("{:#?}\n{} steps, trace {:016x}", Swarm::new(seed), report.steps, report.hash);
        assert_eq!(report.broken, None, "seed {seed} breaks a promise");
        return;
    }
    let (count, first) = (number("WINDLASS_SEEDS").unwrap_or(SEEDS), number("WINDLASS_FIRST_SEED").unwrap_or(0));
    let (sum, watch) = (Sum::default(), Stopwatch::start());
    let (next, stop) = (AtomicU64::new(first), AtomicBool::new(false));
    let worker = || -> Option<(u64, String)> {
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return None;
            }
            let report = in_memory(seed, Tracing::Off);
            sum.add(&report);
            if let Some(broken) = report.broken {
                stop.store(true, Ordering::Relaxed);
                return Some((seed, broken));
            }
        }
        None
    };
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let found = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let found = running.into_iter().filter_map(|thread| thread.join().expect("panics are caught"));
        found.min()
    });
    sum.print(&watch);
    if let Some((seed, promise)) = found {
        fail(seed, &promise);
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..TWICE {
        let (one, two) = (in_memory(seed, Tracing::On), in_memory(seed, Tracing::On));
        assert_eq!((one.hash, one.steps), (two.hash, two.steps), "seed {seed} had two different runs");
        assert_ne!(one.hash, 0);
    }
}

/// The same sequences on a real store. What it answers may differ in ids, and with them the sequence; no promise may.
async fn on_a_real_store(open: impl AsyncFn(Options) -> Arc<dyn Store>, seeds: u64) {
    let first = number("WINDLASS_SEED").or(number("WINDLASS_FIRST_SEED")).unwrap_or(0);
    for seed in first..first + seeds {
        let sim = Sim::new(Swarm::new(seed), open(options(seed)).await, Tracing::On);
        let report = sim.run().await;
        if let Some(broken) = report.broken {
            report.last_lines.iter().for_each(|line| println!("{line}"));
            panic!("seed {seed} breaks a promise: {broken}\n{:#?}", Swarm::new(seed));
        }
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_keeps_the_promises_too() {
    use windlass::low_level::stores::sqlite::SqliteStore;
    let home = tempfile::tempdir().unwrap();
    let made = AtomicU64::new(0);
    let open = async |options: Options| {
        let name = format!("{}.db", made.fetch_add(1, Ordering::Relaxed));
        let path = home.path().join(name).to_str().unwrap().to_owned();
        SqliteStore::open(&path, options).await.unwrap() as Arc<dyn Store>
    };
    on_a_real_store(open, number("WINDLASS_STORE_SEEDS").unwrap_or(STORE_SEEDS)).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_keeps_the_promises_too() {
    use windlass::low_level::stores::postgres::PostgresStore;
    let url = std::env::var("WINDLASS_TEST_POSTGRES").expect(
        "this test needs a Postgres server: run it with scripts/test or `scripts/with-postgres cargo test …`, \
         or set WINDLASS_TEST_POSTGRES to the URL of a database it may create schemas in",
    );
    // One schema for each seed, all of one random name.
    let name = format!("simulation_{:016x}", Random::system().number());
    let made = AtomicU64::new(0);
    let open = async |options: Options| {
        let schema = format!("{name}_{}", made.fetch_add(1, Ordering::Relaxed));
        let options = Options { schema, connections: 2, ..options };
        PostgresStore::open(&url, options).await.unwrap() as Arc<dyn Store>
    };
    on_a_real_store(open, number("WINDLASS_STORE_SEEDS").unwrap_or(STORE_SEEDS / 2)).await;
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    for number in 0..made.into_inner() {
        // A schema that is left over harms nobody: the next run uses another name.
        let _ = client.batch_execute(&format!("SET lock_timeout = '5s'; DROP SCHEMA {name}_{number} CASCADE")).await;
    }
    drop(client);
    connection.await.unwrap().unwrap();
}

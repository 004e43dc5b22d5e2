//! A store with a clock that the test moves, and helpers for the workers on it. Virtual time and the real store stay in
//! step: time moves only when no process waits for the store, so a slow machine changes nothing but the duration.

use std::any::Any;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::Clock;
use windlass::Job;
use windlass::Random;
use windlass::low_level::event::Event;
use windlass::low_level::stores::{Options, Reap, Scope, Spared, Store};
use windlass::testing::{Fault, FaultyStore, START};
use windlass::{EventKind, JobId, Millis, Windlass, Worker, WorkerError};

/// Real time after which a test that waits for something has failed. It only ends hangs: no test may depend on it.
const HANG: Duration = Duration::from_secs(180);

/// How long a worker's lease lasts unless it says otherwise.
pub(crate) const LEASE: Millis = Millis::from_secs(30);
/// Time passes in steps that no part of a worker sleeps through.
const STEP: Millis = Millis::from_secs(1);
/// After so many yields in a row without a call to the store, every task waits for the clock.
const QUIET_YIELDS: u32 = 200;

pub(crate) struct World {
    pub(crate) windlass: Windlass,
    pub(crate) faults: Arc<FaultyStore>,
    pub(crate) clock: Clock,
    /// The store without faults.
    inner: Arc<dyn Store>,
    processes: Processes,
    events: Receiver<Event>,
    _home: Box<dyn Any + Send + Sync>,
}

/// The stores, with faults, of all processes of a test.
type Processes = Arc<Mutex<Vec<Arc<FaultyStore>>>>;

impl World {
    #[cfg(feature = "sqlite")]
    pub(crate) async fn sqlite() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = home.path().join("jobs.db");
        let options = Self::options();
        let random = options.random.clone();
        let path = path.to_str().expect("the path is text");
        let store =
            windlass::low_level::stores::sqlite::SqliteStore::open(path, options).await.expect("the store opens");
        Self::new(store, random, home)
    }

    /// A world in a schema of its own, of the server that WINDLASS_TEST_POSTGRES names.
    #[cfg(feature = "postgres")]
    pub(crate) async fn postgres() -> Self {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect(
            "these tests need a Postgres server: run them with scripts/test or `scripts/with-postgres cargo test …`, \
             or set WINDLASS_TEST_POSTGRES to the URL of a database they may create schemas in",
        );
        let schema = format!("worker_{:016x}", Random::system().number());
        let options = Options { schema: schema.clone(), connections: 4, ..Self::options() };
        let random = options.random.clone();
        let store =
            windlass::low_level::stores::postgres::PostgresStore::open(&url, options).await.expect("the store opens");
        Self::new(store, random, Schema { url, name: schema })
    }

    /// A world whose store lives as long as `home`.
    pub(crate) fn new(inner: Arc<dyn Store>, random: Random, home: impl Any + Send + Sync) -> Self {
        Self::process(inner, random, Processes::default(), home)
    }

    fn process(inner: Arc<dyn Store>, random: Random, processes: Processes, home: impl Any + Send + Sync) -> Self {
        let clock = inner.clock().clone();
        let faults = FaultyStore::new(inner.clone());
        processes.lock().unwrap().push(faults.clone());
        let windlass = Windlass::with_random(faults.clone(), random);
        let events = windlass.events().subscribe();
        Self { windlass, faults, clock, inner, processes, events, _home: Box::new(home) }
    }

    /// Another process on the same store.
    pub(crate) fn other_process(&self) -> Self {
        Self::process(self.inner.clone(), Random::seeded(8), self.processes.clone(), ())
    }

    /// A process that no wake-up reaches.
    pub(crate) fn without_wake_ups(&self) -> Self {
        let other = self.other_process();
        other.faults.lose_wake_ups();
        other
    }

    /// As if this process had been killed: nothing it does reaches the store any more.
    pub(crate) async fn kill(self, worker: Started) {
        self.faults.always(Fault::Unavailable);
        worker.task.abort();
        let ended = within(worker.task, "the worker's end").await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the worker was killed");
    }

    pub(crate) fn options() -> Options {
        crate::lines::keep_lines();
        Options { clock: Clock::manual(START), random: Random::seeded(7), ..Options::default() }
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker::new(&self.windlass)
    }

    pub(crate) fn start(&self, worker: Worker) -> Started {
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run(async { drop(stopped.await) }));
        Started { stop: Some(stop), task }
    }

    /// The next event of a job that `is_it` recognises.
    pub(crate) async fn event(&mut self, job: JobId, is_it: impl Fn(&EventKind) -> bool) -> Event {
        let found = async {
            loop {
                let event = self.events.recv().await.expect("the event stream stays open");
                if event.job == job && is_it(&event.event_kind) {
                    return event;
                }
            }
        };
        within(found, "an event").await
    }

    /// Waits for the job's next retry and lets its backoff pass. Returns the delay.
    pub(crate) async fn pass_retry(&mut self, job: JobId) -> Millis {
        let event = self.event(job, |what| matches!(what, EventKind::Retried { .. })).await;
        let EventKind::Retried { delay, .. } = event.event_kind else { unreachable!("the event is a retry") };
        self.advance(delay).await;
        delay
    }

    /// Lets time pass in small steps. After each step, everything that waited for it runs.
    pub(crate) async fn pass(&self, span: Millis) {
        let end = self.clock.now() + span;
        while self.clock.now() < end {
            self.step().await;
        }
    }

    async fn step(&self) {
        self.advance(STEP).await;
    }

    /// Moves the clock once. Every process is idle before the step, and idle again after it.
    pub(crate) async fn advance(&self, span: Millis) {
        self.quiet().await;
        self.clock.advance(span);
        self.quiet().await;
    }

    /// Waits, while the clock stands still, until no process has anything to do but wait for it: no call is on its way
    /// to the store, and on one thread nobody else is left to act after so many yields.
    pub(crate) async fn quiet(&self) {
        let resting = async {
            let mut yields = 0;
            while yields < QUIET_YIELDS {
                tokio::task::yield_now().await;
                yields = if self.in_flight() == 0 { yields + 1 } else { 0 };
            }
        };
        within(resting, "a quiet moment").await;
    }

    /// Calls to the store that wait for their answer, of all processes.
    fn in_flight(&self) -> usize {
        self.processes.lock().unwrap().iter().map(|faults| faults.in_flight()).sum()
    }

    /// Waits, while the clock stands still, until `is_so`.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let waiting = async {
            while !is_so().await {
                tokio::task::yield_now().await;
            }
        };
        within(waiting, what).await;
    }

    /// Lets time pass until the job has finished.
    pub(crate) async fn pass_until_finished(&self, id: JobId) {
        let passing = async {
            while self
                .inner
                .job(&Scope::All, id)
                .await
                .expect("the store answers")
                .is_some_and(|job| job.state.is_live())
            {
                self.step().await;
            }
        };
        within(passing, "a job's end").await;
    }

    /// Lets time pass until the worker has stopped.
    pub(crate) async fn pass_until_stopped(&self, worker: Started) {
        let passing = async {
            while !worker.task.is_finished() {
                self.step().await;
            }
        };
        within(passing, "the worker's end").await;
        worker.stopped().await.expect("the worker stops in order");
    }

    /// As if another node, long in contact with the store, had found the leases that ran out.
    pub(crate) async fn reap_expired(&self) {
        self.quiet().await;
        self.clock.advance(LEASE);
        let reaped = self.inner.reap(Reap::Expired { spared: Spared::none() }, 100).await.expect("the store answers");
        assert!(!reaped.is_empty(), "no lease had run out");
    }

    pub(crate) async fn finished(&self, job: JobId) -> Job {
        within(self.windlass.wait(job), "a job's end").await.expect("the store answers").expect("the job is kept")
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.windlass.jobs().get(id).await.expect("the store answers").expect("there is such a job")
    }
}

/// A schema that is dropped when its test ends.
#[cfg(feature = "postgres")]
struct Schema {
    url: String,
    name: String,
}

#[cfg(feature = "postgres")]
impl Drop for Schema {
    fn drop(&mut self) {
        let (url, name) = (self.url.clone(), self.name.clone());
        // A thread and runtime of its own: the test's runtime may be ending. A schema left over harms nobody.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let Ok((client, connection)) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await else {
                    return;
                };
                let connection = tokio::spawn(connection);
                let _ = client.batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await;
                connection.abort();
            });
        });
        let _ = dropping.join();
    }
}

/// A running worker.
pub(crate) struct Started {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl Started {
    /// Asks the worker to stop, without waiting for it.
    pub(crate) fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn stop(mut self) {
        self.ask_to_stop();
        self.stopped().await.expect("the worker stops in order");
    }

    pub(crate) async fn stopped(self) -> Result<(), WorkerError> {
        within(self.task, "the worker's end").await.expect("the worker does not panic")
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>, what: &str) -> T {
    let Ok(done) = tokio::time::timeout(HANG, future).await else { panic!("waited too long for {what}") };
    done
}

/// Runs a scenario on every store.
macro_rules! scenario {
    ($(async fn $name:ident($world:ident: World) $body:block)+) => {
        $(async fn $name(mut $world: World) {
            let _ = &mut $world;
            $body
        })+

        mod memory {
            $(#[tokio::test]
            async fn $name() {
                let options = $crate::world::World::options();
                let random = options.random.clone();
                let store = windlass::low_level::stores::memory::MemoryStore::new(options);
                super::$name($crate::world::World::new(store, random, ())).await;
            })+
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::world::World::postgres().await).await;
            })+
        }

        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::world::World::sqlite().await).await;
            })+
        }
    };
}
pub(crate) use scenario;

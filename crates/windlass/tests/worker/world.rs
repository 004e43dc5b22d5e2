//! A store with a clock that the test turns, and the words to speak about what a worker does with it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::clock::Clock;
use windlass::dice::Dice;
use windlass::event::Event;
use windlass::job::Job;
use windlass::store::{Options, Store};
use windlass::testing::{FaultyStore, START};
use windlass::{JobId, Millis, What, Windlass, Worker, WorkerError};

/// Real time after which a test that waits for something is given up: a hang must not look like patience.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) windlass: Windlass,
    pub(crate) faults: Arc<FaultyStore>,
    pub(crate) clock: Clock,
    events: Receiver<Event>,
}

impl World {
    pub(crate) fn new(inner: Arc<dyn Store>, dice: Dice) -> Self {
        let clock = inner.clock().clone();
        let faults = FaultyStore::new(inner);
        let windlass = Windlass::with_dice(faults.clone(), dice);
        let events = windlass.events().subscribe();
        Self { windlass, faults, clock, events }
    }

    pub(crate) fn options() -> Options {
        Options { clock: Clock::manual(START), dice: Dice::seeded(7), ..Options::default() }
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
    pub(crate) async fn event(&mut self, job: JobId, is_it: impl Fn(&What) -> bool) -> Event {
        let found = async {
            loop {
                let event = self.events.recv().await.expect("the events go on");
                if event.job == job && is_it(&event.what) {
                    return event;
                }
            }
        };
        within(found, "an event").await
    }

    /// Waits for the job's next retry and lets its backoff pass. Answers the delay.
    pub(crate) async fn pass_retry(&mut self, job: JobId) -> Millis {
        let event = self.event(job, |what| matches!(what, What::Retried { .. })).await;
        let What::Retried { delay, .. } = event.what else { unreachable!("the event is a retry") };
        self.clock.advance(delay);
        delay
    }

    pub(crate) async fn finished(&self, job: JobId) -> Job {
        within(self.windlass.wait(job), "a job's end").await.expect("the store answers").expect("the job is kept")
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.windlass.job(id).await.expect("the store answers").expect("there is such a job")
    }
}

/// A worker under way.
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

    /// As if the process had died: nothing is given back.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>, what: &str) -> T {
    let Ok(done) = tokio::time::timeout(PATIENCE, future).await else { panic!("waited too long for {what}") };
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
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let options = $crate::world::World::options();
                let dice = options.dice.clone();
                let store = windlass::store::memory::MemoryStore::new(options);
                super::$name($crate::world::World::new(store, dice)).await;
            })+
        }
    };
}
pub(crate) use scenario;

//! A store whose clock the test sets, a handler that does what its job says, and calls that may reach loopback.

use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;
use windlass::Clock;
use windlass::Job;
use windlass::Random;
use windlass::alert::Alerts;
use windlass::client::WebhookDraft;
use windlass::core::policy::Partial;
use windlass::http::{Egress, HttpExecutor, HttpOptions};
use windlass::low_level::stores::memory::MemoryStore;
use windlass::low_level::stores::sqlite::SqliteStore;
use windlass::low_level::stores::{JobFilter, Options, Order, Page, Scope, Store};
use windlass::testing::{START, TestKit};
use windlass::{Attempt, Failure, JobId, JobKind, Millis, State, Windlass};

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Succeeds, or fails every time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Do {
    Succeed,
    Fail,
}

impl JobKind for Do {
    const KIND: &'static str = "do";
}

pub(crate) async fn act(job: Do, _: Attempt) -> Result<(), Failure> {
    match job {
        Do::Succeed => Ok(()),
        Do::Fail => Err(Failure::new("failed on request")),
    }
}

pub(crate) struct World {
    pub(crate) kit: TestKit,
    pub(crate) clock: Clock,
    /// What must live as long as the store.
    _home: Box<dyn Any + Send + Sync>,
}

pub(crate) fn options() -> Options {
    Options { clock: Clock::manual(START), random: Random::seeded(7), ..Options::default() }
}

pub(crate) fn caller(clock: &Clock) -> HttpExecutor {
    HttpExecutor::new(HttpOptions { egress: Egress::AllowPrivate, ..HttpOptions::default() }, clock.clone())
}

impl World {
    pub(crate) fn memory() -> Self {
        Self::new(MemoryStore::new(options()), Box::new(()))
    }

    pub(crate) async fn sqlite() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("jobs.db");
        let store = SqliteStore::open(path.to_str().unwrap(), options()).await.unwrap();
        Self::new(store, Box::new(home))
    }

    pub(crate) fn new(store: Arc<dyn Store>, home: Box<dyn Any + Send + Sync>) -> Self {
        let clock = store.clock().clone();
        let kit = TestKit::with_store(store, Random::seeded(7)).handle(act).http(caller(&clock));
        Self { kit, clock, _home: home }
    }

    pub(crate) fn alerts(mut self, alerts: Alerts) -> Self {
        self.kit = self.kit.alerts(alerts);
        self
    }

    pub(crate) fn windlass(&self) -> &Windlass {
        self.kit.windlass()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &**self.windlass().store()
    }

    /// Stores a job with a signed webhook about everything.
    pub(crate) async fn enqueue(&self, job: Do, url: &str) -> JobId {
        let webhook = WebhookDraft {
            url: url.into(),
            events: vec![State::Succeeded, State::Failed, State::Cancelled],
            secret: Some(SECRET.into()),
            policy: Partial::default(),
        };
        self.windlass().enqueue(job).retry("stepped").webhook_with(webhook).await.unwrap()
    }

    pub(crate) async fn list(&self, filter: JobFilter) -> Vec<Job> {
        let page = Page { after: None, limit: 10_000, order: Order::OldestFirst };
        self.store().jobs(&Scope::All, &filter, page).await.unwrap()
    }

    /// The deliveries that report a job.
    pub(crate) async fn deliveries(&self, of: JobId) -> Vec<Job> {
        self.list(JobFilter { parent: Some(of), ..JobFilter::default() }).await
    }

    pub(crate) async fn dead_letters(&self) -> Vec<Job> {
        self.list(JobFilter { dead_letters: true, ..JobFilter::default() }).await
    }

    /// The delays between a job's attempts.
    pub(crate) async fn delays(&self, id: JobId) -> Vec<Millis> {
        self.kit.history(id).await.iter().filter_map(|line| line.delay).collect()
    }
}

/// Runs a scenario on every store.
macro_rules! scenario {
    ($(async fn $name:ident($world:ident: World) $body:block)+) => {
        $(async fn $name($world: $crate::world::World) $body)+

        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::world::World::memory()).await;
            })+
        }

        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::world::World::sqlite().await).await;
            })+
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::world::World::postgres().await).await;
            })+
        }
    };
}
pub(crate) use scenario;

/// Minutes of virtual time.
pub(crate) const fn minutes(n: u64) -> Millis {
    Millis::from_secs(60 * n)
}

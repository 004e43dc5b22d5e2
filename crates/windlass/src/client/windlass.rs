//! The client: a store, its clock and its events. `enqueue` stores jobs, `worker` runs them.

use crate::client::catalogue::Catalogue;
use crate::client::retry::Retry;
use crate::clock::Clock;
use crate::event::{AttemptLog, Events, Reporter};
use crate::leases::store_contact::StoreContact;
use crate::random::Random;
use crate::store::memory::MemoryStore;
use crate::store::{Options, SettingKey, Spared, Store, StoreError};
use crate::worker::HeldLeases;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use windlass_core::{Millis, PolicyError};

/// How old a snapshot of the settings may be when a job is completed from it.
const CATALOGUE_AGE: Millis = Millis::from_secs(1);
/// The actor in the audit, unless a caller sets another name.
pub(super) const BY_LIBRARY: &str = "library";

/// Durable jobs. Cheap to clone; all clones share one store.
#[derive(Debug, Clone)]
pub struct Windlass(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    backend: Backend,
    random: Random,
    events: Events,
    store_contact: StoreContact,
    catalogue: Mutex<Option<Snapshot>>,
    /// The default policy of this program's jobs.
    default_policy: OnceLock<Retry>,
    /// The jobs that workers of this process hold, so that a cancel reaches their handlers at once.
    held_leases: Mutex<Vec<Weak<HeldLeases>>>,
}

/// The kind of store, for features that only one kind has, such as joining a caller's transaction.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    #[cfg(feature = "sqlite")]
    Sqlite(Arc<crate::store::sqlite::SqliteStore>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<crate::store::postgres::PostgresStore>),
    Other,
}

#[derive(Debug, Clone)]
struct Snapshot {
    catalogue: Arc<Catalogue>,
    read_at: Millis,
}

/// Why a store could not be opened.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no known kind of store.
    #[error("`{0}` is not a store; write sqlite:PATH, postgres://… or memory:")]
    Url(String),
    /// The store is of a kind that this program was built without.
    #[error("`{0}` needs the feature `{1}`, which this program was built without")]
    Feature(String, &'static str),
    /// The default policy cannot be read.
    #[error("the default policy is wrong: {0}")]
    Policy(PolicyError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PolicyError> for OpenError {
    fn from(error: PolicyError) -> Self {
        Self::Policy(error)
    }
}

impl Windlass {
    /// Opens a store by its URL: `sqlite:jobs.db`, `postgres://…`, or `memory:` (which ends with the process).
    ///
    /// # Errors
    /// The URL names no store, this program was built without that store, or the store cannot be used.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, Options::default()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Windlass::open`].
    pub async fn open_with(url: &str, options: Options) -> Result<Self, OpenError> {
        let random = options.random.clone();
        if url == "memory:" {
            return Ok(Self::with_random(MemoryStore::new(options), random));
        }
        if let Some(path) = url.strip_prefix("sqlite:") {
            return Self::open_sqlite(path, options, random).await;
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Self::open_postgres(url, options, random).await;
        }
        // A URL may contain a password, so only its beginning is shown.
        Err(OpenError::Url(url.chars().take_while(|c| *c != '/').take(20).collect()))
    }

    #[cfg(feature = "sqlite")]
    async fn open_sqlite(path: &str, options: Options, random: Random) -> Result<Self, OpenError> {
        let store = crate::store::sqlite::SqliteStore::open(path, options).await?;
        Ok(Self::new(store.clone(), Backend::Sqlite(store), random))
    }

    #[cfg(not(feature = "sqlite"))]
    async fn open_sqlite(path: &str, _: Options, _: Random) -> Result<Self, OpenError> {
        Err(OpenError::Feature(format!("sqlite:{path}"), "sqlite"))
    }

    #[cfg(feature = "postgres")]
    async fn open_postgres(url: &str, options: Options, random: Random) -> Result<Self, OpenError> {
        let store = crate::store::postgres::PostgresStore::open(url, options).await?;
        Ok(Self::new(store.clone(), Backend::Postgres(store), random))
    }

    #[cfg(not(feature = "postgres"))]
    async fn open_postgres(_: &str, _: Options, _: Random) -> Result<Self, OpenError> {
        Err(OpenError::Feature("postgres://…".into(), "postgres"))
    }

    /// Uses a store that was opened elsewhere. Only one opened by its URL can join a caller's transaction.
    #[must_use]
    pub fn from_store(store: Arc<dyn Store>) -> Self {
        Self::with_random(store, Random::system())
    }

    /// The same with another source of random numbers, which tests seed.
    #[must_use]
    pub fn with_random(store: Arc<dyn Store>, random: Random) -> Self {
        Self::new(store, Backend::Other, random)
    }

    fn new(store: Arc<dyn Store>, backend: Backend, random: Random) -> Self {
        Self(Arc::new(Inner {
            store,
            backend,
            random,
            events: Events::default(),
            store_contact: StoreContact::default(),
            catalogue: Mutex::default(),
            default_policy: OnceLock::new(),
            held_leases: Mutex::default(),
        }))
    }

    /// The store itself. The handles cover everything a program needs: [`Windlass::jobs`], [`Windlass::queues`] and so
    /// on.
    #[doc(hidden)]
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// The clock of the store.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.0.store.clock()
    }

    /// The events of jobs in this process.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// The source of random numbers.
    #[must_use]
    pub fn random(&self) -> &Random {
        &self.0.random
    }

    /// The settings of queues, kinds, policies and tenants, at most a second old.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, StoreError> {
        if let Some(catalogue) = self.fresh_catalogue() {
            return Ok(catalogue);
        }
        let now = self.clock().monotonic();
        let settings = self.0.store.settings().await?;
        let catalogue = Arc::new(Catalogue::load(&settings).or_default_policy(self.0.default_policy.get()));
        *lock(&self.0.catalogue) = Some(Snapshot { catalogue: catalogue.clone(), read_at: now });
        Ok(catalogue)
    }

    /// The same for callers that cannot await, such as code inside a transaction of a blocking driver.
    #[cfg(feature = "sqlite")]
    pub(crate) fn catalogue_now(&self) -> Result<Arc<Catalogue>, StoreError> {
        if let Some(catalogue) = self.fresh_catalogue() {
            return Ok(catalogue);
        }
        // A separate thread may block, even if the caller runs inside a task.
        let read = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(StoreError::unavailable)?.block_on(self.catalogue())
        };
        std::thread::scope(|scope| scope.spawn(read).join())
            .unwrap_or_else(|_| Err(StoreError::unavailable("reading the settings panicked")))
    }

    pub(crate) fn set_default_policy(&self, policy: Retry) {
        // Set once, by the builder, before the caller has the client.
        let _ = self.0.default_policy.set(policy);
        *lock(&self.0.catalogue) = None;
    }

    fn fresh_catalogue(&self) -> Option<Arc<Catalogue>> {
        let now = self.clock().monotonic();
        let snapshot = lock(&self.0.catalogue).clone().filter(|snapshot| now - snapshot.read_at < CATALOGUE_AGE);
        snapshot.map(|snapshot| snapshot.catalogue)
    }

    /// Sets or removes a setting; jobs enqueued here from now on follow it.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<(), StoreError> {
        let result = self.0.store.put_setting(key, value).await;
        *lock(&self.0.catalogue) = None;
        result
    }

    /// Wakes the workers of this process. Call it after your own transaction that enqueued jobs. Otherwise they notice
    /// the jobs within a poll interval.
    pub fn wake(&self) {
        self.0.store.wake().ring();
    }

    #[allow(dead_code)] // Without any database there is nothing to join.
    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    /// Records whether the result of a call to the store shows contact.
    pub fn record_contact<T>(&self, result: &Result<T, StoreError>) {
        self.0.store_contact.record_contact(result, self.clock());
    }

    /// The leases that this process must not reap now.
    pub(crate) fn spared(&self) -> Spared {
        self.0.store_contact.spared(self.clock())
    }

    pub(crate) fn reporter(&self, worker: Arc<str>) -> Reporter {
        Reporter { events: self.0.events.clone(), worker, attempts: AttemptLog::On }
    }

    pub(crate) fn register_held_leases(&self, leases: &Arc<HeldLeases>) {
        let mut registered = lock(&self.0.held_leases);
        registered.retain(|leases| leases.strong_count() > 0);
        registered.push(Arc::downgrade(leases));
    }

    pub(crate) fn held_leases(&self) -> Vec<Arc<HeldLeases>> {
        lock(&self.0.held_leases).iter().filter_map(Weak::upgrade).collect()
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The client: a store, its clock and its events. `enqueue` stores jobs, `worker` runs them.

use crate::client::inner::{Backend, Inner};
use crate::client::policies::catalogue::Catalogue;
use crate::clock::Clock;
use crate::event::Events;
use crate::random::Random;
use crate::store::memory::MemoryStore;
use crate::store::{Options, Store, StoreError};
use std::sync::Arc;
use windlass_core::PolicyError;

/// The actor in the audit, unless a caller sets another name.
pub(super) const BY_LIBRARY: &str = "library";

/// Durable jobs. Cheap to clone; all clones share one store.
#[derive(Debug, Clone)]
pub struct Windlass(Arc<Inner>);

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
    /// ```
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// assert!(Windlass::open("redis://localhost").await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The URL names no store, this program was built without that store, or the store cannot be used.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, Options::default()).await
    }

    /// The same, with options. [`Windlass::builder`] sets them by name.
    ///
    /// # Errors
    /// As [`Windlass::open`].
    #[doc(hidden)]
    pub async fn open_with(url: &str, options: Options) -> Result<Self, OpenError> {
        let random = options.random.clone();
        if url == "memory:" {
            let sealing = Sealing::of(&options);
            return Ok(Self::sealed(MemoryStore::new(options), Backend::Other, random, sealing));
        }
        if let Some(path) = url.strip_prefix("sqlite:") {
            // `sqlite://jobs.db` and `sqlite:jobs.db` mean the same file, `sqlite:///var/jobs.db` an absolute path.
            return open_sqlite(path.strip_prefix("//").unwrap_or(path), options, random).await;
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return open_postgres(url, options, random).await;
        }
        // A URL may contain a password, so only its beginning is shown.
        Err(OpenError::Url(url.chars().take_while(|c| *c != '/').take(20).collect()))
    }

    /// Opens a store on a pool of the caller.
    #[cfg(feature = "postgres")]
    pub(super) async fn open_on(
        pool: Arc<dyn crate::transaction::driver::Pool>,
        options: Options,
    ) -> Result<Self, OpenError> {
        let (random, sealing) = (options.random.clone(), Sealing::of(&options));
        let store = crate::store::postgres::PostgresStore::open_on(pool, options).await?;
        Ok(Self::sealed(store.clone(), Backend::Postgres(store), random, sealing))
    }

    /// Uses a store that was opened elsewhere. Only one opened by its URL can join a caller's transaction.
    #[doc(hidden)]
    #[must_use]
    pub fn from_store(store: Arc<dyn Store>) -> Self {
        Self::with_random(store, Random::system())
    }

    /// The same with another source of random numbers, which tests seed.
    #[doc(hidden)]
    #[must_use]
    pub fn with_random(store: Arc<dyn Store>, random: Random) -> Self {
        Self::new(store, Backend::Other, random)
    }

    fn new(store: Arc<dyn Store>, backend: Backend, random: Random) -> Self {
        Self(Arc::new(Inner::new(store, backend, random)))
    }

    /// The store behind the layer that seals its values. The layer is there without keys too: a program that lacks them
    /// must not take sealed values for plain ones.
    fn sealed(store: Arc<dyn Store>, backend: Backend, random: Random, sealing: Sealing) -> Self {
        #[cfg(feature = "sealing")]
        {
            let sealed = crate::sealing::SealedStore::new(store, sealing.ring, random.clone());
            let windlass = Self::new(sealed.clone(), backend, random);
            windlass.inner().set_sealed(sealed);
            windlass
        }
        #[cfg(not(feature = "sealing"))]
        {
            let Sealing {} = sealing;
            Self::new(store, backend, random)
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The store itself. The handles cover everything a program needs: [`Windlass::jobs`], [`Windlass::queues`] and so
    /// on.
    #[doc(hidden)]
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// A request was refused because the store cannot be reached: the log's lines about the outage count it.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let windlass = windlass::Windlass::open("memory:").await?;
    /// if let Err(error) = windlass.enqueue_kind("email", &serde_json::json!({})).await {
    ///     windlass.note_refused(); // and answer 503
    ///     eprintln!("{error}");
    /// }
    /// # Ok::<(), windlass::OpenError>(())
    /// # }).unwrap();
    /// ```
    pub fn note_refused(&self) {
        self.0.outages.refused();
    }

    /// The clock of the store, which all times come from.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = windlass::Windlass::open("memory:").await?;
    /// let id = windlass.enqueue_kind("report", &serde_json::json!({})).await?;
    /// assert!(windlass.jobs().get(id).await?.unwrap().created_at <= windlass.clock().now());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.0.store.clock()
    }

    /// The events of jobs in this process.
    ///
    /// ```
    /// use windlass::{EventKind, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let mut events = windlass.events().subscribe();
    /// let id = windlass.enqueue_kind("email", &serde_json::json!({ "to": "ann" })).await?;
    /// let event = events.recv().await?;
    /// assert!(event.job == id && matches!(event.event_kind, EventKind::Queued));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// The source of random numbers.
    #[doc(hidden)]
    #[must_use]
    pub fn random(&self) -> &Random {
        &self.0.random
    }

    /// The settings of queues, kinds, policies and tenants, at most a second old.
    ///
    /// # Errors
    /// The store cannot be read.
    #[doc(hidden)]
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, StoreError> {
        self.0.catalogue().await
    }

    /// The id that was drawn at random when the store was created. It is part of every `webhook-id` and of the keys
    /// that handlers get for jobs without an idempotency key, so that two installations never repeat one.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let (one, other) = (windlass::Windlass::open("memory:").await?, windlass::Windlass::open("memory:").await?);
    /// assert_ne!(one.installation().await?, other.installation().await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn installation(&self) -> Result<Arc<str>, StoreError> {
        self.0.installation().await
    }

    /// Wakes the workers of this process. Call it after your own transaction that enqueued jobs. Otherwise they notice
    /// the jobs within a poll interval.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = windlass::Windlass::open("memory:").await?;
    /// // transaction.commit().await?;
    /// windlass.wake();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn wake(&self) {
        self.0.store.wake().ring();
    }
}

/// What a store is sealed with.
struct Sealing {
    #[cfg(feature = "sealing")]
    ring: crate::sealing::KeyRing,
}

impl Sealing {
    #[cfg_attr(not(feature = "sealing"), allow(unused_variables))]
    fn of(options: &Options) -> Self {
        Self {
            #[cfg(feature = "sealing")]
            ring: options.key_ring.clone(),
        }
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(path: &str, options: Options, random: Random) -> Result<Windlass, OpenError> {
    let sealing = Sealing::of(&options);
    let store = crate::store::sqlite::SqliteStore::open(path, options).await?;
    Ok(Windlass::sealed(store.clone(), Backend::Sqlite(store), random, sealing))
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(path: &str, _: Options, _: Random) -> Result<Windlass, OpenError> {
    Err(OpenError::Feature(format!("sqlite:{path}"), "sqlite"))
}

#[cfg(feature = "postgres")]
async fn open_postgres(url: &str, options: Options, random: Random) -> Result<Windlass, OpenError> {
    let sealing = Sealing::of(&options);
    let store = crate::store::postgres::PostgresStore::open(url, options).await?;
    Ok(Windlass::sealed(store.clone(), Backend::Postgres(store), random, sealing))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(_: &str, _: Options, _: Random) -> Result<Windlass, OpenError> {
    Err(OpenError::Feature("postgres://…".into(), "postgres"))
}

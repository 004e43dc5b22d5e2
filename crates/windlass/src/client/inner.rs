//! What all clones of a client share, and what the library's own parts need of it.

use crate::client::enqueue::outgoing::Outgoing;
use crate::client::enqueue::retry::Retry;
use crate::client::policies::catalogue::Catalogue;
use crate::client::tenants::quota::QuotaUse;
use crate::clock::Clock;
use crate::event::{AttemptLog, Events, Reporter};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::job::NewJob;
use crate::leases::outage::Outages;
use crate::leases::store_contact::StoreContact;
use crate::random::Random;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::store::Commit;
use crate::store::{SettingKey, Spared, Store, StoreError};
use crate::telemetry::Telemetry;
use crate::worker::HeldLeases;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use windlass_core::Millis;

/// How old a snapshot of the settings may be when a job is completed from it.
const CATALOGUE_AGE: Millis = Millis::from_secs(1);
/// One caller renews a snapshot of this age; the others use it meanwhile.
const RENEW_AGE: Millis = Millis::new(500);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) store: Arc<dyn Store>,
    backend: Backend,
    /// The layer that seals, which is also the store.
    #[cfg(feature = "sealing")]
    sealed: OnceLock<Arc<crate::sealing::SealedStore>>,
    pub(super) random: Random,
    pub(super) events: Events,
    telemetry: Telemetry,
    store_contact: StoreContact,
    pub(super) outages: Outages,
    catalogue: Mutex<Option<Snapshot>>,
    /// The store's id, once it has been read.
    installation: OnceLock<Arc<str>>,
    /// Whether a caller is renewing the snapshot.
    is_renewing: AtomicBool,
    /// How often this process has changed the settings.
    changes: AtomicU64,
    /// The default policy of this program's jobs.
    default_policy: OnceLock<Retry>,
    /// Which calls may be stored.
    outgoing: OnceLock<Outgoing>,
    /// What this process has counted against tenants' quotas.
    quota_use: QuotaUse,
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

impl Inner {
    pub(super) fn new(store: Arc<dyn Store>, backend: Backend, random: Random) -> Self {
        Self {
            store,
            backend,
            #[cfg(feature = "sealing")]
            sealed: OnceLock::new(),
            random,
            events: Events::default(),
            telemetry: Telemetry::default(),
            store_contact: StoreContact::default(),
            outages: Outages::default(),
            catalogue: Mutex::default(),
            installation: OnceLock::new(),
            is_renewing: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            default_policy: OnceLock::new(),
            outgoing: OnceLock::new(),
            quota_use: QuotaUse::default(),
            held_leases: Mutex::default(),
        }
    }

    fn clock(&self) -> &Clock {
        self.store.clock()
    }

    pub(super) async fn catalogue(&self) -> Result<Arc<Catalogue>, StoreError> {
        let Some((age, held)) = self.held_catalogue() else { return self.renew_catalogue().await };
        if age < RENEW_AGE {
            return Ok(held);
        }
        let Some(_renewing) = Renewing::begin(&self.is_renewing) else { return Ok(held) };
        // If the settings cannot be read now, the ones held are still valid.
        Ok(self.renew_catalogue().await.unwrap_or(held))
    }

    async fn renew_catalogue(&self) -> Result<Arc<Catalogue>, StoreError> {
        let (now, changes) = (self.clock().monotonic(), self.changes.load(Ordering::Acquire));
        let settings = self.store.settings().await?;
        let catalogue = Catalogue::load(&settings).or_default_policy(self.default_policy.get());
        let catalogue = Arc::new(catalogue.with_outgoing(self.outgoing.get().cloned().unwrap_or_default()));
        let mut snapshot = lock(&self.catalogue);
        // A change made while the settings were read may be missing in them.
        if changes == self.changes.load(Ordering::Acquire) {
            *snapshot = Some(Snapshot { catalogue: catalogue.clone(), read_at: now });
        }
        Ok(catalogue)
    }

    /// The same for callers that cannot await, such as code inside a transaction of a blocking driver.
    #[cfg(feature = "sqlite")]
    pub(crate) fn catalogue_now(&self) -> Result<Arc<Catalogue>, StoreError> {
        if let Some((_, catalogue)) = self.held_catalogue() {
            return Ok(catalogue);
        }
        blocking(|| self.catalogue())
    }

    /// The snapshot and its age, if it is not too old.
    fn held_catalogue(&self) -> Option<(Millis, Arc<Catalogue>)> {
        let now = self.clock().monotonic();
        let snapshot = lock(&self.catalogue).clone();
        let aged = snapshot.map(|snapshot| (now - snapshot.read_at, snapshot.catalogue));
        aged.filter(|(age, _)| *age < CATALOGUE_AGE)
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    pub(crate) fn quota_use(&self) -> &QuotaUse {
        &self.quota_use
    }

    /// The first rules stay: a program has one.
    #[cfg(feature = "http")]
    pub(crate) fn set_outgoing(&self, outgoing: Outgoing) {
        let _ = self.outgoing.set(outgoing);
        self.forget_catalogue();
    }

    pub(super) fn set_default_policy(&self, policy: Retry) {
        // Set once, by the builder, before the caller has the client.
        let _ = self.default_policy.set(policy);
        self.forget_catalogue();
    }

    pub(super) async fn installation(&self) -> Result<Arc<str>, StoreError> {
        if let Some(id) = self.installation.get() {
            return Ok(id.clone());
        }
        let id: Arc<str> = self.store.installation().await?.into();
        Ok(self.installation.get_or_init(|| id).clone())
    }

    /// Sets or removes a setting; jobs enqueued here from now on follow it.
    pub(super) async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<(), StoreError> {
        let result = self.store.put_setting(key, value).await;
        self.forget_catalogue();
        result
    }

    /// Jobs enqueued here from now on follow what is stored.
    pub(super) fn forget_catalogue(&self) {
        let mut snapshot = lock(&self.catalogue);
        self.changes.fetch_add(1, Ordering::AcqRel);
        *snapshot = None;
    }

    /// Set once, when the store is opened.
    #[cfg(feature = "sealing")]
    pub(super) fn set_sealed(&self, sealed: Arc<crate::sealing::SealedStore>) {
        let _ = self.sealed.set(sealed);
    }

    #[cfg(feature = "sealing")]
    pub(crate) fn sealed(&self) -> Option<&Arc<crate::sealing::SealedStore>> {
        self.sealed.get()
    }

    /// Whether values are sealed in the store.
    pub(crate) fn is_sealing(&self) -> bool {
        #[cfg(feature = "sealing")]
        return self.sealed.get().is_some_and(|sealed| !sealed.ring().is_empty());
        #[cfg(not(feature = "sealing"))]
        false
    }

    /// A job as it is stored, for callers with a transaction of their own.
    #[cfg(feature = "postgres")]
    #[cfg_attr(not(feature = "sealing"), allow(clippy::unused_async))]
    pub(crate) async fn seal_new(&self, job: NewJob) -> Result<NewJob, StoreError> {
        #[cfg(feature = "sealing")]
        if let Some(sealed) = self.sealed.get() {
            return sealed.seal_new(job).await;
        }
        Ok(job)
    }

    /// The same for callers that cannot await. `register` stores a setting in their transaction.
    #[cfg(feature = "sqlite")]
    #[cfg_attr(not(feature = "sealing"), allow(unused_variables))]
    pub(crate) fn seal_new_by(
        &self,
        job: NewJob,
        register: impl FnOnce(&SettingKey, &str) -> Result<(), StoreError>,
    ) -> Result<NewJob, StoreError> {
        #[cfg(feature = "sealing")]
        if let Some(sealed) = self.sealed.get() {
            if !sealed.was_ready()
                && let Some((key, value)) = blocking(|| sealed.registration())?
            {
                register(&key, &value)?;
            }
            return Ok(sealed.seal_registered(job));
        }
        Ok(job)
    }

    /// A commit as it is stored, for callers with a transaction of their own.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn seal_commit(&self, commit: Commit) -> Commit {
        #[cfg(feature = "sealing")]
        if let Some(sealed) = self.sealed.get() {
            return sealed.seal_commit(commit);
        }
        commit
    }

    #[allow(dead_code)] // Without any database there is nothing to join.
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Records whether the result of a call to the store shows contact.
    pub(crate) fn record_contact<T>(&self, result: &Result<T, StoreError>) {
        self.store_contact.record_contact(result, self.clock());
        self.outages.record(result, self.clock());
    }

    /// Makes a call that writes, and records whether it and its result show contact.
    pub(crate) async fn write<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let result = self.store_contact.write(call, self.clock()).await;
        self.outages.record(&result, self.clock());
        result
    }

    /// The leases that this process must not reap now.
    pub(crate) fn spared(&self) -> Spared {
        self.store_contact.spared(self.clock(), self.store.notice_time())
    }

    pub(crate) fn reporter(&self, worker: Arc<str>) -> Reporter {
        Reporter { events: self.events.clone(), telemetry: self.telemetry.clone(), worker, attempts: AttemptLog::On }
    }

    pub(crate) fn register_held_leases(&self, leases: &Arc<HeldLeases>) {
        let mut registered = lock(&self.held_leases);
        registered.retain(|leases| leases.strong_count() > 0);
        registered.push(Arc::downgrade(leases));
    }

    pub(crate) fn held_leases(&self) -> Vec<Arc<HeldLeases>> {
        lock(&self.held_leases).iter().filter_map(Weak::upgrade).collect()
    }
}

/// Lets another caller renew the snapshot when dropped, even if this one is cancelled.
struct Renewing<'a>(&'a AtomicBool);

impl<'a> Renewing<'a> {
    /// `None` if another caller renews it.
    fn begin(flag: &'a AtomicBool) -> Option<Self> {
        (!flag.swap(true, Ordering::AcqRel)).then_some(Self(flag))
    }
}

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Waits for the store's answer on a separate thread, which may block even if the caller runs inside a task.
#[cfg(feature = "sqlite")]
fn blocking<T: Send, F: Future<Output = Result<T, StoreError>>>(
    ask: impl FnOnce() -> F + Send,
) -> Result<T, StoreError> {
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(StoreError::unavailable)?.block_on(ask())
    };
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(StoreError::unavailable("reading the settings panicked")))
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Quotas of tenants: what this process has counted, and whether a job may be stored. The rule is core's. The number of
//! waiting jobs is read from the store's counters, at most once a second for each tenant, and this process adds what it
//! has stored since. So several nodes together may store a second's worth too many.

use crate::client::policies::catalogue::Catalogue;
use crate::client::tenants::Tenants;
use crate::client::windlass::Windlass;
use crate::job::NewJob;
use crate::store::{Atomicity, Audit, Enqueued, Scope, SettingKey, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Millis;
use windlass_core::job::Tenant;
use windlass_core::quota::{OverQuota, Quota, Quotas, Used};

/// How old the number of waiting jobs may be.
const WAITING_AGE: Millis = Millis::from_secs(1);
/// Reading the number takes at most this part of the time: one in so many.
const READ_SHARE: u64 = 20;
/// Tenants that are remembered. Beyond, those that used nothing for a while are forgotten.
const MAX_TENANTS: usize = 10_000;

/// What this process knows of each tenant's use.
#[derive(Debug, Default)]
pub(crate) struct QuotaUse(Mutex<HashMap<Tenant, Known>>);

#[derive(Debug, Clone, Default)]
struct Known {
    used: Used,
    /// When the number of waiting jobs was read, and how long it may be used.
    read_at: Option<(Millis, Millis)>,
    /// Jobs that were admitted since the beginning, and those of them that are being stored now.
    admitted: u64,
    storing: u64,
    refused: BTreeMap<Quota, u64>,
}

/// A tenant's quotas and their use, as this process knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantQuotas {
    /// The tenant.
    pub tenant: Tenant,
    /// The quotas in force.
    pub quotas: Quotas,
    /// Jobs that wait; `None` if this process has not asked yet.
    pub waiting: Option<u64>,
    /// How often this process has refused something, by quota.
    pub refused: BTreeMap<Quota, u64>,
}

/// The quotas of calls at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpQuotas {
    /// Of tenants without one of their own.
    pub default: Option<u32>,
    pub own: HashMap<Tenant, u32>,
}

impl HttpQuotas {
    pub(crate) fn of(&self, tenant: &Tenant) -> Option<u32> {
        self.own.get(tenant).copied().or(self.default)
    }

    /// The tenants with a quota of their own.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.own.keys()
    }
}

impl QuotaUse {
    fn known(&self) -> MutexGuard<'_, HashMap<Tenant, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, tenant: &Tenant, change: impl FnOnce(&mut Known) -> T) -> T {
        let mut known = self.known();
        if known.len() >= MAX_TENANTS && !known.contains_key(tenant) {
            // What they used is read again when they come back. A refusal count is lost, a quota is not.
            known.retain(|_, known| known.refused.values().sum::<u64>() > 0);
            if known.len() >= MAX_TENANTS {
                known.clear();
            }
        }
        change(known.entry(tenant.clone()).or_default())
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&self, tenant: &Tenant, quota: Quota) {
        self.change(tenant, |known| *known.refused.entry(quota).or_default() += 1);
    }

    /// Refusals by tenant and quota.
    #[cfg(feature = "metrics")]
    pub(crate) fn refusals(&self) -> Vec<(Tenant, Quota, u64)> {
        let known = self.known();
        let of = |(tenant, known): (&Tenant, &Known)| {
            let counts: Vec<_> = known.refused.iter().map(|(quota, count)| (tenant.clone(), *quota, *count)).collect();
            counts
        };
        known.iter().flat_map(of).collect()
    }
}

impl Windlass {
    /// Reads how many of a tenant's jobs wait, unless that is known well enough.
    async fn read_waiting(&self, tenant: &Tenant) -> Result<(), StoreError> {
        let usage = self.inner().quota_use();
        let begun = self.clock().monotonic();
        let unknown = usage.change(tenant, |known| {
            let is_known = known.read_at.is_some_and(|(at, age)| begun >= at && begun - at < age);
            (!is_known).then_some((known.admitted, known.storing))
        });
        let Some((admitted, storing)) = unknown else { return Ok(()) };
        let depths = self.store().depths(&Scope::Tenant(tenant.clone())).await?;
        let waiting: u64 = depths.iter().map(|depth| depth.due + depth.later).sum();
        let now = self.clock().monotonic();
        let age = WAITING_AGE.max(Millis::new((now - begun).get().saturating_mul(READ_SHARE)));
        usage.change(tenant, |known| {
            // The store may not have counted what was being stored, or was admitted during the read.
            known.used.waiting = waiting + storing + known.admitted.saturating_sub(admitted);
            known.read_at = Some((now, age));
        });
        Ok(())
    }

    /// Says which of these jobs may be stored.
    pub(in crate::client) async fn admit(
        &self,
        jobs: &[NewJob],
        atomicity: Atomicity,
        catalogue: &Catalogue,
    ) -> Result<Admission<'_>, StoreError> {
        let mut admission =
            Admission { refused: None, storing: Storing { usage: self.inner().quota_use(), jobs: Vec::new() } };
        if !catalogue.has_quotas() {
            return Ok(admission);
        }
        let mut asked: BTreeMap<&Tenant, u64> = BTreeMap::new();
        for job in jobs {
            *asked.entry(&job.tenant).or_default() += 1;
        }
        let (mut admitted, mut refusals) = (HashMap::new(), HashMap::new());
        for (tenant, count) in &asked {
            let quotas = catalogue.quotas_of(tenant);
            if quotas.waiting.is_some() {
                self.read_waiting(tenant).await?;
            }
            let now = self.clock().now();
            let (granted, refusal) = self.inner().quota_use().change(tenant, |known| {
                let (granted, refusal) = quotas.admit(&known.used, *count, now);
                let granted = if atomicity == Atomicity::All && refusal.is_some() { 0 } else { granted };
                if let Some(refusal) = &refusal {
                    *known.refused.entry(refusal.quota).or_default() += 1;
                }
                // Counted before they are stored, so that callers at the same time do not share the same room.
                known.used.waiting += granted;
                known.used.take(&quotas, granted, now);
                known.admitted += granted;
                known.storing += granted;
                (granted, refusal)
            });
            admission.storing.jobs.push(((*tenant).clone(), granted));
            admitted.insert((*tenant).clone(), granted);
            refusals.extend(refusal.map(|refusal| ((*tenant).clone(), refusal)));
        }
        if refusals.is_empty() {
            return Ok(admission);
        }
        let mut answer = |job: &NewJob| {
            let left = admitted.get_mut(&job.tenant)?;
            if *left > 0 {
                *left -= 1;
                return None;
            }
            refusals.get(&job.tenant).cloned()
        };
        admission.refused = Some(jobs.iter().map(&mut answer).collect());
        Ok(admission)
    }
}

/// The answer to jobs that are to be stored.
#[derive(Debug)]
pub(in crate::client) struct Admission<'a> {
    /// Which of them may not be stored. `None`: all may.
    pub refused: Option<Vec<Option<OverQuota>>>,
    /// Kept until the store has answered.
    pub storing: Storing<'a>,
}

/// Admitted jobs that the store has not counted yet, whoever else reads its counters meanwhile.
#[derive(Debug)]
pub(in crate::client) struct Storing<'a> {
    usage: &'a QuotaUse,
    jobs: Vec<(Tenant, u64)>,
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        for (tenant, count) in &self.jobs {
            self.usage.change(tenant, |known| known.storing = known.storing.saturating_sub(*count));
        }
    }
}

/// The answers to all jobs, from those of the jobs that were given to the store.
pub(in crate::client) fn with_refusals(refused: Vec<Option<OverQuota>>, stored: Vec<Enqueued>) -> Vec<Enqueued> {
    let mut stored = stored.into_iter();
    let answer = |refused: Option<OverQuota>| match refused {
        Some(refusal) => Enqueued::OverQuota(refusal),
        None => stored.next().unwrap_or(Enqueued::NotStored),
    };
    refused.into_iter().map(answer).collect()
}

impl Tenants<'_> {
    /// The quotas of a tenant: its own, and the default where it has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn quotas(&self, tenant: &Tenant) -> Result<Quotas, StoreError> {
        Ok(self.windlass.catalogue().await?.quotas_of(tenant))
    }

    /// Sets a tenant's own quotas, or removes what was set here. Other processes follow within a second.
    ///
    /// ```
    /// use windlass::core::{job::Tenant, quota::Quotas};
    /// use windlass::{EnqueueError, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let acme = Tenant::new("Acme")?;
    /// windlass.tenants().set_quotas(&acme, Some(Quotas { waiting: Some(1), ..Quotas::default() })).await?;
    /// let email = || windlass.enqueue_kind("email", &serde_json::json!({})).tenant("Acme");
    /// email().await?;
    /// assert!(matches!(email().await, Err(EnqueueError::OverQuota(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn set_quotas(&self, tenant: &Tenant, quotas: Option<Quotas>) -> Result<(), StoreError> {
        let text = quotas.map(|quotas| quotas.to_value().to_string());
        let key = SettingKey::Quota { tenant: Some(tenant.clone()) };
        self.windlass.inner().put_setting(&key, text.as_deref()).await?;
        let detail = format!("{tenant}: {}", text.as_deref().unwrap_or("none of its own"));
        let (at, by) = (self.windlass.clock().now(), self.by.clone());
        let entry = Audit { at, by, action: "set quotas".into(), count: 1, detail };
        self.windlass.store().audit(&entry).await
    }

    /// The quotas of tenants that this process has counted something for, and their use. Sorted by tenant.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn quota_use(&self, scope: &Scope) -> Result<Vec<TenantQuotas>, StoreError> {
        let catalogue = self.windlass.catalogue().await?;
        let known = self.windlass.inner().quota_use().known().clone();
        let shown = |(tenant, known): (Tenant, Known)| {
            let quotas = catalogue.quotas_of(&tenant);
            let waiting = known.read_at.map(|_| known.used.waiting);
            TenantQuotas { tenant, quotas, waiting, refused: known.refused }
        };
        let mut used: Vec<_> = known.into_iter().filter(|(tenant, _)| scope.covers(tenant)).map(shown).collect();
        used.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        Ok(used)
    }

    /// Counts a stream or long poll that was refused by a quota.
    #[doc(hidden)]
    pub fn count_refusal(&self, tenant: &Tenant, quota: Quota) {
        self.windlass.inner().quota_use().refuse(tenant, quota);
    }
}

//! Attempts by the idempotency key of their job, for protocols whose workers name a job and not its lease.

use super::{HeldAttempt, Remote};
use crate::store::StoreError;
use windlass_core::JobId;
use windlass_core::job::Tenant;

/// A live job that was found by its idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyed {
    /// An attempt runs.
    Running(HeldAttempt),
    /// No attempt runs.
    Waiting(JobId),
}

impl Remote {
    /// The live job of a tenant under an idempotency key, with its running attempt, whoever holds it and whichever
    /// process handed it out. `None` if no live job has the key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<Keyed>, StoreError> {
        let Some(found) = self.0.windlass.store().keyed(tenant, key).await? else { return Ok(None) };
        let Some(lease) = found.lease else { return Ok(Some(Keyed::Waiting(found.job))) };
        let held = self.running(&[lease]).await?.remove(&lease).unwrap_or_default();
        let running = held.into_iter().find(|job| job.id == found.job);
        let attempt = running.map(|job| HeldAttempt { job: job.id, attempt: job.attempt, lease });
        Ok(Some(attempt.map_or(Keyed::Waiting(found.job), Keyed::Running)))
    }
}

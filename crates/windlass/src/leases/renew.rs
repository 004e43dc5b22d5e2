//! Renew: keep leases in use from being reaped.

use crate::client::windlass::Windlass;
use crate::job::LeaseId;
use crate::store::{Renewed, StoreError, WorkerId};
use windlass_core::Millis;

/// Renews leases in one call. The result counts as store contact: while workers cannot renew, no lease may be reaped as
/// lost.
pub(crate) async fn renew(
    windlass: &Windlass,
    worker: &WorkerId,
    leases: Vec<LeaseId>,
    lease_for: Millis,
) -> Result<Renewed, StoreError> {
    windlass.inner().write(windlass.store().renew(worker, leases, lease_for)).await
}

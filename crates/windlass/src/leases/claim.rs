//! Claim: takes jobs under leases. A claim of unknown outcome is a doubt, which its claimer must resolve.

use super::doubt::Doubt;
use crate::client::windlass::Windlass;
use crate::job::LeaseId;
use crate::store::{Claim, Claimed, Kinds, Leases, Share, StoreError, WorkerId};
use windlass_core::Millis;

/// Who claims, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct Claimer {
    pub windlass: Windlass,
    pub worker: WorkerId,
    pub lease_for: Millis,
    /// The kinds of jobs to claim; all if absent.
    pub kinds: Option<Kinds>,
}

/// Why a claim returned no jobs.
#[derive(Debug)]
pub(crate) enum ClaimFailure {
    /// Nothing was claimed.
    Refused(StoreError),
    /// Jobs may have been claimed, or may still be.
    Unknown(Doubt, StoreError),
}

impl Claimer {
    pub(crate) async fn claim(
        &self,
        leases: Leases,
        shares: Vec<Share>,
        limit: u32,
        suspects: u32,
    ) -> Result<Claimed, ClaimFailure> {
        let (worker, lease_for) = (self.worker.clone(), self.lease_for);
        let drawn: Vec<LeaseId> = match &leases {
            Leases::Shared(lease) => vec![*lease],
            Leases::Each(leases) => leases.clone(),
        };
        let claim =
            Claim { worker: worker.clone(), leases, lease_for, shares, limit, suspects, kinds: self.kinds.clone() };
        let result = self.windlass.store().claim(claim).await;
        self.windlass.inner().record_contact(&result);
        result.map_err(|error| match error {
            StoreError::Unknown(_) => {
                tracing::warn!(%error, worker = %self.worker, "a claim's outcome is unknown; asking the store");
                ClaimFailure::Unknown(Doubt::new(worker, drawn, lease_for), error)
            }
            StoreError::Unavailable(_)
            | StoreError::Corrupt { .. }
            | StoreError::Schema(_)
            | StoreError::Invalid(_) => ClaimFailure::Refused(error),
        })
    }
}

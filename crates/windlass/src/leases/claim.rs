//! Claim: takes jobs under leases. A claim of unknown outcome is a doubt, which its claimer must resolve.

use super::doubt::Doubt;
use crate::client::windlass::Windlass;
use crate::event::{EventKind, event};
use crate::job::LeaseId;
use crate::leases::outage::store_failed;
use crate::store::{Claim, Claimed, Kinds, Leases, Parking, Scope, Share, StoreError, WorkerId};
use std::collections::HashMap;
use windlass_core::{JobId, Millis, State};

/// The most parked jobs of one claim that subscribers learn about.
const MAX_REPORTED: usize = 100;

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
        if let Ok(claimed) = &result {
            self.report_parked(&claimed.parked).await;
        }
        result.map_err(|error| match error {
            StoreError::Unknown(_) => {
                store_failed!(error, worker = %self.worker, "a claim's outcome is unknown; asking the store");
                ClaimFailure::Unknown(Doubt::new(worker, drawn, lease_for), error)
            }
            StoreError::Unavailable(_)
            | StoreError::Corrupt { .. }
            | StoreError::Sealed(_)
            | StoreError::Schema(_)
            | StoreError::Invalid(_) => ClaimFailure::Refused(error),
        })
    }

    /// Tells subscribers which due jobs a gate refused.
    async fn report_parked(&self, parked: &[Parking]) {
        let events = self.windlass.events();
        if parked.is_empty() || !events.has_listeners() {
            return;
        }
        let parked: HashMap<JobId, &Parking> =
            parked.iter().take(MAX_REPORTED).map(|parking| (parking.job, parking)).collect();
        let ids: Vec<JobId> = parked.keys().copied().collect();
        let jobs = match self.windlass.store().jobs_by_id(&Scope::All, &ids).await {
            Ok(jobs) => jobs,
            // The claim itself has succeeded. Events are not a complete record.
            Err(error) => return tracing::debug!(%error, "parked jobs could not be read for events"),
        };
        let now = self.windlass.clock().now();
        for job in jobs {
            let Some(Parking { waiting_for, until, .. }) = parked.get(&job.id) else { continue };
            let is_retry = job.state == State::Retrying;
            let what = EventKind::Parked { waiting_for: *waiting_for, until: *until, is_retry };
            events.emit(|| event(&job, now, what));
        }
    }
}

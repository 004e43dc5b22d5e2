//! Doubt: a claim of unknown outcome. A database may finish a claim after its connection was lost, even after it was
//! asked about the claim. So the store is asked again for the length of the lease, and a lost connection costs no job
//! an attempt.

use super::renew::renew;
use crate::client::windlass::Windlass;
use crate::job::{ClaimedJob, LeaseId};
use crate::store::{StoreError, WorkerId};
use windlass_core::Millis;

#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    worker: WorkerId,
    leases: Vec<LeaseId>,
    lease_for: Millis,
    /// How long to ask, counted from the store's first answer.
    until: Option<Millis>,
}

/// What the store says about a claim in doubt.
#[derive(Debug)]
pub(crate) enum Found {
    /// The claim happened and took these jobs.
    Jobs(Vec<ClaimedJob>),
    /// The claim has not happened, but still might.
    NotYet,
    /// The claim can no longer happen.
    Nothing,
}

impl Doubt {
    pub(crate) fn new(worker: WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Self {
        Self { worker, leases, lease_for, until: None }
    }

    /// Asks once.
    pub(crate) async fn ask(&mut self, windlass: &Windlass) -> Result<Found, StoreError> {
        // The renewal keeps other nodes from reaping the jobs before they are handed out.
        renew(windlass, &self.worker, self.leases.clone(), self.lease_for).await?;
        let held = windlass.store().held(self.leases.clone()).await;
        windlass.inner().record_contact(&held);
        Ok(self.judge(held?, windlass.clock().monotonic()))
    }

    /// Whether the time to ask is over.
    pub(crate) fn is_over(&self, now: Millis) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    fn judge(&mut self, jobs: Vec<ClaimedJob>, now: Millis) -> Found {
        self.until.get_or_insert(now + self.lease_for);
        if !jobs.is_empty() {
            Found::Jobs(jobs)
        } else if self.is_over(now) {
            Found::Nothing
        } else {
            Found::NotYet
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_asked_for_the_length_of_the_lease_from_its_first_answer_on() {
        let mut doubt = Doubt::new(WorkerId::new("w1"), vec![LeaseId(1)], Millis::new(100));
        let at = Millis::new;
        assert!(!doubt.is_over(at(1_000_000)), "no time passes while the store is unreachable");
        assert!(matches!(doubt.judge(Vec::new(), at(50)), Found::NotYet));
        assert!(matches!(doubt.judge(Vec::new(), at(149)), Found::NotYet));
        assert!(matches!(doubt.judge(Vec::new(), at(150)), Found::Nothing));
        assert!(doubt.is_over(at(150)));
    }
}

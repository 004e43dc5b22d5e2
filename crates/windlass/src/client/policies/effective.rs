//! Effective policies that were merged before. Most jobs of a program share a few combinations of tenant, queue, kind
//! and own fields, and merging six levels costs more than storing the job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::{Partial, Role};
use windlass_core::{Policy, PolicyError};

/// The most policies remembered. Beyond it all are forgotten and merged again when needed.
const MAX_REMEMBERED: usize = 1000;

/// What the effective policy of a job depends on, in one snapshot of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::client) struct Levels {
    pub tenant: Tenant,
    pub queue: QueueName,
    pub kind: Kind,
    pub role: Role,
    pub own: Partial,
}

/// The policies merged so far from one snapshot. A clone of the snapshot starts without any.
#[derive(Debug, Default)]
pub(in crate::client) struct EffectivePolicies(Mutex<HashMap<Levels, Arc<Policy>>>);

impl EffectivePolicies {
    /// The policy of `levels`, merged by `merge` if it is not known.
    pub(in crate::client) fn get(
        &self,
        levels: &Levels,
        merge: impl FnOnce() -> Result<Policy, PolicyError>,
    ) -> Result<Arc<Policy>, PolicyError> {
        if let Some(policy) = self.lock().get(levels) {
            return Ok(policy.clone());
        }
        let policy = Arc::new(merge()?);
        let mut known = self.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(levels.clone(), policy.clone());
        Ok(policy)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Levels, Arc<Policy>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for EffectivePolicies {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(kind: &str) -> Levels {
        Levels {
            tenant: Tenant::default(),
            queue: QueueName::default(),
            kind: Kind::new(kind).unwrap(),
            role: Role::Handler,
            own: Partial::default(),
        }
    }

    fn merged() -> Result<Policy, PolicyError> {
        Partial::resolve(&[Role::Handler.default_policy()], &[])
    }

    #[test]
    fn a_combination_is_merged_once_and_errors_are_not_remembered() {
        let policies = EffectivePolicies::default();
        let wrong = || Err(PolicyError { field: "base".into(), position: None, message: "is missing".into() });
        assert!(policies.get(&levels("a"), wrong).is_err());
        let first = policies.get(&levels("a"), merged).unwrap();
        let again = policies.get(&levels("a"), || unreachable!("it is known")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &policies.get(&levels("b"), merged).unwrap()));
    }

    #[test]
    fn the_number_of_remembered_policies_is_bounded() {
        let policies = EffectivePolicies::default();
        for n in 0..=MAX_REMEMBERED {
            policies.get(&levels(&format!("k{n}")), merged).unwrap();
        }
        assert_eq!(policies.lock().len(), 1);
    }
}

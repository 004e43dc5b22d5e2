//! Which jobs a remote worker may access. Pure.

use crate::job::Job;
use crate::store::{Queue, WorkerId};
use windlass_core::job::{QueueName, Tenant};

/// What a remote worker is limited to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkScope {
    /// The one tenant whose jobs it may run; all if absent.
    pub tenant: Option<Tenant>,
    /// The queues it may serve; all if absent.
    pub queues: Option<Vec<QueueName>>,
}

impl WorkScope {
    /// Every job of every tenant.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The jobs of one tenant.
    #[must_use]
    pub fn of(tenant: Tenant) -> Self {
        Self { tenant: Some(tenant), queues: None }
    }

    /// Whether it covers everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.tenant.is_none() && self.queues.is_none()
    }

    pub(crate) fn covers(&self, job: &Job) -> bool {
        self.covers_names(&job.tenant, &job.queue)
    }

    pub(crate) fn covers_queue(&self, queue: &Queue) -> bool {
        self.covers_names(&queue.tenant, &queue.name)
    }

    fn covers_names(&self, tenant: &Tenant, queue: &QueueName) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
            && self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }
}

/// A remote worker: its name, and what it is limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteWorker {
    /// The name it reports.
    pub name: String,
    /// What it is limited to.
    pub scope: WorkScope,
}

impl RemoteWorker {
    /// A worker of this name, limited to this scope.
    #[must_use]
    pub fn new(name: impl Into<String>, scope: WorkScope) -> Self {
        Self { name: name.into(), scope }
    }

    /// Its name in leases and the ledger. Names are per tenant: the prefix keeps a worker from reporting or freeing
    /// anything under the name of another tenant's worker. A tenant's name has no slash.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        match &self.scope.tenant {
            Some(tenant) => WorkerId::new(&format!("{tenant}/{}", self.name)),
            None => WorkerId::new(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name).unwrap()
    }

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    #[test]
    fn a_scope_covers_what_its_tenant_and_its_queues_allow() {
        let email = Some(vec![queue("email")]);
        for (scope, covered) in [
            (WorkScope::all(), [true, true, true, true]),
            (WorkScope::of(tenant("a")), [true, true, false, false]),
            (WorkScope { tenant: None, queues: email.clone() }, [true, false, true, false]),
            (WorkScope { tenant: Some(tenant("a")), queues: email }, [true, false, false, false]),
            (WorkScope { tenant: None, queues: Some(Vec::new()) }, [false; 4]),
        ] {
            let names = [("a", "email"), ("a", "sms"), ("b", "email"), ("b", "sms")];
            assert_eq!(names.map(|(t, q)| scope.covers_names(&tenant(t), &queue(q))), covered, "{scope:?}");
        }
    }

    #[test]
    fn no_two_tenants_share_a_workers_name() {
        let id = |scope, name: &str| RemoteWorker::new(name, scope).id().to_string();
        assert_eq!(id(WorkScope::all(), "w1"), "w1");
        assert_eq!(id(WorkScope::of(tenant("a")), "w1"), "a/w1");
        assert_ne!(id(WorkScope::of(tenant("a")), "b/w1"), id(WorkScope::of(tenant("b")), "w1"));
    }
}

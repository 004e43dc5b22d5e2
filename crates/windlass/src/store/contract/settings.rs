//! Settings: queues, kinds, named policies and tenants, as every producer sees them.

use crate::job::QueueId;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Timestamp};

/// A queue's row, as claims read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its id.
    pub id: QueueId,
    /// Its owner.
    pub tenant: Tenant,
    /// Its name.
    pub name: QueueName,
    /// Who carries out its attempts.
    pub executor: Executor,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// The subject of a setting. `tenant` of `None` means every tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SettingKey {
    /// A queue's setting.
    Queue {
        /// The tenant, or all.
        tenant: Option<Tenant>,
        /// Its name.
        name: String,
    },
    /// A kind's setting.
    Kind {
        /// Its name.
        name: String,
    },
    /// A named policy.
    Policy {
        /// Its name.
        name: String,
    },
    /// A tenant's setting.
    Tenant {
        /// Its name.
        name: Tenant,
    },
    /// A server setting that must be the same for the whole fleet.
    Server {
        /// Its name.
        name: String,
    },
}

impl SettingKey {
    /// Scope, tenant (`*` for all) and name, as stored.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &str, &str) {
        match self {
            Self::Queue { tenant, name } => ("queue", tenant.as_ref().map_or("*", Tenant::as_str), name),
            Self::Kind { name } => ("kind", "*", name),
            Self::Policy { name } => ("policy", "*", name),
            Self::Tenant { name } => ("tenant", "*", name.as_str()),
            Self::Server { name } => ("server", "*", name),
        }
    }

    /// Parses the output of [`SettingKey::parts`].
    #[must_use]
    pub fn from_parts(scope: &str, tenant: &str, name: &str) -> Option<Self> {
        let name_owned = name.to_owned();
        Some(match scope {
            "queue" if tenant == "*" => Self::Queue { tenant: None, name: name_owned },
            "queue" => Self::Queue { tenant: Some(Tenant::new(tenant).ok()?), name: name_owned },
            "kind" => Self::Kind { name: name_owned },
            "policy" => Self::Policy { name: name_owned },
            "tenant" => Self::Tenant { name: Tenant::new(name).ok()? },
            "server" => Self::Server { name: name_owned },
            _ => return None,
        })
    }
}

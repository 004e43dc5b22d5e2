//! Settings: queues, kinds, named policies and tenants, as every producer sees them.

use crate::job::QueueId;
use std::collections::BTreeMap;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Millis, Timestamp};

/// The settings of a node that has not been seen for this long are removed.
pub const NODE_FOR: Millis = Millis::from_secs(60);

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
    /// An alert rule.
    Alert {
        /// Its name.
        name: String,
    },
    /// A webhook secret that was replaced.
    Secret {
        /// The tenant.
        tenant: Tenant,
        /// The hash of the replaced secret.
        name: String,
    },
    /// The quotas of a tenant.
    Quota {
        /// The tenant, or all that have none of their own.
        tenant: Option<Tenant>,
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
            Self::Alert { name } => ("alert", "*", name),
            Self::Secret { tenant, name } => ("secret", tenant.as_str(), name),
            Self::Quota { tenant } => ("quota", tenant.as_ref().map_or("*", Tenant::as_str), ""),
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
            "alert" => Self::Alert { name: name_owned },
            "secret" => Self::Secret { tenant: Tenant::new(tenant).ok()?, name: name_owned },
            "quota" if tenant == "*" => Self::Quota { tenant: None },
            "quota" => Self::Quota { tenant: Some(Tenant::new(tenant).ok()?) },
            _ => return None,
        })
    }
}

/// A setting as one source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its subject.
    pub key: SettingKey,
    /// JSON text.
    pub value: String,
    /// Who set it.
    pub source: SettingSource,
    /// When it was set.
    pub set_at: Timestamp,
}

/// Who set a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// An operator, by the API or the command line.
    Operator,
    /// A node's file or environment.
    Node {
        /// The node's name.
        node: String,
        /// The place in the file, or the variable.
        origin: String,
    },
}

/// A setting that a node's file or environment names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSetting {
    /// Its subject.
    pub key: SettingKey,
    /// JSON text.
    pub value: String,
    /// The place in the file, or the variable.
    pub origin: String,
}

/// Whether a node is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is alive.
    Alive,
    /// It stops now.
    Leaving,
}

impl Setting {
    /// Where this setting stands among those of the same subject: the greatest is in force. What an operator set comes
    /// first, then the node that started last.
    pub(crate) fn rank(&self) -> (bool, Timestamp, &str) {
        match &self.source {
            SettingSource::Operator => (true, self.set_at, ""),
            SettingSource::Node { node, .. } => (false, self.set_at, node),
        }
    }
}

/// The settings in force, one per subject, sorted.
#[must_use]
pub fn in_force(settings: Vec<Setting>) -> Vec<(SettingKey, String)> {
    let mut chosen: BTreeMap<SettingKey, Setting> = BTreeMap::new();
    for setting in settings {
        match chosen.get(&setting.key) {
            Some(other) if other.rank() >= setting.rank() => {}
            Some(_) | None => drop(chosen.insert(setting.key.clone(), setting)),
        }
    }
    chosen.into_iter().map(|(key, setting)| (key, setting.value)).collect()
}

//! Settings: queues, kinds, named policies and tenants, as every producer sees them.

use crate::job::QueueId;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Millis, Timestamp};

/// A queue's row: what claims walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub id: QueueId,
    pub tenant: Tenant,
    pub name: QueueName,
    pub executor: Executor,
    pub paused: bool,
    pub created_at: Timestamp,
}

/// What a setting is about. `tenant` of `None` means every tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SettingKey {
    Queue {
        tenant: Option<Tenant>,
        name: String,
    },
    Kind {
        name: String,
    },
    /// A named policy.
    Policy {
        name: String,
    },
    Tenant {
        name: Tenant,
    },
    /// Anything of the server's that must be one for the fleet.
    Server {
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

    /// Reads back what [`SettingKey::parts`] wrote.
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

/// How long the archive keeps a finished job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Not at all: dropped on finish.
    Drop,
    For(Millis),
    Forever,
}

/// Retention of a queue's finished jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub succeeded: Keep,
    pub cancelled: Keep,
    pub failed: Keep,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |n: u64| Keep::For(Millis::from_secs(n * 86_400));
        Self { succeeded: days(7), cancelled: days(7), failed: days(90) }
    }
}

impl Keep {
    /// Reads `0`, `forever` or a duration.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "forever" => Some(Self::Forever),
            _ => Millis::parse(text).ok().map(|span| if span.is_zero() { Self::Drop } else { Self::For(span) }),
        }
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Drop => f.write_str("0"),
            Self::For(span) => span.fmt(f),
            Self::Forever => f.write_str("forever"),
        }
    }
}

//! The gates of queues: what is in use, held or parked behind them; holds are set and ended here by operators.

use super::Queues;
use crate::store::{GateName, GateStatus, Queue, Scope, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_core::Timestamp;
use windlass_core::gate::{Hold, HoldOrigin};
use windlass_core::job::{QueueName, Tenant};

/// The most gates that are listed.
pub const MAX_GATES: u32 = 1000;

/// The gates of queues and limit keys. Made by [`Queues::gates`].
#[derive(Debug, Clone)]
pub struct Gates<'a>(Queues<'a>);

impl<'a> Queues<'a> {
    /// The limits, holds and breakers of these queues as they stand.
    #[must_use]
    pub fn gates(&self) -> Gates<'a> {
        Gates(self.clone())
    }
}

impl Gates<'_> {
    /// Holds a queue, or one limit key of it: nothing of it starts until then. What runs goes on. After the hold,
    /// starts are slow at first. A handle for all tenants holds the queues of that name of every tenant. Returns how
    /// many gates are held.
    ///
    /// ```
    /// use windlass::core::job::QueueName;
    /// use windlass::{Millis, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.enqueue_kind("charge", &serde_json::json!({})).queue("billing").limit_key("stripe").await?;
    /// let (billing, gates) = (QueueName::new("billing")?, windlass.queues().by("ana").gates());
    /// let until = windlass.clock().now() + Millis::from_secs(600);
    /// gates.hold(&billing, Some("stripe"), until, "maintenance").await?;
    /// assert_eq!(gates.held().await?[0].gate.held(windlass.clock().now()).unwrap().reason, "maintenance");
    /// assert_eq!(gates.release(&billing, Some("stripe")).await?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn hold(
        &self,
        name: &QueueName,
        key: Option<&str>,
        until: Timestamp,
        reason: &str,
    ) -> Result<u64, StoreError> {
        let since = self.0.windlass.clock().now();
        let origin = HoldOrigin::Operator(self.0.by.clone());
        let hold = Hold { since, until, origin, reason: reason.to_owned() };
        let gates = self.named(name, key).await?;
        for gate in &gates {
            self.0.windlass.store().put_hold(gate, Some(&hold)).await?;
        }
        self.0.record("hold", gates.len() as u64, format!("{} until {until}: {reason}", place(name, key))).await?;
        Ok(gates.len() as u64)
    }

    /// Holds a limit key in every queue that there is: nothing with this key starts until then. Queues that are created
    /// later are not held. Returns how many gates are held.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn hold_key(&self, key: &str, until: Timestamp, reason: &str) -> Result<u64, StoreError> {
        let since = self.0.windlass.clock().now();
        let origin = HoldOrigin::Operator(self.0.by.clone());
        let hold = Hold { since, until, origin, reason: reason.to_owned() };
        let gates = self.of_key(key).await?;
        for gate in &gates {
            self.0.windlass.store().put_hold(gate, Some(&hold)).await?;
        }
        self.0.record("hold", gates.len() as u64, format!("key {key} of every queue until {until}: {reason}")).await?;
        Ok(gates.len() as u64)
    }

    /// Ends the holds of a limit key in every queue. Returns how many gates were held.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn release_key(&self, key: &str) -> Result<u64, StoreError> {
        let mut released = 0;
        for gate in self.of_key(key).await? {
            released += u64::from(self.0.windlass.store().put_hold(&gate, None).await?);
        }
        if released > 0 {
            self.0.record("release", released, format!("key {key} of every queue")).await?;
        }
        Ok(released)
    }

    /// Ends a hold. Returns how many gates were held.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn release(&self, name: &QueueName, key: Option<&str>) -> Result<u64, StoreError> {
        let mut released = 0;
        for gate in self.named(name, key).await? {
            released += u64::from(self.0.windlass.store().put_hold(&gate, None).await?);
        }
        if released > 0 {
            self.0.record("release", released, place(name, key)).await?;
        }
        Ok(released)
    }

    /// The queues and keys that are held or whose circuit breaker is open, at most [`MAX_GATES`].
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn held(&self) -> Result<Vec<GateStatus>, StoreError> {
        self.0.windlass.store().gates(&self.0.scope, None, MAX_GATES).await
    }

    /// The gates of a queue: what is in use, held or parked, at most `limit` of them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn of(&self, name: &QueueName, limit: u32) -> Result<Vec<GateStatus>, StoreError> {
        self.0.windlass.store().gates(&self.0.scope, Some(name), limit.min(MAX_GATES)).await
    }

    /// The gates of every queue that has flow settings, and whatever else is held: at most [`MAX_GATES`] of each queue.
    pub(crate) async fn all(&self) -> Result<Vec<GateStatus>, StoreError> {
        use crate::store::SettingKey;
        let mut found = self.held().await?;
        let limited = self.0.windlass.settings().all().await?.into_iter().filter_map(|(key, text)| match key {
            SettingKey::Queue { name, .. } if !super::status::flow_of(&text).is_empty() => QueueName::new(&name).ok(),
            SettingKey::Queue { .. }
            | SettingKey::Kind { .. }
            | SettingKey::Policy { .. }
            | SettingKey::Tenant { .. }
            | SettingKey::Server { .. }
            | SettingKey::Alert { .. }
            | SettingKey::Secret { .. }
            | SettingKey::Quota { .. } => None,
        });
        let names: BTreeSet<QueueName> = limited.collect();
        found.retain(|status| !names.contains(&status.name.queue));
        for name in names {
            found.extend(self.of(&name, MAX_GATES).await?);
        }
        Ok(found)
    }

    /// The gates of a key in all queues, each once, whatever its executors.
    async fn of_key(&self, key: &str) -> Result<BTreeSet<GateName>, StoreError> {
        let gate = |queue: Queue| GateName { tenant: Some(queue.tenant), queue: queue.name, key: Some(key.into()) };
        Ok(self.0.rows().await?.into_iter().map(gate).collect())
    }

    async fn named(&self, name: &QueueName, key: Option<&str>) -> Result<Vec<GateName>, StoreError> {
        let gate = |tenant: Tenant| GateName { tenant: Some(tenant), queue: name.clone(), key: key.map(Arc::from) };
        Ok(match &self.0.scope {
            Scope::Tenant(tenant) => vec![gate(tenant.clone())],
            Scope::All => self.0.tenants(name).await?.into_iter().map(gate).collect(),
        })
    }
}

fn place(name: &QueueName, key: Option<&str>) -> String {
    key.map_or_else(|| format!("queue {name}"), |key| format!("key {key} of queue {name}"))
}

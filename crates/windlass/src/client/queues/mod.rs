//! Queues: how full they are, their policy and retention; pause, resume and purge them.

mod gates;
mod purge;
mod settings;
mod status;
mod waiting;

pub use gates::{Gates, MAX_GATES};
pub use purge::{PurgeCursor, Purged};
pub use settings::QueueSettings;
pub(crate) use status::any_queue;
pub use status::{QueueRates, QueueStatus};
pub use waiting::{QueueWaiting, WaitingCounts};

use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::store::{Depth, Queue, Scope, StoreError};
use std::collections::BTreeSet;
use windlass_core::job::{QueueName, Tenant};

/// The queues of all tenants or one. Made by [`Windlass::queues`].
#[derive(Debug, Clone)]
pub struct Queues<'a> {
    windlass: &'a Windlass,
    scope: Scope,
    by: String,
}

impl Windlass {
    /// The queues. A queue is created by its first job, or by the first worker that serves it.
    ///
    /// ```
    /// use windlass::Windlass;
    /// use windlass::core::job::QueueName;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.enqueue_kind("email", &serde_json::json!({})).queue("mail").await?;
    /// let mail = QueueName::new("mail")?;
    /// windlass.queues().set_policy(&mail, "full-jitter").await?;
    /// windlass.queues().pause(&mail).await?;
    /// let status = &windlass.queues().list().await?[0];
    /// assert!(status.paused && status.due == 1);
    /// assert_eq!(windlass.queues().purge(&mail).await?.cancelled, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn queues(&self) -> Queues<'_> {
        Queues { windlass: self, scope: Scope::All, by: BY_LIBRARY.into() }
    }
}

impl<'a> Queues<'a> {
    /// The queues of one tenant, or of all.
    #[must_use]
    pub fn within(self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// Who acts, for the audit; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: name.into(), ..self }
    }

    /// All queues with their depths, rates, policy and retention: one entry per tenant and name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<QueueStatus>, StoreError> {
        status::list(self.windlass, &self.scope).await
    }

    /// The queues as the store knows them: one entry per tenant, name and executor.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn rows(&self) -> Result<Vec<Queue>, StoreError> {
        let mut queues = self.windlass.store().queues().await?;
        queues.retain(|queue| self.scope.covers(&queue.tenant));
        Ok(queues)
    }

    /// How full each row of [`Queues::rows`] is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn depths(&self) -> Result<Vec<Depth>, StoreError> {
        self.windlass.store().depths(&self.scope).await
    }

    /// Pauses the queues of a name: none of their jobs is started until they are resumed. Returns how many there are.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn pause(&self, name: &QueueName) -> Result<u64, StoreError> {
        self.set_paused(name, true).await
    }

    /// Resumes the queues of a name. Returns how many there are.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn resume(&self, name: &QueueName) -> Result<u64, StoreError> {
        self.set_paused(name, false).await
    }

    /// Whether there is a queue of this name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn exists(&self, name: &QueueName) -> Result<bool, StoreError> {
        Ok(!self.tenants(name).await?.is_empty())
    }

    async fn set_paused(&self, name: &QueueName, paused: bool) -> Result<u64, StoreError> {
        let tenants = self.tenants(name).await?;
        if tenants.is_empty() {
            return Ok(0);
        }
        let mut queues = 0;
        for tenant in tenants {
            queues += self.windlass.store().pause_queue(&tenant, name, paused).await?;
        }
        self.record(if paused { "pause queue" } else { "resume queue" }, queues, format!("queue {name}")).await?;
        Ok(queues)
    }

    /// The tenants in scope that have such a queue.
    async fn tenants(&self, name: &QueueName) -> Result<BTreeSet<Tenant>, StoreError> {
        Ok(self.rows().await?.into_iter().filter(|queue| queue.name == *name).map(|queue| queue.tenant).collect())
    }

    async fn record(&self, action: &str, count: u64, detail: String) -> Result<(), StoreError> {
        self.windlass.audit().by(&self.by).record(action, count, detail).await
    }
}

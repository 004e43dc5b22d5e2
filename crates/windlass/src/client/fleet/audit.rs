//! The audit: what operators and their tools did.

use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::store::{Audit, StoreError};

/// What operators and their tools did. Made by [`Windlass::audit`].
#[derive(Debug, Clone)]
pub struct AuditLog<'a> {
    windlass: &'a Windlass,
    by: String,
}

impl Windlass {
    /// The log of what operators and their tools did.
    ///
    /// ```
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.audit().by("ann").record("import", 3, "three old jobs").await?;
    /// assert_eq!(windlass.audit().latest(10).await?[0].by, "ann");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn audit(&self) -> AuditLog<'_> {
        AuditLog { windlass: self, by: BY_LIBRARY.into() }
    }
}

impl AuditLog<'_> {
    /// Who acts; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: name.into(), ..self }
    }

    /// The latest entries, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn latest(&self, limit: u32) -> Result<Vec<Audit>, StoreError> {
        self.windlass.store().audits(limit).await
    }

    /// Adds an entry: what was done, and to how many jobs or queues.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn record(&self, action: &str, count: u64, detail: impl Into<String>) -> Result<(), StoreError> {
        let at = self.windlass.clock().now();
        let entry = Audit { at, by: self.by.clone(), action: action.to_owned(), count, detail: detail.into() };
        self.windlass.store().audit(&entry).await
    }
}

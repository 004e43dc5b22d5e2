//! The store itself: its health and its schema.

use crate::client::windlass::Windlass;
use crate::store::{Health, StoreError};

impl Windlass {
    /// Whether the store can be written to, with warnings for the operator.
    ///
    /// ```
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let health = windlass.health().await?;
    /// println!("{}, schema {}", health.engine, health.schema);
    /// assert_eq!(health.warnings.len(), 1, "a store in memory ends with the process");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn health(&self) -> Result<Health, StoreError> {
        self.store().health().await
    }

    /// Brings the schema up to date. Repeating it changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = windlass::Windlass::open("memory:").await?;
    /// windlass.migrate().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be written to, or its schema is newer than this program.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.store().migrate().await
    }
}

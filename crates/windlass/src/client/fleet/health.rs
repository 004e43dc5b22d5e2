//! The store itself: its health, its schema, a backup of it.

use crate::client::inner::Backend;
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

    /// Copies a SQLite store to a new file while it is in use. The copy is consistent: the store at one moment.
    ///
    /// ```no_run
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = windlass::Windlass::open("sqlite:jobs.db").await?;
    /// windlass.backup("jobs.backup.db").await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store is not a SQLite file opened by its URL, or the copy could not be made.
    #[allow(clippy::unused_async)] // Without SQLite there is nothing to wait for.
    pub async fn backup(&self, path: &str) -> Result<(), StoreError> {
        match self.inner().backend() {
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(store) => store.backup(path).await,
            #[cfg(feature = "postgres")]
            Backend::Postgres(_) => Err(not_sqlite(path)),
            Backend::Other => Err(not_sqlite(path)),
        }
    }
}

fn not_sqlite(path: &str) -> StoreError {
    StoreError::Invalid(format!("only a SQLite store can be copied to {path}; for Postgres use pg_dump"))
}

//! Workers: which were seen recently, and what they run.

use crate::client::windlass::Windlass;
use crate::store::{StoreError, WorkerReport};
use windlass_core::Millis;

/// Workers of the whole installation. Made by [`Windlass::workers`].
#[derive(Debug, Clone, Copy)]
pub struct Workers<'a> {
    windlass: &'a Windlass,
}

impl Windlass {
    /// The workers of the whole installation, in this process and elsewhere.
    ///
    /// ```
    /// use windlass::{Millis, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let running: u32 = windlass.workers().seen_within(Millis::from_secs(60)).await?.iter().map(|w| w.running).sum();
    /// assert_eq!(running, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn workers(&self) -> Workers<'_> {
        Workers { windlass: self }
    }
}

impl Workers<'_> {
    /// Workers that reported within this time. They report every few seconds.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn seen_within(&self, span: impl Into<Millis>) -> Result<Vec<WorkerReport>, StoreError> {
        self.windlass.store().workers(self.windlass.clock().now() - span.into()).await
    }
}

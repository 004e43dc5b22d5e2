//! Alerts: which conditions hold now, and which held before.

use crate::client::windlass::Windlass;
use crate::store::{Alert, StoreError};

/// Alerts of the whole installation. Made by [`Windlass::alerts`].
#[derive(Debug, Clone, Copy)]
pub struct Alerts<'a> {
    windlass: &'a Windlass,
}

impl Windlass {
    /// The alerts of the whole installation.
    ///
    /// ```
    /// use windlass::client::AlertStatus;
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let alerts = windlass.alerts().list().await?;
    /// assert!(!alerts.iter().any(|alert| alert.status == AlertStatus::Firing));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn alerts(&self) -> Alerts<'_> {
        Alerts { windlass: self }
    }
}

impl Alerts<'_> {
    /// All alerts: pending, firing and resolved.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<Alert>, StoreError> {
        self.windlass.store().alerts().await
    }
}

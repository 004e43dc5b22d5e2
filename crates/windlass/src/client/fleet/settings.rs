//! Settings as they are stored: of queues, kinds, policies, tenants and the server, as JSON text.

use crate::client::windlass::Windlass;
use crate::store::{SettingKey, StoreError};

/// Settings that every producer follows. Made by [`Windlass::settings`].
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    windlass: &'a Windlass,
}

impl Windlass {
    /// The stored settings. [`Windlass::queues`] and [`Windlass::policies`] check what they store; this does not.
    ///
    /// ```
    /// use windlass::client::SettingKey;
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let key = SettingKey::Kind { name: "email".into() };
    /// windlass.settings().put(&key, r#"{"policy":"full-jitter"}"#).await?;
    /// assert_eq!(windlass.settings().all().await?.len(), 1);
    /// windlass.settings().remove(&key).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn settings(&self) -> Settings<'_> {
        Settings { windlass: self }
    }
}

impl Settings<'_> {
    /// All settings, with their values as JSON text.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn all(&self) -> Result<Vec<(SettingKey, String)>, StoreError> {
        self.windlass.store().settings().await
    }

    /// Stores a setting. Jobs enqueued by this process follow it from now on, others within seconds.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn put(&self, key: &SettingKey, value: &str) -> Result<(), StoreError> {
        self.windlass.inner().put_setting(key, Some(value)).await
    }

    /// Removes a setting.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove(&self, key: &SettingKey) -> Result<(), StoreError> {
        self.windlass.inner().put_setting(key, None).await
    }
}

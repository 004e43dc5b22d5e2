//! Settings as they are stored: of queues, kinds, policies, tenants and the server, as JSON text.

use crate::client::policies::catalogue::Catalogue;
use crate::client::windlass::Windlass;
use crate::store::{NodeSetting, Presence, Setting, SettingKey, SettingSource, StoreError, in_force};

/// Why settings were not stored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsFault {
    /// Some jobs could not be stored under them.
    #[error("{0}")]
    Unusable(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of storing a node's settings.
#[derive(Debug, Clone, Default)]
pub struct NodeSettingsPut {
    /// How many subjects have another value in force than before.
    pub changed: usize,
    /// Settings of others that name one of the same subjects with another value. An operator's are in force instead.
    pub differing: Vec<Setting>,
}

/// Settings that every producer follows. Made by [`Windlass::settings`].
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub(crate) windlass: &'a Windlass,
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
    /// The settings in force, with their values as JSON text.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn all(&self) -> Result<Vec<(SettingKey, String)>, StoreError> {
        self.windlass.store().settings().await
    }

    /// Every setting of every source, sorted by subject: those in force and those that others override.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn stored(&self) -> Result<Vec<Setting>, StoreError> {
        let mut stored = self.windlass.store().stored_settings().await?;
        stored.sort_by(|a, b| (&a.key, b.rank()).cmp(&(&b.key, a.rank())));
        Ok(stored)
    }

    /// Checks that jobs can be stored under the settings in force.
    ///
    /// # Errors
    /// Which jobs could not be stored, and why; or the store cannot be read.
    pub async fn check(&self) -> Result<(), SettingsFault> {
        Catalogue::load(&self.all().await?).check().map_err(SettingsFault::Unusable)
    }

    /// Replaces the settings that a node's file and environment name: what they no longer name goes. Nothing is stored
    /// if jobs could not be stored under the result. Returns where this node's settings differ from others.
    ///
    /// # Errors
    /// Which jobs could not be stored, and why; or the store cannot be used.
    pub async fn put_of_node(&self, node: &str, settings: &[NodeSetting]) -> Result<NodeSettingsPut, SettingsFault> {
        let store = self.windlass.store();
        let now = self.windlass.clock().now();
        let is_own = |setting: &Setting| matches!(&setting.source, SettingSource::Node { node: of, .. } if of == node);
        let stored = store.stored_settings().await?;
        let before = in_force(stored.clone());
        let others: Vec<Setting> = stored.into_iter().filter(|setting| !is_own(setting)).collect();
        let mut after = others.clone();
        after.extend(settings.iter().map(|setting| Setting {
            key: setting.key.clone(),
            value: setting.value.clone(),
            source: SettingSource::Node { node: node.to_owned(), origin: setting.origin.clone() },
            set_at: now,
        }));
        let after = in_force(after);
        Catalogue::load(&after).check().map_err(SettingsFault::Unusable)?;
        store.put_node_settings(node, settings).await?;
        self.windlass.inner().forget_catalogue();
        let changed = after.iter().filter(|setting| !before.contains(setting)).count();
        let differs = |other: &Setting| settings.iter().any(|own| own.key == other.key && own.value != other.value);
        Ok(NodeSettingsPut { changed, differing: others.into_iter().filter(differs).collect() })
    }

    /// Records that a node is alive, or that it leaves. The settings of nodes that left or fell silent are removed.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn touch_node(&self, node: &str, presence: Presence) -> Result<(), StoreError> {
        self.windlass.store().touch_node(node, presence).await
    }

    /// Stores a setting as the operator's. It is in force until it is removed, whatever files say. Jobs enqueued by
    /// this process follow it from now on, others within seconds.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn put(&self, key: &SettingKey, value: &str) -> Result<(), StoreError> {
        self.windlass.inner().put_setting(key, Some(value)).await
    }

    /// Removes the operator's setting. If a node's file names the subject, that is in force then.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove(&self, key: &SettingKey) -> Result<(), StoreError> {
        self.windlass.inner().put_setting(key, None).await
    }
}

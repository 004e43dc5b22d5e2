//! The keys in use: names of keys that something stored may be sealed with. A node registers the key it seals with
//! before it seals anything, and a node that lacks a registered key neither claims nor stores. Each key has a setting
//! of its own, so that nodes that register at the same time do not overwrite each other's names.

use super::store::SealedStore;
use crate::store::{SettingKey, StoreError};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Millis;

type Result<T> = std::result::Result<T, StoreError>;

/// The server setting that named all keys in use at once. It is still read, and rotation removes it.
const SEALING: &str = "sealing";
/// How old the names of the keys in use may be.
pub(super) const NAMES_AGE: Millis = Millis::from_secs(1);

/// What a node knows of the keys in use.
#[derive(Debug, Default)]
pub(super) struct KeysInUse(Mutex<Known>);

#[derive(Debug, Default, Clone)]
struct Known {
    /// When the names were read, and one that is not in the ring.
    read: Option<(Millis, Option<String>)>,
    /// Since when this node's own key has been registered.
    registered_since: Option<Millis>,
}

impl KeysInUse {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key that is lacking, if the names were read a moment ago.
    fn fresh(&self, now: Millis) -> Option<Option<String>> {
        let read = self.lock().read.clone();
        read.filter(|(at, _)| now >= *at && now - *at < NAMES_AGE).map(|(_, lacking)| lacking)
    }
}

impl SealedStore {
    /// # Errors
    /// A key in use is not in the ring: nothing may be claimed or stored.
    pub(super) async fn ready(&self) -> Result<()> {
        let now = self.inner.clock().monotonic();
        let lacking = match self.in_use.fresh(now) {
            Some(lacking) => lacking,
            None => self.look(now).await?,
        };
        lacking.map_or(Ok(()), |key| Err(refusal(&key)))
    }

    /// As [`ready`](Self::ready), except that a node that has sealed before may go on: the outcome of an attempt is not
    /// refused because a key came into use while it ran. It would only run again.
    pub(super) async fn ready_to_commit(&self) -> Result<()> {
        let may_go_on = self.ring().is_empty() || self.in_use.lock().registered_since.is_some();
        if may_go_on { Ok(()) } else { self.ready().await }
    }

    /// Whether every node knows by now that this node's key is in use, so that what they hold may be sealed with it.
    ///
    /// # Errors
    /// A key in use is not in the ring.
    pub(crate) async fn is_known_everywhere(&self) -> Result<bool> {
        self.ready().await?;
        let now = self.inner.clock().monotonic();
        Ok(self.in_use.lock().registered_since.is_some_and(|since| now - since > NAMES_AGE))
    }

    /// Reads the names, registers the key that seals here, and returns a key that is lacking.
    async fn look(&self, now: Millis) -> Result<Option<String>> {
        let mut used = self.keys_in_use().await?;
        // A node with the wrong ring seals nothing, so its key is not in use.
        if self.lacking(&used).is_none()
            && let Some(first) = self.unregistered(&used)
        {
            let (key, value) = registration(first);
            self.inner.put_setting(&key, Some(&value)).await?;
            self.in_use.lock().registered_since = Some(self.inner.clock().monotonic());
            // Another node may have registered one at the same time.
            used = self.keys_in_use().await?;
        }
        let lacking = self.lacking(&used);
        self.know(now, lacking.clone());
        Ok(lacking)
    }

    /// Remembers what was read at `now`. If nothing is lacking, this node's own key was among the names.
    fn know(&self, now: Millis, lacking: Option<String>) {
        let mut known = self.in_use.lock();
        if lacking.is_none() && !self.ring().is_empty() {
            known.registered_since.get_or_insert(now);
        }
        known.read = Some((now, lacking));
    }

    /// The setting that registers this node's key, if it is still to be stored: with what is sealed, by callers with a
    /// transaction of their own, which may keep everybody else from writing.
    ///
    /// # Errors
    /// A key in use is not in the ring.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn registration(&self) -> Result<Option<(SettingKey, String)>> {
        let now = self.inner.clock().monotonic();
        let used = self.keys_in_use().await?;
        if let Some(key) = self.lacking(&used) {
            return Err(refusal(&key));
        }
        if let Some(first) = self.unregistered(&used) {
            return Ok(Some(registration(first)));
        }
        self.know(now, None);
        Ok(None)
    }

    /// Whether this node was ready a moment ago, for callers that cannot await.
    #[cfg(feature = "sqlite")]
    pub(crate) fn was_ready(&self) -> bool {
        self.in_use.fresh(self.inner.clock().monotonic()).is_some_and(|lacking| lacking.is_none())
    }

    fn lacking(&self, used: &[String]) -> Option<String> {
        used.iter().find(|name| self.ring().find(name).is_none()).cloned()
    }

    fn unregistered(&self, used: &[String]) -> Option<&str> {
        self.ring().names().next().filter(|first| !used.iter().any(|name| name == first))
    }

    /// Whether this node's key is among the names already.
    pub(super) async fn is_registered(&self) -> Result<bool> {
        Ok(self.unregistered(&self.keys_in_use().await?).is_none())
    }

    /// The names of the keys that something stored may be sealed with.
    pub(super) async fn keys_in_use(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        for (key, text) in self.inner.settings().await? {
            let SettingKey::Server { name } = key else { continue };
            match name.strip_prefix(SEALING) {
                Some("") => names.extend(listed(&text)),
                Some(rest) => names.extend(rest.strip_prefix(':').map(str::to_owned)),
                None => {}
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Nothing is sealed with these keys any more, but with the first one of the ring.
    pub(super) async fn forget_keys(&self, names: &[String]) -> Result<()> {
        let Some(first) = self.ring().names().next() else { return Ok(()) };
        let (key, value) = registration(first);
        self.inner.put_setting(&key, Some(&value)).await?;
        for name in names.iter().filter(|name| *name != first) {
            self.inner.put_setting(&registration(name).0, None).await?;
        }
        self.inner.put_setting(&SettingKey::Server { name: SEALING.into() }, None).await
    }
}

/// The setting that says that a key is in use.
fn registration(name: &str) -> (SettingKey, String) {
    (SettingKey::Server { name: format!("{SEALING}:{name}") }, json!({}).to_string())
}

fn listed(text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let names = value.get("keys").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn refusal(key: &str) -> StoreError {
    StoreError::unavailable(format!(
        "values in the store are sealed with the key `{key}`, which is not in this node's key ring"
    ))
}

//! Retention: how long each queue keeps what has finished, from the settings as this node last read them.

use crate::store::json::retention_of;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::names;
use crate::store::postgres::registry;
use crate::store::{Retention, SettingKey, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_core::Millis;
use windlass_core::job::{QueueName, Tenant};

/// How long settings are kept before they are read again: other nodes may change them.
const FRESH: Millis = Millis::from_secs(5);

type Settings = Arc<Vec<(SettingKey, String)>>;

/// Settings, and when they were read.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Remembered(Mutex<Option<(Millis, Settings)>>);

impl Remembered {
    fn get(&self, now: Millis) -> Option<Settings> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.as_ref().filter(|(at, _)| now < *at + FRESH).map(|(_, settings)| settings.clone())
    }

    fn put(&self, now: Millis, settings: Settings) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, settings));
    }

    pub(in crate::store::postgres) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

async fn remembered_settings(store: &Inner, on: On<'_>) -> Result<Settings, StoreError> {
    let now = store.clock.monotonic();
    if let Some(settings) = store.remembered.get(now) {
        return Ok(settings);
    }
    let settings = Arc::new(registry::settings_on(on).await?);
    store.remembered.put(now, settings.clone());
    Ok(settings)
}

/// Name and retention of each of these queues.
pub(in crate::store::postgres) async fn retentions(
    store: &Inner,
    on: On<'_>,
    queues: impl Iterator<Item = i64>,
) -> Result<HashMap<i64, (QueueName, Retention)>, StoreError> {
    let ids: HashSet<i64> = queues.collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    names::look_up_queues(store, on, &ids).await?;
    let settings = remembered_settings(store, on).await?;
    let mut retentions = HashMap::new();
    for id in ids {
        let queue = store.names.queue(id).ok_or_else(|| StoreError::Invalid(format!("there is no queue {id}")))?;
        retentions.insert(id, (queue.name.clone(), retention(&settings, &queue.tenant, &queue.name)));
    }
    Ok(retentions)
}

/// A queue's retention, by the settings.
pub(in crate::store::postgres) fn retention(
    settings: &[(SettingKey, String)],
    tenant: &Tenant,
    name: &QueueName,
) -> Retention {
    let find = |tenant: Option<&Tenant>| {
        let is_meant = |key: &SettingKey| match key {
            SettingKey::Queue { tenant: of, name: queue } => of.as_ref() == tenant && queue == name.as_str(),
            SettingKey::Kind { .. }
            | SettingKey::Policy { .. }
            | SettingKey::Tenant { .. }
            | SettingKey::Server { .. }
            | SettingKey::Alert { .. } => false,
        };
        settings.iter().find(|(key, _)| is_meant(key)).map(|(_, value)| value.as_str())
    };
    retention_of(find(Some(tenant)), find(None))
}

//! Retention: how long each queue keeps what has finished, from the settings as this node last read them.

use crate::store::json::retention_in;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::{Retention, SettingKey, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_core::Millis;
use windlass_core::job::{QueueName, Tenant};

/// How long settings are believed before they are read again: other nodes may change them.
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

impl Inner {
    /// All settings, read now.
    pub(in crate::store::postgres) async fn settings_on(
        &self,
        on: On<'_>,
    ) -> Result<Vec<(SettingKey, String)>, StoreError> {
        let mut settings = Vec::new();
        for row in &on.query(Sql::Settings, &[]).await? {
            let c = Columns::new(row);
            let (scope, tenant, name) = (c.text("scope")?, c.text("tenant")?, c.text("name")?);
            let key = SettingKey::from_parts(scope, tenant, name)
                .ok_or_else(|| StoreError::corrupt(format!("setting {scope} {name}"), "scopes are known words"))?;
            settings.push((key, c.get("value")?));
        }
        settings.sort();
        Ok(settings)
    }

    async fn remembered_settings(&self, on: On<'_>) -> Result<Settings, StoreError> {
        let now = self.clock.monotonic();
        if let Some(settings) = self.remembered.get(now) {
            return Ok(settings);
        }
        let settings = Arc::new(self.settings_on(on).await?);
        self.remembered.put(now, settings.clone());
        Ok(settings)
    }

    /// Name and retention of each of these queues.
    pub(in crate::store::postgres) async fn retentions(
        &self,
        on: On<'_>,
        queues: impl Iterator<Item = i64>,
    ) -> Result<HashMap<i64, (QueueName, Retention)>, StoreError> {
        let ids: HashSet<i64> = queues.collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        self.look_up_queues(on, &ids).await?;
        let settings = self.remembered_settings(on).await?;
        let mut retentions = HashMap::new();
        for id in ids {
            let queue = self.names.queue(id).ok_or_else(|| StoreError::Invalid(format!("there is no queue {id}")))?;
            retentions.insert(id, (queue.name.clone(), retention(&settings, &queue.tenant, &queue.name)));
        }
        Ok(retentions)
    }
}

/// A queue's retention: the tenant's own setting over the one for all over the default.
pub(in crate::store::postgres) fn retention(
    settings: &[(SettingKey, String)],
    tenant: &Tenant,
    name: &QueueName,
) -> Retention {
    let find = |tenant: Option<&Tenant>| {
        settings.iter().find_map(|(key, value)| match key {
            SettingKey::Queue { tenant: of, name: queue } if of.as_ref() == tenant && queue == name.as_str() => {
                Some(value)
            }
            SettingKey::Queue { .. }
            | SettingKey::Kind { .. }
            | SettingKey::Policy { .. }
            | SettingKey::Tenant { .. }
            | SettingKey::Server { .. } => None,
        })
    };
    let shared = find(None).map_or_else(Retention::default, |text| retention_in(text, Retention::default()));
    find(Some(tenant)).map_or(shared, |text| retention_in(text, shared))
}

//! What queues' settings say, as this node last read them: how long finished jobs are kept, and which gates there are.

use crate::store::gates::QueueFlow;
use crate::store::json::retention_of;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::gates::Gated;
use crate::store::postgres::life::names;
use crate::store::postgres::registry;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::rows;
use crate::store::{Retention, SettingKey, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_core::Millis;
use windlass_core::job::{QueueName, Tenant};

/// How long settings are kept before they are read again: other nodes may change them.
const FRESH: Millis = Millis::from_secs(1);

type Settings = Arc<Vec<(SettingKey, String)>>;

/// The flow of every queue whose gates must be asked.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Flows {
    gated: HashMap<i64, Gated>,
    /// The queues that there were. `None` if nothing is limited: then a newer queue is not either.
    looked_at: Option<HashSet<i64>>,
}

impl Flows {
    /// Whether these queues were all there, so that none of them may have a limit that was not looked up.
    pub(in crate::store::postgres) fn covers(&self, queues: &HashSet<i64>) -> bool {
        self.looked_at.as_ref().is_none_or(|known| queues.is_subset(known))
    }

    pub(in crate::store::postgres) fn of(&self, queue: i64) -> Option<Gated> {
        self.gated.get(&queue).cloned()
    }
}

/// Settings and flows, and when they were read.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Remembered(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    settings: Option<(Millis, Settings)>,
    flows: Option<(Millis, Arc<Flows>)>,
}

impl Remembered {
    fn get(&self, now: Millis) -> Option<Settings> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.settings.as_ref().filter(|(at, _)| now < *at + FRESH).map(|(_, settings)| settings.clone())
    }

    fn put(&self, now: Millis, settings: Settings) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).settings = Some((now, settings));
    }

    /// The flow of every queue whose gates must be asked, if it was read lately.
    pub(in crate::store::postgres) fn flows(&self, now: Millis) -> Option<Arc<Flows>> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.flows.as_ref().filter(|(at, _)| now < *at + FRESH).map(|(_, flows)| flows.clone())
    }

    fn put_flows(&self, now: Millis, flows: Arc<Flows>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flows = Some((now, flows));
    }

    pub(in crate::store::postgres) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Memory::default();
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

/// Reads which queues have gates or settings about flow, and remembers them.
pub(in crate::store::postgres) async fn remember_flows(store: &Inner, on: On<'_>) -> Result<Arc<Flows>, StoreError> {
    let now = store.clock.monotonic();
    let settings = remembered_settings(store, on).await?;
    let rows = on.query(Sql::GateQueues, &[]).await?;
    let with_gates: HashSet<i64> = rows.iter().map(|row| Columns::new(row).get("id")).collect::<Result<_, _>>()?;
    let mut flows = Flows::default();
    let has_flow = settings.iter().any(|(key, value)| is_about_flow(key, value));
    if has_flow || !with_gates.is_empty() {
        let looked_at = flows.looked_at.insert(HashSet::new());
        for row in &on.query(Sql::Queues, &[]).await? {
            let queue = rows::queue(row)?;
            let flow = flow(&settings, &queue.tenant, &queue.name);
            looked_at.insert(queue.id.0);
            if with_gates.contains(&queue.id.0) || flow.as_ref().is_some_and(QueueFlow::is_gated) {
                flows.gated.insert(queue.id.0, (Arc::new(queue), Arc::new(flow.unwrap_or_default())));
            }
        }
    }
    let flows = Arc::new(flows);
    store.remembered.put_flows(now, flows.clone());
    Ok(flows)
}

fn is_about_flow(key: &SettingKey, value: &str) -> bool {
    let is_queue = matches!(key, SettingKey::Queue { .. });
    is_queue && QueueFlow::read(Some(value), None).is_some_and(|flow| flow.is_gated())
}

/// These queues, which have been looked up, with what is in force for them.
pub(in crate::store::postgres) async fn flows(
    store: &Inner,
    on: On<'_>,
    queues: &HashSet<i64>,
) -> Result<HashMap<i64, Gated>, StoreError> {
    let settings = remembered_settings(store, on).await?;
    let gated = |id: &i64| {
        let queue = store.names.queue(*id)?;
        let flow = flow(&settings, &queue.tenant, &queue.name).unwrap_or_default();
        Some((*id, (queue, Arc::new(flow))))
    };
    Ok(queues.iter().filter_map(gated).collect())
}

/// A queue's flow, by the settings.
pub(in crate::store::postgres) fn flow(
    settings: &[(SettingKey, String)],
    tenant: &Tenant,
    name: &QueueName,
) -> Option<QueueFlow> {
    let (own, shared) = of_queue(settings, tenant, name);
    QueueFlow::read(own, shared)
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
    let (own, shared) = of_queue(settings, tenant, name);
    retention_of(own, shared)
}

/// The tenant's own setting of a queue, and the one for all tenants.
fn of_queue<'s>(
    settings: &'s [(SettingKey, String)],
    tenant: &Tenant,
    name: &QueueName,
) -> (Option<&'s str>, Option<&'s str>) {
    let find = |tenant: Option<&Tenant>| {
        let is_meant = |key: &SettingKey| match key {
            SettingKey::Queue { tenant: of, name: queue } => of.as_ref() == tenant && queue == name.as_str(),
            SettingKey::Kind { .. }
            | SettingKey::Policy { .. }
            | SettingKey::Tenant { .. }
            | SettingKey::Server { .. }
            | SettingKey::Alert { .. }
            | SettingKey::Secret { .. }
            | SettingKey::Quota { .. } => false,
        };
        settings.iter().find(|(key, _)| is_meant(key)).map(|(_, value)| value.as_str())
    };
    (find(Some(tenant)), find(None))
}

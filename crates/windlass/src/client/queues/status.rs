//! The status of a queue: one entry per tenant and name, whatever its executors.

use crate::client::policies::catalogue::Catalogue;
use crate::client::windlass::Windlass;
use crate::job::QueueId;
use crate::store::{Depth, Queue, Retention, Scope, SettingKey, StoreError, json};
use crate::tally::Tally;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::{Partial, Role};
use windlass_core::{Executor, Millis, Policy, Timestamp};

/// The window of rates.
const WINDOW: Millis = Millis::from_secs(300);

/// A queue of one tenant.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Its owner.
    pub tenant: Tenant,
    /// Its name.
    pub name: QueueName,
    /// Who runs its jobs: workers, Windlass itself, or both.
    pub executors: Vec<Executor>,
    /// Whether it is paused.
    pub paused: bool,
    /// Jobs that are due and wait for a worker.
    pub due: u64,
    /// Jobs that wait for their time, first or next.
    pub later: u64,
    /// Jobs that run.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// Due time of the job that has been due longest.
    pub oldest_due: Option<Timestamp>,
    /// What happened in the last 5 minutes.
    pub rates: QueueRates,
    /// The policy that was set for it: the tenant's own, else the one for all tenants.
    pub policy: Option<Value>,
    /// The complete policy of a job without its own or its kind's policy. `None` if the settings contradict each other.
    pub effective_policy: Option<Policy>,
    /// How long its finished jobs are kept.
    pub retention: Retention,
    /// Its limits, breaker, retry budget and error rules: the tenant's own, and those for all tenants that it does not
    /// replace.
    pub flow: Map<String, Value>,
}

/// Jobs per second over the last 5 minutes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueueRates {
    /// Stored.
    pub enqueued: f64,
    /// Finished as succeeded.
    pub succeeded: f64,
    /// Finished as failed.
    pub failed: f64,
    /// Failures that were followed by a retry.
    pub retried: f64,
}

impl QueueStatus {
    /// Live jobs: due, waiting for their time, running.
    #[must_use]
    pub const fn depth(&self) -> u64 {
        self.due + self.later + self.running
    }

    fn new(queue: &Queue, settings: &Settings) -> Self {
        let [own, shared] = settings.of(queue);
        Self {
            tenant: queue.tenant.clone(),
            name: queue.name.clone(),
            executors: Vec::new(),
            paused: false,
            due: 0,
            later: 0,
            running: 0,
            dead: 0,
            oldest_due: None,
            rates: QueueRates::default(),
            policy: own.and_then(policy_in).or_else(|| shared.and_then(policy_in)),
            effective_policy: settings.effective(queue),
            retention: json::retention_of(own, shared),
            flow: [shared, own].into_iter().flatten().flat_map(flow_of).collect(),
        }
    }

    fn add(&mut self, queue: &Queue, depth: Option<&Depth>, tally: Tally) {
        self.executors.push(queue.executor);
        self.paused |= queue.paused;
        if let Some(depth) = depth {
            self.due += depth.due;
            self.later += depth.later;
            self.running += depth.running;
            self.dead += depth.dead;
            self.oldest_due = [self.oldest_due, depth.oldest_due].into_iter().flatten().min();
        }
        let per_second = |count: i64| count as f64 / (WINDOW.get() as f64 / 1000.0);
        self.rates.enqueued += per_second(tally.enqueued);
        self.rates.succeeded += per_second(tally.succeeded);
        self.rates.failed += per_second(tally.failed);
        self.rates.retried += per_second(tally.retried);
    }
}

pub(super) async fn list(windlass: &Windlass, scope: &Scope) -> Result<Vec<QueueStatus>, StoreError> {
    let store = windlass.store();
    let queues = store.queues().await?;
    let depths: BTreeMap<QueueId, Depth> = store.depths(scope).await?.into_iter().map(|d| (d.queue, d)).collect();
    let settings = Settings::new(store.settings().await?);
    let mut tallies: BTreeMap<QueueId, Tally> = BTreeMap::new();
    for (queue, _, tally) in store.tallies(scope, Some(windlass.clock().now() - WINDOW)).await? {
        *tallies.entry(queue.id).or_default() += tally;
    }
    let mut found: BTreeMap<(&str, &str), QueueStatus> = BTreeMap::new();
    for queue in queues.iter().filter(|queue| scope.covers(&queue.tenant)) {
        let name = (queue.tenant.as_str(), queue.name.as_str());
        let status = found.entry(name).or_insert_with(|| QueueStatus::new(queue, &settings));
        status.add(queue, depths.get(&queue.id), tallies.get(&queue.id).copied().unwrap_or_default());
    }
    Ok(found.into_values().collect())
}

/// The settings of all queues.
struct Settings {
    all: BTreeMap<SettingKey, String>,
    catalogue: Catalogue,
}

impl Settings {
    fn new(settings: Vec<(SettingKey, String)>) -> Self {
        Self { catalogue: Catalogue::load(&settings), all: settings.into_iter().collect() }
    }

    /// The tenant's own setting of a queue, and the one for all tenants.
    fn of(&self, queue: &Queue) -> [Option<&str>; 2] {
        [Some(queue.tenant.clone()), None].map(|tenant| {
            let key = SettingKey::Queue { tenant, name: queue.name.to_string() };
            self.all.get(&key).map(String::as_str)
        })
    }

    fn effective(&self, queue: &Queue) -> Option<Policy> {
        let role = match queue.executor {
            Executor::Worker => Role::Handler,
            Executor::Http => Role::Http,
        };
        self.catalogue.effective(&queue.tenant, &queue.name, &any_kind(), role, &Partial::default()).ok()
    }
}

/// A kind that has no setting of its own.
pub(super) fn any_kind() -> Kind {
    Kind::new("any").expect("any is a kind's name")
}

/// A queue that has no setting of its own.
pub(crate) fn any_queue() -> QueueName {
    QueueName::new("any").expect("any is a queue's name")
}

pub(super) fn flow_of(setting: &str) -> Map<String, Value> {
    super::settings::flow_in(&serde_json::from_str(setting).unwrap_or_default())
}

fn policy_in(setting: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(setting).ok()?;
    value.get("policy").filter(|policy| !policy.is_null()).cloned()
}

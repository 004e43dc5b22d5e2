//! Queues as the API shows them: one line per tenant and name, whatever executors they have.

use crate::http::app::App;
use crate::http::output::problem::Problem;
use crate::http::output::view::moment;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass::job::QueueId;
use windlass::store::{Depth, Queue, Retention, Scope, SettingKey, json};
use windlass::tally::Tally;
use windlass_core::job::Tenant;
use windlass_core::{Millis, Timestamp};

/// What rates are measured over.
const WINDOW: Millis = Millis::from_secs(300);

/// A queue.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    tenant_id: String,
    name: String,
    executors: Vec<&'static str>,
    paused: bool,
    /// Due and waiting, waiting for their time, running.
    depth: u64,
    due: u64,
    later: u64,
    running: u64,
    dead: u64,
    /// When the job that has been due longest was due, and how long ago.
    oldest_due_at: Option<String>,
    oldest_due_ms: Option<u64>,
    rates: Rates,
    /// The policy set for the queue, if any.
    #[schema(value_type = Option<Object>)]
    policy: Option<Value>,
    retention: RetentionView,
}

/// Per second, over the last 5 minutes.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rates {
    enqueued: f64,
    succeeded: f64,
    failed: f64,
    retried: f64,
}

#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Retention)]
pub(crate) struct RetentionView {
    succeeded: String,
    cancelled: String,
    failed: String,
}

impl From<Retention> for RetentionView {
    fn from(retention: Retention) -> Self {
        Self {
            succeeded: retention.succeeded.to_string(),
            cancelled: retention.cancelled.to_string(),
            failed: retention.failed.to_string(),
        }
    }
}

pub(super) async fn all(app: &App, scope: &Scope) -> Result<Vec<QueueView>, Problem> {
    let (store, now) = (app.store(), app.now());
    let queues = store.queues().await?;
    let depths: BTreeMap<QueueId, Depth> = store.depths(scope).await?.into_iter().map(|d| (d.queue, d)).collect();
    let settings = store.settings().await?;
    let mut tallies: BTreeMap<QueueId, Tally> = BTreeMap::new();
    for (queue, _, tally) in store.tallies(scope, Some(now - WINDOW)).await? {
        *tallies.entry(queue.id).or_default() += tally;
    }
    let mut views: BTreeMap<(&str, &str), QueueView> = BTreeMap::new();
    for queue in queues.iter().filter(|queue| scope.covers(&queue.tenant)) {
        let view = views.entry((queue.tenant.as_str(), queue.name.as_str())).or_insert_with(|| {
            let setting = setting_of(&settings, queue);
            let retention =
                setting.map_or_else(Retention::default, |text| json::retention_in(text, Retention::default()));
            let setting = setting.and_then(|text| serde_json::from_str::<Value>(text).ok());
            QueueView {
                tenant_id: queue.tenant.to_string(),
                name: queue.name.to_string(),
                policy: setting.and_then(|value| value.get("policy").cloned()).filter(|policy| !policy.is_null()),
                retention: retention.into(),
                ..QueueView::default()
            }
        });
        let depth = depths.get(&queue.id);
        view.add(queue, depth, tallies.get(&queue.id).copied().unwrap_or_default(), now);
    }
    Ok(views.into_values().collect())
}

impl QueueView {
    fn add(&mut self, queue: &Queue, depth: Option<&Depth>, tally: Tally, now: Timestamp) {
        self.executors.push(queue.executor.as_str());
        self.paused |= queue.paused;
        if let Some(depth) = depth {
            self.due += depth.due;
            self.later += depth.later;
            self.running += depth.running;
            self.dead += depth.dead;
            let age = depth.oldest_due.map(|due_at| now.since(due_at).get());
            if age > self.oldest_due_ms {
                self.oldest_due_ms = age;
                self.oldest_due_at = moment(depth.oldest_due);
            }
        }
        self.depth = self.due + self.later + self.running;
        let per_second = |count: i64| count as f64 / (WINDOW.get() as f64 / 1000.0);
        self.rates.enqueued += per_second(tally.enqueued);
        self.rates.succeeded += per_second(tally.succeeded);
        self.rates.failed += per_second(tally.failed);
        self.rates.retried += per_second(tally.retried);
    }
}

/// The queue's own setting, else the one for every tenant.
fn setting_of<'a>(settings: &'a [(SettingKey, String)], queue: &Queue) -> Option<&'a str> {
    let of = |tenant: Option<&Tenant>| {
        let is_it = |key: &SettingKey| matches!(key, SettingKey::Queue { tenant: t, name } if t.as_ref() == tenant && name == queue.name.as_str());
        settings.iter().find(|(key, _)| is_it(key)).map(|(_, text)| text.as_str())
    };
    of(Some(&queue.tenant)).or_else(|| of(None))
}

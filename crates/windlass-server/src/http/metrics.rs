//! Metrics: gauges read from the store when they are asked for.

use super::app::App;
use super::problem::Problem;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use windlass::job::QueueId;
use windlass::store::Scope;

/// The most queues with labels of their own; the others are summed up as `other`.
const MAX_LABELS: usize = 256;
const OTHER: &str = "other";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    queue: String,
    state: &'static str,
}

/// Everything there is to measure now, in the OpenMetrics text form.
///
/// # Errors
/// The store cannot be asked.
pub(crate) async fn text(app: &App) -> Result<String, Problem> {
    let mut registry = Registry::default();
    let depth = Family::<QueueLabel, Gauge>::default();
    registry.register("windlass_queue_depth", "Jobs of a queue by what they wait for", depth.clone());
    let dead = Gauge::<i64>::default();
    registry.register("windlass_dead_letters", "Failed jobs that wait for a person", dead.clone());
    let names: BTreeMap<QueueId, String> =
        app.store().queues().await?.into_iter().map(|queue| (queue.id, queue.name.to_string())).collect();
    for (index, row) in app.store().depths(&Scope::All).await?.iter().enumerate() {
        let name = names.get(&row.queue).filter(|_| index < MAX_LABELS).map_or(OTHER, String::as_str);
        for (state, count) in [("due", row.due), ("later", row.later), ("running", row.running), ("dead", row.dead)] {
            depth.get_or_create(&QueueLabel { queue: name.to_owned(), state }).inc_by(count as i64);
        }
        dead.inc_by(row.dead as i64);
    }
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a String cannot fail");
    Ok(text)
}

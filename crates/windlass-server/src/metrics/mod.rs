//! Metrics for Prometheus. Counters and histograms are this node's own and exact: every event of the process is counted as it
//! is committed. Gauges are the fleet's: every node reads them from the store when it is asked.

mod gauges;
mod labels;
mod series;

pub(crate) use labels::TenantLabel;

use gauges::Gauges;
use labels::Place;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use series::{Deliveries, Families, Series};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use windlass::Windlass;
use windlass::event::{Event, Observe};
use windlass_core::Millis;

/// The most label sets of a metric; what comes later is counted as `other`.
pub(crate) const MAX_LABEL_SETS: usize = 256;
/// How old gauges may be: several scrapers must not cost more than one.
const GAUGES_AGE: Millis = Millis::from_secs(3);

/// Everything that is measured.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    families: Families,
    deliveries: Deliveries,
    tenants: TenantLabel,
    series: RwLock<HashMap<Place, Arc<Series>>>,
    gauges: Mutex<Option<(Millis, Arc<Gauges>)>>,
}

impl Metrics {
    pub(crate) fn new(tenants: TenantLabel) -> Self {
        let mut registry = Registry::default();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("windlass_build", "The program", build);
        let families = Families::register(&mut registry);
        let deliveries = Deliveries::register(&mut registry);
        Self { registry, families, deliveries, tenants, series: RwLock::default(), gauges: Mutex::default() }
    }

    /// Everything, in the OpenMetrics text form. A store that is away takes only its gauges with it.
    pub(crate) async fn text(&self, windlass: &Windlass) -> String {
        let gauges = self.gauges(windlass).await;
        let mut text = String::new();
        let gauges = Gauges::registry(gauges.as_deref(), self.tenants, windlass.clock().now());
        encode_registry(&mut text, &self.registry)
            .and_then(|()| encode_registry(&mut text, &gauges))
            .and_then(|()| encode_eof(&mut text))
            .expect("writing to a String cannot fail");
        text
    }

    async fn gauges(&self, windlass: &Windlass) -> Option<Arc<Gauges>> {
        let now = windlass.clock().monotonic();
        let kept = self.gauges.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, gauges)) = kept.filter(|(read_at, _)| now - *read_at < GAUGES_AGE) {
            return Some(gauges);
        }
        match Gauges::read(windlass).await {
            Ok(gauges) => {
                let gauges = Arc::new(gauges);
                *self.gauges.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, gauges.clone()));
                Some(gauges)
            }
            Err(error) => {
                tracing::warn!(%error, "the store's gauges could not be read");
                None
            }
        }
    }

    fn series(&self, event: &Event) -> Arc<Series> {
        let place = Place::of(event, self.tenants);
        if let Some(series) = self.series.read().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return series.clone();
        }
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        // One place is left for all the others together.
        let is_room = all.len() < MAX_LABEL_SETS - 1;
        let place = if is_room || all.contains_key(&place) { place } else { Place::other(self.tenants) };
        all.entry(place.clone()).or_insert_with(|| Arc::new(self.families.series(&place))).clone()
    }
}

impl Observe for Metrics {
    fn observe(&self, event: &Event) {
        self.series(event).count(event);
        self.deliveries.count(event);
    }
}

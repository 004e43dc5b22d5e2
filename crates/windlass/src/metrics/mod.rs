//! Metrics for Prometheus. Counters and histograms are this process's own and exact: every event is counted as it is
//! committed. Gauges are the fleet's: every process reads them from the store when it is asked.

mod gauges;
mod labels;
mod read;
mod series;

pub use labels::TenantLabel;
pub use read::{Distribution, Labels, Metric, Number, Points};

use crate::client::windlass::Windlass;
use crate::event::{Event, Observe};
use crate::leases::outage::store_failed;
use gauges::Gauges;
use labels::Place;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use series::{Deliveries, Families, Series, clock_registry, span_registry};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use windlass_core::{Millis, Timestamp};

/// The most label sets of a metric; what comes later is counted as `other`.
pub const MAX_LABEL_SETS: usize = 256;
/// How old gauges may be: several scrapers must not cost more than one.
const GAUGES_AGE: Millis = Millis::from_secs(3);

/// Counts what happens in this process and reads what the store says, in the text form that Prometheus scrapes. Cheap
/// to clone.
///
/// ```
/// use windlass::{Metrics, Windlass};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let windlass = Windlass::open("memory:").await?;
/// let metrics = Metrics::new(&windlass); // once, before the first worker starts
/// windlass.enqueue_kind("email", &serde_json::json!({})).await?;
///
/// // In the handler of `GET /metrics`, with the content type `Metrics::CONTENT_TYPE`:
/// let text = metrics.encode().await;
/// assert!(text.contains("windlass_queue_jobs{queue=\"default\",state=\"due\"} 1"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Metrics {
    windlass: Windlass,
    counted: Arc<Counted>,
    since: Timestamp,
}

/// What this process counts.
#[derive(Debug)]
struct Counted {
    registry: Registry,
    families: Families,
    deliveries: Deliveries,
    tenants: TenantLabel,
    series: RwLock<HashMap<Place, Arc<Series>>>,
    gauges: Mutex<Option<(Millis, Arc<Gauges>)>>,
}

impl Metrics {
    /// The content type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Counts what happens to the jobs of `windlass` in this process, from now on. Make one and clone it: each counts
    /// by itself.
    #[must_use]
    pub fn new(windlass: &Windlass) -> Self {
        Self::with_tenants(windlass, TenantLabel::Off)
    }

    /// The same, with a label for tenants or without.
    #[must_use]
    pub fn with_tenants(windlass: &Windlass, tenants: TenantLabel) -> Self {
        let counted = Arc::new(Counted::new(tenants));
        windlass.events().observe(counted.clone());
        Self { since: windlass.clock().now(), windlass: windlass.clone(), counted }
    }

    /// Everything, in the OpenMetrics text form. A store that is away takes only its gauges with it.
    pub async fn encode(&self) -> String {
        self.counted.text(&self.windlass).await
    }

    /// The same as values, for an exporter that pushes them.
    pub async fn read(&self) -> Vec<Metric> {
        read::read(&self.encode().await)
    }

    /// When counting began.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }
}

impl Observe for Metrics {
    fn observe(&self, event: &Event) {
        self.counted.observe(event);
    }
}

impl Counted {
    fn new(tenants: TenantLabel) -> Self {
        let mut registry = Registry::default();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("windlass_build", "The program", build);
        let families = Families::register(&mut registry);
        let deliveries = Deliveries::register(&mut registry);
        Self { registry, families, deliveries, tenants, series: RwLock::default(), gauges: Mutex::default() }
    }

    async fn text(&self, windlass: &Windlass) -> String {
        let gauges = self.gauges(windlass).await;
        let mut text = String::new();
        let spans = windlass.tracer().map(crate::telemetry::Tracer::counts).unwrap_or_default();
        let gauges = Gauges::registry(
            gauges.as_deref(),
            windlass.inner().quota_use().refusals(),
            self.tenants,
            windlass.clock().now(),
        );
        encode_registry(&mut text, &self.registry)
            .and_then(|()| encode_registry(&mut text, &gauges))
            .and_then(|()| encode_registry(&mut text, &clock_registry(windlass.clock().changes())))
            .and_then(|()| encode_registry(&mut text, &span_registry(spans)))
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
                store_failed!(error, "the store's gauges could not be read");
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

impl Observe for Counted {
    fn observe(&self, event: &Event) {
        self.series(event).count(event);
        self.deliveries.count(event);
    }
}

//! What is counted of each queue and kind, and how an event counts.

use super::labels::{Labelled, Place};
use crate::clock::ClockChanges;
use crate::event::{Event, EventKind};
use crate::telemetry::SpanCounts;
use crate::webhook::{DELIVERY_KIND, DELIVERY_QUEUE};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use windlass_core::{Millis, Reason};

/// Time in backoff: from half a second (full jitter) to the hour that the usual policies stop at, and a day beyond.
const BACKOFF: [f64; 14] = [0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0, 86_400.0];
/// How long attempts take: a quick handler, a slow call, a long report.
const RUN: [f64; 14] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0];
/// How long due jobs wait for a worker: at once, the next poll, an overload.
const PICKUP: [f64; 13] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 30.0, 60.0, 300.0, 1800.0];

type Times = Family<Place, Histogram, fn() -> Histogram>;

/// The metrics there are of each queue and kind.
#[derive(Debug)]
pub(super) struct Families {
    attempts: Family<Labelled, Counter>,
    jobs: Family<Labelled, Counter>,
    retries: Family<Place, Counter>,
    exhausted: Family<Place, Counter>,
    backoff: Times,
    run: Times,
    pickup: Times,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            attempts: Family::default(),
            jobs: Family::default(),
            retries: Family::default(),
            exhausted: Family::default(),
            backoff: Family::new_with_constructor(|| Histogram::new(BACKOFF)),
            run: Family::new_with_constructor(|| Histogram::new(RUN)),
            pickup: Family::new_with_constructor(|| Histogram::new(PICKUP)),
        };
        // The library adds `_total` to counters.
        registry.register("windlass_attempts", "Attempts started, first ones and retries", families.attempts.clone());
        registry.register("windlass_jobs", "Jobs finished, by outcome", families.jobs.clone());
        registry.register("windlass_retries", "Failures that were followed by a retry", families.retries.clone());
        let help = "Jobs given up because their retries were used up";
        registry.register("windlass_retry_exhausted", help, families.exhausted.clone());
        let help = "Time spent in backoff before each retry";
        registry.register("windlass_retry_latency_seconds", help, families.backoff.clone());
        registry.register("windlass_run_seconds", "How long attempts took", families.run.clone());
        let help = "How long due jobs waited for a worker";
        registry.register("windlass_pickup_seconds", help, families.pickup.clone());
        families
    }

    /// The metrics of one place, all at zero, so that a rate sees the first event too.
    pub(super) fn series(&self, place: &Place) -> Series {
        let reported = |label, word| Labelled { place: place.clone(), label, word };
        let attempts = |word| self.attempts.get_or_create_owned(&reported("try", word));
        let jobs = |word| self.jobs.get_or_create_owned(&reported("outcome", word));
        Series {
            firsts: attempts("first"),
            again: attempts("retry"),
            succeeded: jobs("succeeded"),
            failed: jobs("failed"),
            cancelled: jobs("cancelled"),
            retries: self.retries.get_or_create_owned(place),
            exhausted: self.exhausted.get_or_create_owned(place),
            backoff: self.backoff.get_or_create_owned(place),
            run: self.run.get_or_create_owned(place),
            pickup: self.pickup.get_or_create_owned(place),
        }
    }
}

/// The metrics of one place, found once.
#[derive(Debug)]
pub(super) struct Series {
    firsts: Counter,
    again: Counter,
    succeeded: Counter,
    failed: Counter,
    cancelled: Counter,
    retries: Counter,
    exhausted: Counter,
    backoff: Histogram,
    run: Histogram,
    pickup: Histogram,
}

impl Series {
    pub(super) fn count(&self, event: &Event) {
        match &event.event_kind {
            EventKind::Queued | EventKind::Parked { .. } | EventKind::Postponed { .. } => {}
            EventKind::Started { waited } => {
                if event.retry == 0 { &self.firsts } else { &self.again }.inc();
                self.pickup.observe(seconds(*waited));
            }
            EventKind::Succeeded { elapsed } => {
                self.succeeded.inc();
                self.run.observe(seconds(*elapsed));
            }
            EventKind::Retried { elapsed, delay, .. } => {
                self.retries.inc();
                self.backoff.observe(seconds(*delay));
                self.run.observe(seconds(*elapsed));
            }
            EventKind::GaveUp { elapsed, reason, .. } => {
                self.failed.inc();
                if *reason == Reason::Exhausted {
                    self.exhausted.inc();
                }
                // What was never started took no time.
                if *reason != Reason::Expired {
                    self.run.observe(seconds(*elapsed));
                }
            }
            EventKind::Cancelled => {
                self.cancelled.inc();
            }
        }
    }
}

/// Webhook deliveries, all tenants together.
#[derive(Debug)]
pub(super) struct Deliveries {
    delivered: Counter,
    retried: Counter,
    failed: Counter,
    cancelled: Counter,
}

impl Deliveries {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let family = Family::<[(&'static str, &'static str); 1], Counter>::default();
        registry.register("windlass_deliveries", "Tries of webhook deliveries, by outcome", family.clone());
        let of = |word| family.get_or_create_owned(&[("outcome", word)]);
        Self { delivered: of("delivered"), retried: of("retried"), failed: of("failed"), cancelled: of("cancelled") }
    }

    pub(super) fn count(&self, event: &Event) {
        if event.kind.as_str() != DELIVERY_KIND || event.queue.as_str() != DELIVERY_QUEUE {
            return;
        }
        match &event.event_kind {
            EventKind::Queued | EventKind::Parked { .. } | EventKind::Postponed { .. } | EventKind::Started { .. } => {}
            EventKind::Succeeded { .. } => _ = self.delivered.inc(),
            EventKind::Retried { .. } => _ = self.retried.inc(),
            EventKind::GaveUp { .. } => _ = self.failed.inc(),
            EventKind::Cancelled => _ = self.cancelled.inc(),
        }
    }
}

fn seconds(span: Millis) -> f64 {
    span.get() as f64 / 1000.0
}

/// How often the clock was set, or the machine slept.
pub(super) fn clock_registry(changes: ClockChanges) -> Registry {
    let mut registry = Registry::default();
    let counts = Family::<Vec<(&'static str, &'static str)>, Counter>::default();
    for (change, count) in [("forward", changes.forward), ("back", changes.back), ("slept", changes.slept)] {
        counts.get_or_create(&vec![("change", change)]).inc_by(count);
    }
    let help = "How often the store's clock was set forward or back, or this machine slept";
    registry.register("windlass_clock_changes", help, counts);
    registry
}

/// What became of the spans of this process.
pub(super) fn span_registry(counts: SpanCounts) -> Registry {
    let mut registry = Registry::default();
    let family = Family::<Vec<(&'static str, &'static str)>, Counter>::default();
    for (outcome, count) in [("exported", counts.exported), ("dropped", counts.dropped)] {
        family.get_or_create(&vec![("outcome", outcome)]).inc_by(count);
    }
    registry.register("windlass_spans", "Spans of traces, by whether a collector accepted them", family);
    registry
}

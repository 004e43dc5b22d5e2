//! `ExportMetricsServiceRequest`. Counters and histograms are cumulative: a request that is lost costs resolution, and
//! no count.

use super::resource::{self, Resource};
use super::{Fixed64, Reading, Writer, nanos, scope, text_fact};
use windlass::telemetry::{Distribution, Labels, Metric, Number, Points};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u32 = 2;

pub(super) fn request(to: &mut impl Writer, resource: &Resource, reading: &Reading) {
    to.messages((1, "resourceMetrics"), [()], |to, ()| {
        to.message((1, "resource"), |to| resource::write(to, resource));
        to.messages((2, "scopeMetrics"), [()], |to, ()| {
            to.message((1, "scope"), scope);
            let metrics = reading.metrics.iter().filter(|metric| points(metric) > 0);
            to.messages((2, "metrics"), metrics, |to, metric| write(to, metric, reading));
        });
    });
}

/// How many points a metric has.
pub(in crate::telemetry) fn points(metric: &Metric) -> usize {
    match &metric.points {
        Points::Counter(points) | Points::Gauge(points) => points.len(),
        Points::Histogram(points) => points.len(),
    }
}

fn write<W: Writer>(to: &mut W, metric: &Metric, reading: &Reading) {
    to.text((1, "name"), &metric.name);
    to.text((2, "description"), &metric.help);
    if metric.name.ends_with("_seconds") {
        to.text((3, "unit"), "s");
    }
    match &metric.points {
        Points::Gauge(points) => to.message((5, "gauge"), |to| {
            to.messages((1, "dataPoints"), points, |to, (labels, number)| {
                to.fixed64((3, "timeUnixNano"), nanos(reading.at));
                value(to, labels, *number);
            });
        }),
        Points::Counter(points) => to.message((7, "sum"), |to| {
            to.messages((1, "dataPoints"), points, |to, (labels, number)| {
                times(to, reading);
                value(to, labels, *number);
            });
            to.small((2, "aggregationTemporality"), CUMULATIVE);
            to.flag((3, "isMonotonic"), true);
        }),
        Points::Histogram(points) => to.message((9, "histogram"), |to| {
            to.messages((1, "dataPoints"), points, |to, (labels, distribution)| {
                times(to, reading);
                buckets(to, labels, distribution);
            });
            to.small((2, "aggregationTemporality"), CUMULATIVE);
        }),
    }
}

/// From when to when a point counts; in order, even if a clock was set back.
fn times(to: &mut impl Writer, reading: &Reading) {
    to.fixed64((2, "startTimeUnixNano"), nanos(reading.since));
    to.fixed64((3, "timeUnixNano"), nanos(reading.at.max(reading.since)));
}

fn value<W: Writer>(to: &mut W, labels: &Labels, number: Number) {
    match number {
        Number::Real(number) => to.real((4, "asDouble"), number),
        Number::Whole(number) => to.fixed64((6, "asInt"), Fixed64::Signed(number)),
    }
    to.messages((7, "attributes"), labels, |to, (name, value)| text_fact(to, (name, value)));
}

fn buckets<W: Writer>(to: &mut W, labels: &Labels, distribution: &Distribution) {
    to.fixed64((4, "count"), Fixed64::Unsigned(distribution.count()));
    to.real((5, "sum"), distribution.sum);
    to.counts((6, "bucketCounts"), &distribution.counts);
    to.reals((7, "explicitBounds"), &distribution.bounds);
    to.messages((9, "attributes"), labels, |to, (name, value)| text_fact(to, (name, value)));
}

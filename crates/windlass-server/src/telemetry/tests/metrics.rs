//! Metrics, sent to a collector on loopback, in virtual time.

use super::{sender, settings};
use crate::config::{Protocol, Target};
use crate::telemetry::collector::Signal;
use crate::telemetry::encode::resource;
use crate::telemetry::readings::MetricsExporter;
use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass::{Clock, Metrics, Random, Windlass};
use windlass_core::{Millis, Timestamp};

const START: i64 = 1_767_268_800_000;

struct World {
    clock: Clock,
    windlass: Windlass,
    metrics: Metrics,
    stop: CancellationToken,
    requests: Arc<Mutex<Vec<Value>>>,
    exporter: AbortOnDropHandle<()>,
    _collector: AbortOnDropHandle<()>,
}

impl World {
    /// A collector that answers its `n`th request with `replies(n)`, and an exporter that sends every minute.
    async fn new(replies: fn(usize) -> u16) -> Self {
        let clock = Clock::manual(Timestamp::from_millis(START));
        let builder = Windlass::builder("memory:").clock(clock.clone()).random(Random::seeded(7));
        let windlass = builder.open().await.unwrap();
        let metrics = Metrics::new(&windlass);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/metrics", listener.local_addr().unwrap()).parse().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let got = requests.clone();
        let collect = move |body: String| async move {
            let mut got = got.lock().unwrap();
            got.push(serde_json::from_str(&body).unwrap());
            hyper::StatusCode::from_u16(replies(got.len())).unwrap()
        };
        let router = Router::new().route("/v1/metrics", post(collect));
        let collector = AbortOnDropHandle::new(tokio::spawn(async { axum::serve(listener, router).await.unwrap() }));
        let target = Target { url, protocol: Protocol::HttpJson, headers: Vec::new(), certificate: None };
        let sender = sender(Signal::Metrics, target, &clock);
        let exporter =
            MetricsExporter::new(metrics.clone(), sender, resource(&settings(), "n1"), Millis::from_secs(60));
        let stop = CancellationToken::new();
        let exporter = AbortOnDropHandle::new(tokio::spawn(exporter.run(stop.clone(), Millis::from_secs(5))));
        Self { clock, windlass, metrics, stop, requests, exporter, _collector: collector }
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Moves the clock until that many requests have arrived.
    async fn until(&self, count: usize) {
        while self.count() < count {
            self.clock.advance(Millis::new(20));
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Moves the clock past the next reading.
    async fn next(&self) -> Value {
        let before = self.count();
        self.clock.advance(Millis::from_secs(59));
        self.until(before + 1).await;
        self.requests.lock().unwrap()[before].clone()
    }
}

fn metrics(request: &Value) -> &Vec<Value> {
    request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap()
}

fn named<'a>(request: &'a Value, name: &str) -> &'a Value {
    metrics(request).iter().find(|metric| metric["name"] == name).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_reading_has_every_metric_that_prometheus_sees() {
    let world = World::new(|_| 200).await;
    world.windlass.enqueue_kind("email", &json!({})).await.unwrap();
    let job = world.windlass.enqueue_kind("email", &json!({})).await.unwrap();
    world.windlass.jobs().cancel(job).await.unwrap();
    let request = world.next().await;

    let text = world.metrics.encode().await;
    let sample = |line: &str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
    let scraped: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(sample)
        .map(|name| name.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count").to_owned())
        .collect();
    let sent: BTreeSet<String> =
        metrics(&request).iter().map(|metric| metric["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sent, scraped);

    let jobs = named(&request, "windlass_jobs_total");
    assert_eq!(
        (&jobs["sum"]["aggregationTemporality"], &jobs["sum"]["isMonotonic"], &jobs["description"]),
        (&json!(2), &json!(true), &json!("Jobs finished, by outcome"))
    );
    let points = jobs["sum"]["dataPoints"].as_array().unwrap();
    let cancelled = json!({"key": "outcome", "value": {"stringValue": "cancelled"}});
    let point = points.iter().find(|point| point["attributes"].as_array().unwrap().contains(&cancelled)).unwrap();
    assert_eq!(point["asInt"], "1");
    assert_eq!(point["startTimeUnixNano"], (i128::from(START) * 1_000_000).to_string());
    let at: i128 = point["timeUnixNano"].as_str().unwrap().parse().unwrap();
    assert!(at >= i128::from(START + 60_000) * 1_000_000, "{at}");

    let due = &named(&request, "windlass_oldest_due_seconds");
    assert_eq!(due["unit"], "s");
    assert!(due["gauge"]["dataPoints"][0]["asDouble"].as_f64().unwrap() >= 60.0, "{due}");
    let run = &named(&request, "windlass_run_seconds")["histogram"]["dataPoints"][0];
    let (bounds, counts) = (run["explicitBounds"].as_array().unwrap(), run["bucketCounts"].as_array().unwrap());
    assert_eq!((counts.len(), &counts[0], &run["count"]), (bounds.len() + 1, &json!("0"), &json!("0")));
    assert_eq!(bounds[0], json!(0.001));
    let facts = request["resourceMetrics"][0]["resource"]["attributes"].as_array().unwrap();
    assert!(facts.contains(&json!({"key": "service.instance.id", "value": {"stringValue": "n1"}})), "{facts:?}");
}

#[tokio::test]
async fn counters_go_on_after_a_collector_was_away() {
    let world = World::new(|n| if n == 2 { 400 } else { 200 }).await;
    let times = async |count: usize| {
        let mut seen = Vec::new();
        for _ in 0..count {
            let job = world.windlass.enqueue_kind("email", &json!({})).await.unwrap();
            world.windlass.jobs().cancel(job).await.unwrap();
            let request = world.next().await;
            let jobs = named(&request, "windlass_jobs_total")["sum"]["dataPoints"].as_array().unwrap().clone();
            let total: i64 = jobs.iter().map(|point| point["asInt"].as_str().unwrap().parse::<i64>().unwrap()).sum();
            seen.push((total, jobs[0]["startTimeUnixNano"].clone()));
        }
        seen
    };
    let seen = times(3).await;
    let start = json!((i128::from(START) * 1_000_000).to_string());
    assert_eq!(seen, [(1, start.clone()), (2, start.clone()), (3, start)]);
}

#[tokio::test]
async fn the_last_reading_is_sent_before_the_process_ends() {
    let mut world = World::new(|n| if n == 1 { 503 } else { 200 }).await;
    world.stop.cancel();
    loop {
        tokio::select! {
            ended = &mut world.exporter => break ended.unwrap(),
            () = tokio::time::sleep(std::time::Duration::from_millis(1)) => world.clock.advance(Millis::new(5)),
        }
    }
    assert_eq!(world.count(), 2, "the refused request and the repeated one");
}

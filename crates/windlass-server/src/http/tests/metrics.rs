//! A real run is scraped: /metrics agrees with the recorded attempts. The supplied dashboards name existing metrics.

use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass::Job;
use windlass::alert::{Alerts, check};
use windlass::client::{JobFilter, Order, Page, Scope};
use windlass::core::Attempt as Line;
use windlass::low_level::metrics::MAX_LABEL_SETS;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::Registry;
use windlass::{Attempt, Failure, JobId, JobKind, Millis, Reason, State, Worker};
use windlass::{EventKind, Observe};
use windlass::{Metrics, TenantLabel};
use windlass_core::Status;
use windlass_core::job::{Kind, Tenant};

/// The longest real time that a test waits.
const HANG: Duration = Duration::from_secs(180);

/// Fails `failures` times, then succeeds.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Flaky {
    failures: u32,
    permanent: bool,
}

impl JobKind for Flaky {
    const KIND: &'static str = "flaky";
}

async fn flaky(job: Flaky, attempt: Attempt) -> Result<(), Failure> {
    match (attempt.retry() < job.failures, job.permanent) {
        (false, _) => Ok(()),
        (true, false) => Err(Failure::new("a planned failure")),
        (true, true) => Err(Failure::permanent("a planned permanent failure")),
    }
}

/// Enqueues jobs that end in every possible way, and runs a worker until all have finished.
async fn run(w: &World) {
    let mut events = w.windlass.events().subscribe();
    let endings = [(0, false), (0, false), (0, false), (1, false), (2, false), (9, false), (9, false), (1, true)];
    for (failures, permanent) in endings {
        let job = Flaky { failures, permanent };
        w.windlass.enqueue(job).queue("email").retry("steps:3s/6s,retries=2").await.unwrap();
    }
    let waiting =
        w.windlass.enqueue(Flaky { failures: 0, permanent: false }).queue("email").delay(Millis::from_secs(3600));
    let waiting = waiting.await.unwrap();
    w.windlass.jobs().cancel(waiting).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(&w.windlass).handle(flaky).queue("email", 4);
    let worker = tokio::spawn(worker.run(async { drop(stopped.await) }));
    let mut finished = 0;
    let working = async {
        while finished < endings.len() + 1 {
            let event = events.recv().await.unwrap();
            if let EventKind::Retried { delay, .. } = event.event_kind {
                w.advance(delay.get());
            }
            finished += usize::from(!event.event_kind.state().is_live());
        }
    };
    tokio::time::timeout(HANG, working).await.expect("all jobs finish");
    drop(stop);
    tokio::time::timeout(HANG, worker).await.expect("the worker stops").unwrap().unwrap();
}

/// All jobs with their attempts.
async fn ledger(w: &World) -> Vec<(Job, Vec<Line>)> {
    let page = Page { after: None, limit: 1000, order: Order::OldestFirst };
    let mut all = Vec::new();
    for job in w.store.jobs(&Scope::All, &JobFilter::default(), page).await.unwrap() {
        let lines = w.store.attempts(&Scope::All, job.id, 100).await.unwrap();
        all.push((job, lines));
    }
    all
}

/// The sum of a metric's samples whose labels include these.
fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
    let samples = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    let matching = samples.filter(|line| wanted.iter().all(|label| line.contains(label.as_str())));
    matching.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// The names of all samples.
pub(super) fn names(text: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}

async fn scrape(w: &World) -> String {
    // Gauges are cached a few seconds.
    w.advance(5_000);
    let answer = w.get("/metrics").await;
    assert_eq!(answer.status.as_u16(), 200);
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    assert!(answer.text.ends_with("# EOF\n"));
    answer.text
}

#[tokio::test]
async fn counters_and_histograms_agree_with_the_ledger() {
    let w = World::new();
    run(&w).await;
    let text = scrape(&w).await;
    let ledger = ledger(&w).await;
    let lines: Vec<&Line> = ledger.iter().flat_map(|(_, lines)| lines).collect();
    let retried: Vec<&&Line> =
        lines.iter().filter(|line| line.status == Status::Failed && line.delay.is_some()).collect();
    let jobs_in = |state| ledger.iter().filter(|(job, _)| job.state == state).count() as f64;
    let email = [("queue", "email"), ("kind", "flaky")];
    assert_eq!(sum(&text, "windlass_retries_total", &email), retried.len() as f64);
    assert_eq!(retried.len(), 7, "1 + 2 + 2 + 2 retries");
    let exhausted = ledger.iter().filter(|(job, _)| job.reason == Some(Reason::Exhausted)).count();
    assert_eq!((exhausted, sum(&text, "windlass_retry_exhausted_total", &email)), (2, 2.0));
    for (outcome, state) in
        [("succeeded", State::Succeeded), ("failed", State::Failed), ("cancelled", State::Cancelled)]
    {
        assert_eq!(sum(&text, "windlass_jobs_total", &[("outcome", outcome)]), jobs_in(state), "{outcome}");
    }
    let firsts = lines.iter().filter(|line| line.retry == 0).count();
    assert_eq!(sum(&text, "windlass_attempts_total", &[("try", "first")]), firsts as f64);
    assert_eq!(sum(&text, "windlass_attempts_total", &[("try", "retry")]), (lines.len() - firsts) as f64);
    let seconds = |spans: Vec<Millis>| spans.iter().map(|span| span.get()).sum::<u64>() as f64 / 1000.0;
    let backoff = seconds(retried.iter().filter_map(|line| line.delay).collect());
    assert_eq!(sum(&text, "windlass_retry_latency_seconds_count", &email), retried.len() as f64);
    assert_eq!(sum(&text, "windlass_retry_latency_seconds_sum", &email), backoff);
    assert_eq!(sum(&text, "windlass_run_seconds_count", &email), lines.len() as f64);
    assert_eq!(sum(&text, "windlass_pickup_seconds_count", &email), lines.len() as f64);
}

#[tokio::test]
async fn gauges_agree_with_the_store() {
    let w = World::new();
    run(&w).await;
    w.enqueue("email").await;
    let dead = ledger(&w).await.iter().filter(|(job, _)| job.state == State::Failed).count() as f64;
    w.advance(40_000);
    let text = scrape(&w).await;
    let email = [("queue", "email")];
    assert_eq!(sum(&text, "windlass_dead_letters", &email), dead);
    assert_eq!(sum(&text, "windlass_failed_jobs", &email), dead);
    assert_eq!(sum(&text, "windlass_queue_jobs", &[("state", "due")]), 1.0);
    assert_eq!(sum(&text, "windlass_oldest_due_seconds", &email), 45.0);
    assert_eq!(sum(&text, "windlass_store_up", &[]), 1.0);
    assert_eq!(sum(&text, "windlass_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    let since = w.store.clock().now() - Millis::from_secs(300);
    let tallies = w.store.tallies(&Scope::All, Some(since)).await.unwrap();
    let (retries, firsts) = tallies.iter().fold((0, 0), |(r, f), (_, _, t)| (r + t.retries, f + t.first_attempts));
    assert!(retries > 0);
    assert_eq!(sum(&text, "windlass_retry_rate", &email), retries as f64 / firsts as f64);
}

#[tokio::test]
async fn what_remote_workers_do_is_counted_once() {
    let w = World::new();
    for _ in 0..3 {
        w.enqueue("remote").await;
    }
    let item = |leased: &Value| json!({"id": leased["id"], "attempt": leased["attempt"], "lease": leased["lease"]});
    let report = async |action: &str, leased: &Value| {
        let body = json!({"worker": "w1", "results": [item(leased)]}).to_string();
        w.post(&format!("/api/v1/leases/{action}"), &body).await.is(200)["results"][0]["result"].clone()
    };
    let (first, second) = (w.lease("remote").await, w.lease("remote").await);
    for _ in 0..3 {
        assert_eq!(report("complete", &first).await, "ok", "repeating is harmless");
    }
    assert_eq!(report("fail", &second).await, "ok");
    let third = w.lease("remote").await;
    assert_eq!(report("fail", &third).await, "ok");
    w.advance(1_000);
    for _ in 0..2 {
        let leased = w.lease("remote").await;
        assert_eq!(report("fail", &leased).await, "ok");
    }
    let text = scrape(&w).await;
    let remote = [("queue", "remote"), ("kind", "email")];
    assert_eq!(sum(&text, "windlass_jobs_total", &[("queue", "remote"), ("outcome", "succeeded")]), 1.0);
    assert_eq!(sum(&text, "windlass_jobs_total", &[("queue", "remote"), ("outcome", "failed")]), 2.0);
    assert_eq!(sum(&text, "windlass_retries_total", &remote), 2.0);
    assert_eq!(sum(&text, "windlass_retry_exhausted_total", &remote), 2.0);
    assert_eq!(sum(&text, "windlass_retry_latency_seconds_sum", &remote), 2.0);
    assert_eq!(sum(&text, "windlass_attempts_total", &remote), 5.0);
}

#[tokio::test]
async fn a_flood_of_kinds_ends_in_other() {
    let w = World::new();
    let metrics = Metrics::with_tenants(&w.windlass, TenantLabel::On);
    for n in 0..1000 {
        let kind = Kind::new(&format!("kind-{n}")).unwrap();
        let succeeded = EventKind::Succeeded { elapsed: Millis::from_secs(1) };
        let tenant = Tenant::new("acme").unwrap();
        metrics.observe(&windlass::testing::event(JobId(n), tenant, kind, succeeded, w.store.clock().now()));
    }
    let text = metrics.encode().await;
    let rows = text.lines().filter(|line| line.starts_with("windlass_retries_total{")).count();
    assert_eq!(rows, MAX_LABEL_SETS);
    assert_eq!(sum(&text, "windlass_jobs_total", &[("tenant", "acme")]), (MAX_LABEL_SETS - 1) as f64);
    assert_eq!(sum(&text, "windlass_jobs_total", &[]), 1000.0, "every one is counted somewhere");
}

/// Every metric name in a text.
pub(super) fn mentioned(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("windlass_")).map(str::to_owned).collect()
}

/// A scrape of a server on which every kind of event has happened.
pub(super) async fn full_scrape() -> String {
    let w = World::new();
    run(&w).await;
    let Alerts { rules, operators, .. } = Alerts::default();
    check(&*w.store, &rules, &operators).await.unwrap();
    scrape(&w).await
}

#[tokio::test]
async fn the_dashboard_names_existing_metrics() {
    let known = names(&full_scrape().await);
    let dashboard: Value = serde_json::from_str(include_str!("../../../../../deploy/grafana/windlass.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(!panels.is_empty());
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        let named = mentioned(target["expr"].as_str().unwrap());
        assert!(!named.is_empty() && named.is_subset(&known), "{target}");
    }
}

#[tokio::test]
async fn all_documented_metrics_exist() {
    let known = names(&full_scrape().await);
    for name in [
        "windlass_retries_total",
        "windlass_retry_exhausted_total",
        "windlass_retry_latency_seconds_bucket",
        "windlass_jobs_total",
        "windlass_failed_jobs",
        "windlass_dead_letters",
        "windlass_retry_rate",
        "windlass_queue_jobs",
        "windlass_oldest_due_seconds",
        "windlass_run_seconds_bucket",
        "windlass_pickup_seconds_bucket",
        "windlass_deliveries_total",
        "windlass_build_info",
        "windlass_alert_state",
    ] {
        assert!(known.contains(name), "{name} is missing: {known:?}");
    }
}

//! Log lines: what operators read when jobs start, are retried and are given up.

use crate::world::World;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::memory::MemoryStore;
use windlass::low_level::stores::{DeadRuns, Missed, Overlap, Recurrence, ScheduleSpec};
use windlass::{Attempt, Failure, JobKind, Millis};

/// Fails, with a payload that must not be logged.
#[derive(Debug, Serialize, Deserialize)]
struct Boom {
    card: String,
}

impl JobKind for Boom {
    const KIND: &'static str = "boom";
}

async fn boom(_: Boom, _: Attempt) -> Result<(), Failure> {
    Err(Failure::new("the bank is closed").class("ServerError"))
}

thread_local! {
    /// Lines about jobs: level, message, and the other fields. A test and all its workers are on one thread.
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lines of every thread. One for all tests, set before any of them logs: `tracing` caches for the whole
/// process whether a line is needed, so a subscriber of one thread can be missed.
struct Lines;

pub(crate) fn keep_lines() {
    static KEPT: OnceLock<()> = OnceLock::new();
    KEPT.get_or_init(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Lines))
            .expect("nobody else listens");
    });
}

#[derive(Clone, Default)]
struct Line {
    level: String,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line { level: event.metadata().level().to_string(), fields: BTreeMap::new() };
        event.record(&mut line);
        if *event.metadata().level() <= Level::INFO && line.fields.contains_key("job_id") {
            LINES.with_borrow_mut(|lines| lines.push(line));
        }
    }
}

fn reported() -> Vec<String> {
    kept().iter().map(|line| format!("{} {}", line.level, line.fields["message"])).collect()
}

fn kept() -> Vec<Line> {
    LINES.with_borrow(Clone::clone)
}

fn world() -> World {
    let options = World::options();
    let random = options.random.clone();
    World::new(MemoryStore::new(options), random, ())
}

const POLICY: &str = "exponential:base=1s,jitter=none,retries=2";

#[tokio::test]
async fn starts_retries_and_give_ups_are_worded_as_promised() {
    let mut w = world();
    let worker = w.start(w.worker().handle(boom).id("w1"));
    let id = w.windlass.enqueue(Boom { card: "4111".into() }).tenant("acme").retry(POLICY).await.unwrap();
    w.pass_retry(id).await;
    w.quiet().await;
    w.pass_retry(id).await;
    w.finished(id).await;
    w.quiet().await;
    worker.stop().await;
    assert_eq!(
        reported(),
        [
            "INFO job 1 boom: attempt 1/3",
            "WARN job 1 failed, retry 1/2 in 1s (at 2026-01-01T12:00:01Z)",
            "INFO job 1 boom: attempt 2/3",
            "WARN job 1 failed, retry 2/2 in 2s (at 2026-01-01T12:00:03Z)",
            "INFO job 1 boom: attempt 3/3",
            "ERROR job 1 failed after 2 retries (exhausted), archived",
        ]
    );
    let all = kept();
    for line in &all {
        for (field, value) in
            [("tenant_id", "acme"), ("job_id", "1"), ("queue", "default"), ("kind", "boom"), ("max_attempts", "3")]
        {
            assert_eq!(line.fields.get(field).map(String::as_str), Some(value), "{field}");
        }
        assert!(line.fields.contains_key("attempt"));
        assert!(!line.fields.values().any(|value| value.contains("4111")), "a payload is in the log");
    }
    let retry = &all[1].fields;
    assert_eq!((retry["delay_ms"].as_str(), retry["error_class"].as_str()), ("1000", "ServerError"));
    assert_eq!(retry["next_run_at"], "2026-01-01T12:00:01Z");
}

#[tokio::test]
async fn a_recurring_run_that_is_given_up_says_when_the_next_one_is() {
    let w = world();
    let policy = w
        .job(w.windlass.enqueue(Boom { card: String::new() }).queue("other").retry("once").await.unwrap())
        .await
        .policy;
    let template = NewJob::new(Kind::new("boom").unwrap(), r#"{"card":""}"#, policy);
    let spec = ScheduleSpec {
        tenant: Tenant::default(),
        cadence: "every 1h".into(),
        zone: "UTC".into(),
        recurrence: Recurrence::Recurring,
        overlap: Overlap::Skip,
        missed: Missed::One,
        dead_letters: DeadRuns::Latest,
        template: NewJob { queue: QueueName::new("hourly").unwrap(), ..template },
    };
    let next = w.clock.now() + Millis::from_secs(3600);
    let schedule = w.windlass.store().add_schedule(spec, Some(next)).await.unwrap();
    let worker = w.start(w.worker().handle(boom).queue("hourly", 1));
    w.quiet().await;
    w.advance(Millis::from_secs(3600)).await;
    w.until("the run's end", async || reported().iter().any(|line| line.starts_with("ERROR"))).await;
    worker.stop().await;
    let line = kept().pop().unwrap();
    let message = &line.fields["message"];
    assert!(
        message.ends_with("failed after 0 retries (exhausted), archived, next firing 2026-01-01T14:00:00Z"),
        "{message}"
    );
    assert_eq!(line.fields["schedule_id"], schedule.id.0.to_string());
}

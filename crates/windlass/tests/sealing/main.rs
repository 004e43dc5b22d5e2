//! Values at rest: sealed in every file, opened for whoever has the keys, refused to others, and brought to a new key.
#![allow(clippy::unwrap_used)] // All of this is tests.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use windlass::client::{JobFilter, Order, Page, Progress, Scope, WebhookDraft};
use windlass::core::job::Tenant;
use windlass::low_level::job::HttpCall;
use windlass::low_level::stores::Store;
use windlass::low_level::stores::sqlite::SqliteStore;
use windlass::testing::{START, TestKit};
use windlass::{Attempt, Clock, Failure, JobKind, KeyRing, Options, Random, State, StoreError, Windlass};

mod walk;

/// How long a second of the test's clock takes.
const TURN: std::time::Duration = std::time::Duration::from_millis(10);
/// In everything that must be sealed, and in nothing else.
const CANARY: &str = "canary7f3a";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Bird {
    song: String,
    fails: bool,
}

impl JobKind for Bird {
    const KIND: &'static str = "bird";
}

async fn sing(bird: Bird, attempt: Attempt) -> Result<Value, Failure> {
    attempt.note(format!("note {CANARY}"));
    if bird.fails {
        return Err(Failure::new(format!("error {CANARY} 17")).class("Fell"));
    }
    assert!(bird.song.contains(CANARY), "the handler gets the opened payload");
    Ok(json!({ "sung": bird.song }))
}

fn ring(names: &[&str]) -> KeyRing {
    let seed = |name: &str| Random::seeded(name.bytes().map(u64::from).sum());
    let lines: Vec<String> = names.iter().map(|name| KeyRing::generate(name, &seed(name))).collect();
    KeyRing::parse(&lines.join("\n")).unwrap()
}

struct Nest {
    home: tempfile::TempDir,
    clock: Clock,
}

impl Nest {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), clock: Clock::manual(START) }
    }

    fn path(&self) -> String {
        self.home.path().join("jobs.db").to_str().unwrap().to_owned()
    }

    async fn open(&self, ring: KeyRing) -> Windlass {
        let options = Options { clock: self.clock.clone(), key_ring: ring, ..Options::default() };
        Windlass::open_with(&format!("sqlite:{}", self.path()), options).await.unwrap()
    }

    async fn store(&self, ring: KeyRing) -> Arc<dyn Store> {
        let options = Options { clock: self.clock.clone(), ..Options::default() };
        windlass::low_level::sealed(SqliteStore::open(&self.path(), options).await.unwrap(), ring, Random::system())
    }

    /// The files that contain a text.
    fn files_with(&self, text: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| has(path, text)).map(|path| path.display().to_string()).collect()
    }
}

/// Brings everything to the first key, while time goes on.
async fn rotate(nest: &Nest, windlass: &Windlass, report: impl FnMut(Progress)) -> Result<Progress, StoreError> {
    let mut ticks = tokio::time::interval(TURN);
    let time = async {
        loop {
            ticks.tick().await;
            nest.clock.advance(windlass::Millis::from_secs(1));
        }
    };
    let settings = windlass.settings();
    tokio::select! {
        done = settings.rotate_keys(report) => done,
        () = time => unreachable!(),
    }
}

fn has(path: &Path, text: &str) -> bool {
    std::fs::read(path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
}

fn call() -> HttpCall {
    HttpCall {
        method: "POST".into(),
        url: format!("https://example.com/hook?token={CANARY}"),
        headers: vec![("Authorization".into(), format!("Bearer {CANARY}"))],
        secret: None,
        webhook_id: None,
    }
}

const SECRET: &str = "whsec_Y2FuYXJ5N2YzYWNhbmFyeTdmM2FjYW5hcnk3ZjNh";

/// Puts the canary into everything, and runs what can run.
async fn fill(windlass: &Windlass) {
    let bird = |fails| Bird { song: format!("song {CANARY}"), fails };
    let webhook = WebhookDraft {
        url: format!("https://example.com/done?key={CANARY}"),
        events: vec![State::Succeeded, State::Failed],
        secret: Some(SECRET.into()),
        policy: Default::default(),
    };
    windlass.enqueue(bird(false)).idempotency_key("first").webhook_with(webhook.clone()).await.unwrap();
    windlass
        .enqueue(bird(true))
        .retry("fixed:base=1s,jitter=none,cap=none,retries=1")
        .webhook_with(webhook)
        .await
        .unwrap();
    windlass.enqueue_kind("call", &json!({ "body": CANARY })).http(call()).await.unwrap();
    windlass.schedules().every(std::time::Duration::from_secs(3600)).job(bird(false)).await.unwrap();
    let of_tenant = json!({ "url": format!("https://example.com/t?key={CANARY}"), "secret": SECRET });
    windlass.tenants().set_webhook(&Tenant::default(), Some(&of_tenant)).await.unwrap();
}

async fn all(windlass: &Windlass) -> Vec<windlass::Job> {
    let page = Page { after: None, limit: 100, order: Order::OldestFirst };
    windlass.jobs().list(&JobFilter::default(), page).await.unwrap()
}

fn opened(jobs: &[windlass::Job]) -> String {
    format!("{:?}", jobs.iter().map(|job| (&job.payload, &job.error, &job.result)).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_and_no_backup_contains_what_is_sealed() {
    let nest = Nest::new();
    let windlass = nest.open(ring(&["a"])).await;
    fill(&windlass).await;
    let kit = TestKit::with_store(windlass::low_level::store(&windlass), Random::seeded(7)).handle(sing);
    kit.run_due().await;
    nest.clock.advance(windlass::Millis::from_secs(60));
    kit.run_due().await;
    windlass.transfer().backup(nest.home.path().join("copy.db").to_str().unwrap()).await.unwrap();

    let jobs = all(&windlass).await;
    let ended: Vec<State> = jobs.iter().take(2).map(|job| job.state).collect();
    assert_eq!(ended, [State::Succeeded, State::Failed], "{jobs:?}");
    assert!(jobs[0].result.as_ref().unwrap().contains(CANARY));
    assert!(jobs[1].error.as_ref().unwrap().contains(CANARY));
    assert_eq!(jobs[2].http.as_deref(), Some(&call()));
    let attempts = windlass.jobs().history(jobs[1].id).await.unwrap();
    assert!(attempts.iter().all(|a| a.note.as_ref().unwrap().contains(CANARY) && a.error.is_some()), "{attempts:?}");
    let groups = windlass.store().dead_groups(&Scope::All, &JobFilter::default(), 10).await.unwrap();
    assert!(groups.iter().any(|group| group.message == "error … …"), "{groups:?}");
    assert!(windlass.schedules().list(Page::newest(10)).await.unwrap()[0].spec.template.payload.contains(CANARY));
    assert_eq!(windlass.tenants().webhook(&Tenant::default()).await.unwrap().unwrap().secret.unwrap(), SECRET);

    assert_eq!(nest.files_with(CANARY), Vec::<String>::new());
    assert_eq!(nest.files_with(SECRET), Vec::<String>::new());
    assert!(!nest.files_with("bird").is_empty(), "kinds stay in clear");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_key_replaces_the_old_one_while_jobs_are_stored() {
    let nest = Nest::new();
    let first = nest.open(ring(&["a"])).await;
    fill(&first).await;
    let before = opened(&all(&first).await);
    drop(first);

    let both = nest.open(ring(&["b", "a"])).await;
    let again = both.enqueue(Bird { song: format!("song {CANARY}"), fails: false }).idempotency_key("first");
    assert_eq!(again.await.unwrap(), all(&both).await[0].id, "the same request under another key");
    let other = both.enqueue(Bird { song: "another".into(), fails: false }).idempotency_key("first").await;
    assert!(other.is_err(), "{other:?}");
    assert_eq!(both.settings().sealing().await.unwrap().in_use, ["a", "b"]);
    let mut reports = 0;
    let done = rotate(&nest, &both, |_| reports += 1).await.unwrap();
    assert!(done.changed >= 4 && reports > 0, "{done:?}");
    assert_eq!(both.settings().sealing().await.unwrap().in_use, ["b"]);
    assert_eq!(rotate(&nest, &both, |_| {}).await.unwrap().changed, 0, "nothing is left to do");
    drop(both);

    let second = nest.open(ring(&["b"])).await;
    assert_eq!(opened(&all(&second).await), before);
    assert!(second.schedules().list(Page::newest(10)).await.unwrap()[0].spec.template.payload.contains(CANARY));
    let again = second.enqueue(Bird { song: format!("song {CANARY}"), fails: false }).idempotency_key("first");
    assert_eq!(again.await.unwrap(), all(&second).await[0].id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_key_takes_and_stores_nothing_and_loses_nothing() {
    let nest = Nest::new();
    let right = nest.open(ring(&["a"])).await;
    fill(&right).await;
    for wrong in [KeyRing::default(), ring(&["b"])] {
        let store = nest.store(wrong).await;
        let kit = TestKit::with_store(store.clone(), Random::seeded(7)).handle(sing);
        let health = store.health().await.unwrap_err().to_string();
        assert!(health.contains("the key `a`, which is not in this node's key ring"), "{health}");
        let stored = kit.windlass().enqueue_kind("x", &json!({})).await;
        assert!(matches!(stored, Err(windlass::EnqueueError::Store(StoreError::Unavailable(_)))), "{stored:?}");
        let listed = store.jobs(&Scope::All, &JobFilter::default(), Page::newest(10)).await.unwrap();
        assert!(listed.iter().all(|job| job.payload.contains("the key `a`, which is not in")), "{listed:?}");
        let read = store.job(&Scope::All, listed[0].id).await;
        assert!(matches!(read, Err(StoreError::Sealed(_))), "{read:?}");
        let schedules = store.schedules(&Scope::All, Page::newest(10)).await.unwrap();
        let template = &schedules[0].spec.template;
        assert!(template.payload.contains("the key `a`, which is not in"), "{template:?}");
        let read = store.schedule(&Scope::All, schedules[0].id).await;
        assert!(matches!(read, Err(StoreError::Sealed(_))), "{read:?}");
    }
    assert_eq!(right.settings().sealing().await.unwrap().in_use, ["a"], "a wrong ring's key is not in use");
    nest.clock.advance(windlass::Millis::from_secs(2));
    right.health().await.unwrap();
    let jobs = all(&right).await;
    assert!(jobs.iter().all(|job| job.attempt == 0 && job.payload.contains(CANARY)), "{jobs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_stored_in_clear_is_sealed_by_upkeep_and_in_transactions_at_once() {
    let nest = Nest::new();
    let plain = nest.open(KeyRing::default()).await;
    fill(&plain).await;
    drop(plain);
    let windlass = nest.open(ring(&["a"])).await;
    let count = |sealed: bool| {
        let conn = windlass::rusqlite::Connection::open(nest.path()).unwrap();
        let like = if sealed { "LIKE" } else { "NOT LIKE" };
        let sql = format!("SELECT count(*) FROM windlass_jobs WHERE payload {like} '\"windlass:sealed:%'");
        conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!((count(true), count(false)), (0, 3));
    let mut conn = windlass::rusqlite::Connection::open(nest.path()).unwrap();
    let tx = conn.transaction().unwrap();
    windlass.enqueue(Bird { song: CANARY.into(), fails: false }).enqueue_in(&tx).unwrap();
    tx.commit().unwrap();
    assert_eq!((count(true), count(false)), (1, 3));
    // The same request, of which one is in clear.
    let again = windlass.enqueue(Bird { song: format!("song {CANARY}"), fails: false }).idempotency_key("first");
    assert_eq!(again.await.unwrap(), all(&windlass).await[0].id);
    rotate(&nest, &windlass, |_| {}).await.unwrap();
    assert_eq!((count(true), count(false)), (4, 0));
    assert!(all(&windlass).await.iter().all(|job| job.payload.contains(CANARY)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_copied_behind_a_rotation_is_brought_to_the_new_key_too() {
    let nest = Nest::new();
    let first = nest.open(ring(&["a"])).await;
    fill(&first).await;
    let before = opened(&all(&first).await);
    drop(first);

    let conn = windlass::rusqlite::Connection::open(nest.path()).unwrap();
    let old: String = conn.query_row("SELECT payload FROM windlass_jobs WHERE id = 1", [], |row| row.get(0)).unwrap();
    let both = nest.open(ring(&["b", "a"])).await;
    let mut is_copied = false;
    // As a store does that replays a job: the pass has seen this row already.
    let copy = |_| {
        if !std::mem::replace(&mut is_copied, true) {
            conn.execute("UPDATE windlass_jobs SET payload = ?1 WHERE id = 1", [&old]).unwrap();
        }
    };
    rotate(&nest, &both, copy).await.unwrap();
    assert_eq!(both.settings().sealing().await.unwrap().in_use, ["b"]);
    drop(both);
    assert_eq!(opened(&all(&nest.open(ring(&["b"])).await).await), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_reports_the_error_of_a_job_that_was_cancelled_between_attempts() {
    let nest = Nest::new();
    let windlass = nest.open(ring(&["a"])).await;
    let webhook = WebhookDraft {
        url: "https://example.com/done".into(),
        events: vec![State::Cancelled],
        secret: Some(SECRET.into()),
        policy: Default::default(),
    };
    let bird = Bird { song: CANARY.into(), fails: true };
    let id = windlass.enqueue(bird).retry("fixed:base=1h,retries=1").webhook_with(webhook).await.unwrap();
    let kit = TestKit::with_store(windlass::low_level::store(&windlass), Random::seeded(7)).handle(sing);
    kit.run_due().await;
    windlass.jobs().cancel(id).await.unwrap();
    assert_eq!(nest.files_with(CANARY), Vec::<String>::new());
    drop((kit, windlass));

    let both = nest.open(ring(&["b", "a"])).await;
    both.health().await.unwrap();
    rotate(&nest, &both, |_| {}).await.unwrap();
    drop(both);
    let jobs = all(&nest.open(ring(&["b"])).await).await;
    let body: Value = serde_json::from_str(&jobs[1].payload).unwrap();
    assert_eq!((&body["data"]["error"], &body["data"]["errorClass"]), (&json!("error canary7f3a 17"), &json!("Fell")));
    assert_eq!(jobs[1].http.as_ref().unwrap().secret.as_deref(), Some(SECRET));
    assert_eq!(nest.files_with(CANARY), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_caller_registers_the_key_or_is_refused() {
    let nest = Nest::new();
    let windlass = nest.open(ring(&["a"])).await;
    let mut conn = windlass::rusqlite::Connection::open(nest.path()).unwrap();
    let tx = conn.transaction_with_behavior(windlass::rusqlite::TransactionBehavior::Immediate).unwrap();
    windlass.enqueue(Bird { song: CANARY.into(), fails: false }).enqueue_in(&tx).unwrap();
    assert!(windlass.settings().sealing().await.unwrap().in_use.is_empty(), "nobody sees it yet");
    tx.commit().unwrap();
    assert_eq!(windlass.settings().sealing().await.unwrap().in_use, ["a"]);

    let wrong = nest.open(ring(&["b"])).await;
    let tx = conn.transaction().unwrap();
    let refused = wrong.enqueue(Bird { song: CANARY.into(), fails: false }).enqueue_in(&tx).unwrap_err();
    assert!(refused.to_string().contains("the key `a`"), "{refused}");
    drop(tx);
    assert_eq!(windlass.settings().sealing().await.unwrap().in_use, ["a"]);
}

//! Behind a pgbouncer in transaction mode. (The whole conformance suite runs there too, as `pooled::…`.)

use crate::world::{World, job, options, url};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, StoreError};
use windlass::{Attempt, Failure, JobKind, State, Windlass, Worker};

/// Real time after which a wait is given up.
const HANG: Duration = Duration::from_secs(180);

fn pgbouncer_url() -> String {
    std::env::var("WINDLASS_TEST_PGBOUNCER").expect(
        "these tests need a pgbouncer before the Postgres server: run them with scripts/test or \
         `scripts/with-postgres cargo test …`, or set WINDLASS_TEST_PGBOUNCER to the URL of one",
    )
}

#[tokio::test]
async fn poolers_and_direct_connections_are_recognised() {
    for (url, expected) in [
        (url(), false),
        (pgbouncer_url(), true),
        (format!("{}?prepared=off", url()), true),
        (format!("{}?prepared=auto", url()), false),
    ] {
        let w = World::at(&url).await;
        let warnings = w.store.health().await.unwrap().warnings;
        assert_eq!(warnings.iter().any(|warning| warning.contains("pooler")), expected, "{warnings:?}");
        assert!(w.store.check_statements().await.unwrap() > 50);
        w.end().await;
    }
    let refused = PostgresStore::open(&format!("{}?prepared=maybe", url()), options("windlass")).await.map(drop);
    assert!(matches!(&refused, Err(StoreError::Invalid(why)) if why.contains("maybe")), "{refused:?}");
}

#[tokio::test]
async fn a_callers_transaction_through_a_pooler_leaves_nothing_prepared() {
    let w = World::at(&pgbouncer_url()).await;
    let (mut caller, connection) = tokio_postgres::connect(&pgbouncer_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..5 {
        let transaction = caller.transaction().await.unwrap();
        w.store.enqueue_in(&transaction, vec![job()]).await.unwrap();
        let prepared = transaction.query_typed_one("SELECT count(*) FROM pg_prepared_statements", &[]).await.unwrap();
        assert_eq!(prepared.get::<_, i64>(0), 0);
        transaction.commit().await.unwrap();
    }
    assert_eq!(w.claim(10).await.len(), 5);
    w.end().await;
}

#[derive(Debug, Serialize, Deserialize)]
struct Say(u32);

impl JobKind for Say {
    const KIND: &'static str = "say";
}

async fn say(job: Say, _: Attempt) -> Result<u32, Failure> {
    Ok(job.0)
}

#[tokio::test]
async fn workers_work_through_a_pooler() {
    let w = World::at(&pgbouncer_url()).await;
    let open = || async { Windlass::open_with(&pgbouncer_url(), options(&w.schema)).await.unwrap() };
    let (producer, one, two) = (open().await, open().await, open().await);
    // Both ask for one name: its lock belongs to one transaction, which a pooler keeps on one server connection.
    let done = tokio::sync::Notify::new();
    let work = |windlass: &Windlass| {
        Worker::new(windlass).handle(say).id("w1").queue("default", 2).run(async { done.notified().await })
    };
    let working = async { tokio::join!(work(&one), work(&two)) };
    let producing = async {
        let mut workers = std::collections::BTreeSet::new();
        for n in 0..20 {
            let id = producer.enqueue(Say(n)).await.unwrap();
            let job = producer.wait(id).await.unwrap().unwrap();
            assert_eq!((job.state, job.attempt), (State::Succeeded, 1));
            workers.insert(producer.jobs().history(id).await.unwrap()[0].worker.clone());
        }
        let known = w.store.workers(windlass::core::Timestamp::EPOCH).await.unwrap();
        let mut names: Vec<String> = known.iter().map(|report| report.worker.to_string()).collect();
        names.sort();
        assert!(names.len() == 2 && names[0] == "w1" && names[1].starts_with("w1-"), "{names:?}");
        done.notify_waiters();
    };
    let (ended, ()) = tokio::time::timeout(HANG, async { tokio::join!(working, producing) }).await.unwrap();
    ended.0.unwrap();
    ended.1.unwrap();
    w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    assert_eq!(w.claim(10).await.len(), 1);
    w.end().await;
}

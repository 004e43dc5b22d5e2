//! Faults: killed backends, cut connections, a missing server.

use crate::proxy::{Cut, Proxy};
use crate::world::{World, job, options, url};
use windlass::Clock;
use windlass::core::{JobId, Millis, Timestamp};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, Enqueued, Reap, Scope, Spared, StoreError};

async fn put(w: &World) -> Result<Vec<Enqueued>, StoreError> {
    w.store.enqueue(vec![job()], Atomicity::Each).await
}

/// A job that is stored by a transaction of several statements; plain ones need just one.
fn timed() -> NewJob {
    NewJob { timeout: Some(Millis::from_secs(60)), ..job() }
}

async fn put_timed(w: &World) -> Result<Vec<Enqueued>, StoreError> {
    w.store.enqueue(vec![timed()], Atomicity::Each).await
}

const STORED: &str = "SELECT count(*) FROM {s}.jobs";

/// More than a store keeps open.
const CONNECTIONS: usize = 20;

#[tokio::test]
async fn a_store_whose_backends_were_killed_recovers() {
    let name = format!("killed_{}", std::process::id());
    let w = World::at(&format!("{}?application_name={name}", url())).await;
    for round in 1..=3 {
        put(&w).await.unwrap();
        let kill =
            format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{name}'");
        assert!(w.count(&kill).await > 0);
        assert_eq!(w.count(STORED).await, round * 2 - 1);
        // The news that its server process was killed may reach a connection only when it sends a job. Then nobody
        // knows whether the job was stored, so the caller looks, and asks again. Each connection is lost once.
        for _ in 0..CONNECTIONS {
            match put(&w).await {
                Ok(_) => break,
                Err(StoreError::Unknown(_)) if w.count(STORED).await == round * 2 => break,
                Err(StoreError::Unknown(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(w.count(STORED).await, round * 2);
    }
    assert_eq!(w.claim(10).await.len(), 6);
    w.end().await;
}

#[tokio::test]
async fn a_commit_that_was_cut_off_is_unknown_and_did_not_happen_if_the_server_never_got_it() {
    let proxy = Proxy::start(&url(), "COMMIT", Cut::BeforeServer).await;
    let w = World::at(&proxy.url).await;
    put_timed(&w).await.unwrap();
    proxy.arm();
    let error = put_timed(&w).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    assert!(proxy.has_cut());
    assert_eq!(w.count(STORED).await, 1);
    put_timed(&w).await.unwrap();
    assert_eq!(w.count(STORED).await, 2);
    w.end().await;
}

#[tokio::test]
async fn a_commit_whose_answer_was_cut_off_is_unknown_although_it_happened() {
    let proxy = Proxy::start(&url(), "COMMIT", Cut::AfterServer).await;
    let w = World::at(&proxy.url).await;
    put_timed(&w).await.unwrap();
    proxy.arm();
    let error = put_timed(&w).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    assert_eq!(w.count(STORED).await, 2, "never repeated blindly");
    w.end().await;
}

#[tokio::test]
async fn a_connection_cut_before_the_commit_is_tried_again_and_nothing_is_stored_twice() {
    let proxy = Proxy::start(&url(), "cut-me-here", Cut::BeforeServer).await;
    let w = World::at(&proxy.url).await;
    put(&w).await.unwrap();
    proxy.arm();
    let marked = NewJob { payload: r#""cut-me-here""#.into(), ..timed() };
    let stored = w.store.enqueue(vec![marked], Atomicity::Each).await.unwrap();
    assert!(proxy.has_cut());
    assert!(w.store.job(&Scope::All, stored[0].id().unwrap()).await.unwrap().is_some());
    assert_eq!(w.count(STORED).await, 2);
    w.end().await;
}

#[tokio::test]
async fn a_plain_enqueue_that_was_cut_off_is_unknown_whether_or_not_it_happened() {
    for (cut, stored) in [(Cut::BeforeServer, 1), (Cut::AfterServer, 2)] {
        let proxy = Proxy::start(&url(), "cut-me-here", cut).await;
        let w = World::at(&proxy.url).await;
        put(&w).await.unwrap();
        proxy.arm();
        let marked = NewJob { payload: r#""cut-me-here""#.into(), ..job() };
        let error = w.store.enqueue(vec![marked], Atomicity::Each).await.unwrap_err();
        assert!(matches!(error, StoreError::Unknown(_)), "{error}");
        assert!(proxy.has_cut());
        assert_eq!(w.count(STORED).await, stored, "never repeated blindly");
        put(&w).await.unwrap();
        w.end().await;
    }
}

#[tokio::test]
async fn a_claim_with_an_unknown_outcome_can_be_queried() {
    let proxy = Proxy::start(&url(), "COMMIT", Cut::AfterServer).await;
    let w = World::at(&proxy.url).await;
    put(&w).await.unwrap();
    let share = windlass::low_level::stores::Share { queue: w.queue().await, slots: 1, ahead: 0 };
    let claim = crate::world::claim(share);
    let windlass::low_level::stores::Leases::Shared(lease) = claim.leases else {
        unreachable!("claims here share a lease")
    };
    proxy.arm();
    let error = w.store.claim(claim).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    let held: Vec<JobId> = w.store.held(vec![lease]).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(held.len(), 1);
    w.end().await;
}

#[tokio::test]
async fn a_reap_that_waited_for_the_server_spares_leases_that_could_not_be_renewed() {
    let clock = Clock::manual(Timestamp::from_millis(1_767_268_800_000));
    let w = World::with(&url(), clock.clone()).await;
    put(&w).await.unwrap();
    assert_eq!(w.claim(1).await.len(), 1);
    clock.advance(Millis::from_secs(31));
    let lock = format!("BEGIN; LOCK TABLE {}.leases", w.schema);
    w.client.batch_execute(&lock).await.unwrap();
    let reap = || Reap::Expired { spared: Spared::none() };
    let waiting = tokio::spawn({
        let store = w.store.clone();
        async move { store.reap(reap(), 10).await }
    });
    let waits = format!(
        "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE NOT l.granted AND c.relname = 'leases' AND n.nspname = '{}'",
        w.schema
    );
    while w.count(&waits).await == 0 {}
    clock.advance(Millis::from_secs(16));
    w.client.batch_execute("COMMIT").await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_empty(), "nobody could renew meanwhile");
    assert_eq!(w.store.reap(reap(), 10).await.unwrap().len(), 1);
    w.end().await;
}

#[tokio::test]
async fn a_missing_server_is_unavailable() {
    let error = PostgresStore::open("postgres://nobody@127.0.0.1:1/none", options("windlass")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    let error = PostgresStore::open("nonsense", options("windlass")).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "{error}");
}

#[tokio::test]
async fn a_callers_transaction_left_open_on_a_key_does_not_stop_other_keys() {
    let w = World::new().await;
    let held = format!("BEGIN; SELECT {}.enqueue('email', idempotency_key => 'k1')", w.schema);
    w.client.batch_execute(&held).await.unwrap();
    let window = windlass::low_level::job::KeyWindow::For(windlass::low_level::job::DEFAULT_KEY_WINDOW);
    let idempotency = Some(windlass::low_level::job::Idempotency { key: "k2".into(), window });
    let other = NewJob { idempotency, ..job() };
    let stored = w.store.enqueue(vec![other], Atomicity::Each).await.unwrap();
    assert!(matches!(stored[0], Enqueued::Created { .. }));
    w.client.batch_execute("ROLLBACK").await.unwrap();
    w.end().await;
}

#[tokio::test]
async fn the_wait_for_a_callers_open_transaction_on_a_key_is_bounded() {
    let w = World::new().await;
    let held = format!("BEGIN; SELECT {}.enqueue('email', idempotency_key => 'k1')", w.schema);
    w.client.batch_execute(&held).await.unwrap();
    let window = windlass::low_level::job::KeyWindow::For(windlass::low_level::job::DEFAULT_KEY_WINDOW);
    let same =
        || NewJob { idempotency: Some(windlass::low_level::job::Idempotency { key: "k1".into(), window }), ..job() };
    let error = w.store.enqueue(vec![same()], Atomicity::Each).await.unwrap_err();
    let StoreError::Unavailable(cause) = &error else { panic!("{error:?}") };
    assert!(cause.to_string().contains("left open"), "{cause}");
    // Others are served meanwhile, and the key is free when the transaction has gone.
    put(&w).await.unwrap();
    w.client.batch_execute("ROLLBACK").await.unwrap();
    let stored = w.store.enqueue(vec![same()], Atomicity::Each).await.unwrap();
    assert!(matches!(stored[0], Enqueued::Created { .. }));
    w.end().await;
}

#[tokio::test]
async fn a_commit_with_the_warning_of_a_cancelled_replication_wait_is_unknown() {
    let w = World::new().await;
    w.queue().await;
    // The same warning at the same moment, made by hand.
    let trigger = "CREATE FUNCTION {s}.warn() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON {s}.jobs DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION {s}.warn()";
    w.client.batch_execute(&trigger.replace("{s}", &w.schema)).await.unwrap();
    for put in [put(&w).await, put_timed(&w).await] {
        let error = put.unwrap_err();
        assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    }
    w.client.batch_execute(&format!("DROP TRIGGER warn ON {}.jobs", w.schema)).await.unwrap();
    put(&w).await.unwrap();
    w.end().await;
}

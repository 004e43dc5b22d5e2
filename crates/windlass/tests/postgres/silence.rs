//! A server that goes silent without closing its connections: frozen, or behind a cable that was pulled.

use crate::proxy::{Cut, Proxy};
use crate::world::{World, job, url};
use std::time::Duration;
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, Enqueued, Reap, Spared, StoreError};

const STORED: &str = "SELECT count(*) FROM {s}.jobs";
/// Far longer than anything here should take.
const HANG: Duration = Duration::from_secs(60);

async fn put(w: &World) -> Result<Vec<Enqueued>, StoreError> {
    let putting = w.store.enqueue(vec![job()], Atomicity::Each);
    tokio::time::timeout(HANG, putting).await.expect("an answer, good or bad")
}

async fn proxy() -> Proxy {
    Proxy::start(&url(), "never sent", Cut::BeforeServer).await
}

/// Both hosts in one URL.
fn with_hosts(first: &Proxy, second: &Proxy) -> String {
    let second = url::Url::parse(&second.url).unwrap();
    let first = first.url.replacen("?sslmode=disable", "?sslmode=disable&silence=2s", 1);
    let (start, path) = first.split_at(first.rfind('/').unwrap());
    format!("{start},127.0.0.1:{}{path}", second.port().unwrap())
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_what_it_did_stays_unknown() {
    let proxy = proxy().await;
    let w = World::at(&format!("{}&silence=1s", proxy.url)).await;
    put(&w).await.unwrap();
    proxy.freeze();
    let error = put(&w).await.unwrap_err();
    assert!(error.is_outage(), "{error}");
    let error = put(&w).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "refused at once, and nothing was sent: {error}");
    proxy.open();
    while put(&w).await.is_err() {
        tokio::task::yield_now().await;
    }
    let stored = w.count(STORED).await;
    assert!((2..=3).contains(&stored), "nothing is sent twice: {stored}");
    w.end().await;
}

#[tokio::test]
async fn when_another_host_takes_over_from_a_silent_one_work_goes_on_there() {
    let (old, new) = (proxy().await, proxy().await);
    new.shut();
    let w = World::at(&with_hosts(&old, &new)).await;
    put(&w).await.unwrap();
    old.freeze();
    new.open();
    while put(&w).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(!w.claim(10).await.is_empty());
    w.end().await;
}

#[tokio::test]
async fn a_silent_first_host_does_not_keep_a_store_from_opening() {
    let (silent, alive) = (proxy().await, proxy().await);
    silent.freeze();
    let w = World::at(&with_hosts(&silent, &alive)).await;
    put(&w).await.unwrap();
    w.end().await;
}

#[tokio::test]
async fn a_statement_that_takes_long_on_a_living_server_is_left_alone() {
    let proxy = proxy().await;
    let w = World::at(&format!("{}&silence=1s", proxy.url)).await;
    put(&w).await.unwrap();
    assert_eq!(w.claim(1).await.len(), 1);
    w.client.batch_execute(&format!("BEGIN; LOCK TABLE {}.leases", w.schema)).await.unwrap();
    let reaping = w.store.reap(Reap::Expired { spared: Spared::none() }, 10);
    let unlocking = async {
        w.client.batch_execute("SELECT pg_sleep(4); COMMIT").await.unwrap();
    };
    let (reaped, ()) = tokio::join!(reaping, unlocking);
    assert!(reaped.unwrap().is_empty());
    w.end().await;
}

/// The server has no room for one more connection, and a statement takes long. That is no silence.
#[tokio::test]
async fn a_server_that_refuses_connections_keeps_those_it_has() {
    let role = format!("limited_{:08x}", windlass::Random::system().number() >> 32);
    let admin = crate::world::plain().await;
    let create = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'x';
         DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {role}', current_database()); END$$"
    );
    admin.batch_execute(&create).await.unwrap();
    let mut of_role = url::Url::parse(&url()).unwrap();
    of_role.set_username(&role).unwrap();
    of_role.set_password(Some("x")).unwrap();
    let w = World::at(&format!("{of_role}?silence=1s")).await;
    put(&w).await.unwrap();
    assert_eq!(w.claim(1).await.len(), 1);
    admin.batch_execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 0")).await.unwrap();
    w.client.batch_execute(&format!("BEGIN; LOCK TABLE {}.leases", w.schema)).await.unwrap();
    let reaping = w.store.reap(Reap::Expired { spared: Spared::none() }, 10);
    let unlocking = async {
        w.client.batch_execute("SELECT pg_sleep(4); COMMIT").await.unwrap();
    };
    let (reaped, ()) = tokio::join!(reaping, unlocking);
    assert!(reaped.unwrap().is_empty());
    w.end().await;
    admin.batch_execute(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}")).await.unwrap();
}

#[tokio::test]
async fn connections_killed_while_they_rest_cost_no_job_its_outcome() {
    let name = format!("rested_{}", std::process::id());
    let w = World::at(&format!("{}?application_name={name}", url())).await;
    put(&w).await.unwrap();
    let ours = format!("FROM pg_stat_activity WHERE application_name = '{name}'");
    w.count(&format!("SELECT count(pg_terminate_backend(pid)) {ours}")).await;
    while w.count(&format!("SELECT count(*) {ours} AND query NOT ILIKE '%listen%'")).await > 0 {}
    w.client.batch_execute("SELECT pg_sleep(0.1)").await.unwrap();
    let job = NewJob { ..job() };
    w.store.enqueue(vec![job], Atomicity::Each).await.unwrap();
    assert_eq!(w.count(STORED).await, 2);
    w.end().await;
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_database_are_invalid_and_a_missing_server_is_not() {
    let mut parsed = url::Url::parse(&url()).unwrap();
    parsed.set_path("/no_such_database");
    for (wrong, is_invalid) in [(parsed.as_str(), true), ("postgres://nobody@127.0.0.1:1,127.0.0.1:2/none", false)] {
        let error = PostgresStore::open(wrong, crate::world::options("windlass")).await.unwrap_err();
        assert_eq!(matches!(error, StoreError::Invalid(_)), is_invalid, "{error}");
    }
    for wrong in ["silence=now", "silence=0s", "silence=1d"] {
        let error =
            PostgresStore::open(&format!("postgres://h/db?{wrong}"), crate::world::options("w")).await.unwrap_err();
        assert!(matches!(&error, StoreError::Invalid(why) if why.contains("such as 4s")), "{error}");
    }
}

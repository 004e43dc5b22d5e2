//! A schema of its own for each test, and a plain connection next to the store.

use std::sync::Arc;
use windlass::Clock;
use windlass::Random;
use windlass::core::job::Kind;
use windlass::core::policy::Partial;
use windlass::core::{Executor, Millis, Policy};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob, QueueId};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Claim, Leases, Options, Share, WorkerId};

pub fn url() -> String {
    std::env::var("WINDLASS_TEST_POSTGRES").expect(
        "these tests need a Postgres server: run them with scripts/test or `scripts/with-postgres cargo test …`, \
         or set WINDLASS_TEST_POSTGRES to the URL of a database they may create schemas in",
    )
}

pub struct World {
    pub store: Arc<PostgresStore>,
    /// A plain connection, for what an operator or another program would do.
    pub client: tokio_postgres::Client,
    pub schema: String,
}

impl World {
    pub async fn new() -> Self {
        Self::at(&url()).await
    }

    /// The store reached by this URL; the plain connection goes straight to the server.
    pub async fn at(store_url: &str) -> Self {
        Self::with(store_url, Clock::system()).await
    }

    pub async fn with(store_url: &str, clock: Clock) -> Self {
        let schema = format!("test_{:016x}", Random::system().number());
        let store =
            PostgresStore::open(&named(store_url, &schema), Options { clock, ..options(&schema) }).await.unwrap();
        Self { store, client: plain().await, schema }
    }

    /// The store with new connections, after the server's statistics have everything that was done with the old ones.
    /// A connection reports what it did when it ends; while it lives, seconds may pass.
    pub async fn reopened(self) -> Self {
        let Self { store, client, schema } = self;
        drop(store);
        let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        let closed = async {
            while client.query_one(open, &[&schema]).await.unwrap().get::<_, i64>(0) > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), closed).await.expect("connections end");
        let store = PostgresStore::open(&named(&url(), &schema), options(&schema)).await.unwrap();
        Self { store, client, schema }
    }

    pub async fn queue(&self) -> QueueId {
        let (tenant, name) = Default::default();
        self.store.register_queue(&tenant, &name, Executor::Worker).await.unwrap().id
    }

    /// Claims up to `limit` jobs of the default queue.
    pub async fn claim(&self, limit: u32) -> Vec<ClaimedJob> {
        let share = Share { queue: self.queue().await, slots: limit, ahead: 0 };
        self.store.claim(claim(share)).await.unwrap().jobs
    }

    /// The first column of the first row of a query, whose `{s}` is the schema.
    pub async fn count(&self, query: &str) -> i64 {
        self.client.query_one(&query.replace("{s}", &self.schema), &[]).await.unwrap().get(0)
    }

    /// Ends the test and removes its schema.
    pub async fn end(self) {
        drop(self.store);
        let drop_schema = format!("SET lock_timeout = '5s'; DROP SCHEMA {} CASCADE", self.schema);
        self.client.batch_execute(&drop_schema).await.unwrap();
    }
}

/// The URL with the schema as the name that the server shows for its connections, unless it has a name.
fn named(url: &str, schema: &str) -> String {
    match url.split_once('?') {
        Some((_, settings)) if settings.contains("application_name") => url.to_owned(),
        Some(_) => format!("{url}&application_name={schema}"),
        None => format!("{url}?application_name={schema}"),
    }
}

pub fn options(schema: &str) -> Options {
    Options { schema: schema.into(), connections: 4, ..Options::default() }
}

pub async fn plain() -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub fn claim(share: Share) -> Claim {
    Claim {
        worker: WorkerId::new("w1"),
        leases: Leases::Shared(LeaseId::draw(&Random::system())),
        lease_for: Millis::from_secs(30),
        limit: share.slots + share.ahead,
        shares: vec![share],
        suspects: 10_000,
        kinds: None,
    }
}

pub fn policy() -> Arc<Policy> {
    Arc::new(Partial::resolve(&[Partial::parse_line("fixed:base=10s,retries=3").unwrap()], &[]).unwrap())
}

pub fn job() -> NewJob {
    NewJob::new(Kind::new("email").unwrap(), r#"{"to":"ann"}"#, policy())
}

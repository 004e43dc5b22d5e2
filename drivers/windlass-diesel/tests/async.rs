//! Jobs in transactions of diesel-async on Postgres. Run with `scripts/with-postgres`.
#![allow(clippy::unwrap_used)]

use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass::{Attempt, BoxError, Failure, JobId, JobKind, Random, State, Windlass, Worker};
use windlass_diesel as _;

#[derive(Serialize, Deserialize, JobKind)]
struct Ship {
    order: i64,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

struct Shop {
    url: String,
    schema: String,
    windlass: Windlass,
}

impl Shop {
    async fn open() -> Arc<Self> {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect("run this with scripts/with-postgres");
        let schema = format!("test_{:016x}", Random::system().number());
        let windlass = Windlass::builder(url.as_str()).schema(schema.as_str()).open().await.unwrap();
        let shop = Arc::new(Self { url, schema, windlass });
        shop.run("CREATE TABLE {s}.orders (shipped bigint NOT NULL); INSERT INTO {s}.orders VALUES (0)").await;
        shop
    }

    async fn connect(&self) -> AsyncPgConnection {
        AsyncPgConnection::establish(&self.url).await.unwrap()
    }

    async fn run(&self, script: &str) {
        self.connect().await.batch_execute(&script.replace("{s}", &self.schema)).await.unwrap();
    }

    async fn count(&self, query: &str) -> i64 {
        let query = diesel::sql_query(query.replace("{s}", &self.schema));
        query.get_result::<Count>(&mut self.connect().await).await.unwrap().count
    }

    async fn jobs(&self) -> i64 {
        self.count("SELECT count(*) AS count FROM {s}.all_jobs").await
    }

    /// Enqueues in a transaction, and commits.
    async fn order(&self, order: i64, key: &str) -> Result<JobId, BoxError> {
        let job = self.windlass.enqueue(Ship { order }).idempotency_key(key);
        self.connect().await.transaction(async |connection| Ok(job.enqueue_in(connection).await?)).await
    }
}

#[tokio::test]
async fn a_job_exists_exactly_if_its_transaction_commits() {
    let shop = Shop::open().await;
    let mut connection = shop.connect().await;
    let undone = connection.transaction(async |connection| {
        shop.windlass.enqueue(Ship { order: 1 }).enqueue_in(connection).await?;
        Err::<(), BoxError>("the customer left".into())
    });
    assert_eq!(undone.await.unwrap_err().to_string(), "the customer left");
    assert_eq!(shop.jobs().await, 0);
    let stored = connection.transaction(async |connection| {
        let job = shop.windlass.enqueue(Ship { order: 2 }).queue("shop").retry("stepped");
        Ok::<_, BoxError>(job.enqueue_in(connection).await?)
    });
    let id = stored.await.unwrap();
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((&*job.payload, job.queue.as_str(), job.policy.max_retries), (r#"{"order":2}"#, "shop", 3));
    shop.run("DROP SCHEMA {s} CASCADE").await;
}

#[tokio::test]
async fn a_key_gives_one_job_to_transactions_that_race() {
    let shop = Shop::open().await;
    let one = async |n: usize| shop.order(7, &format!("order-{}", n % 3)).await.unwrap();
    let ids = futures_util::future::join_all((0..12).map(one)).await;
    assert!((3..12).all(|n| ids[n] == ids[n % 3]), "{ids:?}");
    assert_eq!(shop.jobs().await, 3);
    let refused = shop.order(8, "order-1").await.unwrap_err().to_string();
    assert!(refused.contains("key"), "{refused}");
    shop.run("DROP SCHEMA {s} CASCADE").await;
}

async fn ship(_: Ship, attempt: Attempt) -> Result<(), BoxError> {
    let shop = attempt.state::<Arc<Shop>>();
    let effect = format!("UPDATE {}.orders SET shipped = shipped + 1", shop.schema);
    let ship = async |connection: &mut AsyncPgConnection| {
        diesel::sql_query(effect).execute(connection).await?;
        attempt.complete_in(&mut *connection).await?;
        if attempt.retry() < 2 {
            // The error undoes both the effect and the success.
            return Err(Failure::new("the carrier does not answer").into());
        }
        Ok::<(), BoxError>(())
    };
    shop.connect().await.transaction(ship).await
}

#[tokio::test]
async fn a_job_is_completed_with_its_effects_or_not_at_all() {
    let shop = Shop::open().await;
    let job = shop.windlass.enqueue(Ship { order: 1 }).queue("shop").retry("fixed:base=1ms,jitter=none,retries=5");
    let id = job.await.unwrap();
    let done = async { drop(shop.windlass.wait(id).await) };
    let worker = Worker::new(&shop.windlass).handle(ship).state(shop.clone());
    worker.queue("shop", 4).run(done).await.unwrap();
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (State::Succeeded, 3));
    assert_eq!(shop.count("SELECT shipped AS count FROM {s}.orders").await, 1);
    shop.run("DROP SCHEMA {s} CASCADE").await;
}

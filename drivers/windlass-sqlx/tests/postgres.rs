//! Jobs in transactions of sqlx on Postgres. Run with `scripts/with-postgres`.
#![allow(clippy::unwrap_used)]

use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use windlass::{Attempt, BoxError, Failure, JobId, JobKind, Random, State, TransactionError, Windlass, Worker};
use windlass_sqlx::Pool as _;

#[derive(Serialize, Deserialize, JobKind)]
struct Ship {
    order: i64,
}

struct Shop {
    pool: PgPool,
    schema: String,
    windlass: Windlass,
}

impl Shop {
    async fn open() -> Self {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect("run this with scripts/with-postgres");
        let pool = PgPool::connect(&url).await.unwrap();
        let schema = format!("test_{:016x}", Random::system().number());
        let windlass = pool.windlass().schema(schema.as_str()).open().await.unwrap();
        let shop = Self { pool, schema, windlass };
        shop.run(format!("CREATE TABLE {}.orders (shipped bigint NOT NULL)", shop.schema)).await;
        shop.run(format!("INSERT INTO {}.orders VALUES (0)", shop.schema)).await;
        shop
    }

    /// sqlx 0.9 wants statements that live for ever.
    fn text(statement: String) -> &'static str {
        statement.leak()
    }

    async fn run(&self, statement: String) {
        sqlx::query(Self::text(statement)).execute(&self.pool).await.unwrap();
    }

    async fn count(&self, statement: String) -> i64 {
        sqlx::query_scalar(Self::text(statement)).fetch_one(&self.pool).await.unwrap()
    }

    async fn jobs(&self) -> i64 {
        self.count(format!("SELECT count(*) FROM {}.all_jobs", self.schema)).await
    }

    async fn end(self) {
        self.run(format!("DROP SCHEMA {} CASCADE", self.schema)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_exists_exactly_if_its_transaction_commits() {
    let shop = Shop::open().await;
    let mut transaction = shop.pool.begin().await.unwrap();
    shop.windlass.enqueue(Ship { order: 1 }).enqueue_in(&mut *transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(shop.jobs().await, 0);

    let mut transaction = shop.pool.begin().await.unwrap();
    let job = shop.windlass.enqueue(Ship { order: 2 }).queue("shop").retry("stepped");
    let id = job.enqueue_in(&mut *transaction).await.unwrap();
    assert!(shop.windlass.jobs().get(id).await.unwrap().is_none(), "nobody sees it before the commit");
    transaction.commit().await.unwrap();
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((&*job.payload, job.queue.as_str(), job.policy.max_retries), (r#"{"order":2}"#, "shop", 3));
    shop.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_gives_one_job_to_transactions_that_race() {
    let shop = Shop::open().await;
    let one = async |key: String| -> JobId {
        let mut transaction = shop.pool.begin().await.unwrap();
        let job = shop.windlass.enqueue(Ship { order: 7 }).idempotency_key(key);
        let id = job.enqueue_in(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
        id
    };
    let ids = futures_util::future::join_all((0..12).map(|n| one(format!("order-{}", n % 3)))).await;
    assert_eq!(shop.jobs().await, 3);
    assert!((3..12).all(|n| ids[n] == ids[n % 3]), "{ids:?}");

    let mut transaction = shop.pool.begin().await.unwrap();
    let other = shop.windlass.enqueue(Ship { order: 8 }).idempotency_key("order-1");
    let refused = other.enqueue_in(&mut *transaction).await.unwrap_err();
    assert!(matches!(refused, TransactionError::Enqueue(_)), "{refused}");
    drop(transaction);
    shop.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_has_no_connections_besides_the_pool() {
    let url = std::env::var("WINDLASS_TEST_POSTGRES").expect("run this with scripts/with-postgres");
    let schema = format!("test_{:016x}", Random::system().number());
    let options: PgConnectOptions = url.parse().unwrap();
    let pool = PgPoolOptions::new().max_connections(5).connect_with(options.application_name(&schema)).await.unwrap();
    let windlass = pool.windlass().schema(schema.as_str()).connections(2).open().await.unwrap();
    let id = windlass.enqueue(Ship { order: 1 }).queue("shop").await.unwrap();
    let worker = Worker::new(&windlass).handle(async |_: Ship, _: Attempt| Ok::<(), BoxError>(())).queue("shop", 4);
    worker.run(async { drop(windlass.wait(id).await) }).await.unwrap();
    let others = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%' || $1 || '%' AND application_name <> $1";
    let others: i64 = sqlx::query_scalar(others).bind(&schema).fetch_one(&pool).await.unwrap();
    assert_eq!(others, 0);
    assert_eq!(windlass.jobs().get(id).await.unwrap().unwrap().state, State::Succeeded);
    sqlx::query(Shop::text(format!("DROP SCHEMA {schema} CASCADE"))).execute(&pool).await.unwrap();
}

async fn ship(_: Ship, attempt: Attempt) -> Result<(), BoxError> {
    let (pool, orders) = &*attempt.state::<(PgPool, &'static str)>();
    let mut transaction = pool.begin().await?;
    sqlx::query(*orders).execute(&mut *transaction).await?;
    attempt.complete_in(&mut *transaction).await?;
    if attempt.retry() < 2 {
        // Dropping the transaction undoes both the effect and the success.
        return Err(Failure::new("the carrier does not answer").into());
    }
    transaction.commit().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_completed_with_its_effects_or_not_at_all() {
    let shop = Shop::open().await;
    let job = shop.windlass.enqueue(Ship { order: 1 }).queue("shop").retry("fixed:base=1ms,jitter=none,retries=5");
    let id = job.await.unwrap();
    let effect = Shop::text(format!("UPDATE {}.orders SET shipped = shipped + 1", shop.schema));
    let done = async { drop(shop.windlass.wait(id).await) };
    let worker = Worker::new(&shop.windlass).handle(ship).state((shop.pool.clone(), effect));
    worker.queue("shop", 4).run(done).await.unwrap();
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (State::Succeeded, 3));
    assert_eq!(shop.count(format!("SELECT shipped FROM {}.orders", shop.schema)).await, 1);
    shop.end().await;
}

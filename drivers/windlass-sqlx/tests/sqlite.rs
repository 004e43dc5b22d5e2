//! Jobs in transactions of sqlx on SQLite.
#![allow(clippy::unwrap_used)]

use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use windlass::{Attempt, BoxError, Failure, JobId, JobKind, State, TransactionError, Windlass, Worker};
use windlass_sqlx::Pool as _;

#[derive(Serialize, Deserialize, JobKind)]
struct Ship {
    order: i64,
}

struct Shop {
    pool: SqlitePool,
    windlass: Windlass,
    _home: tempfile::TempDir,
}

impl Shop {
    async fn open() -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("shop.db");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let windlass = pool.windlass().open().await.unwrap();
        let shop = Self { pool, windlass, _home: home };
        shop.run("CREATE TABLE orders (shipped INTEGER NOT NULL)".into()).await;
        shop.run("INSERT INTO orders VALUES (0)".into()).await;
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
        self.count("SELECT count(*) FROM windlass_all_jobs".into()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_in_memory_is_refused() {
    for url in ["sqlite::memory:", "sqlite://:memory:"] {
        let pool = SqlitePool::connect(url).await.unwrap();
        let refused = pool.windlass().open().await.unwrap_err().to_string();
        assert!(refused.contains("is not a store"), "{url}: {refused}");
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
}

#[tokio::test]
async fn without_a_transaction_nothing_is_stored() {
    let shop = Shop::open().await;
    let mut connection = shop.pool.acquire().await.unwrap();
    let refused = shop.windlass.enqueue(Ship { order: 1 }).enqueue_in(&mut *connection).await.unwrap_err();
    assert!(refused.to_string().contains("begin a transaction"), "{refused}");
    assert_eq!(shop.jobs().await, 0);
}

async fn ship(_: Ship, attempt: Attempt) -> Result<(), BoxError> {
    let (pool, orders) = &*attempt.state::<(SqlitePool, &'static str)>();
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
    let effect = "UPDATE orders SET shipped = shipped + 1";
    let done = async { drop(shop.windlass.wait(id).await) };
    let worker = Worker::new(&shop.windlass).handle(ship).state((shop.pool.clone(), effect));
    worker.queue("shop", 4).run(done).await.unwrap();
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (State::Succeeded, 3));
    assert_eq!(shop.count("SELECT shipped FROM orders".into()).await, 1);
}

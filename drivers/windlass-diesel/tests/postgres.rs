//! Jobs in transactions of diesel on Postgres. Run with `scripts/with-postgres`.
#![allow(clippy::unwrap_used)]

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass::{Attempt, BoxError, Failure, JobId, JobKind, Random, State, TransactionError, Windlass, Worker};
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
        shop.blocking(|shop| {
            let s = &shop.schema;
            let table = format!("CREATE TABLE {s}.orders (shipped bigint NOT NULL); INSERT INTO {s}.orders VALUES (0)");
            diesel::connection::SimpleConnection::batch_execute(&mut shop.connect(), &table).unwrap();
        })
        .await;
        shop
    }

    fn connect(&self) -> PgConnection {
        PgConnection::establish(&self.url).unwrap()
    }

    fn count(&self, query: &str) -> i64 {
        let query = diesel::sql_query(query.replace("{s}", &self.schema));
        query.get_result::<Count>(&mut self.connect()).unwrap().count
    }

    fn jobs(&self) -> i64 {
        self.count("SELECT count(*) AS count FROM {s}.all_jobs")
    }

    async fn blocking<T: Send + 'static>(self: &Arc<Self>, work: impl FnOnce(&Self) -> T + Send + 'static) -> T {
        let shop = self.clone();
        tokio::task::spawn_blocking(move || work(&shop)).await.unwrap()
    }

    async fn end(self: &Arc<Self>) {
        self.blocking(|shop| {
            let drop = format!("DROP SCHEMA {} CASCADE", shop.schema);
            diesel::sql_query(drop).execute(&mut shop.connect()).unwrap();
        })
        .await;
    }

    /// Enqueues in a transaction, and commits.
    fn order(&self, order: i64, key: &str) -> Result<JobId, BoxError> {
        self.connect().transaction(|connection| {
            Ok(self.windlass.enqueue(Ship { order }).idempotency_key(key).enqueue_in(connection)?)
        })
    }
}

#[tokio::test]
async fn a_job_exists_exactly_if_its_transaction_commits() {
    let shop = Shop::open().await;
    let id = shop
        .blocking(|shop| {
            let mut connection = shop.connect();
            let undone = connection.transaction(|connection| {
                shop.windlass.enqueue(Ship { order: 1 }).enqueue_in(connection)?;
                Err::<(), BoxError>("the customer left".into())
            });
            assert_eq!(undone.unwrap_err().to_string(), "the customer left");
            assert_eq!(shop.jobs(), 0);
            let stored = connection.transaction(|connection| {
                let job = shop.windlass.enqueue(Ship { order: 2 }).queue("shop").retry("stepped");
                let id = job.enqueue_in(connection)?;
                assert_eq!(shop.jobs(), 0, "nobody sees it before the commit");
                Ok::<_, BoxError>(id)
            });
            stored.unwrap()
        })
        .await;
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((&*job.payload, job.queue.as_str(), job.policy.max_retries), (r#"{"order":2}"#, "shop", 3));
    shop.end().await;
}

#[tokio::test]
async fn a_key_gives_one_job_to_transactions_that_race() {
    let shop = Shop::open().await;
    let racing = (0..12).map(|n| shop.blocking(move |shop| shop.order(7, &format!("order-{}", n % 3)).unwrap()));
    let ids = futures_util::future::join_all(racing).await;
    assert!((3..12).all(|n| ids[n] == ids[n % 3]), "{ids:?}");
    let (jobs, refused) = shop.blocking(|shop| (shop.jobs(), shop.order(8, "order-1").unwrap_err().to_string())).await;
    assert_eq!(jobs, 3);
    assert!(refused.contains("order-1") || refused.contains("key"), "{refused}");
    shop.end().await;
}

fn ship(_: Ship, attempt: Attempt) -> Result<(), BoxError> {
    let shop = attempt.state::<Arc<Shop>>();
    shop.connect().transaction(|connection| {
        let effect = format!("UPDATE {}.orders SET shipped = shipped + 1", shop.schema);
        diesel::sql_query(effect).execute(connection)?;
        attempt.complete_in(connection)?;
        if attempt.retry() < 2 {
            // The error undoes both the effect and the success.
            return Err(Failure::new("the carrier does not answer").into());
        }
        Ok(())
    })
}

#[tokio::test]
async fn a_job_is_completed_with_its_effects_or_not_at_all() {
    let shop = Shop::open().await;
    let job = shop.windlass.enqueue(Ship { order: 1 }).queue("shop").retry("fixed:base=1ms,jitter=none,retries=5");
    let id = job.await.unwrap();
    let done = async { drop(shop.windlass.wait(id).await) };
    let worker = Worker::new(&shop.windlass).handle_blocking(ship).state(shop.clone());
    worker.queue("shop", 4).run(done).await.unwrap();
    let job = shop.windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (State::Succeeded, 3));
    assert_eq!(shop.blocking(|shop| shop.count("SELECT shipped AS count FROM {s}.orders")).await, 1);
    shop.end().await;
}

#[tokio::test]
async fn a_store_of_another_database_is_refused() {
    let shop = Shop::open().await;
    let memory = Windlass::open("memory:").await.unwrap();
    let refused =
        shop.blocking(move |shop| memory.enqueue(Ship { order: 1 }).enqueue_in(&mut shop.connect()).unwrap_err()).await;
    assert!(matches!(refused, TransactionError::OtherStore(_)), "{refused}");
    shop.end().await;
}

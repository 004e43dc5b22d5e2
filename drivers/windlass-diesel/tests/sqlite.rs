//! Jobs in transactions of diesel on SQLite.
#![allow(clippy::unwrap_used)]

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass::{Attempt, BoxError, Failure, JobId, JobKind, State, Windlass, Worker};

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
    file: String,
    windlass: Windlass,
    _home: tempfile::TempDir,
}

impl Shop {
    async fn open() -> Arc<Self> {
        windlass_diesel::sqlite::install();
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("shop.db").to_str().unwrap().to_owned();
        let windlass = Windlass::open(&format!("sqlite:{file}")).await.unwrap();
        let shop = Arc::new(Self { file, windlass, _home: home });
        let table = "CREATE TABLE orders (shipped INTEGER NOT NULL); INSERT INTO orders VALUES (0)";
        shop.connect().batch_execute(table).unwrap();
        shop
    }

    fn connect(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::establish(&self.file).unwrap();
        connection.batch_execute("PRAGMA busy_timeout = 10000").unwrap();
        connection
    }

    fn count(&self, query: &str) -> i64 {
        let query = diesel::sql_query(query);
        query.get_result::<Count>(&mut self.connect()).unwrap().count
    }

    fn jobs(&self) -> i64 {
        self.count("SELECT count(*) AS count FROM windlass_all_jobs")
    }

    async fn blocking<T: Send + 'static>(self: &Arc<Self>, work: impl FnOnce(&Self) -> T + Send + 'static) -> T {
        let shop = self.clone();
        tokio::task::spawn_blocking(move || work(&shop)).await.unwrap()
    }

    /// Enqueues in a transaction, and commits.
    fn order(&self, order: i64, key: &str) -> Result<JobId, BoxError> {
        self.connect().immediate_transaction(|connection| {
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
            let undone = connection.immediate_transaction(|connection| {
                shop.windlass.enqueue(Ship { order: 1 }).enqueue_in(connection)?;
                Err::<(), BoxError>("the customer left".into())
            });
            assert_eq!(undone.unwrap_err().to_string(), "the customer left");
            assert_eq!(shop.jobs(), 0);
            let stored = connection.immediate_transaction(|connection| {
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
}

fn ship(_: Ship, attempt: Attempt) -> Result<(), BoxError> {
    let shop = attempt.state::<Arc<Shop>>();
    shop.connect().immediate_transaction(|connection| {
        diesel::sql_query("UPDATE orders SET shipped = shipped + 1").execute(connection)?;
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
    assert_eq!(shop.blocking(|shop| shop.count("SELECT shipped AS count FROM orders")).await, 1);
}

#[tokio::test]
async fn without_a_transaction_nothing_is_stored() {
    let shop = Shop::open().await;
    let refused = shop.windlass.enqueue(Ship { order: 1 }).enqueue_in(&mut shop.connect()).unwrap_err();
    assert!(refused.to_string().contains("begin a transaction"), "{refused}");
    assert_eq!(shop.jobs(), 0);
}

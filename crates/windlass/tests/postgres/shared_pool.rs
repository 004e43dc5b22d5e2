//! A store on a pool that belongs to the program.

use crate::world::{plain, url};
use deadpool_postgres::{Manager, Pool};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio_postgres::{NoTls, SimpleQueryMessage};
use windlass::{Attempt, BoxError, JobKind, Random, State, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
struct Ship {}

struct Shop {
    pool: Pool,
    windlass: Windlass,
    schema: String,
}

impl Shop {
    async fn open() -> Self {
        let pool = Pool::builder(Manager::new(url().parse().unwrap(), NoTls)).max_size(4).build().unwrap();
        let schema = format!("test_{:016x}", Random::system().number());
        let opening = Windlass::builder_on(pool.clone()).schema(schema.as_str()).connections(2).open();
        Self { windlass: opening.await.unwrap(), pool, schema }
    }

    async fn end(self) {
        drop((self.windlass, self.pool));
        plain().await.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.schema)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_and_transactions_share_a_small_pool() {
    let shop = Shop::open().await;
    let mut client = shop.pool.get().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let id = shop.windlass.enqueue(Ship {}).queue("shop").enqueue_in(&transaction).await.unwrap();
    assert!(shop.windlass.jobs().get(id).await.unwrap().is_none(), "nobody sees it before the commit");
    transaction.commit().await.unwrap();
    drop(client);
    let worker = Worker::new(&shop.windlass).handle(async |_: Ship, _: Attempt| Ok::<(), BoxError>(()));
    worker.queue("shop", 4).run(async { drop(shop.windlass.wait(id).await) }).await.unwrap();
    assert_eq!(shop.windlass.jobs().get(id).await.unwrap().unwrap().state, State::Succeeded);
    shop.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_hold_the_whole_pool_do_not_wait_for_each_other() {
    let shop = Shop::open().await;
    let one = async |number: usize| {
        let mut client = shop.pool.get().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        // A new queue and a new policy have to be registered outside the transaction.
        let job = shop.windlass.enqueue(Ship {}).queue(&format!("shop-{number}"));
        let policy = format!("fixed:base={}s,jitter=none,retries=1", number + 1);
        job.retry(policy.as_str()).enqueue_in(&transaction).await.unwrap();
        transaction.commit().await.unwrap();
    };
    futures_util::future::join_all((0..12).map(one)).await;
    assert_eq!(shop.windlass.queues().list().await.unwrap().len(), 12);
    shop.end().await;
}

/// A caller may drop a call at any await. Its connection must not come back to the pool in the middle of a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_leaves_no_transaction_open_in_the_pool() {
    let shop = Shop::open().await;
    let id = shop.windlass.enqueue(Ship {}).await.unwrap();
    let mut was_dropped = false;
    for polls in 1..40 {
        let jobs = shop.windlass.jobs();
        let mut call = std::pin::pin!(jobs.cancel(id));
        let mut left = polls;
        while left > 0 && call.as_mut().now_or_never().is_none() {
            tokio::task::yield_now().await;
            left -= 1;
        }
        was_dropped |= left == 0;
    }
    assert!(was_dropped);
    let count = shop.pool.status().available;
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(shop.pool.get().await.unwrap());
    }
    for client in &taken {
        let answers = client.simple_query("SELECT now() = statement_timestamp()").await.unwrap();
        let is_alone =
            |answer: &SimpleQueryMessage| matches!(answer, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"));
        assert!(answers.iter().any(is_alone), "a transaction was left open");
    }
    drop(taken);
    shop.end().await;
}

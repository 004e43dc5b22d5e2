//! The same as `transactional`, on Postgres: enqueue and complete in the application's own transactions.
//! `cargo run -p windlass --features postgres --example transactional_postgres -- postgres://…`

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};
use windlass::{Attempt, HandlerError, JobKind, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "ship")]
struct Ship {
    order: i64,
}

async fn ship(job: Ship, attempt: Attempt) -> Result<(), HandlerError> {
    let database = attempt.state::<Mutex<Client>>();
    let mut client = database.lock().await;
    let transaction = client.transaction().await?;
    transaction.execute("UPDATE example_orders SET shipped = shipped + 1 WHERE id = $1", &[&job.order]).await?;
    // The effect and the job's success are one commit: neither without the other.
    attempt.complete_in(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: transactional_postgres POSTGRES_URL")?;
    let windlass = Windlass::open(&url).await?;
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let table =
        "CREATE TABLE IF NOT EXISTS example_orders (id bigserial PRIMARY KEY, shipped bigint NOT NULL DEFAULT 0)";
    client.batch_execute(table).await?;

    let transaction = client.transaction().await?;
    let row = transaction.query_one("INSERT INTO example_orders DEFAULT VALUES RETURNING id", &[]).await?;
    let order: i64 = row.get(0);
    let id = windlass.enqueue(Ship { order }).queue("shop").enqueue_in(&transaction).await?;
    transaction.commit().await?;
    windlass.wake();

    let (worker_client, worker_connection) = tokio_postgres::connect(&url, NoTls).await?;
    let worker_connection = tokio::spawn(worker_connection);
    let done = async { drop(windlass.wait(id).await) };
    Worker::new(&windlass).handle(ship).state(Mutex::new(worker_client)).queue("shop", 4).run(done).await?;

    let row = client.query_one("SELECT shipped FROM example_orders WHERE id = $1", &[&order]).await?;
    let job = windlass.jobs().get(id).await?.map(|job| job.state);
    println!("order {order} was shipped {} time; its job is {job:?}", row.get::<_, i64>(0));
    connection.abort();
    worker_connection.abort();
    Ok(())
}

//! The test kit with transactions of the application.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use windlass::rusqlite::{Connection, TransactionBehavior};
use windlass::testing::TestKit;
use windlass::{Attempt, BoxError, Failure, JobKind, Millis, State};

#[derive(Serialize, Deserialize, JobKind)]
struct Ship;

struct File(PathBuf);

fn shipped(file: &Path) -> i64 {
    Connection::open(file).unwrap().query_row("SELECT shipped FROM orders", [], |row| row.get(0)).unwrap()
}

#[allow(clippy::needless_pass_by_value)] // Handlers own their arguments.
fn ship(_: Ship, attempt: Attempt) -> Result<(), BoxError> {
    let mut connection = Connection::open(&attempt.state::<File>().0)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("UPDATE orders SET shipped = shipped + 1", [])?;
    attempt.complete_in(&transaction)?;
    if attempt.retry() < 2 {
        // Dropping the transaction undoes both the effect and the success.
        return Err(Failure::new("the carrier does not answer").into());
    }
    transaction.commit()?;
    Ok(())
}

#[tokio::test]
async fn the_kit_tests_transactions_on_sqlite_in_virtual_time() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("shop.db");
    let kit = TestKit::sqlite(&file).await.handle_blocking(ship).state(File(file.clone()));
    let mut connection = Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE orders (shipped INTEGER); INSERT INTO orders VALUES (0)").unwrap();

    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let undone = kit.windlass().enqueue(Ship).enqueue_in(&transaction).unwrap();
    transaction.rollback().unwrap();
    assert_eq!(kit.run_due().await, 0);
    assert!(kit.windlass().jobs().get(undone).await.unwrap().is_none());

    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let id = kit.windlass().enqueue(Ship).retry("stepped").enqueue_in(&transaction).unwrap();
    transaction.commit().unwrap();
    assert_eq!(kit.run_due().await, 1);
    assert_eq!((kit.job(id).await.state, shipped(&file)), (State::Retrying, 0));
    assert_eq!(kit.run_until_idle().await, 2);
    assert_eq!((kit.job(id).await.state, shipped(&file)), (State::Succeeded, 1));
    assert_eq!(kit.elapsed(), Millis::from_secs(30 + 60));
}

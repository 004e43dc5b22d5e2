//! Exactly-once effects in the database: a job that exists exactly if the caller's transaction commits, and that is
//! done exactly if its effects are. On SQLite, with the jobs in the application's own file.
//! `cargo run -p windlass --example transactional`

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use windlass::rusqlite::{self, Connection, params};
use windlass::{Attempt, HandlerError, JobKind, TransactionError, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "ship")]
struct Ship {
    order: i64,
}

struct Database(PathBuf);

/// `rusqlite` blocks, so this handler runs on threads of its own.
#[allow(clippy::needless_pass_by_value)] // Handlers own their arguments.
fn ship(job: Ship, attempt: Attempt) -> Result<(), HandlerError> {
    let mut connection = Connection::open(&attempt.state::<Database>().0)?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute("UPDATE orders SET shipped = shipped + 1 WHERE id = ?1", [job.order])?;
    // The effect and the job's success are one commit: neither without the other.
    attempt.complete_in(&transaction)?;
    transaction.commit()?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("shop.db");
    let windlass = Windlass::open(&format!("sqlite:{}", path.display())).await?;
    let mut connection = Connection::open(&path)?;
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, shipped INTEGER NOT NULL)", [])?;

    let order = |connection: &mut Connection, keep: bool| -> Result<_, TransactionError> {
        let sql = |e: rusqlite::Error| windlass::StoreError::unavailable(e);
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(sql)?;
        transaction.execute("INSERT INTO orders (shipped) VALUES (?1)", params![0]).map_err(sql)?;
        let job = Ship { order: transaction.last_insert_rowid() };
        let id = windlass.enqueue(job).enqueue_in(&transaction)?;
        if keep { transaction.commit() } else { transaction.rollback() }.map_err(sql)?;
        Ok(id)
    };
    let kept = order(&mut connection, true)?;
    let undone = order(&mut connection, false)?;
    windlass.wake();

    let done = async { drop(windlass.wait(kept).await) };
    Worker::new(&windlass).handle_blocking(ship).state(Database(path)).run(done).await?;

    let shipped: i64 = connection.query_row("SELECT shipped FROM orders", [], |row| row.get(0))?;
    println!(
        "the order was shipped {shipped} time; its job is {:?}",
        windlass.jobs().get(kept).await?.map(|job| job.state)
    );
    println!("the order that was rolled back has no job: {:?}", windlass.jobs().get(undone).await?.map(|job| job.id));
    Ok(())
}

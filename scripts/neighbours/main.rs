//! Runs one job on SQLite, with whatever version of it is linked.

use serde::{Deserialize, Serialize};
use windlass::{Attempt, BoxError, JobKind, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
struct Double(i64);

async fn double(job: Double, _: Attempt) -> Result<i64, BoxError> {
    Ok(2 * job.0)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let file = std::env::temp_dir().join(format!("windlass-neighbour-{}.db", std::process::id()));
    let windlass = Windlass::open(&format!("sqlite:{}", file.display())).await?;
    let id = windlass.enqueue(Double(21)).await?;
    let done = async { drop(windlass.wait(id).await) };
    Worker::new(&windlass).handle(double).queue("default", 2).run(done).await?;
    let job = windlass.jobs().get(id).await?.ok_or("the job is gone")?;
    assert_eq!(job.result.as_deref(), Some("42"));
    println!("{}", windlass.health().await?.engine);
    drop(windlass);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    Ok(())
}

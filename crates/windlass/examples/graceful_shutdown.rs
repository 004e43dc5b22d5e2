//! Stopping: no more claims, a grace time for running jobs, and the rest are given back. Nothing is lost.
//! `cargo run -p windlass --example graceful_shutdown`, then Ctrl-C; or wait two seconds.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass::{Attempt, Failure, JobKind, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "work")]
struct Work {
    millis: u64,
}

async fn work(job: Work, attempt: Attempt) -> Result<(), Failure> {
    tokio::select! {
        () = attempt.sleep(Duration::from_millis(job.millis)) => Ok(()),
        // Asked to stop: clean up and say when to continue.
        () = attempt.cancelled() => Err(Failure::new("stopped half-way").retry_in(Duration::ZERO)),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let windlass = Windlass::open("memory:").await?;
    let mut jobs = Vec::new();
    for millis in [500, 2_500, 60_000] {
        jobs.push((millis, windlass.enqueue(Work { millis }).await?));
    }
    let shutdown = async {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => println!("interrupted"),
            () = windlass.clock().sleep(Duration::from_secs(2)) => println!("two seconds are over"),
        }
    };
    Worker::new(&windlass).handle(work).grace(Duration::from_secs(1)).run(shutdown).await?;
    for (millis, id) in jobs {
        let job = windlass.jobs().get(id).await?.ok_or("the job is kept")?;
        println!("work of {millis}ms: {} after {} attempt", job.state, job.attempt);
    }
    Ok(())
}

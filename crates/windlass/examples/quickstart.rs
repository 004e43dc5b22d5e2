//! Durable jobs in one file: enqueue, run, look at the result.
//! `cargo run -p windlass --example quickstart`

use serde::{Deserialize, Serialize};
use windlass::{Attempt, Failure, JobKind, Priority, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "email")]
struct SendEmail {
    to: String,
}

/// A handler is a plain async function. What it returns is kept with the job.
async fn send_email(job: SendEmail, attempt: Attempt) -> Result<String, Failure> {
    attempt.note("handed to the mail server");
    Ok(format!("sent to {}", job.to))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let windlass = Windlass::open(&format!("sqlite:{}", home.path().join("jobs.db").display())).await?;

    // Once this returns, the job survives a crash.
    let email = SendEmail { to: "ann@example.org".into() };
    let id = windlass.enqueue(email).queue("email").priority(Priority::High).await?;

    let done = async { drop(windlass.wait(id).await) };
    Worker::new(&windlass).handle(send_email).queue("email", 50).run(done).await?;

    let job = windlass.jobs().get(id).await?.ok_or("the job is kept")?;
    println!("job {id}: {} after {} attempt, result {:?}", job.state, job.attempt, job.result);
    Ok(())
}

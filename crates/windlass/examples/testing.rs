//! Testing code that uses Windlass: jobs in memory, a clock that skips backoffs, assertions on what was enqueued.
//! `cargo run -p windlass --example testing` (in your project: in `#[tokio::test]`s, with the feature `testing`)

use serde::{Deserialize, Serialize};
use windlass::testing::TestKit;
use windlass::{Attempt, EnqueueError, Failure, JobId, JobKind, Millis, State, Windlass};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "welcome")]
struct Welcome {
    user: String,
}

/// The code under test.
async fn sign_up(windlass: &Windlass, user: &str) -> Result<JobId, EnqueueError> {
    let job = Welcome { user: user.into() };
    windlass.enqueue(job).queue("email").delay(Millis::from_secs(3600)).retry("stepped").await
}

async fn welcome(_: Welcome, attempt: Attempt) -> Result<(), Failure> {
    if attempt.retry() < 3 { Err(Failure::new("the mail server is down")) } else { Ok(()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = TestKit::new().handle(welcome);
    let id = sign_up(kit.windlass(), "ann").await?;

    kit.assert_enqueued::<Welcome>(|job, welcome| job.queue.as_str() == "email" && welcome.user == "ann").await;
    assert_eq!(kit.run_due().await, 0, "it is not due for an hour");

    kit.advance(Millis::from_secs(3600)).await;
    assert_eq!(kit.run_due().await, 1, "its first attempt");
    assert_eq!(kit.job(id).await.state, State::Retrying);

    kit.run_until_idle().await;
    assert_eq!(kit.job(id).await.state, State::Succeeded);
    assert_eq!(kit.elapsed(), Millis::from_secs(3600 + 30 + 60 + 120));
    println!("an hour and three backoffs, tested at once");
    Ok(())
}

//! At most once: for effects that must never be repeated. A failure ends the job; only an operator's replay starts it
//! again.
//! `cargo run -p windlass --example at_most_once`

use serde::{Deserialize, Serialize};
use windlass::testing::TestKit;
use windlass::{Attempt, Delivery, Failure, JobKind};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "launch")]
struct LaunchRocket;

async fn launch(_: LaunchRocket, attempt: Attempt) -> Result<(), Failure> {
    println!("attempt {}: ignition", attempt.number());
    if attempt.number() == 1 { Err(Failure::new("telemetry lost")) } else { Ok(()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = TestKit::new().handle(launch);
    let windlass = kit.windlass();
    let id = windlass.enqueue(LaunchRocket).delivery(Delivery::AtMostOnce).retry("exponential:retries=10").await?;
    kit.run_until_idle().await;
    let job = kit.job(id).await;
    println!("{} ({:?}), although its policy has 10 retries", job.state, job.reason);

    windlass.jobs().replay(id).await?;
    kit.run_until_idle().await;
    println!("replayed by an operator: {}", kit.job(id).await.state);
    Ok(())
}

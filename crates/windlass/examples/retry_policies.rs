//! Retry policies: by name, by line, by fields; and the delays they choose, in virtual time.
//! `cargo run -p windlass --example retry_policies`

use serde::{Deserialize, Serialize};
use windlass::core::policy::Partial;
use windlass::testing::TestKit;
use windlass::{Attempt, Failure, JobKind};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "charge")]
struct Charge;

async fn charge(_: Charge, _: Attempt) -> Result<(), Failure> {
    Err(Failure::new("the bank does not answer"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = TestKit::new().handle(charge);
    let windlass = kit.windlass();
    let fields = Partial { max_retries: Some(2), ..Partial::parse_line("fibonacci")? };
    let jobs = [
        ("stepped", windlass.enqueue(Charge).retry("stepped").await?),
        ("full-jitter", windlass.enqueue(Charge).retry("full-jitter").await?),
        ("a line", windlass.enqueue(Charge).retry("exponential:base=1s,cap=5m,jitter=none,retries=5").await?),
        ("fibonacci, 2 retries", windlass.enqueue(Charge).retry(fields).await?),
    ];
    kit.run_until_idle().await;
    for (name, id) in jobs {
        println!("{name}");
        for attempt in kit.history(id).await {
            println!("  {:<9} {:<8} {}", attempt.label(), attempt.status, attempt.why);
        }
        println!("  → {} ({:?})", kit.job(id).await.state, kit.job(id).await.reason);
    }
    println!("{} of backoff in no time at all", kit.elapsed());
    Ok(())
}

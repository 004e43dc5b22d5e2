//! What a handler may return: errors with their classes, permanent failures, requested delays, snooze, cancel.
//! `cargo run -p windlass --example error_classes`

use serde::{Deserialize, Serialize};
use windlass::testing::TestKit;
use windlass::{Attempt, Failure, HandlerError, JobKind, Millis, Outcome, cancel, snooze};

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "fetch")]
struct Fetch {
    case: String,
}

/// Any error is a retryable failure; its class is the name of its type.
#[derive(Debug, thiserror::Error)]
#[error("no answer from {0}")]
struct UpstreamError(&'static str);

async fn fetch(job: Fetch, attempt: Attempt) -> Result<(), HandlerError> {
    if attempt.number() > 1 && job.case != "not found" {
        return Ok(());
    }
    match job.case.as_str() {
        "an error" => Err(UpstreamError("example.org"))?,
        "not found" => Err(Failure::new("no such page").class("NotFoundError"))?,
        "permanent" => Err(Failure::permanent("the account is closed"))?,
        "retry after" => Err(Failure::new("slow down").class("RateLimited").retry_after(Millis::from_secs(90)))?,
        "retry in" => Err(Failure::new("try at once").retry_in(Millis::from_secs(1)))?,
        "snooze" => Err(snooze(Millis::from_secs(30))),
        "cancel" => Err(cancel()),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Failures of one kind can be inspected before the policy decides.
    let kit = TestKit::new().handle(fetch).rewrite_failures::<Fetch>(|failure, attempt| {
        if failure.class == "UpstreamError" && attempt.retry() > 5 {
            Outcome::Cancelled
        } else {
            Outcome::Failed(failure)
        }
    });
    let cases = ["an error", "not found", "permanent", "retry after", "retry in", "snooze", "cancel"];
    let mut jobs = Vec::new();
    for case in cases {
        jobs.push((case, kit.windlass().enqueue(Fetch { case: case.into() }).await?));
    }
    kit.run_until_idle().await;
    for (case, id) in jobs {
        let first = &kit.history(id).await[0];
        let class = first.error_class.as_deref().unwrap_or("-");
        println!("{case:<12} {:<9} {class:<14} {:<50} → {}", first.status, first.why, kit.job(id).await.state);
    }
    Ok(())
}

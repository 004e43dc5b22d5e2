//! Calls over real sockets on loopback. Time stands still unless a test moves the clock.

mod answers;
mod caps;
mod checks;
mod egress;
mod fuzz;
mod receiver;
mod signed;
mod stand_ins;
mod timeouts;

use super::*;
use crate::job::QueueId;
use receiver::{Receiver, Reply};
use std::net::IpAddr;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::Partial;
use windlass_core::{Advice, Executor, Failure, JobId, Priority, State, Timestamp};

const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000);

fn private() -> HttpOptions {
    HttpOptions { egress: Egress::AllowPrivate, ..HttpOptions::default() }
}

/// An executor that may call loopback, and its clock, which starts at noon.
fn executor(options: HttpOptions) -> (HttpExecutor, Clock) {
    let clock = Clock::manual(NOON);
    (HttpExecutor::new(options, clock.clone()), clock)
}

fn http_call(url: impl Into<String>) -> HttpCall {
    HttpCall { method: "POST".into(), url: url.into(), headers: Vec::new(), secret: None, webhook_id: None }
}

/// A claimed job that makes this call.
fn job(call: HttpCall) -> Job {
    Job {
        id: JobId(7),
        tenant: Tenant::default(),
        queue: QueueName::new("hooks").unwrap(),
        queue_id: QueueId(1),
        executor: Executor::Http,
        kind: Kind::new("http").unwrap(),
        payload: r#"{ "b":1,  "a":"é" }"#.into(),
        priority: Priority::Normal,
        state: State::Running,
        reason: None,
        delivery: Delivery::AtLeastOnce,
        policy: Arc::new(Partial::resolve(&[Partial::parse_line("http").unwrap()], &[]).unwrap()),
        attempt: 2,
        failures: 1,
        crashes: 0,
        replays: 0,
        created_at: NOON,
        due_at: NOON,
        first_attempt_at: Some(NOON),
        claimed_at: Some(NOON),
        finished_at: None,
        previous_delay: Millis::ZERO,
        start_by: None,
        timeout: None,
        idempotency_key: None,
        cancel_requested: false,
        error_class: None,
        error: None,
        result: None,
        discarded_at: None,
        discard_reason: None,
        http: Some(Arc::new(call)),
        webhook: None,
        schedule: None,
        parent: None,
        limit_key: None,
        traceparent: None,
    }
}

fn post(url: impl Into<String>) -> Job {
    job(http_call(url))
}

/// The failure of a call that must have failed.
fn failure(called: Called) -> Failure {
    match called.outcome {
        Outcome::Failed(failure) => failure,
        other @ (Outcome::Succeeded
        | Outcome::Snoozed(_)
        | Outcome::Released(_)
        | Outcome::Cancelled
        | Outcome::Lost) => panic!("not a failure: {other:?}"),
    }
}

/// Waits, without sleeping, until a condition holds.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..2_000_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("never happened: {what}");
}

//! Clients while the store is away. They know no outages: many stop at the first error.

use super::world::World;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass::Clock;
use windlass::testing::{Fault, FaultyStore};
use windlass_core::{Millis, State};

const PUSH: &str = r#"PUSH {"jid":"a1","jobtype":"email","args":[],"reserve_for":600}"#;

/// Every call fails in this way until `length` has passed.
fn outage(clock: &Clock, faults: &Arc<FaultyStore>, fault: Fault, length: Millis) {
    let (clock, ends) = (clock.clone(), clock.monotonic() + length);
    faults.choose(move |_| if clock.monotonic() < ends { fault } else { Fault::None });
}

#[tokio::test]
async fn commands_wait_for_the_store() {
    for fault in [Fault::Unavailable, Fault::UnknownNotDone, Fault::UnknownDone] {
        let (w, faults) = World::faulty();
        let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
        let away = || outage(w.windlass.clock(), &faults, fault, Millis::from_secs(8));
        away();
        assert_eq!(w.call(&mut producer, PUSH).await, "+OK", "{fault:?}");
        assert_eq!(w.fetch(&mut worker, "default").await.unwrap()["jid"], json!("a1"), "{fault:?}");
        away();
        assert_eq!(w.call(&mut worker, r#"ACK {"jid":"a1"}"#).await, "+OK", "{fault:?}");
        assert_eq!(w.only().await.state, State::Succeeded, "{fault:?}");
        away();
        let info = w.call(&mut producer, "INFO").await;
        assert!(info.contains(r#""total_processed":1"#), "{fault:?}: {info}");
    }
}

#[tokio::test]
async fn a_command_is_refused_after_twenty_seconds() {
    let (w, faults) = World::faulty();
    let mut producer = w.producer().await;
    faults.always(Fault::Unavailable);
    let began = w.windlass.clock().now();
    let refused = w.call(&mut producer, PUSH).await;
    assert!(refused.starts_with("-ERR the store cannot be used now"), "{refused}");
    let waited = w.windlass.clock().now().since(began).get();
    assert!((20_000..22_000).contains(&waited), "{waited}");
}

#[tokio::test]
async fn a_fetch_finds_nothing_while_the_store_is_away() {
    let (w, faults) = World::faulty();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    assert_eq!(producer.call(PUSH).await, "+OK");
    outage(w.windlass.clock(), &faults, Fault::Unavailable, Millis::from_secs(1));
    assert_eq!(w.fetch(&mut worker, "default").await, None);
    assert_eq!(w.fetch(&mut worker, "default").await.unwrap()["jid"], json!("a1"));
}

/// The store goes away between the claim and what the reply needs.
#[tokio::test]
async fn a_job_that_was_claimed_in_time_is_delivered() {
    let (w, faults) = World::faulty();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    assert_eq!(producer.call(PUSH).await, "+OK");
    let (clock, ends) = (w.windlass.clock().clone(), w.windlass.clock().monotonic() + Millis::from_secs(5));
    faults.choose(move |call| match call {
        "renew" if clock.monotonic() < ends => Fault::Unavailable,
        _ => Fault::None,
    });
    assert_eq!(w.fetch(&mut worker, "default").await.unwrap()["jid"], json!("a1"));
    assert!(w.windlass.clock().monotonic() >= ends, "the reservation was extended after the outage");
    let job = w.only().await;
    assert_eq!((job.state, job.attempt), (State::Running, 1));
}

/// The store goes away between the claim and what the reply needs, and the client does not wait for it.
#[tokio::test]
async fn a_job_claimed_for_a_client_that_is_gone_is_given_back_after_the_outage() {
    let (w, faults) = World::faulty();
    let (mut producer, mut worker) = (w.producer().await, w.worker("w-1234567").await);
    assert_eq!(producer.call(PUSH).await, "+OK");
    let asked = Arc::new(AtomicBool::new(false));
    let (clock, ends, saw) =
        (w.windlass.clock().clone(), w.windlass.clock().monotonic() + Millis::from_secs(5), asked.clone());
    faults.choose(move |call| match call {
        "renew" if clock.monotonic() < ends => {
            saw.store(true, Ordering::Relaxed);
            Fault::Unavailable
        }
        _ => Fault::None,
    });
    worker.send("FETCH default").await;
    while !asked.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    drop(worker);
    let mut other = w.worker("w-other-1").await;
    let began = w.windlass.clock().monotonic();
    while w.windlass.clock().monotonic() < began + Millis::from_secs(30) {
        if let Some(job) = w.fetch(&mut other, "default").await {
            assert_eq!(job["jid"], json!("a1"));
            return;
        }
    }
    panic!("the job was not given back: {:?}", w.only().await);
}

use super::world;
use crate::world::*;
use windlass::core::{Failure, Millis, Outcome, Status};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::Scope;

#[tokio::test]
async fn attempts_are_numbered_without_gaps_and_move_to_the_archive_with_their_job() {
    let w = world().await;
    let id = w.put(job()).await;
    w.fail(&w.claim_one().await).await;
    w.advance(Millis::from_secs(10));
    w.commit(&w.claim_one().await, Outcome::Snoozed(SECOND)).await;
    w.advance(SECOND);
    w.claim_one().await;
    w.advance(LEASE + SECOND);
    w.reap().await;
    w.advance(Millis::from_secs(10));
    assert_eq!(w.ledger(id).await.len(), 3);
    w.succeed(&w.claim_one().await).await;
    let ledger = w.ledger(id).await;
    let lines: Vec<_> = ledger.iter().map(|a| (a.number, a.retry, a.status, a.label())).collect();
    let expected = [
        (1, 0, Status::Failed, "Initial".to_owned()),
        (2, 1, Status::Snoozed, "Snoozed".to_owned()),
        (3, 1, Status::Failed, "Retry #1".to_owned()),
        (4, 2, Status::Succeeded, "Retry #2".to_owned()),
    ];
    assert_eq!(lines, expected);
    assert_eq!(ledger[2].error_class.as_deref(), Some("WorkerLost"));
}

#[tokio::test]
async fn an_attempt_records_what_happened_and_why() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    w.advance(Millis::new(250));
    let failure = Failure::new("busy").class("RateLimited").retry_after(Millis::from_secs(15));
    w.commit(&running, Outcome::Failed(failure)).await;
    let ledger = w.ledger(id).await;
    let attempt = &ledger[0];
    assert_eq!((attempt.started_at, attempt.finished_at), (START, START + Millis::new(250)));
    assert_eq!((attempt.error_class.as_deref(), attempt.error.as_deref()), (Some("RateLimited"), Some("busy")));
    assert_eq!(attempt.delay, Some(Millis::from_secs(15)));
    assert_eq!(attempt.next_run_at, Some(START + Millis::new(15_250)));
    assert_eq!(attempt.worker, "w1");
    assert!(attempt.why.contains("Retry-After"), "{}", attempt.why);
}

#[tokio::test]
async fn the_latest_attempts_are_listed_oldest_first() {
    let w = world().await;
    let id = w.put(job()).await;
    for _ in 0..3 {
        w.fail(&w.claim_one().await).await;
        w.advance(Millis::from_secs(10));
    }
    let numbers: Vec<u32> = w.store.attempts(&Scope::All, id, 2).await.unwrap().iter().map(|a| a.number).collect();
    assert_eq!(numbers, [2, 3]);
    w.fail(&w.claim_one().await).await;
    let numbers: Vec<u32> = w.store.attempts(&Scope::All, id, 2).await.unwrap().iter().map(|a| a.number).collect();
    assert_eq!(numbers, [3, 4], "archived too");
    assert!(w.store.attempts(&Scope::Tenant(tenant("acme")), id, 2).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stack_trace_is_kept_with_its_attempt_wherever_the_job_goes() {
    let w = world().await;
    let id = w.put(job()).await;
    let traced = |trace: &str| Outcome::Failed(Failure::new("boom").trace(trace));
    w.commit(&w.claim_one().await, traced("at one.rs:1\0")).await;
    w.advance(Millis::from_secs(10));
    let last = Outcome::Failed(Failure::permanent("boom").trace("é".repeat(32 * 1024)));
    w.commit(&w.claim_one().await, last).await;
    let traces = async || -> Vec<Option<String>> { w.ledger(id).await.into_iter().map(|a| a.trace).collect() };
    let kept = [Some("at one.rs:1\u{FFFD}".to_owned()), Some("é".repeat(16 * 1024))];
    assert_eq!(traces().await, kept, "archived");
    w.replay(id).await;
    assert_eq!(traces().await, kept, "live again");
    w.succeed(&w.claim_one().await).await;
    assert_eq!(traces().await, [kept[0].clone(), kept[1].clone(), None]);
}

#[tokio::test]
async fn attempts_are_labelled_with_the_run_they_belong_to() {
    let w = world().await;
    let id = w.put(NewJob { policy: line("fixed:base=10s,jitter=none,retries=1"), ..job() }).await;
    let run = async |ends_well: bool| {
        w.fail(&w.claim_one().await).await;
        w.advance(Millis::from_secs(10));
        let job = w.claim_one().await;
        if ends_well { w.succeed(&job).await } else { w.fail(&job).await };
    };
    run(false).await;
    w.replay(id).await;
    run(true).await;
    w.replay(id).await;
    run(false).await;
    let labels: Vec<String> = w.ledger(id).await.iter().map(windlass::core::Attempt::label).collect();
    let expected =
        ["Initial", "Retry #1", "Replay 1: Initial", "Replay 1: Retry #1", "Replay 2: Initial", "Replay 2: Retry #1"];
    assert_eq!(labels, expected);
}

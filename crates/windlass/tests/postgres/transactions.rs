//! Exactly-once effects: enqueue and complete in the caller's own transaction.

use crate::world::{World, job, plain};
use windlass::core::{Outcome, Roll, State};
use windlass::low_level::job::ClaimedJob;
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::{Atomicity, Commit, Committed, Scope};

fn succeeded(job: &ClaimedJob) -> Commit {
    let now = job.claimed_at.unwrap();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    commit_of(job, &Outcome::Succeeded, trace, Roll(0))
}

#[tokio::test]
async fn jobs_enqueued_in_a_transaction_exist_when_it_commits() {
    let w = World::new().await;
    let mut caller = plain().await;
    let transaction = caller.transaction().await.unwrap();
    w.store.enqueue_in(&transaction, vec![job(), job()]).await.unwrap();
    assert!(w.claim(10).await.is_empty(), "nobody sees them yet");
    transaction.rollback().await.unwrap();
    assert!(w.claim(10).await.is_empty());
    let transaction = caller.transaction().await.unwrap();
    let stored = w.store.enqueue_in(&transaction, vec![job()]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(w.claim(10).await[0].id, stored[0].id().unwrap());
    w.end().await;
}

#[tokio::test]
async fn a_job_completed_in_a_transaction_is_completed_with_its_effects_or_not_at_all() {
    let w = World::new().await;
    w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    let running = w.claim(1).await.remove(0);
    let mut caller = plain().await;
    let effects = format!("CREATE TABLE {}.effects (n integer)", w.schema);
    caller.batch_execute(&effects).await.unwrap();
    for end in ["rollback", "commit"] {
        let transaction = caller.transaction().await.unwrap();
        transaction.batch_execute(&format!("INSERT INTO {}.effects VALUES (1)", w.schema)).await.unwrap();
        let committed = w.store.commit_in(&transaction, vec![succeeded(&running)], vec![]).await.unwrap();
        assert_eq!(committed, [Committed::Applied(vec![])]);
        match end {
            "rollback" => transaction.rollback().await.unwrap(),
            _ => transaction.commit().await.unwrap(),
        }
        let state = w.store.job(&Scope::All, running.id).await.unwrap().unwrap().state;
        let (expected, count) = if end == "commit" { (State::Succeeded, 1) } else { (State::Running, 0) };
        assert_eq!(state, expected, "{end}");
        assert_eq!(w.count("SELECT count(*) FROM {s}.effects").await, count);
    }
    w.end().await;
}

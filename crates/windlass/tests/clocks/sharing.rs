//! Several processes on one SQLite file, with clocks of their own, and machines that sleep.

use crate::world::{HOUR, LEASE, claim, job, reap, sqlite_at, succeed, until};
use std::sync::Arc;
use windlass::Windlass;
use windlass::core::Millis;
use windlass::low_level::clock::SetMachine;
use windlass::low_level::job::{NewJob, RunAt};
use windlass::low_level::stores::{Atomicity, Committed, Store};
use windlass::low_level::upkeep::Keeper;

fn apart(a: &Arc<dyn Store>, b: &Arc<dyn Store>) -> i64 {
    (a.clock().now().as_millis() - b.clock().now().as_millis()).abs()
}

#[tokio::test]
async fn a_process_whose_clock_differs_uses_the_files_time_and_reaps_no_live_lease() {
    for off in [HOUR, -HOUR] {
        let home = tempfile::tempdir().unwrap();
        let (ours, theirs) = (SetMachine::default(), SetMachine::default());
        theirs.set_wall(off);
        let first = sqlite_at(&home, &ours).await;
        first.enqueue(vec![job()], Atomicity::Each).await.unwrap();
        let running = claim(&first, LEASE).await.pop().unwrap();
        let second = sqlite_at(&home, &theirs).await;
        assert!(apart(&first, &second) < 60_000, "they agree on the time");
        assert_eq!(reap(&second).await.len(), 0);
        let later = NewJob { run_at: RunAt::At(first.clock().now() + Millis::from_secs(1800)), ..job() };
        second.enqueue(vec![later], Atomicity::Each).await.unwrap();
        assert!(claim(&second, LEASE).await.is_empty(), "nothing runs early");
        assert!(matches!(succeed(&first, &running).await, Committed::Applied(_)));
        let warnings = second.health().await.unwrap().warnings;
        assert!(warnings.iter().any(|warning| warning.contains("clock")), "{warnings:?}");
        assert!(first.health().await.unwrap().warnings.is_empty());
    }
}

#[tokio::test]
async fn when_the_machines_clock_is_set_the_file_and_all_its_processes_follow_within_a_second() {
    let home = tempfile::tempdir().unwrap();
    let (machine, other) = (SetMachine::default(), SetMachine::default());
    other.set_wall(-HOUR);
    let (first, second) = (sqlite_at(&home, &machine).await, sqlite_at(&home, &machine).await);
    let third = sqlite_at(&home, &other).await;
    let before = first.clock().now();
    machine.set_wall(2 * HOUR);
    // No command: the writer notices by itself.
    until("the step", || async { (first.clock().now() > before + Millis::from_secs(7000)).then_some(()) }).await;
    for store in [&second, &third] {
        reap(store).await;
        assert!(apart(&first, store) < 60_000);
        assert_eq!(store.clock().changes().forward, 1);
    }
}

#[tokio::test]
async fn a_file_that_nobody_uses_takes_the_time_of_whoever_opens_it() {
    let home = tempfile::tempdir().unwrap();
    let machine = SetMachine::default();
    let before = sqlite_at(&home, &machine).await.clock().now();
    machine.set_wall(-HOUR);
    let store = sqlite_at(&home, &machine).await;
    assert!(store.clock().now() < before);
    assert!(store.health().await.unwrap().warnings.is_empty());
}

#[tokio::test]
async fn a_machine_that_slept_runs_what_is_due_and_costs_no_attempt() {
    let (home, machine) = (tempfile::tempdir().unwrap(), SetMachine::default());
    let store = sqlite_at(&home, &machine).await;
    let windlass = Windlass::from_store(store.clone());
    let keeper = Keeper::of(&windlass);
    let later = NewJob { run_at: RunAt::At(store.clock().now() + Millis::from_secs(1800)), ..job() };
    store.enqueue(vec![job(), later], Atomicity::Each).await.unwrap();
    let running = claim(&store, LEASE).await.pop().unwrap();
    keeper.tick().await;
    let due = store.clock().now() + Millis::from_secs(1800);
    let clock = store.clock().clone();
    let waiting = tokio::spawn(async move { clock.sleep_until(due).await });
    machine.sleep(Millis::from_secs(3600));
    waiting.await.unwrap();
    keeper.tick().await;
    assert_eq!(claim(&store, LEASE).await.len(), 1, "the other job is due");
    assert!(matches!(succeed(&store, &running).await, Committed::Applied(_)), "its worker had no time to renew");
    assert_eq!(store.clock().changes().slept, 1);
}

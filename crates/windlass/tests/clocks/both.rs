//! What holds on both databases when the clock is set.

use crate::world::{HOUR, LEASE, World, claim, fail, reap, succeed, until};
use tokio_util::sync::CancellationToken;
use windlass::core::{Millis, State};
use windlass::low_level::job::RunAt;
use windlass::low_level::stores::{Committed, JobFilter, Order, Overlap, Page, Scope, WorkerId};
use windlass::low_level::upkeep::Keeper;

macro_rules! on_both {
    ($(async fn $name:ident($world:ident: World) $body:block)+) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name(World::sqlite().await).await; })+
        }
        mod postgres {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name(World::postgres().await).await; })+
        }
        $(async fn $name($world: World) $body)+
    };
}

const STEPS: [i64; 6] = [1_000, -1_000, 60_000, -60_000, HOUR, -HOUR];

on_both! {
async fn no_step_of_the_clock_ends_a_live_lease(w: World) {
    for step in STEPS {
        w.put(RunAt::Now).await;
        let running = until("a due job", || async { w.claim().await.pop() }).await;
        w.reap().await;
        w.set(step).await;
        for _ in 0..3 {
            assert_eq!(w.reap().await.len(), 0, "after a step of {step} ms");
        }
        let lost = w.store.renew(&WorkerId::new("w1"), vec![running.lease], LEASE).await.unwrap().lost;
        assert_eq!(lost, [], "after a step of {step} ms");
        assert!(matches!(succeed(&w.store, &running).await, Committed::Applied(_)), "after a step of {step} ms");
    }
}

async fn a_job_is_due_by_the_clock_as_it_was_set(w: World) {
    let now = w.store.clock().now();
    let (soon, later) = (RunAt::At(now + Millis::from_secs(1800)), RunAt::At(now + Millis::from_secs(5400)));
    let (first, second) = (w.put(soon).await, w.put(later).await);
    assert!(w.claim().await.is_empty());
    w.set(HOUR).await;
    let claimed = w.claim().await;
    assert_eq!(claimed.iter().map(|job| job.id).collect::<Vec<_>>(), [first]);
    w.set(-HOUR).await;
    assert!(w.claim().await.is_empty(), "not before its time by the corrected clock");
    w.set(2 * HOUR).await;
    assert_eq!(w.claim().await.pop().map(|job| job.id), Some(second));
    let changes = w.store.clock().changes();
    assert_eq!((changes.forward, changes.back, changes.slept), (2, 1, 0), "each step is counted");
}

async fn a_lost_worker_is_noticed_after_the_clock_was_set_back(w: World) {
    w.put(RunAt::Now).await;
    assert_eq!(claim(&w.store, Millis::from_secs(1)).await.len(), 1);
    w.reap().await;
    w.set(-HOUR).await;
    let reaped = until("the lost worker", || async { reap(&w.store).await.pop() }).await;
    assert_eq!(reaped.job.attempt, 1);
}

async fn what_a_fast_clock_made_due_is_not_late_once_the_clock_is_right(w: World) {
    let right = w.store.clock().now();
    w.set(HOUR).await;
    let failed = w.put(RunAt::Now).await;
    let running = until("a job to fail", || async { w.claim().await.pop() }).await;
    assert!(matches!(fail(&w.store, &running).await, Committed::Applied(_)));
    let at_once = w.put(RunAt::Now).await;
    let asked_for = w.store.clock().now() + Millis::from_secs(60);
    let later = w.put(RunAt::At(asked_for)).await;
    let stop = CancellationToken::new();
    let keeper = tokio::spawn(Keeper::of(&w.windlass).run(stop.clone()));
    w.set(-HOUR).await;
    let job = |id| {
        let store = w.store.clone();
        async move { store.job(&Scope::All, id).await.unwrap().unwrap() }
    };
    let is_soon = |due_at| due_at < right + Millis::new(HOUR as u64 / 2);
    until("the job is due", || async { is_soon(job(at_once).await.due_at).then_some(()) }).await;
    until("the retry is due after its delay", || async { is_soon(job(failed).await.due_at).then_some(()) }).await;
    assert_eq!(job(failed).await.state, State::Retrying);
    assert_eq!(job(later).await.due_at, asked_for, "a time that was asked for stays");
    stop.cancel();
    keeper.await.unwrap();
    assert_eq!(until("a due job", || async { w.claim().await.pop() }).await.id, at_once);
}

async fn schedules_and_upkeep_go_on_after_the_clock_was_set_back(w: World) {
    let stop = CancellationToken::new();
    let keeper = tokio::spawn(Keeper::of(&w.windlass).run(stop.clone()));
    let ticking = w.windlass.schedules().every(Millis::from_secs(1)).overlap(Overlap::Allow);
    ticking.job_kind("tick", &serde_json::json!({})).await.unwrap();
    let runs = || async {
        let page = Page { after: None, limit: 100, order: Order::NewestFirst };
        w.store.jobs(&Scope::All, &JobFilter::default(), page).await.unwrap().len()
    };
    until("the first run", || async { (runs().await > 0).then_some(()) }).await;
    w.set(-HOUR).await;
    let before = runs().await;
    until("a run after the step", || async { (runs().await > before + 1).then_some(()) }).await;
    stop.cancel();
    keeper.await.unwrap();
}

async fn what_was_counted_by_a_fast_clock_is_counted_once(w: World) {
    let enqueued = async || {
        let tallies = w.store.tallies(&Scope::All, None).await.unwrap();
        tallies.iter().map(|(_, _, tally)| tally.enqueued).sum::<i64>()
    };
    w.set(2 * HOUR).await;
    w.put(RunAt::Now).await;
    w.set(-2 * HOUR).await;
    w.put(RunAt::Now).await;
    // Late enough to fold what was counted last, and too early for what was counted first.
    w.set(HOUR).await;
    w.store.prune().await.unwrap();
    assert_eq!(enqueued().await, 2);
    w.set(2 * HOUR).await;
    w.store.prune().await.unwrap();
    assert_eq!(enqueued().await, 2);
}
}

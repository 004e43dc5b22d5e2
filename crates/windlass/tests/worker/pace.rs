//! The size of claims follows the speed of the handlers, not the number of slots.

use crate::world::{World, scenario};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::low_level::stores::{JobFilter, Page, Scope};
use windlass::testing::Fault;
use windlass::{Attempt, Failure, JobKind, Millis, State};

const SLOTS: u32 = 5;
const QUICK: usize = 3000;
const SLOW: usize = 300;

/// A job that takes this many seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Takes(u32);

impl JobKind for Takes {
    const KIND: &'static str = "takes";
}

async fn take(Takes(seconds): Takes, attempt: Attempt) -> Result<(), Failure> {
    if seconds > 0 {
        attempt.sleep(Millis::from_secs(seconds.into())).await;
    }
    Ok(())
}

/// Counts calls of `claim`.
fn claims(w: &World) -> Arc<AtomicUsize> {
    let claims = Arc::new(AtomicUsize::new(0));
    let counted = claims.clone();
    w.faults.choose(move |call| {
        if call == "claim" {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Fault::None
    });
    claims
}

async fn count(w: &World, state: State) -> usize {
    let filter = JobFilter { states: vec![state], ..JobFilter::default() };
    w.windlass.store().jobs(&Scope::All, &filter, Page::oldest(5000)).await.unwrap().len()
}

scenario! {
    async fn a_few_slots_with_quick_handlers_claim_many_jobs_at_a_time(w: World) {
        w.windlass.enqueue_many((0..QUICK).map(|_| Takes(0))).await.unwrap();
        let claims = claims(&w);
        let worker = w.start(w.worker().handle(take).queue("default", SLOTS));
        w.until("all quick jobs", async || count(&w, State::Queued).await + count(&w, State::Running).await == 0).await;
        let claims = claims.load(Ordering::Relaxed);
        assert!(claims < 30, "{QUICK} jobs took {claims} claims");
        worker.stop().await;
    }

    async fn slow_handlers_are_given_what_their_slots_can_start(w: World) {
        w.windlass.enqueue_many((0..SLOW).map(|_| Takes(60))).await.unwrap();
        let mut worker = w.start(w.worker().handle(take).queue("default", SLOTS));
        for _ in 0..4 {
            w.pass(Millis::from_secs(60)).await;
            let running = count(&w, State::Running).await;
            assert!(running <= SLOTS as usize + 1, "{running} jobs are held by {SLOTS} slots");
        }
        worker.ask_to_stop();
        w.pass_until_stopped(worker).await;
    }

    async fn slow_jobs_that_follow_quick_ones_are_handed_back(w: World) {
        w.windlass.enqueue_many((0..QUICK).map(|_| Takes(0))).await.unwrap();
        w.windlass.enqueue_many((0..SLOW).map(|_| Takes(60))).await.unwrap();
        let mut worker = w.start(w.worker().handle(take).queue("default", SLOTS));
        w.pass(Millis::from_secs(30)).await;
        assert_eq!(count(&w, State::Succeeded).await, QUICK);
        assert_eq!(count(&w, State::Running).await, SLOTS as usize, "other workers can take the rest");
        // What was handed back is not held against the job.
        let filter = JobFilter { states: vec![State::Queued, State::Retrying], ..JobFilter::default() };
        let waiting = w.windlass.store().jobs(&Scope::All, &filter, Page::oldest(5000)).await.unwrap();
        assert_eq!(waiting.len(), SLOW - SLOTS as usize);
        assert!(waiting.iter().all(|job| job.failures == 0));
        worker.ask_to_stop();
        w.pass_until_stopped(worker).await;
    }
}

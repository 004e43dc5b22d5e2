//! Replaying many dead letters at a rate: one commit, safe to interrupt and to repeat.

use crate::world::{Do, World, scenario};
use std::num::NonZeroU32;
use std::sync::Arc;
use windlass::client::ReplayedPage;
use windlass::core::job::{Kind, QueueName};
use windlass::core::policy::Partial;
use windlass::core::{Failure, Outcome};
use windlass::low_level::job::{LeaseId, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{
    Atomicity, Claim, Committed, JobFilter, Leases, Order, Page, Replay, ReplayOnly, Replayed, Scope, Share, Spacing,
    WorkerId,
};
use windlass::{JobId, Millis, State};

const COUNT: usize = 10_000;
const RATE: u64 = 500;
/// How many jobs of a replay may start at once: a tenth of a second's worth.
const BURST: u64 = RATE / 10;
const TICK: Millis = Millis::new(100);

/// Claims all due jobs and ends them with this outcome. Returns the ids in the order they were claimed.
async fn run_all(w: &World, outcome: &Outcome, lease: i64) -> Vec<JobId> {
    let shares = w.store().queues().await.unwrap();
    let claim = Claim {
        worker: WorkerId::new("w"),
        leases: Leases::Shared(LeaseId(lease)),
        lease_for: Millis::from_secs(30),
        shares: shares.iter().map(|queue| Share { queue: queue.id, slots: COUNT as u32, ahead: 0 }).collect(),
        limit: COUNT as u32,
        suspects: 1,
        kinds: None,
    };
    let claimed = w.store().claim(claim).await.unwrap().jobs;
    let now = w.clock.now();
    let commits = claimed.iter().map(|job| {
        let trace = Trace { started_at: now, finished_at: now, worker: "w".into(), ..Trace::default() };
        commit_of(job, outcome, trace, w.windlass().random().roll())
    });
    let committed = w.store().commit(commits.collect(), vec![LeaseId(lease)]).await.unwrap();
    assert!(committed.iter().all(|one| matches!(one, Committed::Applied(_))));
    claimed.iter().map(|job| job.id).collect()
}

fn spacing() -> Spacing {
    Spacing::per_second(NonZeroU32::new(RATE as u32).unwrap())
}

/// Stores jobs and lets them all fail permanently. Returns their ids, the oldest first.
async fn dead_letters(w: &World, count: usize, lease: i64) -> Vec<JobId> {
    let policy = Arc::new(Partial::resolve(&[Partial::parse_line("once").unwrap()], &[]).unwrap());
    let new = NewJob::new(Kind::new("do").unwrap(), serde_json::to_string(&Do::Succeed).unwrap(), policy);
    w.store().enqueue(vec![new; count], Atomicity::Each).await.unwrap();
    run_all(w, &Outcome::Failed(Failure::new("failed on request")), lease).await
}

fn at_a_rate(ids: &[JobId]) -> Replay {
    Replay { spacing: spacing(), ..Replay::new(ids.to_vec(), ReplayOnly::DeadLetters, "ann") }
}

scenario! {
    async fn ten_thousand_dead_letters_are_replayed_at_a_rate_and_none_twice(w: World) {
        let dead = dead_letters(&w, COUNT, 1).await;
        assert_eq!((dead.len(), w.dead_letters().await.len()), (COUNT, COUNT));

        let started = w.clock.now();
        // A caller that disconnects in the middle: all or nothing happened. Then it asks again.
        tokio::select! {
            biased;
            _ = w.windlass().replay_in(&Scope::All, at_a_rate(&dead)) => {}
            () = std::future::ready(()) => {}
        }
        w.windlass().replay_in(&Scope::All, at_a_rate(&dead)).await.unwrap();
        let again = w.windlass().replay_in(&Scope::All, at_a_rate(&dead)).await.unwrap();
        assert!(again.iter().all(|one| *one == Replayed::AlreadyLive), "repeating changes nothing");
        let live = w.list(JobFilter { states: vec![State::Queued], ..JobFilter::default() }).await;
        assert_eq!(live.len(), COUNT);
        assert!(live.iter().all(|job| job.replays == 1 && job.failures == 0));
        let mut offsets: Vec<u64> = live.iter().map(|job| job.due_at.since(started).get()).collect();
        offsets.sort_unstable();
        assert_eq!((offsets[0], offsets[COUNT - 1]), (0, (COUNT as u64 - 1) * 1000 / RATE));

        // Nothing has to keep running: the jobs become due by time alone, at the rate, in the order they failed.
        let mut ran = Vec::new();
        for tick in 1..=10 {
            w.clock.advance(TICK);
            ran.extend(run_all(&w, &Outcome::Succeeded, 1 + tick).await);
        }
        assert_eq!(ran, dead[..ran.len()]);
        assert!((RATE - BURST..=RATE + BURST).contains(&(ran.len() as u64)), "{} in a second", ran.len());
        // All others become due while nobody works. The rate holds all the same.
        w.clock.advance(Millis::from_secs(60));
        let mut lease = 12;
        while ran.len() < COUNT {
            let now = run_all(&w, &Outcome::Succeeded, lease).await;
            assert!((1..=BURST as usize).contains(&now.len()), "{} at once", now.len());
            ran.extend(now);
            w.clock.advance(TICK);
            lease += 1;
        }
        assert_eq!(ran.len(), COUNT);
        let done = w.list(JobFilter { states: vec![State::Succeeded], ..JobFilter::default() }).await;
        assert!(done.iter().all(|job| (job.attempt, job.replays) == (2, 1)));
        assert_eq!((done.len(), w.dead_letters().await.len()), (COUNT, 0));
    }

    async fn pages_of_a_replay_by_filter_are_one_sequence_however_it_is_interrupted(w: World) {
        const REST: usize = 1_500;
        let mut dead = dead_letters(&w, COUNT, 1).await;
        dead.extend(dead_letters(&w, REST, 2).await);
        let page = async || w.windlass().dead_letters().by("ann").replay(JobFilter::default(), spacing()).await;

        let started = w.clock.now();
        let first = page().await.unwrap();
        assert_eq!((first.done, first.more), (COUNT as u64, true));
        // The first caller is gone. Another caller changes something, and asks again while the first page is still
        // under way.
        w.clock.advance(Millis::from_secs(7));
        let other = JobFilter { queue: Some(QueueName::new("other").unwrap()), ..JobFilter::default() };
        let none = w.windlass().dead_letters().by("bob").replay(other, spacing()).await.unwrap();
        assert_eq!(none, ReplayedPage::default());
        let second = page().await.unwrap();
        assert_eq!((second.done, second.more), (REST as u64, false));
        assert_eq!(page().await.unwrap(), ReplayedPage::default(), "repeating changes nothing");

        let mut live = w.list(JobFilter { states: vec![State::Queued], ..JobFilter::default() }).await;
        let after = live.last().map(|job| job.id);
        let page = Page { after, limit: REST as u32, order: Order::OldestFirst };
        live.extend(w.store().jobs(&Scope::All, &JobFilter::default(), page).await.unwrap());
        assert_eq!(live.iter().map(|job| job.id).collect::<Vec<_>>(), dead);
        let due: Vec<u64> = live.iter().map(|job| job.due_at.since(started).get()).collect();
        let expected: Vec<u64> = (0..dead.len() as u64).map(|n| n * 1000 / RATE).collect();
        assert_eq!(due, expected, "one sequence in the original order");
        assert_eq!(second.last_due, live.last().map(|job| job.due_at));
        assert!(live.iter().all(|job| job.replays == 1));
        let audits = w.store().audits(10).await.unwrap();
        let reported: Vec<_> = audits.iter().map(|line| (line.by.as_str(), line.action.as_str(), line.count)).collect();
        assert_eq!(reported, [("ann", "replay", REST as u64), ("ann", "replay", COUNT as u64)]);
    }

    async fn a_replay_that_ended_long_ago_starts_again(w: World) {
        let page = async || w.windlass().dead_letters().by("ann").replay(JobFilter::default(), spacing()).await;
        dead_letters(&w, 3, 1).await;
        assert_eq!(page().await.unwrap().done, 3);
        w.clock.advance(Millis::from_secs(60));
        run_all(&w, &Outcome::Succeeded, 2).await;
        dead_letters(&w, 2, 3).await;
        let again = page().await.unwrap();
        assert_eq!(again.last_due, Some(w.clock.now() + spacing().times(1)));
    }
}

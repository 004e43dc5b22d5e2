//! Replaying many dead letters at a rate: one commit, safe to interrupt and to repeat.

use crate::world::{Do, World, scenario};
use std::sync::Arc;
use windlass::core::job::Kind;
use windlass::core::policy::Partial;
use windlass::core::{Failure, Outcome};
use windlass::job::{LeaseId, NewJob};
use windlass::settle::{Trace, settle};
use windlass::store::{
    Atomicity, Claim, Committed, JobFilter, Leases, Replay, ReplayOnly, Replayed, Scope, Turn, WorkerId,
};
use windlass::{JobId, Millis, State};

const COUNT: usize = 10_000;
const RATE: u64 = 500;

/// Claims all that is due and ends it with this outcome. Answers the ids in the order they were claimed.
async fn run_all(w: &World, outcome: &Outcome, lease: i64) -> Vec<JobId> {
    let turns = w.store().queues().await.unwrap();
    let claim = Claim {
        worker: WorkerId::new("w"),
        leases: Leases::Shared(LeaseId(lease)),
        lease_for: Millis::from_secs(30),
        turns: turns.iter().map(|queue| Turn { queue: queue.id, slots: COUNT as u32, ahead: 0 }).collect(),
        limit: COUNT as u32,
        suspects: 1,
    };
    let claimed = w.store().claim(claim).await.unwrap().jobs;
    let now = w.clock.now();
    let commits = claimed.iter().map(|job| {
        let trace = Trace { started_at: now, finished_at: now, worker: "w".into(), ..Trace::default() };
        settle(job, outcome, trace, w.windlass().dice().roll())
    });
    let committed = w.store().commit(commits.collect(), vec![LeaseId(lease)]).await.unwrap();
    assert!(committed.iter().all(|one| matches!(one, Committed::Applied(_))));
    claimed.iter().map(|job| job.id).collect()
}

fn at_a_rate(ids: &[JobId]) -> Replay {
    let spacing = Millis::new(1000 / RATE);
    Replay { ids: ids.to_vec(), only: ReplayOnly::DeadLetters, spacing, by: "ann".into() }
}

scenario! {
    async fn ten_thousand_dead_letters_are_replayed_at_a_rate_and_none_twice(w: World) {
        let policy = Arc::new(Partial::resolve(&[Partial::parse_line("once").unwrap()], &[]).unwrap());
        let new = NewJob::new(Kind::new("do").unwrap(), serde_json::to_string(&Do::Succeed).unwrap(), policy);
        w.store().enqueue(vec![new; COUNT], Atomicity::Each).await.unwrap();
        let dead = run_all(&w, &Outcome::Failed(Failure::new("told to fail")), 1).await;
        assert_eq!((dead.len(), w.dead_letters().await.len()), (COUNT, COUNT));

        let started = w.clock.now();
        // A caller that hangs up in the middle: all or nothing happened. Then it asks again.
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

        // Nothing has to stay running: time alone makes them due, at the rate, in the order they died.
        w.clock.advance(Millis::from_secs(1));
        let first = run_all(&w, &Outcome::Succeeded, 2).await;
        assert_eq!(first, dead[..=RATE as usize]);
        w.clock.advance(Millis::from_secs(60));
        let rest = run_all(&w, &Outcome::Succeeded, 3).await;
        assert_eq!(first.len() + rest.len(), COUNT);
        let done = w.list(JobFilter { states: vec![State::Succeeded], ..JobFilter::default() }).await;
        assert!(done.iter().all(|job| (job.attempt, job.replays) == (2, 1)));
        assert_eq!((done.len(), w.dead_letters().await.len()), (COUNT, 0));
    }
}

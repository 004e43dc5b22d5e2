//! A randomised model test: one long random sequence of operations, replayed on the reference model and on each real
//! store, must look the same from outside. The seed is printed; set WINDLASS_SEED to replay one.

use crate::world::*;
use windlass::Random;
use windlass::core::{Delivery, Failure, JobId, Millis, Outcome, Priority, Progress};
use windlass::low_level::job::{ClaimedJob, Idempotency, KeyWindow, NewJob, RunAt};
use windlass::low_level::stores::{
    Discard, Enqueued, JobFilter, Reap, Replay, ReplayOnly, Scope, Share, Spacing, WorkerId,
};

const STEPS: usize = 300;

/// How a run of the model sends jobs again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replays {
    AtOnce,
    /// With a rate, so that queues become gated and are so no longer. Stores may notice the latter up to a second or a
    /// prune later (ADR 28); until then they say differently when to look again, so such a run does not compare that.
    Paced,
}

impl Replays {
    fn of(seed: u64) -> Self {
        if seed.is_multiple_of(2) { Self::AtOnce } else { Self::Paced }
    }

    fn spacing(self) -> Spacing {
        match self {
            Self::AtOnce => Spacing::NONE,
            Self::Paced => Spacing::every(SECOND),
        }
    }
}

/// What an observer sees, line by line.
async fn play(w: &World, seed: u64) -> Vec<String> {
    let random = Random::seeded(seed);
    let replays = Replays::of(seed);
    let pick = |n: u64| random.number() % n;
    let mut seen = Vec::new();
    let mut held: Vec<ClaimedJob> = Vec::new();
    let mut made: Vec<JobId> = Vec::new();
    for step in 0..STEPS {
        let said = match pick(12) {
            0..=2 => {
                let jobs: Vec<NewJob> = (0..=pick(4)).map(|_| random_job(&pick)).collect();
                let stored = w.store.enqueue(jobs, windlass::low_level::stores::Atomicity::Each).await.unwrap();
                made.extend(stored.iter().filter_map(Enqueued::id));
                format!("{stored:?}")
            }
            3..=4 => claim(w, &pick, replays, &mut held).await,
            5..=7 if !held.is_empty() => {
                let job = held.swap_remove(pick(held.len() as u64) as usize);
                let outcome = random_outcome(&pick);
                let known = if pick(2) == 0 { job.with_cancel_requested() } else { job.clone() };
                let answer = w.commit(&known, outcome.clone()).await;
                if pick(8) == 0 {
                    held.push(job);
                }
                format!("{outcome:?} {answer:?}")
            }
            8 => {
                w.advance(Millis::new(pick(25_000)));
                String::new()
            }
            9 => upkeep(w, &pick).await,
            10..=11 if !made.is_empty() => {
                let id = made[pick(made.len() as u64) as usize];
                operator(w, &pick, replays, id).await
            }
            _ => String::new(),
        };
        seen.push(format!("{step}: {said}"));
    }
    for id in made {
        seen.push(observe(w, id).await);
    }
    seen.push(format!("{:?}", w.store.depths(&Scope::All).await.unwrap()));
    seen.push(format!("{:?}", w.store.dead_groups(&Scope::All, &JobFilter::default(), 1000).await.unwrap()));
    seen.push(format!("{:?}", w.store.tallies(&Scope::All, None).await.unwrap()));
    days_later(w, &mut seen).await;
    seen
}

/// Jobs past their retention are removed, and old counts are folded.
async fn days_later(w: &World, seen: &mut Vec<String>) {
    for hours in [1, 30, 200, 2500] {
        w.advance(Millis::from_secs(hours * 3600 + 29));
        let (mut gone, mut more) = (0, true);
        while more {
            let now = w.store.prune().await.unwrap();
            (gone, more) = (gone + now, now > 0);
        }
        let left = w.list(JobFilter::default()).await;
        seen.push(format!("{hours} h: {gone} went, {left:?} are left"));
        for ago in [10, 100, 3000, 90_000, 400_000] {
            let since = w.now() - Millis::from_secs(ago);
            seen.push(format!("{ago} s: {:?}", w.store.tallies(&Scope::All, Some(since)).await.unwrap()));
        }
    }
}

fn random_job(pick: &impl Fn(u64) -> u64) -> NewJob {
    // Without jitter: the store draws the rolls of lost attempts in whatever order it reaps.
    let policies =
        ["fixed:base=5s,jitter=none,retries=2", "stepped", "exponential:base=1s,jitter=none,retries=4", "once"];
    let idempotency = (pick(4) == 0).then(|| Idempotency {
        key: format!("k{}", pick(4)).into(),
        window: if pick(2) == 0 { KeyWindow::Live } else { KeyWindow::For(Millis::from_secs(20)) },
    });
    NewJob {
        payload: format!("{}", pick(2)).into(),
        priority: Priority::HIGHEST_FIRST[pick(5) as usize],
        run_at: if pick(3) == 0 { RunAt::After(Millis::new(pick(20_000))) } else { RunAt::Now },
        start_by: (pick(6) == 0).then(|| START + Millis::new(pick(600_000))),
        delivery: if pick(5) == 0 { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        policy: line(policies[pick(4) as usize]),
        idempotency,
        ..job_in(["a", "b"][pick(2) as usize])
    }
}

fn random_outcome(pick: &impl Fn(u64) -> u64) -> Outcome {
    match pick(8) {
        0..=2 => Outcome::Succeeded,
        3..=4 => failed("boom"),
        5 => Outcome::Failed(Failure::permanent("no").class("Broken")),
        6 => Outcome::Snoozed(Millis::new(pick(9000))),
        _ => [Outcome::Released(Progress::Started), Outcome::Cancelled][pick(2) as usize].clone(),
    }
}

async fn claim(w: &World, pick: &impl Fn(u64) -> u64, replays: Replays, held: &mut Vec<ClaimedJob>) -> String {
    let mut shares = Vec::new();
    for name in ["a", "b"] {
        let queue = w.queue_id(name).await;
        let (slots, ahead) = (pick(3) as u32, pick(3) as u32);
        shares.push(Share { queue, slots, ahead });
    }
    let mut request = w.request_shares(shares);
    request.limit = 1 + pick(5) as u32;
    request.suspects = pick(3) as u32;
    let claimed = w.store.claim(request).await.unwrap();
    let said = claimed.jobs.iter().map(|job| format!("{}#{}", job.id, job.attempt)).collect::<Vec<_>>().join(" ");
    held.extend(claimed.jobs);
    match replays {
        Replays::AtOnce => format!("claimed {said} next {:?}", claimed.next_due),
        Replays::Paced => format!("claimed {said}"),
    }
}

async fn upkeep(w: &World, pick: &impl Fn(u64) -> u64) -> String {
    let transitioned = match pick(3) {
        0 => w.store.expire(1000).await.unwrap(),
        1 => w.store.reap(Reap::Of(WorkerId::new("w1")), 1000).await.unwrap(),
        _ => w.reap().await,
    };
    let mut moved: Vec<JobId> = transitioned.iter().map(|s| s.job.id).collect();
    moved.sort();
    format!("moved {moved:?}")
}

async fn operator(w: &World, pick: &impl Fn(u64) -> u64, replays: Replays, id: JobId) -> String {
    let ids = vec![id];
    match pick(4) {
        0 => format!("{:?}", w.store.cancel(&Scope::All, ids).await.unwrap()),
        1 => {
            let only = if pick(2) == 0 { ReplayOnly::Any } else { ReplayOnly::DeadLetters };
            let replay = Replay { spacing: replays.spacing(), ..Replay::new(ids, only, "ann") };
            format!("{:?}", w.store.replay(&Scope::All, replay).await.unwrap())
        }
        2 => {
            let discard = Discard { ids, reason: "known".into(), by: "ann".into(), what: String::new() };
            format!("{:?}", w.store.discard(&Scope::All, discard).await.unwrap())
        }
        _ => observe(w, id).await,
    }
}

async fn observe(w: &World, id: JobId) -> String {
    let Some(job) = w.find(id).await else { return format!("{id} is gone") };
    let ledger = w.ledger(id).await;
    let lines: Vec<_> = ledger
        .iter()
        .map(|a| (a.number, a.retry, a.status, a.error_class.clone(), a.finished_at, a.next_run_at))
        .collect();
    format!(
        "{id} {} {:?} a{} f{} c{} r{} cancel {} discarded {:?} {lines:?}",
        job.state,
        job.reason,
        job.attempt,
        job.failures,
        job.crashes,
        job.replays,
        job.cancel_requested,
        job.discarded_at
    )
}

fn seed() -> u64 {
    let seed = std::env::var("WINDLASS_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| Random::system().number());
    println!("WINDLASS_SEED={seed}");
    seed
}

async fn same_as_memory(open: impl AsyncFn() -> World, rounds: u64) {
    let first = seed();
    for seed in (0..rounds).map(|round| first.wrapping_add(round)) {
        let expected = play(&World::memory().await, seed).await;
        let seen = play(&open().await, seed).await;
        for (seen, expected) in seen.iter().zip(&expected) {
            assert_eq!(seen, expected, "seed {seed}");
        }
    }
}

#[tokio::test]
async fn the_model_agrees_with_itself() {
    same_as_memory(World::memory, 3).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_behaves_as_the_model_does() {
    same_as_memory(World::sqlite, 5).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_behaves_as_the_model_does() {
    same_as_memory(World::postgres, 3).await;
}

//! The rate of a replay as a limit: on every node, after a pause, over queues, with retries.

use super::world;
use crate::world::*;
use std::collections::HashMap;
use windlass::core::gate::WaitingFor;
use windlass::core::job::QueueName;
use windlass::core::{Delivery, JobId, Millis, Outcome, Priority, Progress, State, Timestamp};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{JobFilter, Replay, ReplayOnly, Replayed, Scope, SettingKey, Spacing};

const STEP: Millis = Millis::new(50);

/// `count` dead letters, spread over these queues.
async fn dead(w: &World, queues: &[&str], count: usize) -> Vec<JobId> {
    let queue = |n: usize| QueueName::new(queues[n % queues.len()]).unwrap();
    let ids = w.put_all((0..count).map(|n| NewJob { queue: queue(n), ..job() }).collect()).await;
    for name in queues {
        for job in w.claim(&[name], count as u32).await.jobs {
            let outcome = Outcome::Failed(windlass::core::Failure::permanent("broken"));
            assert_applied(&w.commit(&job, outcome).await);
        }
    }
    ids
}

/// Sends jobs again, ten per second.
async fn replay(w: &World, ids: &[JobId]) {
    let replay = Replay {
        spacing: Spacing::every(Millis::new(100)),
        what: "queue=default".into(),
        ..Replay::new(ids.to_vec(), ReplayOnly::DeadLetters, "ann")
    };
    let done = w.store.replay(&Scope::All, replay).await.unwrap();
    assert!(done.iter().all(|one| *one == Replayed::Queued), "{done:?}");
}

/// Never more than ten per second and one more, over any stretch.
fn assert_rate(starts: &[Timestamp]) {
    for (first, from) in starts.iter().enumerate() {
        for (last, to) in starts.iter().enumerate().skip(first) {
            let most = to.since(*from).get() / 100 + 1;
            assert!((last - first + 1) as u64 <= most, "{} starts in {} ms", last - first + 1, to.since(*from).get());
        }
    }
}

#[tokio::test]
async fn jobs_that_piled_up_start_at_the_rate_of_their_replay_over_queues_and_nodes() {
    let w = world().await;
    let ids = dead(&w, &["default", "other"], 20).await;
    replay(&w, &ids).await;
    // Nobody worked for a minute: all of them are due.
    w.advance(Millis::from_secs(60));
    let second = w.reopened().await;
    let mut starts = Vec::new();
    let begun = w.now();
    while starts.len() < ids.len() {
        assert!(w.now().since(begun) < Millis::from_secs(5), "only {} started", starts.len());
        let mut jobs = w.claim(&["default"], 50).await.jobs;
        let elsewhere = w.request(&["other", "default"], 50).await;
        jobs.extend(second.claim(elsewhere).await.unwrap().jobs);
        for job in jobs {
            starts.push(w.now());
            w.succeed(&job).await;
        }
        w.advance(STEP);
    }
    assert_rate(&starts);
    assert!(w.now().since(begun) >= Millis::from_secs(1), "two queues share one rate");
}

#[tokio::test]
async fn other_jobs_of_the_queue_are_not_delayed_by_a_replay() {
    let w = world().await;
    let ids = dead(&w, &["default"], 30).await;
    replay(&w, &ids).await;
    w.advance(Millis::from_secs(60));
    let others = w.put_all((0..5).map(|_| job()).collect()).await;
    let mut started = Vec::new();
    for _ in 0..4 {
        started.extend(w.claim(&["default"], 50).await.jobs.into_iter().map(|job| job.id));
        w.advance(Millis::new(1));
    }
    assert!(others.iter().all(|id| started.contains(id)), "{started:?}");
    assert_eq!(started.len(), others.len() + 1, "and one of the replay");
}

#[tokio::test]
async fn retries_and_returned_jobs_of_a_replay_keep_its_rate() {
    let w = world().await;
    let ids = dead(&w, &["default"], 6).await;
    replay(&w, &ids).await;
    w.advance(Millis::from_secs(60));
    let (mut starts, mut seen): (Vec<Timestamp>, HashMap<JobId, u32>) = Default::default();
    let begun = w.now();
    let live = JobFilter { states: vec![State::Queued, State::Retrying, State::Running], ..JobFilter::default() };
    while !w.list(live.clone()).await.is_empty() {
        assert!(w.now().since(begun) < Millis::from_secs(600), "never stuck");
        for job in w.claim(&["default"], 50).await.jobs {
            let times = seen.entry(job.id).or_default();
            *times += 1;
            match *times {
                // Given back before it started: no start, and it keeps its place in the replay.
                1 => drop(w.commit(&job, Outcome::Released(Progress::NotStarted)).await),
                2 => {
                    starts.push(w.now());
                    w.fail(&job).await;
                }
                _ => {
                    starts.push(w.now());
                    w.succeed(&job).await;
                }
            }
        }
        w.advance(STEP);
    }
    assert_eq!(starts.len(), 12);
    assert_rate(&starts);
}

#[tokio::test]
async fn the_rate_holds_beside_a_limit_per_key_and_after_a_hold() {
    let w = world().await;
    let ids = dead(&w, &["default"], 10).await;
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(r#"{"limits":{"concurrency":4}}"#)).await.unwrap();
    replay(&w, &ids).await;
    w.advance(Millis::from_secs(60));
    let mut starts = Vec::new();
    let mut running = Vec::new();
    let begun = w.now();
    while starts.len() < ids.len() {
        assert!(w.now().since(begun) < Millis::from_secs(20), "only {} started", starts.len());
        for job in w.claim(&["default"], 50).await.jobs {
            starts.push(w.now());
            running.push(job);
        }
        assert!(running.len() <= 4);
        if running.len() == 4 {
            w.succeed(&running.remove(0)).await;
        }
        w.advance(STEP);
    }
    assert_rate(&starts);
}

#[tokio::test]
async fn a_later_replay_without_a_rate_is_free_of_it_and_nothing_is_left_behind() {
    let w = world().await;
    let ids = dead(&w, &["default"], 4).await;
    replay(&w, &ids).await;
    w.advance(Millis::from_secs(60));
    let refused = w.claim(&["default"], 10).await;
    assert_eq!(refused.jobs.len(), 1);
    assert_eq!(refused.parked.len(), 3);
    assert!(refused.parked.iter().all(|parking| parking.waiting_for == WaitingFor::Rate), "{:?}", refused.parked);
    w.succeed(&refused.jobs[0]).await;
    w.store.cancel(&Scope::All, ids.clone()).await.unwrap();
    let again = Replay::new(ids.clone(), ReplayOnly::Any, "ann");
    w.store.replay(&Scope::All, again).await.unwrap();
    // What a pruning node finds later must not be needed for this.
    let jobs = w.claim(&["default"], 10).await.jobs;
    assert_eq!(jobs.len(), 4, "all at once");
    for job in &jobs {
        w.succeed(job).await;
    }
    w.advance(Millis::from_secs(120));
    w.store.prune().await.unwrap();
    assert_eq!(w.store.gates(&Scope::All, Some(&QueueName::new("replay").unwrap()), 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_parked_jobs_place_in_its_key_is_known() {
    let w = world().await;
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(r#"{"limits":{"perKey":{"concurrency":1}}}"#)).await.unwrap();
    let keyed = |key: &str| NewJob { limit_key: Some(key.into()), ..job() };
    let ids = w.put_all(vec![keyed("a"), keyed("a"), keyed("b"), keyed("a"), keyed("b")]).await;
    let claimed = w.claim(&["default"], 10).await;
    assert_eq!(claimed.jobs.len(), 2);
    assert_eq!(claimed.parked.iter().map(|parking| parking.job).collect::<Vec<_>>(), [ids[1], ids[3], ids[4]]);
    for (place, id) in [(0, ids[0]), (0, ids[1]), (0, ids[2]), (1, ids[3]), (0, ids[4])] {
        assert_eq!(w.store.parked_before(id).await.unwrap(), place, "job {id}");
    }
}

#[tokio::test]
async fn a_parked_jobs_place_is_among_the_jobs_of_its_queue() {
    let w = world().await;
    // Queues get their numbers in this order.
    let ids = dead(&w, &["first", "second"], 6).await;
    replay(&w, &ids).await;
    w.advance(Millis::from_secs(60));
    // The rate of the replay lets one of the first queue start, and parks the other five.
    assert_eq!(w.claim(&["first", "second"], 10).await.jobs.len(), 1);
    for (place, id) in [(0, ids[0]), (0, ids[1]), (0, ids[2]), (1, ids[3]), (1, ids[4]), (2, ids[5])] {
        assert_eq!(w.store.parked_before(id).await.unwrap(), place, "job {id}");
    }
}

#[tokio::test]
async fn a_parked_jobs_place_follows_priority_and_time_alone() {
    let w = world().await;
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(r#"{"limits":{"perKey":{"concurrency":1}}}"#)).await.unwrap();
    let of = |delivery, priority| NewJob { limit_key: Some("k".into()), delivery, priority, ..job() };
    let (once, again) = (Delivery::AtMostOnce, Delivery::AtLeastOnce);
    let (urgent, normal) = (Priority::Highest, Priority::Normal);
    w.put(of(again, urgent)).await;
    let ids = w.put_all(vec![of(once, normal), of(again, normal), of(once, urgent), of(again, normal)]).await;
    assert_eq!(w.claim(&["default"], 10).await.jobs.len(), 1);
    for (place, id) in [(1, ids[0]), (2, ids[1]), (0, ids[2]), (3, ids[3])] {
        assert_eq!(w.store.parked_before(id).await.unwrap(), place, "job {id}");
    }
}

#[tokio::test]
async fn upkeep_frees_no_retry_of_the_rate_of_its_replay() {
    let w = world().await;
    let ids = dead(&w, &["default"], 3).await;
    replay(&w, &ids).await;
    for _ in &ids {
        w.advance(Millis::from_secs(1));
        let one = w.claim(&["default"], 1).await.jobs;
        assert_applied(&w.fail(&one[0]).await);
    }
    w.store.prune().await.unwrap();
    // All of them are due.
    w.advance(Millis::from_secs(60));
    for _ in &ids {
        assert_eq!(w.claim(&["default"], 5).await.jobs.len(), 1, "one at a time");
        w.advance(Millis::from_secs(1));
    }
}

//! Limits, end to end: workers keep them, whatever their slots, and nothing waits longer than its gate says. The clock
//! stands still unless a scenario moves it, so whatever starts was woken.

use crate::world::{World, scenario};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use windlass::core::gate::{Hold, HoldOrigin, WaitingFor};
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::policy::Partial;
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{Atomicity, GateName, JobLife, Registry, SettingKey};
use windlass::{Attempt, Failure, JobId, JobKind, Millis, State};

#[derive(Debug, Serialize, Deserialize)]
struct Call(String);

impl JobKind for Call {
    const KIND: &'static str = "call";
}

/// How many calls run now, and the most that ran at once, by key and in all.
#[derive(Debug, Default)]
struct Seen {
    now: BTreeMap<String, usize>,
    most: BTreeMap<String, usize>,
    most_in_all: usize,
}

type Watch = Arc<Mutex<Seen>>;

async fn call(Call(key): Call, attempt: Attempt) -> Result<(), Failure> {
    let watch = attempt.state::<Watch>().clone();
    {
        let mut seen = watch.lock().unwrap();
        *seen.now.entry(key.clone()).or_default() += 1;
        let (now, all) = (seen.now[&key], seen.now.values().sum::<usize>());
        let most = seen.most.entry(key.clone()).or_default();
        *most = now.max(*most);
        seen.most_in_all = all.max(seen.most_in_all);
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    *watch.lock().unwrap().now.get_mut(&key).unwrap() -= 1;
    Ok(())
}

async fn limit(w: &World, settings: &str) {
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.faults.put_setting(&key, Some(settings)).await.unwrap();
}

async fn put(w: &World, keys: &[&str]) -> Vec<JobId> {
    let policy = Arc::new(Partial::resolve(&[Partial::parse_line("once").unwrap()], &[]).unwrap());
    let job = |key: &&str| NewJob {
        limit_key: Some((*key).into()),
        ..NewJob::new(Kind::new("call").unwrap(), serde_json::json!(key).to_string(), policy.clone())
    };
    let stored = w.faults.enqueue(keys.iter().map(job).collect(), Atomicity::Each).await.unwrap();
    stored.iter().filter_map(windlass::low_level::stores::Enqueued::id).collect()
}

scenario! {
    async fn a_fleet_keeps_the_limits_of_queues_and_keys_and_leaves_no_slot_idle(w: World) {
        limit(&w, r#"{"limits":{"concurrency":4,"perKey":{"concurrency":2}}}"#).await;
        let jobs = put(&w, &["a", "a", "b", "c", "a", "c"].repeat(10)).await;
        let watch = Watch::default();
        let other = w.other_process();
        let workers = [&w, &other].map(|p| p.start(p.worker().handle(call).state(watch.clone()).queue("default", 20)));
        for id in jobs {
            // Either process may finish it.
            w.until("a job's end", async || w.job(id).await.state == State::Succeeded).await;
        }
        for worker in workers {
            worker.stop().await;
        }
        let seen = watch.lock().unwrap();
        assert_eq!(seen.most_in_all, 4);
        assert!(seen.most.values().all(|most| *most <= 2), "{seen:?}");
    }

    async fn a_rate_starts_jobs_when_their_time_has_come(w: World) {
        limit(&w, r#"{"limits":{"rate":"1/10s","burst":1}}"#).await;
        let jobs = put(&w, &["a"; 4]).await;
        let worker = w.start(w.worker().handle(call).state(Watch::default()).queue("default", 20));
        w.finished(jobs[0]).await;
        let began = w.clock.now();
        for id in &jobs[1..] {
            w.pass_until_finished(*id).await;
        }
        worker.stop().await;
        let took = w.clock.now().since(began);
        assert!((Millis::from_secs(29)..=Millis::from_secs(33)).contains(&took), "{took}");
    }

    async fn a_held_key_starts_when_its_hold_ends(w: World) {
        let until = w.clock.now() + Millis::from_secs(40);
        let hold = Hold { since: w.clock.now(), until, origin: HoldOrigin::RetryAfter, reason: String::new() };
        let queue = QueueName::new("default").unwrap();
        let gate = GateName { tenant: Some(Tenant::default()), queue, key: Some("a".into()) };
        w.faults.put_hold(&gate, Some(&hold)).await.unwrap();
        let jobs = put(&w, &["a", "b"]).await;
        let worker = w.start(w.worker().handle(call).state(Watch::default()).queue("default", 20));
        w.finished(jobs[1]).await;
        w.pass_until_finished(jobs[0]).await;
        worker.stop().await;
        let job = w.job(jobs[0]).await;
        assert!(job.claimed_at.unwrap() >= until);
        assert!(w.clock.now().since(until) <= Millis::from_secs(2));
    }

    async fn a_job_behind_a_full_queue_says_what_it_waits_for(w: World) {
        limit(&w, r#"{"limits":{"concurrency":1}}"#).await;
        let jobs = put(&w, &["a", "b", "c"]).await;
        let shut = Arc::new(Semaphore::new(0));
        let blocked = |_: Call, attempt: Attempt| async move {
            let _ = attempt.state::<Arc<Semaphore>>().acquire().await;
            Ok::<(), Failure>(())
        };
        let worker = w.start(w.worker().handle(blocked).state(shut.clone()).queue("default", 20));
        w.until("the first job's start", async || w.job(jobs[0]).await.state == State::Running).await;
        let waiting = [w.job(jobs[1]).await, w.job(jobs[2]).await];
        let found = w.windlass.jobs().waiting(&waiting).await.unwrap();
        for id in &jobs[1..] {
            assert_eq!(found[id].waiting_for, WaitingFor::Concurrency);
        }
        shut.close();
        for id in jobs {
            w.finished(id).await;
        }
        worker.stop().await;
    }
}

//! A store that nodes with different key rings share: what one cannot open is not lost, and does not stop the others.

#![cfg(feature = "sealing")]

use super::world;
use crate::world::*;
use std::sync::Arc;
use windlass::core::attempt::Status;
use windlass::core::{Delivery, Failure, JobId, Outcome, State};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob};
use windlass::low_level::stores::{
    Atomicity, DeadRuns, JobFilter, Missed, NodeSetting, Overlap, Recurrence, ScheduleChange, ScheduleSpec, Scope,
    SettingKey, Store, StoreError,
};
use windlass::{KeyRing, Random};

/// A node with these keys.
fn node(w: &World, names: &[&str]) -> Arc<dyn Store> {
    let seed = |name: &str| Random::seeded(name.bytes().map(u64::from).sum());
    let lines: Vec<String> = names.iter().map(|name| KeyRing::generate(name, &seed(name))).collect();
    windlass::low_level::sealed(w.store.clone(), KeyRing::parse(&lines.join("\n")).unwrap(), Random::seeded(5))
}

fn registered(name: &str) -> SettingKey {
    SettingKey::Server { name: format!("sealing:{name}") }
}

/// Two jobs that are sealed with `b`, which nothing says any more, and two that are sealed with `a`.
async fn mixed(w: &World) -> (Vec<JobId>, Vec<JobId>) {
    let put = async |names: &[&str], jobs: Vec<NewJob>| {
        let stored = node(w, names).enqueue(jobs, Atomicity::Each).await.unwrap();
        stored.iter().map(|one| one.id().unwrap()).collect::<Vec<JobId>>()
    };
    let once = NewJob { delivery: Delivery::AtMostOnce, ..job() };
    let unopened = put(&["b"], vec![once, job()]).await;
    w.store.put_setting(&registered("b"), None).await.unwrap();
    (unopened, put(&["a"], vec![job(), job()]).await)
}

/// Commits the jobs that were handed out, as a worker does, with the end of their lease.
async fn end(w: &World, node: &Arc<dyn Store>, jobs: &[ClaimedJob], lease: LeaseId) {
    let commits = jobs.iter().map(|job| w.commit_of(job, &Outcome::Succeeded)).collect();
    node.commit(commits, vec![lease]).await.unwrap().iter().for_each(assert_applied);
}

async fn assert_they_wait_and_run_with_the_key(w: &World, unopened: &[JobId]) {
    for id in unopened {
        let job = w.get(*id).await;
        assert_eq!((job.state, job.failures, job.crashes), (State::Queued, 0, 0), "{job:?}");
        assert!(job.due_at > w.now(), "it does not spin");
        let attempt = w.ledger(*id).await.pop().unwrap();
        assert_eq!(attempt.status, Status::Released);
        assert!(attempt.note.unwrap().contains("the key `b`, which is not in this node's key ring"));
    }
    w.advance(LEASE + SECOND);
    assert!(w.reap().await.is_empty(), "nothing was lost");
    let request = w.request(&["default"], 10).await;
    let claimed = node(w, &["a", "b"]).claim(request).await.unwrap();
    let mut ran = ids(&claimed);
    ran.sort();
    assert_eq!(ran, unopened);
    assert!(claimed.jobs.iter().all(|job| &*job.payload == r#"{"to":"ann"}"#));
}

#[tokio::test]
async fn claimed_jobs_that_cannot_be_opened_wait_again_and_the_others_of_their_claim_end() {
    let w = world().await;
    let (unopened, good) = mixed(&w).await;
    let node = node(&w, &["a"]);
    let claimed = node.claim(w.request(&["default"], 10).await).await.unwrap();
    assert_eq!(ids(&claimed), good);
    end(&w, &node, &claimed.jobs, claimed.jobs[0].lease).await;
    assert_they_wait_and_run_with_the_key(&w, &unopened).await;
}

#[tokio::test]
async fn the_same_holds_for_a_claim_whose_answer_was_lost() {
    let w = world().await;
    let (unopened, good) = mixed(&w).await;
    let lease = w.claim(&["default"], 10).await.jobs[0].lease;
    let node = node(&w, &["a"]);
    let held = node.held(vec![lease]).await.unwrap();
    let mut found: Vec<JobId> = held.iter().map(|job| job.id).collect();
    found.sort();
    assert_eq!(found, good);
    end(&w, &node, &held, lease).await;
    assert_they_wait_and_run_with_the_key(&w, &unopened).await;
}

#[tokio::test]
async fn a_claimed_job_that_cannot_be_opened_and_is_to_be_cancelled_ends() {
    let w = world().await;
    let (unopened, _) = mixed(&w).await;
    let lease = w.claim(&["default"], 10).await.jobs[0].lease;
    w.store.cancel(&Scope::All, vec![unopened[0]]).await.unwrap();
    node(&w, &["a"]).held(vec![lease]).await.unwrap();
    assert_eq!(w.get(unopened[0]).await.state, State::Cancelled);
    assert_eq!(w.get(unopened[1]).await.state, State::Queued);
}

#[tokio::test]
async fn a_list_shows_what_is_in_clear_of_jobs_that_cannot_be_opened() {
    let w = world().await;
    let (unopened, good) = mixed(&w).await;
    let node = node(&w, &["a"]);
    let jobs = node.jobs(&Scope::All, &JobFilter::default(), all()).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [unopened.clone(), good].concat());
    assert_eq!(jobs[0].kind, job().kind);
    assert_eq!(&*jobs[0].payload, r#""(sealed with the key `b`, which is not in this node's key ring)""#);
    assert_eq!(&*jobs[2].payload, r#"{"to":"ann"}"#);
    let one = node.job(&Scope::All, unopened[0]).await;
    assert!(matches!(&one, Err(error @ StoreError::Sealed(_)) if !error.is_outage()), "{one:?}");
}

fn spec() -> ScheduleSpec {
    ScheduleSpec {
        tenant: Default::default(),
        cadence: "* * * * *".into(),
        zone: "UTC".into(),
        recurrence: Recurrence::Recurring,
        overlap: Overlap::Skip,
        missed: Missed::One,
        dead_letters: DeadRuns::Latest,
        template: job(),
    }
}

#[tokio::test]
async fn a_schedule_that_cannot_be_opened_does_not_keep_others_from_firing() {
    let w = world().await;
    let sealed = node(&w, &["b"]).add_schedule(spec(), Some(START)).await.unwrap();
    w.store.put_setting(&registered("b"), None).await.unwrap();
    let node = node(&w, &["a"]);
    let good = node.add_schedule(spec(), Some(START)).await.unwrap();
    w.advance(SECOND);
    let (due, next) = node.due_schedules(10).await.unwrap();
    assert_eq!((due.iter().map(|schedule| schedule.id).collect::<Vec<_>>(), next), (vec![good.id], None));
    let read = node.schedule(&Scope::All, sealed.id).await;
    assert!(matches!(&read, Err(error) if !error.is_outage()), "{read:?}");
}

fn webhook() -> (SettingKey, &'static str) {
    let text = r#"{"webhook":{"url":"https://example.com/?key=1","secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}"#;
    (SettingKey::Tenant { name: tenant("acme") }, text)
}

#[tokio::test]
async fn a_node_with_the_wrong_ring_seals_nothing() {
    let w = world().await;
    let right = node(&w, &["a"]);
    let schedule = right.add_schedule(spec(), None).await.unwrap();
    right.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    let wrong = node(&w, &["b"]);
    let (key, text) = webhook();
    let named = NodeSetting { key: key.clone(), value: text.into(), origin: "here".into() };
    let change = ScheduleChange { spec: Some(spec()), paused: None, next_at: None };
    let refusals = [
        wrong.put_setting(&key, Some(text)).await.unwrap_err(),
        wrong.put_node_settings("n", &[named]).await.unwrap_err(),
        wrong.change_schedule(&Scope::All, schedule.id, change).await.unwrap_err(),
        {
            let running = w.claim_one().await;
            let commit = w.commit_of(&running, &Outcome::Failed(Failure::new("boom")));
            wrong.commit(vec![commit], vec![]).await.unwrap_err()
        },
    ];
    for refused in refusals {
        assert!(refused.to_string().contains("the key `a`, which is not in this node's key ring"), "{refused}");
    }
    let settings = w.store.settings().await.unwrap();
    assert!(settings.iter().all(|(key, text)| *key != registered("b") && !text.contains("sealed")), "{settings:?}");
}

#[tokio::test]
async fn a_key_is_registered_before_anything_is_sealed_with_it() {
    let w = world().await;
    let (key, text) = webhook();
    node(&w, &["a"]).put_setting(&key, Some(text)).await.unwrap();
    let settings = w.store.settings().await.unwrap();
    assert!(settings.iter().any(|(key, _)| *key == registered("a")), "{settings:?}");
    assert!(settings.iter().any(|(of, text)| *of == key && text.contains("windlass:sealed:")), "{settings:?}");
}

#[tokio::test]
async fn keys_that_are_registered_at_once_are_all_in_use() {
    let w = world().await;
    let names = ["a", "b", "c", "d"];
    let stored = names.map(|name| {
        let node = node(&w, &[name]);
        async move { node.enqueue(vec![job()], Atomicity::Each).await.is_ok() }
    });
    let stored = futures_util::future::join_all(stored).await;
    let settings = w.store.settings().await.unwrap();
    for (name, _) in names.iter().zip(stored).filter(|(_, is_stored)| *is_stored) {
        assert!(settings.iter().any(|(key, _)| *key == registered(name)), "{name}: {settings:?}");
    }
}

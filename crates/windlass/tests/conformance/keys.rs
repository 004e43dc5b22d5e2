use super::world;
use crate::world::*;
use windlass::core::Millis;
use windlass::core::job::Kind;
use windlass::low_level::job::{DEFAULT_KEY_WINDOW, Idempotency, KeyWindow, NewJob};
use windlass::low_level::stores::{Atomicity, Enqueued, KeyedJob, SettingKey};

fn keyed(key: &str) -> NewJob {
    let idempotency = Idempotency { key: key.into(), window: KeyWindow::For(DEFAULT_KEY_WINDOW) };
    NewJob { idempotency: Some(idempotency), ..job() }
}

#[tokio::test]
async fn a_repeated_key_returns_the_first_job() {
    let w = world().await;
    let id = w.put(keyed("k")).await;
    assert_eq!(w.try_put(keyed("k")).await, Enqueued::Existing(id));
    assert_eq!(w.get(id).await.idempotency_key.as_deref(), Some("k"));
    assert_eq!(w.list(Default::default()).await, [id]);
}

#[tokio::test]
async fn payloads_are_compared_as_json_values() {
    let w = world().await;
    let id = w.put(NewJob { payload: r#"{"a":1,"b":[2]}"#.into(), ..keyed("k") }).await;
    let spaced = NewJob { payload: r#"{ "b" : [ 2 ], "a" : 1 }"#.into(), ..keyed("k") };
    assert_eq!(w.try_put(spaced).await, Enqueued::Existing(id));
}

#[tokio::test]
async fn the_same_key_with_another_payload_or_kind_is_a_conflict() {
    let w = world().await;
    let id = w.put(keyed("k")).await;
    let other = NewJob { payload: "2".into(), ..keyed("k") };
    assert_eq!(w.try_put(other).await, Enqueued::KeyConflict(id));
    let other = NewJob { kind: Kind::new("sms").unwrap(), ..keyed("k") };
    assert_eq!(w.try_put(other).await, Enqueued::KeyConflict(id));
    assert_eq!(w.list(Default::default()).await, [id]);
}

#[tokio::test]
async fn keys_are_separate_for_each_tenant() {
    let w = world().await;
    let first = w.put(keyed("k")).await;
    let second = w.put(NewJob { tenant: tenant("acme"), ..keyed("k") }).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_key_is_valid_for_its_window_even_after_the_job_has_finished() {
    let w = world().await;
    let id = w.put(keyed("k")).await;
    w.succeed(&w.claim_one().await).await;
    w.advance(DEFAULT_KEY_WINDOW - Millis::new(1));
    assert_eq!(w.try_put(keyed("k")).await, Enqueued::Existing(id));
    w.advance(Millis::new(1));
    let second = w.put(keyed("k")).await;
    assert_ne!(second, id);
    assert_eq!(w.try_put(keyed("k")).await, Enqueued::Existing(second));
}

#[tokio::test]
async fn a_live_key_is_valid_while_its_job_is_live() {
    let w = world().await;
    let live = || NewJob {
        idempotency: Some(Idempotency { key: "k".into(), window: KeyWindow::Live }),
        ..job()
    };
    let id = w.put(live()).await;
    w.advance(DEFAULT_KEY_WINDOW + DEFAULT_KEY_WINDOW);
    assert_eq!(w.try_put(live()).await, Enqueued::Existing(id));
    let running = w.claim_one().await;
    assert_eq!(w.try_put(live()).await, Enqueued::Existing(id));
    w.fail(&running).await;
    assert_eq!(w.try_put(live()).await, Enqueued::Existing(id), "retrying is live");
    w.advance(Millis::from_secs(10));
    w.succeed(&w.claim_one().await).await;
    assert_ne!(w.put(live()).await, id);
}

#[tokio::test]
async fn a_key_twice_in_one_batch_is_one_job() {
    let w = world().await;
    let batch = vec![keyed("k"), job(), keyed("k"), NewJob { payload: "2".into(), ..keyed("k") }];
    let stored = w.store.enqueue(batch, Atomicity::Each).await.unwrap();
    let first = stored[0].id().unwrap();
    assert_eq!(stored[2], Enqueued::Existing(first));
    assert_eq!(stored[3], Enqueued::KeyConflict(first));
    assert_eq!(w.list(Default::default()).await.len(), 2);
}

#[tokio::test]
async fn one_conflict_in_an_all_or_nothing_batch_stores_nothing() {
    let w = world().await;
    let id = w.put(keyed("k")).await;
    let batch = vec![job(), NewJob { payload: "2".into(), ..keyed("k") }, keyed("k")];
    let stored = w.store.enqueue(batch, Atomicity::All).await.unwrap();
    assert_eq!(stored, [Enqueued::NotStored, Enqueued::KeyConflict(id), Enqueued::Existing(id)]);
    assert_eq!(w.list(Default::default()).await, [id]);
}

#[tokio::test]
async fn racing_callers_with_one_key_make_one_job() {
    let w = world().await;
    let other = w.reopened().await;
    let calls: Vec<_> = (0..16)
        .map(|i| {
            let store = if i % 2 == 0 { w.store.clone() } else { other.clone() };
            tokio::spawn(async move { store.enqueue(vec![keyed("k")], Atomicity::Each).await.unwrap().remove(0) })
        })
        .collect();
    let mut created = 0;
    for call in calls {
        match call.await.unwrap() {
            Enqueued::Created { .. } => created += 1,
            Enqueued::Existing(_) => {}
            Enqueued::KeyConflict(_) | Enqueued::Refused(_) | Enqueued::OverQuota(_) | Enqueued::NotStored => panic!("the key is the same"),
        }
    }
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_key_outlives_a_job_that_its_queue_does_not_keep() {
    let w = world().await;
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(r#"{"retention":{"succeeded":"0"}}"#)).await.unwrap();
    let id = w.put(keyed("k")).await;
    w.succeed(&w.claim_one().await).await;
    assert!(w.find(id).await.is_none());
    w.store.prune().await.unwrap();
    assert_eq!(w.try_put(keyed("k")).await, Enqueued::Existing(id));
}

#[tokio::test]
async fn a_live_job_is_found_by_its_key_with_the_lease_it_runs_under() {
    let w = world().await;
    let live = |key: &str| NewJob { idempotency: Some(Idempotency { key: key.into(), window: KeyWindow::Live }), ..job() };
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), None);
    let id = w.put(live("k")).await;
    let waiting = KeyedJob { job: id, lease: None };
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), Some(waiting));
    assert_eq!(w.store.keyed(&tenant("acme"), "k").await.unwrap(), None);
    assert_eq!(w.store.keyed(&tenant("default"), "K").await.unwrap(), None);
    let claimed = w.claim_one().await;
    let running = KeyedJob { job: id, lease: Some(claimed.lease) };
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), Some(running));
    // However old the key is.
    w.advance(Millis::from_secs(100 * 86_400));
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), Some(running));
    w.fail(&claimed).await;
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), Some(waiting));
    w.advance(DEFAULT_KEY_WINDOW);
    w.succeed(&w.claim_one().await).await;
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), None);
    let second = w.put(live("k")).await;
    assert_eq!(w.store.keyed(&tenant("default"), "k").await.unwrap(), Some(KeyedJob { job: second, lease: None }));
}

#[tokio::test]
async fn pruning_removes_no_key_that_is_valid() {
    let w = world().await;
    let prune = async || while w.store.prune().await.unwrap() > 0 {};
    let live = || NewJob { idempotency: Some(Idempotency { key: "live".into(), window: KeyWindow::Live }), ..job() };
    let windowed = w.put(keyed("k")).await;
    w.succeed(&w.claim_one().await).await;
    w.advance(DEFAULT_KEY_WINDOW - Millis::new(1));
    let id = w.put(live()).await;
    prune().await;
    assert_eq!(w.try_put(keyed("k")).await, Enqueued::Existing(windowed), "its window has not passed");
    assert_eq!(w.try_put(live()).await, Enqueued::Existing(id), "its job waits");
    let running = w.claim_one().await;
    prune().await;
    assert_eq!(w.try_put(live()).await, Enqueued::Existing(id), "its job runs");
    w.fail(&running).await;
    prune().await;
    assert_eq!(w.try_put(live()).await, Enqueued::Existing(id), "its job will be tried again");
}

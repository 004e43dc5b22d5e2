//! A store that nodes with different key rings share: what one cannot open is not lost, and does not stop the others.

#![cfg(feature = "sealing")]

use super::world;
use crate::world::*;
use std::sync::Arc;
use windlass::core::{Failure, Outcome};
use windlass::low_level::stores::{
    Atomicity, DeadRuns, Missed, NodeSetting, Overlap, Recurrence, ScheduleChange, ScheduleSpec, Scope,
    SettingKey, Store,
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

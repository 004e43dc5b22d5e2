//! What belongs to the installation: settings, tokens, audit, alerts, workers, health.

use super::world;
use crate::client;
use windlass::core::Millis;
use windlass::client::{SettingKey, Token};

#[tokio::test]
async fn settings_tokens_and_audit_are_kept() {
    let w = world().await;
    let windlass = client(&w);
    let key = SettingKey::Kind { name: "email".into() };
    windlass.settings().put(&key, r#"{"policy":"stepped"}"#).await.unwrap();
    assert_eq!(windlass.settings().all().await.unwrap(), [(key.clone(), r#"{"policy":"stepped"}"#.to_owned())]);
    windlass.settings().remove(&key).await.unwrap();
    assert!(windlass.settings().all().await.unwrap().is_empty());

    let token = Token {
        id: "t1".into(),
        name: "ops".into(),
        hash: [7; 32],
        scopes: vec!["admin".into()],
        tenant: None,
        queues: None,
        created_at: w.now(),
        expires_at: None,
        revoked_at: None,
    };
    windlass.tokens().add(&token).await.unwrap();
    assert_eq!(windlass.tokens().list().await.unwrap(), [token]);
    assert!(windlass.tokens().revoke("t1").await.unwrap());
    assert!(!windlass.tokens().revoke("t1").await.unwrap());

    windlass.audit().record("import", 3, "three").await.unwrap();
    let line = &windlass.audit().latest(5).await.unwrap()[0];
    assert_eq!((line.at, line.by.as_str(), line.count), (w.now(), "library", 3));
    assert!(windlass.alerts().list().await.unwrap().is_empty());
    assert!(windlass.workers().seen_within(Millis::from_secs(60)).await.unwrap().is_empty());
    windlass.migrate().await.unwrap();
    assert!(!windlass.health().await.unwrap().engine.is_empty());
    assert!(windlass.transfer().backup("nowhere.db").await.is_err(), "only a store opened by its URL is copied");
}

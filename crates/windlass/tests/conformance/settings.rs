use super::world;
use crate::world::*;
use windlass::low_level::stores::{NODE_FOR, NodeSetting, Presence, SettingKey, SettingSource};

fn key(name: &str) -> SettingKey {
    SettingKey::Kind { name: name.into() }
}

fn named(name: &str, value: &str) -> NodeSetting {
    NodeSetting { key: key(name), value: value.into(), origin: format!("windlass.toml:{value}") }
}

async fn in_force(w: &World) -> Vec<(String, String)> {
    let name = |key: SettingKey| key.parts().2.to_owned();
    w.store.settings().await.unwrap().into_iter().map(|(key, value)| (name(key), value)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn what_a_node_no_longer_names_is_removed_and_what_an_operator_set_stays() {
    let w = world().await;
    w.store.put_setting(&key("operators"), Some("1")).await.unwrap();
    w.store.put_node_settings("a", &[named("x", "1"), named("y", "1")]).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("operators", "1"), ("x", "1"), ("y", "1")]));
    w.store.put_node_settings("a", &[named("y", "2")]).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("operators", "1"), ("y", "2")]));
    let stored = w.store.stored_settings().await.unwrap();
    let source = |name: &str| stored.iter().find(|setting| setting.key == key(name)).unwrap().source.clone();
    assert_eq!(source("operators"), SettingSource::Operator);
    assert_eq!(source("y"), SettingSource::Node { node: "a".into(), origin: "windlass.toml:2".into() });
}

#[tokio::test]
async fn what_an_operator_set_stays_however_long_ago() {
    let w = world().await;
    w.store.put_setting(&key("operators"), Some("1")).await.unwrap();
    w.advance(NODE_FOR + NODE_FOR);
    w.store.put_node_settings("a", &[named("x", "1")]).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("operators", "1"), ("x", "1")]));
}

#[tokio::test]
async fn an_operators_value_beats_files_until_it_is_removed() {
    let w = world().await;
    w.store.put_setting(&key("x"), Some("operator")).await.unwrap();
    w.advance(SECOND);
    w.store.put_node_settings("a", &[named("x", "file")]).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("x", "operator")]));
    w.store.put_setting(&key("x"), None).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("x", "file")]));
}

#[tokio::test]
async fn a_setting_goes_when_no_live_node_names_it_and_the_node_started_last_decides() {
    let w = world().await;
    w.store.put_node_settings("a", &[named("x", "old"), named("only-a", "1")]).await.unwrap();
    w.advance(SECOND);
    w.store.put_node_settings("b", &[named("x", "new")]).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("only-a", "1"), ("x", "new")]));
    w.advance(NODE_FOR);
    w.store.touch_node("a", Presence::Alive).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("only-a", "1"), ("x", "new")]), "b was seen a minute ago, not longer");
    w.advance(SECOND);
    w.store.touch_node("a", Presence::Alive).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[("only-a", "1"), ("x", "old")]), "b is gone, a is alive");
    w.store.touch_node("a", Presence::Leaving).await.unwrap();
    assert_eq!(in_force(&w).await.len(), 2, "producers still follow the settings of the last node");
    w.store.put_node_settings("c", &[]).await.unwrap();
    assert_eq!(in_force(&w).await, pairs(&[]));
}

#[tokio::test]
async fn an_installation_keeps_the_id_that_was_drawn_for_it() {
    let (w, other) = (world().await, world().await);
    let id = w.store.installation().await.unwrap();
    assert!(id.len() >= 12 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(w.reopened().await.installation().await.unwrap(), id);
    assert_ne!(other.store.installation().await.unwrap(), id);
}

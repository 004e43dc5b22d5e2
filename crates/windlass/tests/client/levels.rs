//! Every preset and every strategy at every level of policy.

use super::world;
use crate::client;
use serde_json::json;
use windlass::Windlass;
use windlass::client::SettingKey;
use windlass::core::Policy;
use windlass::core::job::Tenant;
use windlass::core::policy::{PRESETS, Partial, Role};

const LINES: &[&str] = &[
    "exponential:base=5s,factor=3,cap=10m,jitter=equal,retries=7",
    "linear:base=5s,jitter=none",
    "fixed:base=5s,retries=1",
    "fibonacci:base=5s,jitter=full",
    "steps:1s/5s/30s",
    "steps:1s/5s/30s,retries=9,cap=20s",
    "full-jitter:retries=9",
    "once:retries=1",
];

fn lines() -> impl Iterator<Item = String> {
    PRESETS.iter().map(|preset| preset.name.to_owned()).chain(LINES.iter().map(|line| (*line).to_owned()))
}

/// What a line alone means.
fn meant(line: &str, role: Role) -> Policy {
    Partial::resolve(&[Partial::parse_line(line).unwrap()], &role.default_give_up_on()).unwrap()
}

fn levels(kind: &str, queue: &str) -> [SettingKey; 4] {
    [
        SettingKey::Server { name: "defaults".into() },
        SettingKey::Queue { tenant: None, name: queue.into() },
        SettingKey::Queue { tenant: Some(Tenant::default()), name: queue.into() },
        SettingKey::Kind { name: kind.into() },
    ]
}

async fn stored(windlass: &Windlass, retry: Option<&str>) -> Policy {
    let job = windlass.enqueue_kind("work", &json!({})).queue("plain");
    let id = if let Some(retry) = retry { job.retry(retry).await } else { job.await }.unwrap();
    (*windlass.jobs().get(id).await.unwrap().unwrap().policy).clone()
}

#[tokio::test]
async fn every_policy_is_valid_at_every_level() {
    let w = world().await;
    let windlass = client(&w);
    let settings = windlass.settings();
    for line in lines() {
        let expected = meant(&line, Role::Handler);
        let value = json!({ "policy": line }).to_string();
        for key in levels("work", "plain") {
            settings.put(&key, &value).await.unwrap();
            settings.check().await.unwrap();
            assert_eq!(stored(&windlass, None).await, expected, "{line} at {key:?}");
            settings.remove(&key).await.unwrap();
        }
        let named = SettingKey::Policy { name: "ours".into() };
        settings.put(&named, &json!(line).to_string()).await.unwrap();
        assert_eq!(stored(&windlass, Some("ours")).await, expected, "{line} by a name");
        settings.remove(&named).await.unwrap();
        assert_eq!(stored(&windlass, Some(line.as_str())).await, expected, "{line} by the job itself");
    }
}

#[tokio::test]
async fn the_nearer_of_two_levels_decides_whatever_their_strategies() {
    let w = world().await;
    let windlass = client(&w);
    let settings = windlass.settings();
    let keys = levels("work", "plain");
    for far in ["stepped", "fibonacci", "once", "exponential"] {
        for near in ["stepped", "fixed", "once", "full-jitter"] {
            for pair in keys.windows(2) {
                settings.put(&pair[0], &json!({ "policy": far }).to_string()).await.unwrap();
                settings.put(&pair[1], &json!({ "policy": near }).to_string()).await.unwrap();
                settings.check().await.unwrap();
                assert_eq!(stored(&windlass, None).await, meant(near, Role::Handler), "{near} over {far} at {pair:?}");
                for key in pair {
                    settings.remove(key).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn settings_under_which_jobs_could_not_be_stored_are_found() {
    let w = world().await;
    let windlass = client(&w);
    let settings = windlass.settings();
    let [_, queue, _, kind] = levels("work", "plain");
    settings.put(&queue, r#"{"policy":"stepped"}"#).await.unwrap();
    settings.put(&kind, r#"{"policy":{"base":"5s"}}"#).await.unwrap();
    let reported = settings.check().await.unwrap_err().to_string();
    assert!(reported.contains("`work`") && reported.contains("`plain`") && reported.contains("base"), "{reported}");
    windlass.enqueue_kind("work", &json!({})).queue("plain").await.unwrap_err();
}

#[tokio::test]
async fn deliveries_follow_their_queue_and_kind() {
    let w = world().await;
    let windlass = client(&w);
    let settings = windlass.settings();
    let webhook = json!({ "url": "https://a.example/done" });
    let completed = async || {
        let catalogue = windlass.catalogue().await.unwrap();
        let draft = catalogue.read_webhook(&webhook).unwrap();
        (*catalogue.complete_webhook(&draft, &Tenant::default()).unwrap().policy).clone()
    };
    assert_eq!(completed().await, meant("stepped", Role::Delivery));
    for line in lines() {
        for key in &levels("webhook", "webhooks")[1..] {
            settings.put(key, &json!({ "policy": line }).to_string()).await.unwrap();
            assert_eq!(completed().await, meant(&line, Role::Delivery), "{line} at {key:?}");
            settings.remove(key).await.unwrap();
        }
    }
}

//! Named policies: presets and the operator's own.

use super::world;
use crate::client;
use serde_json::json;
use windlass::client::PolicyFault;
use windlass::core::Millis;

#[tokio::test]
async fn a_named_policy_is_kept_previewed_and_used() {
    let w = world().await;
    let windlass = client(&w);
    let policies = windlass.policies();
    let presets = policies.list().await.unwrap();
    assert!(presets.iter().all(windlass::client::NamedPolicy::is_preset));
    policies.put("gentle", "fixed:base=10s,jitter=none,cap=none,retries=3").await.unwrap();
    let all = policies.list().await.unwrap();
    assert_eq!((all.len(), all.last().unwrap().name.as_str()), (presets.len() + 1, "gentle"));
    let preview = policies.preview("gentle", None).await.unwrap();
    assert_eq!(preview.delays.iter().map(|one| one.total).max(), Some(Millis::from_secs(30)));
    assert_eq!(policies.explain("gentle").await.unwrap(), policies.get("gentle").await.unwrap().unwrap().explain());
    let id = windlass.enqueue_kind("email", &json!({})).retry("gentle").await.unwrap();
    assert_eq!(windlass.jobs().get(id).await.unwrap().unwrap().policy.max_retries, 3);
    assert!(policies.remove("gentle").await.unwrap());
    assert!(!policies.remove("gentle").await.unwrap());
    assert!(policies.get("gentle").await.unwrap().is_none());
}

#[tokio::test]
async fn presets_stay_and_wrong_policies_are_refused() {
    let w = world().await;
    let windlass = client(&w);
    let policies = windlass.policies();
    let error = policies.put("full-jitter", "stepped").await.unwrap_err();
    assert!(matches!(error, PolicyFault::Preset(_)), "{error}");
    assert!(matches!(policies.remove("stepped").await.unwrap_err(), PolicyFault::Preset(_)));
    let error = policies.put("mine", "fixed:bse=1s").await.unwrap_err();
    assert!(matches!(error, PolicyFault::Policy(_)), "{error}");
    assert!(matches!(policies.preview("no-such", None).await.unwrap_err(), PolicyFault::Policy(_)));
    assert!(windlass.settings().all().await.unwrap().is_empty());
}

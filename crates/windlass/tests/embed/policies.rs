//! The default policy of a program.

use serde::{Deserialize, Serialize};
use windlass::core::policy::Partial;
use windlass::low_level::stores::SettingKey;
use windlass::{JobKind, OpenError, Policy, Windlass};

#[derive(Serialize, Deserialize, JobKind)]
struct Plain;

#[derive(Serialize, Deserialize, JobKind)]
#[job(retry = "once")]
struct Careful;

async fn policy_of<J: JobKind>(windlass: &Windlass, job: J) -> Policy {
    let id = windlass.enqueue(job).await.unwrap();
    (*windlass.jobs().get(id).await.unwrap().unwrap().policy).clone()
}

#[tokio::test]
async fn jobs_that_name_no_policy_use_the_programs_default() {
    let windlass = Windlass::builder("memory:").default_policy("steps:7s/8s").open().await.unwrap();
    assert_eq!(policy_of(&windlass, Plain).await.max_retries, 2);
    assert_eq!(policy_of(&windlass, Careful).await.max_retries, 0);
    let typed = Partial { max_retries: Some(9), ..Partial::parse_line("full-jitter").unwrap() };
    let windlass = Windlass::builder("memory:").default_policy(typed).open().await.unwrap();
    assert_eq!(policy_of(&windlass, Plain).await.max_retries, 9);
}

#[tokio::test]
async fn a_default_that_the_operator_keeps_in_the_store_wins() {
    let windlass = Windlass::builder("memory:").default_policy("steps:7s/8s").open().await.unwrap();
    let key = SettingKey::Server { name: "defaults".into() };
    windlass.settings().put(&key, r#"{"policy":"steps:1s/2s/3s"}"#).await.unwrap();
    assert_eq!(policy_of(&windlass, Plain).await.max_retries, 3);
}

#[tokio::test]
async fn a_wrong_default_policy_is_refused_when_opening() {
    let error = Windlass::builder("memory:").default_policy("no-such-policy").open().await.unwrap_err();
    assert!(matches!(error, OpenError::Policy(_)), "{error:?}");
    assert!(error.to_string().contains("no-such-policy"), "{error}");
}

//! Handlers that return errors of other crates.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass::testing::TestKit;
use windlass::{Attempt, BoxError, Failure, JobKind, Reason, State, snooze};

#[derive(Serialize, Deserialize, JobKind)]
struct Do(String);

async fn act(Do(what): Do, attempt: Attempt) -> anyhow::Result<()> {
    if attempt.number() > 1 {
        return Ok(());
    }
    match what.as_str() {
        "parse" => drop("seven".parse::<u32>().context("reading the amount")?),
        "permanent" => Err(Failure::permanent("no such card").class("CardError")).context("charging")?,
        #[cfg(feature = "anyhow")]
        "snooze" => Err(snooze(Duration::from_secs(60)))?,
        _ => anyhow::bail!("unknown: {what}"),
    }
    Ok(())
}

async fn first_error(what: &str) -> (String, String, State, Option<Reason>) {
    let kit = TestKit::new().handle(act);
    let id = kit.windlass().enqueue(Do(what.into())).await.unwrap();
    kit.run_until_idle().await;
    let (first, job) = (kit.history(id).await.remove(0), kit.job(id).await);
    (first.error_class.unwrap_or_default(), first.error.unwrap_or_default(), job.state, job.reason)
}

#[tokio::test]
async fn an_anyhow_error_is_a_retryable_failure_that_names_its_causes() {
    let (class, message, state, _) = first_error("parse").await;
    assert_eq!((class.as_str(), state), ("Error", State::Succeeded));
    assert_eq!(message, "reading the amount: invalid digit found in string");
}

#[cfg(feature = "anyhow")]
#[tokio::test]
async fn a_failure_inside_an_anyhow_error_keeps_its_class_and_advice() {
    let (class, message, state, reason) = first_error("permanent").await;
    assert_eq!((class.as_str(), message.as_str()), ("CardError", "charging: no such card"));
    assert_eq!((state, reason), (State::Failed, Some(Reason::Permanent)));
}

#[cfg(feature = "anyhow")]
#[tokio::test]
async fn an_anyhow_handler_may_snooze() {
    let (class, _, state, _) = first_error("snooze").await;
    assert_eq!((class.as_str(), state), ("", State::Succeeded));
}

#[tokio::test]
async fn a_handler_may_return_boxed_errors_and_texts() {
    #[derive(Serialize, Deserialize, JobKind)]
    struct Boxed;
    #[derive(Serialize, Deserialize, JobKind)]
    struct Text;
    async fn boxed(_: Boxed, _: Attempt) -> Result<(), BoxError> {
        Err(snooze(Duration::from_secs(1))).or(Err(Failure::permanent("no").class("Refused")))?
    }
    async fn text(_: Text, _: Attempt) -> Result<(), &'static str> {
        Err("no luck")
    }
    let kit = TestKit::new().handle(boxed).handle(text);
    let boxed = kit.windlass().enqueue(Boxed).await.unwrap();
    let text = kit.windlass().enqueue(Text).retry("once").await.unwrap();
    kit.run_until_idle().await;
    assert_eq!(kit.job(boxed).await.reason, Some(Reason::Permanent));
    assert_eq!(kit.history(boxed).await[0].error_class.as_deref(), Some("Refused"));
    assert_eq!(kit.history(text).await[0].error.as_deref(), Some("no luck"));
}

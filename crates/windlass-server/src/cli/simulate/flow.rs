//! Reads the flags of `simulate` that are about flow control. They are read as the settings of a queue are.

use super::Args;
use crate::cli::Error;
use serde_json::{Map, Value, json};
use windlass_core::Flow;
use windlass_core::gate::{BreakerRule, BudgetRule, Honor, Rate};

/// One `--limit`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    AtOnce(u32),
    Rate(Rate),
}

pub(super) fn limit(text: &str) -> Result<Limit, String> {
    if let Some(rate) = Rate::parse(text) {
        return Ok(Limit::Rate(rate));
    }
    let most = text.parse().ok().filter(|most| (1..=1_000_000).contains(most));
    most.map(Limit::AtOnce).ok_or_else(|| {
        "write how many calls at once, 1 to 1000000, or a rate: 100/s, 6000/1m (at most 1000000, over at most 1d)"
            .into()
    })
}

pub(super) fn breaker(text: &str) -> Result<BreakerRule, String> {
    let settings = if text == "on" { json!({"breaker": text}) } else { json!({"breaker": fields(text)?}) };
    let flow = Flow::from_value(&settings).map_err(|error| error.to_string())?;
    flow.and_then(|flow| flow.breaker()).ok_or_else(|| "write on, or fields such as minimum=5,openFor=10s".into())
}

/// `window=1m,minimum=10`
fn fields(text: &str) -> Result<Map<String, Value>, String> {
    let field = |item: &str| {
        let (name, value) = item.split_once('=').ok_or_else(|| format!("`{item}` is not name=value; or write on"))?;
        let is_count = name.trim() == "minimum";
        let value =
            value.trim().parse::<u64>().ok().filter(|_| is_count).map_or_else(|| json!(value.trim()), Value::from);
        Ok((name.trim().to_owned(), value))
    };
    text.split(',').map(field).collect()
}

pub(super) fn budget(text: &str) -> Result<BudgetRule, String> {
    let flow = Flow::from_value(&json!({"retryBudget": text})).map_err(|error| error.to_string())?;
    flow.and_then(|flow| flow.budget()).ok_or_else(|| "write a share such as 20%".into())
}

/// The settings that the flags make, and their name in the figures; none without such a flag.
pub(super) fn read(args: &Args) -> Result<Option<(String, Flow)>, Error> {
    let mut flow = Flow { honor_retry_after: Some(Honor::Job), ..Flow::default() };
    let mut names = Vec::new();
    for limit in &args.limits {
        let limits = &mut flow.per_key.limits;
        let is_new = match limit {
            Limit::AtOnce(most) => limits.concurrency.replace(*most).is_none(),
            Limit::Rate(rate) => limits.rate.replace(*rate).is_none(),
        };
        if !is_new {
            return Err(Error::BadInput("--limit: give one number and one rate at most".into()));
        }
    }
    names.extend((!args.limits.is_empty()).then_some("limit"));
    if let Some(rule) = args.breaker {
        flow.per_key.breaker = Some(rule);
        names.push("breaker");
    }
    if let Some(rule) = args.budget {
        flow.queue.budget = Some(rule);
        names.push("budget");
    }
    if args.hold {
        flow.honor_retry_after = Some(Honor::Key);
        names.push("hold");
    }
    Ok((!names.is_empty()).then(|| (names.join(", "), flow)))
}

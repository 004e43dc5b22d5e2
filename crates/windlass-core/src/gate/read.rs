//! Reads and prints a queue's flow settings as JSON. An error names the field by JSON pointer and the accepted form.

use super::flow::DEFAULT_MAX_HOLD;
use super::{Across, BreakerRule, BudgetRule, Flow, Honor, KeyBy, Limits, Rate};
use crate::backoff::Ratio;
use crate::nearest::hint;
use crate::policy::{Names, no_names};
use crate::rules::Rule;
use crate::time::Millis;
use serde_json::{Map, Value, json};
use std::fmt;

/// The fields of a queue's settings that are read here.
pub const FLOW_FIELDS: [&str; 6] = ["limits", "breaker", "retryBudget", "honorRetryAfter", "maxHold", "rules"];

const CONCURRENCY_FORM: &str = "a whole number from 1 to 1000000";
const RATE_FORM: &str = "starts per time, such as \"100/1m\" or \"5/s\" (at most 1000000, over at most 1d)";
const BURST_FORM: &str = "a whole number from 1 to 100000";
const SHARE_FORM: &str = "a share such as \"50%\" or 0.5, above 0 and at most 1";
const SPAN_FORM: &str = "a duration: 500ms, 30s, 1m30s, 2h, or whole milliseconds (1s to 1d)";
const LIMITS_FORM: &str = "an object with concurrency, rate, burst, perKey, keyBy, across";
const BREAKER_FORM: &str = "\"on\", \"off\", or an object with window, minimum, ratio, openFor, maxOpenFor";
const BUDGET_FORM: &str = "a share such as \"20%\", \"off\", or an object with share, minimum";
const MAX_COUNT: u32 = 1_000_000;

/// An invalid flow setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowError {
    /// The field as a JSON pointer, such as `/limits/perKey/rate`.
    pub pointer: String,
    /// What is wrong and what is accepted.
    pub message: String,
}

impl FlowError {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }

    pub(crate) fn refuse(pointer: &str, value: &Value, form: &str) -> Self {
        let shown: String = value.to_string().chars().take(60).collect();
        Self::new(pointer, format!("{shown} is not accepted; write {form}"))
    }
}

impl std::error::Error for FlowError {}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

impl Flow {
    /// Reads the flow settings among a queue's settings; `None` if there are none. Fields that are not about flow are
    /// left to others, and null is the same as absent.
    ///
    /// ```
    /// use windlass_core::gate::Flow;
    /// use serde_json::json;
    ///
    /// let flow = Flow::from_value(&json!({"limits": {"concurrency": 10, "rate": "100/1m"}, "breaker": "on"}))?;
    /// assert!(flow.is_some_and(|flow| flow.is_gated()));
    /// let error = Flow::from_value(&json!({"limits": {"perKey": {"rate": "fast"}}})).unwrap_err();
    /// assert_eq!(error.pointer, "/limits/perKey/rate");
    /// # Ok::<(), windlass_core::gate::FlowError>(())
    /// ```
    ///
    /// # Errors
    /// The field as a JSON pointer, what is wrong, and what is accepted.
    pub fn from_value(value: &Value) -> Result<Option<Self>, FlowError> {
        Self::from_value_with(value, &no_names)
    }

    /// The same, where a rule may also name a policy that `names` knows.
    ///
    /// # Errors
    /// The field as a JSON pointer, what is wrong, and what is accepted.
    pub fn from_value_with(value: &Value, names: Names<'_>) -> Result<Option<Self>, FlowError> {
        let given = |name: &str| value.get(name).filter(|v| !v.is_null());
        if FLOW_FIELDS.iter().all(|name| given(name).is_none()) {
            return Ok(None);
        }
        let mut flow = Self::default();
        if let Some(limits) = given("limits") {
            flow.read_limits(limits)?;
        }
        if let Some(breaker) = given("breaker") {
            flow.per_key.breaker = read_breaker(breaker)?;
        }
        if let Some(budget) = given("retryBudget") {
            flow.queue.budget = read_budget(budget)?;
        }
        if let Some(honor) = given("honorRetryAfter") {
            let known = honor.as_str().and_then(Honor::parse);
            flow.honor_retry_after =
                Some(known.ok_or_else(|| FlowError::refuse("/honorRetryAfter", honor, "\"key\" or \"job\""))?);
        }
        if let Some(longest) = given("maxHold") {
            flow.max_hold = span("/maxHold", longest)?;
        }
        if let Some(rules) = given("rules") {
            flow.rules = Rule::list_from_value("/rules", rules, names)?.into();
        }
        Ok(Some(flow))
    }

    fn read_limits(&mut self, value: &Value) -> Result<(), FlowError> {
        let fields = ["concurrency", "rate", "burst", "perKey", "keyBy", "across"];
        let object = object_of("/limits", value, &fields, LIMITS_FORM)?;
        self.queue.limits = read_limit("/limits", object)?;
        if let Some(per_key) = field(object, "perKey") {
            let form = "an object with concurrency, rate, burst";
            let inner = object_of("/limits/perKey", per_key, &["concurrency", "rate", "burst"], form)?;
            self.per_key.limits = read_limit("/limits/perKey", inner)?;
        }
        if let Some(key_by) = field(object, "keyBy") {
            let form = "\"limitKey\", \"tenant\" or \"destination\"";
            let known = key_by.as_str().and_then(KeyBy::parse);
            self.key_by = known.ok_or_else(|| FlowError::refuse("/limits/keyBy", key_by, form))?;
        }
        if let Some(across) = field(object, "across") {
            let known = across.as_str().and_then(Across::parse);
            self.across = known.ok_or_else(|| FlowError::refuse("/limits/across", across, "\"tenant\" or \"all\""))?;
        }
        Ok(())
    }

    /// The settings as JSON, with only the fields that are not at their default. [`Flow::from_value`] reads it back.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut limits = limits_value(self.queue.limits);
        let per_key = limits_value(self.per_key.limits);
        if !per_key.is_empty() {
            limits.insert("perKey".into(), Value::Object(per_key));
        }
        if self.key_by != KeyBy::LimitKey {
            limits.insert("keyBy".into(), json!(self.key_by.as_str()));
        }
        if self.across != Across::Tenant {
            limits.insert("across".into(), json!(self.across.as_str()));
        }
        let mut settings = Map::new();
        if !limits.is_empty() {
            settings.insert("limits".into(), Value::Object(limits));
        }
        if let Some(rule) = self.breaker() {
            settings.insert("breaker".into(), breaker_value(&rule));
        }
        if let Some(rule) = self.budget() {
            settings.insert("retryBudget".into(), budget_value(rule));
        }
        if let Some(honor) = self.honor_retry_after {
            settings.insert("honorRetryAfter".into(), json!(honor.as_str()));
        }
        if self.max_hold != DEFAULT_MAX_HOLD {
            settings.insert("maxHold".into(), json!(self.max_hold.to_string()));
        }
        if !self.rules.is_empty() {
            settings.insert("rules".into(), Rule::list_to_value(&self.rules));
        }
        Value::Object(settings)
    }
}

fn limits_value(limits: Limits) -> Map<String, Value> {
    let mut object = Map::new();
    if let Some(most) = limits.concurrency {
        object.insert("concurrency".into(), json!(most));
    }
    if let Some(rate) = limits.rate {
        object.insert("rate".into(), json!(rate.to_string()));
        object.insert("burst".into(), json!(rate.burst));
    }
    object
}

fn breaker_value(rule: &BreakerRule) -> Value {
    if *rule == BreakerRule::default() {
        return json!("on");
    }
    json!({
        "window": rule.window.to_string(), "minimum": rule.minimum, "ratio": percent(rule.ratio),
        "openFor": rule.open_for.to_string(), "maxOpenFor": rule.max_open_for.to_string(),
    })
}

fn budget_value(rule: BudgetRule) -> Value {
    if rule.minimum == DEFAULT_BUDGET_MINIMUM {
        return json!(percent(rule.share));
    }
    json!({"share": percent(rule.share), "minimum": rule.minimum})
}

/// `50%`, exactly.
fn percent(share: Ratio) -> String {
    let text = format!("{}.{:04}", share.millionths() / 10_000, share.millionths() % 10_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Retries per second that a budget always allows, unless it says otherwise.
const DEFAULT_BUDGET_MINIMUM: u32 = 1;

fn read_limit(at: &str, object: &Map<String, Value>) -> Result<Limits, FlowError> {
    let mut limits = Limits::default();
    if let Some(most) = field(object, "concurrency") {
        limits.concurrency = Some(count(&format!("{at}/concurrency"), most, 1, MAX_COUNT, CONCURRENCY_FORM)?);
    }
    if let Some(rate) = field(object, "rate") {
        let read = rate.as_str().and_then(Rate::parse);
        limits.rate = Some(read.ok_or_else(|| FlowError::refuse(&format!("{at}/rate"), rate, RATE_FORM))?);
    }
    if let Some(burst) = field(object, "burst") {
        let at = format!("{at}/burst");
        let most = count(&at, burst, 1, Rate::MAX_BURST, BURST_FORM)?;
        let rate = limits.rate.ok_or_else(|| FlowError::new(at, "has no effect without a rate; name a `rate` too"))?;
        limits.rate = Some(rate.with_burst(most));
    }
    Ok(limits)
}

fn read_breaker(value: &Value) -> Result<Option<BreakerRule>, FlowError> {
    match value.as_str() {
        Some("on") => return Ok(Some(BreakerRule::default())),
        Some("off") => return Ok(None),
        Some(_) => return Err(FlowError::refuse("/breaker", value, BREAKER_FORM)),
        None => {}
    }
    let object = object_of("/breaker", value, &["window", "minimum", "ratio", "openFor", "maxOpenFor"], BREAKER_FORM)?;
    let mut rule = BreakerRule::default();
    if let Some(window) = field(object, "window") {
        rule.window = span("/breaker/window", window)?;
    }
    if let Some(minimum) = field(object, "minimum") {
        let form = "a whole number from 1 to 1000000";
        rule.minimum = count("/breaker/minimum", minimum, 1, MAX_COUNT, form)?;
    }
    if let Some(ratio) = field(object, "ratio") {
        rule.ratio = share("/breaker/ratio", ratio)?;
    }
    if let Some(open_for) = field(object, "openFor") {
        rule.open_for = span("/breaker/openFor", open_for)?;
    }
    match field(object, "maxOpenFor") {
        Some(longest) => rule.max_open_for = span("/breaker/maxOpenFor", longest)?,
        None => rule.max_open_for = rule.max_open_for.max(rule.open_for),
    }
    if rule.max_open_for < rule.open_for {
        return Err(FlowError::new("/breaker/maxOpenFor", "must be at least openFor"));
    }
    Ok(Some(rule))
}

fn read_budget(value: &Value) -> Result<Option<BudgetRule>, FlowError> {
    if value.as_str() == Some("off") {
        return Ok(None);
    }
    if !value.is_object() {
        let read = read_share(value).ok_or_else(|| FlowError::refuse("/retryBudget", value, BUDGET_FORM))?;
        return Ok(Some(BudgetRule { share: read, minimum: DEFAULT_BUDGET_MINIMUM }));
    }
    let object = object_of("/retryBudget", value, &["share", "minimum"], BUDGET_FORM)?;
    let given =
        field(object, "share").ok_or_else(|| FlowError::new("/retryBudget/share", format!("write {SHARE_FORM}")))?;
    let share = share("/retryBudget/share", given)?;
    let minimum = match field(object, "minimum") {
        Some(least) => {
            count("/retryBudget/minimum", least, 1, MAX_COUNT, "retries per second, a whole number from 1 to 1000000")?
        }
        None => DEFAULT_BUDGET_MINIMUM,
    };
    Ok(Some(BudgetRule { share, minimum }))
}

/// A field that is given and not null.
pub(crate) fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|v| !v.is_null())
}

/// The object at `at`, if all its fields are known.
pub(crate) fn object_of<'a>(
    at: &str,
    value: &'a Value,
    known: &[&str],
    form: &str,
) -> Result<&'a Map<String, Value>, FlowError> {
    let object = value.as_object().ok_or_else(|| FlowError::refuse(at, value, form))?;
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let shown: String = name.chars().take(60).collect();
            let slip = hint(&shown, known);
            Err(FlowError::new(
                format!("{at}/{shown}"),
                format!("is not known here{slip}; fields are {}", known.join(", ")),
            ))
        }
        None => Ok(object),
    }
}

fn count(at: &str, value: &Value, least: u32, most: u32, form: &str) -> Result<u32, FlowError> {
    let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
    number.filter(|n| (least..=most).contains(n)).ok_or_else(|| FlowError::refuse(at, value, form))
}

fn span(at: &str, value: &Value) -> Result<Millis, FlowError> {
    let bounds = Millis::from_secs(1)..=Millis::from_secs(86_400);
    duration(value).filter(|span| bounds.contains(span)).ok_or_else(|| FlowError::refuse(at, value, SPAN_FORM))
}

/// A duration as text, or a number of milliseconds.
pub(crate) fn duration(value: &Value) -> Option<Millis> {
    let text = value.as_str().map(ToOwned::to_owned).or_else(|| value.as_u64().map(|ms| ms.to_string()))?;
    Millis::parse(&text).ok()
}

fn share(at: &str, value: &Value) -> Result<Ratio, FlowError> {
    read_share(value).ok_or_else(|| FlowError::refuse(at, value, SHARE_FORM))
}

fn read_share(value: &Value) -> Option<Ratio> {
    let text = value.as_str().map(ToOwned::to_owned).or_else(|| value.as_number().map(ToString::to_string))?;
    let share = match text.strip_suffix('%') {
        Some(percent) => Ratio::from_millionths(Ratio::parse(percent.trim())?.millionths() / 100),
        None => Ratio::parse(text.trim())?,
    };
    (share > Ratio::from_millionths(0) && share <= Ratio::ONE).then_some(share)
}

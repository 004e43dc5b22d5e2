//! The limits of a queue: what is set, what is in use, what is held or broken; change, hold and release.

use super::find;
use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::back;
use crate::dashboard::show::{self, Moment};
use crate::http::{App, Query};
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Map, Value, json};
use windlass::client::{GateStatus, QueueSettings, QueueStatus, Scope};
use windlass_core::gate::{BreakerState, GateRule, MAX_LIMIT_KEY};
use windlass_core::{Flow, Millis, Timestamp};

/// The most gates on the page.
pub(super) const MOST_GATES: u32 = 50;
/// The longest reason of a hold, in characters.
const MAX_REASON: usize = 500;
/// The longest hold.
const MAX_HOLD: Millis = Millis::from_secs(365 * 86_400);

/// The fields of the form: name, label, an example, and the path in the settings.
const FIELDS: [(&str, &str, &str, &str); 6] = [
    ("concurrency", "at once", "10", "limits/concurrency"),
    ("rate", "starts per time", "100/1m", "limits/rate"),
    ("key_concurrency", "at once, each key", "2", "limits/perKey/concurrency"),
    ("key_rate", "starts per time, each key", "5/s", "limits/perKey/rate"),
    ("breaker", "circuit breaker", "on", "breaker"),
    ("retry_budget", "retry budget", "20%", "retryBudget"),
];

/// A field of the form.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) example: &'static str,
    pub(super) value: String,
}

/// A gate in the table.
#[derive(Debug)]
pub(super) struct GateRow {
    /// The limit key; empty for the whole queue.
    pub(super) key: String,
    pub(super) is_queue: bool,
    /// `7 of 10`
    pub(super) in_use: String,
    pub(super) parked: String,
    pub(super) held_until: Option<Moment>,
    /// By whom and why.
    pub(super) held_by: String,
    pub(super) breaker: &'static str,
    pub(super) breaker_until: Option<Moment>,
}

impl GateRow {
    pub(super) fn new(status: &GateStatus, now: Timestamp) -> Self {
        let hold = status.gate.held(now);
        let (breaker, until) = match status.gate.breaker(now) {
            _ if status.rule.breaker.is_none() => ("", None),
            BreakerState::Closed => ("closed", None),
            BreakerState::Open { until } => ("open", Some(until)),
            BreakerState::HalfOpen => ("ready for a probe", None),
            BreakerState::Probing => ("probing", None),
        };
        let most = status.rule.limits.concurrency.map_or_else(String::new, |most| format!(" of {most}"));
        Self {
            key: status.name.key.as_deref().unwrap_or_default().to_owned(),
            is_queue: status.name.key.is_none(),
            in_use: format!("{}{most}", status.gate.in_use()),
            parked: show::number(status.parked),
            held_until: Moment::some(hold.map(|hold| hold.until), now),
            held_by: hold.map_or_else(String::new, |hold| match hold.reason.is_empty() {
                true => hold.origin.to_string(),
                false => format!("{}: {}", hold.origin, hold.reason),
            }),
            breaker,
            breaker_until: Moment::some(until, now),
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        !matches!(self.breaker, "" | "closed")
    }
}

/// The form as it is set, or as the visitor filled it in.
pub(super) fn fields(settings: &QueueSettings, query: &Query) -> Vec<Field> {
    let is_previewed = query.text("limits").is_some();
    let value = |name: &str, path: &str| match is_previewed {
        true => query.text(name).unwrap_or_default().to_owned(),
        false => text_at(&settings.flow, path),
    };
    FIELDS.map(|(name, label, example, path)| Field { name, label, example, value: value(name, path) }).into()
}

fn text_at(flow: &Map<String, Value>, path: &str) -> String {
    let found = path.split('/').try_fold(Value::Object(flow.clone()), |value, name| value.get(name).cloned());
    match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

/// The settings with the fields of the form. An empty field removes its limit.
fn changed(flow: &Map<String, Value>, field: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
    let mut flow = flow.clone();
    for (name, _, _, path) in FIELDS {
        let text = field(name).unwrap_or_default();
        if text == text_at(&flow, path) {
            continue;
        }
        let value = match text.parse::<u64>() {
            _ if text.is_empty() => Value::Null,
            Ok(number) => json!(number),
            Err(_) => serde_json::from_str(&text).ok().filter(Value::is_object).unwrap_or_else(|| json!(text)),
        };
        put(&mut flow, path, value);
    }
    flow
}

fn put(fields: &mut Map<String, Value>, path: &str, value: Value) {
    if let Some((first, rest)) = path.split_once('/') {
        let mut inner = fields.remove(first).and_then(|inner| inner.as_object().cloned()).unwrap_or_default();
        put(&mut inner, rest, value);
        if !inner.is_empty() {
            fields.insert(first.to_owned(), Value::Object(inner));
        }
        return;
    }
    // A new rate has its own burst.
    if path == "rate" {
        fields.remove("burst");
    }
    if value.is_null() {
        fields.remove(path);
    } else {
        fields.insert(path.to_owned(), value);
    }
}

/// What the limits in the form would do, in words, or what is wrong with them. `None` without a preview.
pub(super) async fn preview(
    app: &App,
    query: &Query,
    settings: &QueueSettings,
    status: &QueueStatus,
) -> Option<Result<String, String>> {
    query.text("limits")?;
    let flow = changed(&settings.flow, |name| query.text(name).map(str::to_owned));
    match app.windlass().queues().check_flow(&flow).await {
        Ok(_) => Some(Ok(in_words(&flow, Some(status)))),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// The limits in words; with a queue's state, also what they mean for it now.
pub(super) fn in_words(flow: &Map<String, Value>, status: Option<&QueueStatus>) -> String {
    let Some(flow) = Flow::from_value(&Value::Object(flow.clone())).ok().flatten() else {
        return "No limits: every due job starts when a worker is free.".into();
    };
    let mut words = limits(&flow.queue, "");
    words.extend(limits(&flow.per_key, " for each key"));
    words.extend(flow.breaker().map(|_| "a circuit breaker for each key".to_owned()));
    words.extend(flow.budget().map(|budget| format!("a retry budget of {} of first attempts", budget.share)));
    if !flow.rules.is_empty() {
        words.push(format!("{} error rules", flow.rules.len()));
    }
    let words = if words.is_empty() { "No limits".to_owned() } else { words.join(", ") };
    let running = status.map(|status| status.running);
    let most = flow.queue.limits.concurrency.map(u64::from);
    let now = match (running, most) {
        (Some(running), Some(most)) if running > most => {
            format!(" {running} run now: they finish, and nothing starts until fewer than {most} run.")
        }
        (Some(running), Some(most)) => format!(" {running} of {most} run now."),
        (_, None) | (None, _) => String::new(),
    };
    format!("{words}.{now}")
}

fn limits(rule: &GateRule, of: &str) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(rule.limits.concurrency.map(|most| format!("at most {most} at once{of}")));
    words.extend(rule.limits.rate.map(|rate| format!("at most {rate}{of}, {} at once", rate.burst)));
    words
}

type Place = Path<(String, String)>;

pub(super) async fn change(
    State(app): State<App>,
    Path((tenant, name)): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    visitor.need_admin()?;
    let (tenant, name) = find(&visitor, &tenant, &name)?;
    let path = format!("/queues/{tenant}/{name}");
    let queues = app.windlass().queues().within(&Scope::Tenant(tenant)).by(&visitor.caller.by);
    let settings = queues.settings(&name).await?;
    let flow = changed(&settings.flow, |field| form.text(field).map(str::to_owned));
    queues.set(&name, &QueueSettings { flow, ..settings }).await?;
    Ok(back(&app, &path, "Saved. The limits hold on every node within two seconds."))
}

pub(super) async fn hold(
    State(app): State<App>,
    Path((tenant, name)): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let (tenant, name) = find(&visitor, &tenant, &name)?;
    let path = format!("/queues/{tenant}/{name}");
    let span = form.parsed("for", |text| {
        let span = Millis::parse(text).map_err(|_| "must be a duration such as 10m")?;
        if span.is_zero() || span > MAX_HOLD { Err("must be longer than 0s and at most 365d") } else { Ok(span) }
    })?;
    let span = span.ok_or_else(|| PageError::bad("for: is missing; write how long, such as 10m"))?;
    let key = form.text("key");
    if key.is_some_and(|key| key.chars().count() > MAX_LIMIT_KEY) {
        return Err(PageError::bad(format!("key: must be 1 to {MAX_LIMIT_KEY} characters")));
    }
    let reason: String = form.text("reason").unwrap_or_default().chars().take(MAX_REASON).collect();
    let gates = app.windlass().queues().within(&Scope::Tenant(tenant)).by(&visitor.caller.by).gates();
    let until = app.now() + span;
    gates.hold(&name, key, until, &reason).await?;
    let what = key.map_or_else(|| name.to_string(), |key| format!("{key} of {name}"));
    Ok(back(&app, &path, &format!("{what} is held until {until}.")))
}

pub(super) async fn release(
    State(app): State<App>,
    Path((tenant, name)): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let (tenant, name) = find(&visitor, &tenant, &name)?;
    let path = format!("/queues/{tenant}/{name}");
    let gates = app.windlass().queues().within(&Scope::Tenant(tenant)).by(&visitor.caller.by).gates();
    let released = gates.release(&name, form.text("key")).await?;
    let done = if released > 0 { "Released. Starts are slow at first." } else { "It was not held." };
    Ok(back(&app, &path, done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_changes_only_what_differs() {
        let flow =
            json!({"limits": {"concurrency": 10, "rate": "5/s", "burst": 3, "keyBy": "tenant"}, "breaker": "on"});
        let flow = flow.as_object().unwrap();
        let fill = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(field, _)| *field == name).map(|(_, value)| (*value).to_owned())
        };
        let same = changed(flow, fill(&[("concurrency", "10"), ("rate", "5/s"), ("breaker", "on")]));
        assert_eq!(same, *flow, "a burst stays with its rate");
        let other = changed(flow, fill(&[("rate", "6/s"), ("key_concurrency", "2")]));
        let expected = json!({"limits": {"rate": "6/s", "keyBy": "tenant", "perKey": {"concurrency": 2}}});
        assert_eq!(Value::Object(other), expected);
    }
}

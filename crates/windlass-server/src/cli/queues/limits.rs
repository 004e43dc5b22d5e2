//! The limits of queues: the flags that set them, and how they are shown.

use super::{Args, all};
use crate::cli::remote::api::Api;
use crate::cli::terminal::grid::{Grid, text, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::plain;
use crate::cli::{Error, pretty};
use serde_json::{Map, Value, json};
use windlass_core::gate::FLOW_FIELDS;

/// The word that removes a limit.
const NONE: &str = "none";

/// The flags of `queues set` that are about flow control. Each takes `none` to remove what was set.
#[derive(Debug, clap::Args)]
#[group(id = "FlowFlags", multiple = true)]
pub(super) struct FlowFlags {
    /// At most this many attempts at once.
    #[arg(long, value_name = "N|none", help_heading = "Limits")]
    concurrency: Option<String>,
    /// At most this many starts per time, such as 100/1m.
    #[arg(long, value_name = "RATE|none", help_heading = "Limits")]
    rate: Option<String>,
    /// The same for each limit key: attempts at once.
    #[arg(long, value_name = "N|none", help_heading = "Limits")]
    key_concurrency: Option<String>,
    /// The same for each limit key: starts per time.
    #[arg(long, value_name = "RATE|none", help_heading = "Limits")]
    key_rate: Option<String>,
    /// What the key of a job is: limitKey, tenant or destination.
    #[arg(long, value_name = "WHAT", help_heading = "Limits")]
    key_by: Option<String>,
    /// Whether each tenant has its own limits (tenant), or all share them (all).
    #[arg(long, value_name = "WHOM", help_heading = "Limits")]
    across: Option<String>,
    /// Stop starts of a key whose destination fails: on or off.
    #[arg(long, value_name = "on|off", help_heading = "Limits")]
    breaker: Option<String>,
    /// Retries are at most this share of first attempts, such as 20%.
    #[arg(long, value_name = "PERCENT|none", help_heading = "Limits")]
    retry_budget: Option<String>,
    /// Who waits for a Retry-After: key or job.
    #[arg(long, value_name = "WHO", help_heading = "Limits")]
    honor_retry_after: Option<String>,
    /// The longest automatic hold.
    #[arg(long, value_name = "SPAN|none", help_heading = "Limits")]
    max_hold: Option<String>,
}

impl FlowFlags {
    pub(super) fn is_empty(&self) -> bool {
        self.of_limits().iter().chain(&self.of_queue()).all(|(_, flag)| flag.is_none())
    }

    fn of_limits(&self) -> [(&'static str, &Option<String>); 6] {
        [
            ("concurrency", &self.concurrency),
            ("rate", &self.rate),
            ("perKey/concurrency", &self.key_concurrency),
            ("perKey/rate", &self.key_rate),
            ("keyBy", &self.key_by),
            ("across", &self.across),
        ]
    }

    fn of_queue(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("breaker", &self.breaker),
            ("retryBudget", &self.retry_budget),
            ("honorRetryAfter", &self.honor_retry_after),
            ("maxHold", &self.max_hold),
        ]
    }

    /// Keeps the flow settings of the queue as it is, and changes those that were given.
    pub(super) fn change(&self, old: &Value, settings: &mut Map<String, Value>) {
        let kept = FLOW_FIELDS.iter().filter(|name| !old[**name].is_null());
        settings.extend(kept.map(|name| ((*name).to_owned(), old[*name].clone())));
        let mut limits = settings.remove("limits").and_then(|limits| limits.as_object().cloned()).unwrap_or_default();
        let mut per_key = limits.remove("perKey").and_then(|inner| inner.as_object().cloned()).unwrap_or_default();
        for (name, flag) in self.of_limits() {
            match name.strip_prefix("perKey/") {
                Some(name) => put(&mut per_key, name, flag.as_deref()),
                None => put(&mut limits, name, flag.as_deref()),
            }
        }
        for (name, flag) in self.of_queue() {
            put(settings, name, flag.as_deref());
        }
        if !per_key.is_empty() {
            limits.insert("perKey".into(), Value::Object(per_key));
        }
        if !limits.is_empty() {
            settings.insert("limits".into(), Value::Object(limits));
        }
    }
}

/// Sets or removes one field. A new rate has its own burst.
fn put(fields: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    fields.remove(name);
    if name == "rate" {
        fields.remove("burst");
    }
    if value != NONE {
        let number = value.parse::<u64>().ok().filter(|_| name == "concurrency");
        fields.insert(name.to_owned(), number.map_or_else(|| json!(value), Value::from));
    }
}

/// `windlass queues limits`
pub(super) async fn show(api: &Api, args: &Args, name: Option<&str>, screen: &Screen) -> Result<String, Error> {
    let mut found = all(api, args.tenant.as_deref()).await?;
    let items = found["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let is_limited = |queue: &Value| FLOW_FIELDS.iter().any(|field| !queue[*field].is_null());
    let is_meant = |queue: &Value| name.map_or_else(|| is_limited(queue), |name| queue["name"] == name);
    let queues: Vec<Value> = items.into_iter().filter(is_meant).collect();
    if let Some(name) = name.filter(|_| queues.is_empty()) {
        return Err(Error::NotFound(format!("no queue {name}")));
    }
    if args.target.json {
        let shown = |queue: &Value| {
            let fields = ["tenantId", "name"].iter().chain(&FLOW_FIELDS).filter(|name| !queue[**name].is_null());
            fields.map(|name| ((*name).to_owned(), queue[*name].clone())).collect::<Map<_, _>>()
        };
        return Ok(pretty(&json!({ "items": queues.iter().map(shown).collect::<Vec<_>>() })));
    }
    let mut grid = Grid::new([
        text("queue"),
        text("tenant").optional(),
        wrapped("limits"),
        wrapped("per key"),
        wrapped("breaker").optional(),
        text("budget").optional(),
        text("rules").optional(),
    ]);
    for queue in &queues {
        let tenant = plain(&queue["tenantId"]);
        let rules = queue["rules"].as_array().map_or(0, Vec::len);
        grid.row([
            plain(&queue["name"]).into(),
            if tenant == "default" { String::new() } else { tenant }.into(),
            in_words(&queue["limits"]).into(),
            in_words(&queue["limits"]["perKey"]).into(),
            setting(&queue["breaker"]).into(),
            setting(&queue["retryBudget"]).into(),
            if rules == 0 { String::new() } else { rules.to_string() }.into(),
        ]);
    }
    Ok(grid.or("no queue has limits: windlass queues set NAME --concurrency N", screen))
}

/// `10 at once, 100/1m, by tenant`
fn in_words(limits: &Value) -> String {
    let mut words = Vec::new();
    words.extend(limits["concurrency"].as_u64().map(|most| format!("{most} at once")));
    words.extend(limits["rate"].as_str().map(str::to_owned));
    words.extend(limits["keyBy"].as_str().map(|by| format!("by {by}")));
    words
        .extend(limits["across"].as_str().filter(|across| *across == "all").map(|_| "all tenants together".to_owned()));
    words.join(", ")
}

fn setting(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    }
}

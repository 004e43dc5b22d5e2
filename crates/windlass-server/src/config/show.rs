//! `windlass config`: effective values and where each came from. Secrets are masked.

use super::{Config, KEYS};
use serde_json::{Map, Value, json};
use windlass::client::SettingKey;
use windlass::http::mask_url;

/// One line of the listing.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) source: String,
    pub(crate) help: &'static str,
}

impl Config {
    /// All values in the order of the table, then the settings kept in the store.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = KEYS
            .iter()
            .map(|key| {
                let (value, source) = &self.values[key.name];
                Shown { key: key.name.into(), value: key.form.shown(value), source: source.to_string(), help: key.help }
            })
            .collect();
        for setting in &self.settings {
            let key = subject(&setting.key);
            let (value, source) = (masked(setting.value.clone()), setting.source.to_string());
            shown.push(Shown { key, value, source, help: "" });
        }
        for (name, rule, source) in self.rules() {
            let value = json!({
                "measure": rule.measure.as_str(),
                "threshold": rule.threshold,
                "for": rule.lasting.to_string(),
                "minCount": rule.min_count,
                "queue": rule.queue,
            });
            shown.push(Shown { key: format!("alerts.rules.{name}"), value, source: source.to_string(), help: "" });
        }
        for (queue, text) in &self.attempts {
            let name = format!("MAX_{queue}_RETRY_ATTEMPTS");
            shown.push(Shown {
                key: format!("attempts of {}", queue.to_ascii_lowercase()),
                value: json!(text),
                source: format!("environment {name}"),
                help: "",
            });
        }
        shown
    }
}

/// A setting's subject, as the file names it; those of one tenant with its name.
pub(crate) fn subject(key: &SettingKey) -> String {
    let (scope, tenant, name) = key.parts();
    let whose = if tenant == "*" { String::new() } else { format!(" of {tenant}") };
    match scope {
        "queue" => format!("queues.{name}{whose}"),
        "kind" => format!("kinds.{name}"),
        "policy" => format!("policies.{name}"),
        "tenant" => format!("tenants.{name}"),
        "alert" => format!("alerts.rules.{name}"),
        _ => name.to_owned(),
    }
}

/// The value without secrets, at any depth.
pub(crate) fn masked(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mask = |(name, value): (String, Value)| {
                let value = match (name.as_str(), value) {
                    ("secret", _) => json!("***"),
                    ("url", Value::String(url)) => json!(mask_url(&url)),
                    (_, value) => masked(value),
                };
                (name, value)
            };
            Value::Object(fields.into_iter().map(mask).collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

//! `windlass config`: effective values and where each came from. Secrets are masked.

use super::{Config, KEYS};
use serde_json::{Map, Value, json};
use windlass::alert::default_rules;
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
            let mut value = rule.to_json();
            if let Value::Object(fields) = &mut value {
                fields.insert("threshold".into(), json!(rule.threshold));
                // What most rules leave open is shown where it is set.
                let usual = default_rules().first().map(|rule| json!(rule.window.to_string()));
                let is_open = |value: &Value| value.is_null() || *value == json!([]) || Some(value) == usual.as_ref();
                fields.retain(|name, value| {
                    !["tenant", "window", "notify", "remind", "quiet"].contains(&name.as_str()) || !is_open(value)
                });
            }
            shown.push(Shown { key: format!("alerts.rules.{name}"), value, source: source.to_string(), help: "" });
        }
        for limit in &self.limits {
            let (queue, field) = (limit.queue.to_ascii_lowercase(), limit.field.replace('/', "."));
            let source = format!("environment {}", limit.variable);
            shown.push(Shown { key: format!("queues.{queue}.{field}"), value: limit.value.clone(), source, help: "" });
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
        "secret" => format!("replaced webhook secret{whose}"),
        "quota" if tenant == "*" => "quotas".to_owned(),
        "quota" => format!("tenants.{tenant}.quotas"),
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

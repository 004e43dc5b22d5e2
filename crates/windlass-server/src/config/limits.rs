//! Limits of queues in the environment: `WINDLASS_QUEUE_<QUEUE>_CONCURRENCY=10` and so on, over those of the file.

use super::{Config, ConfigError, Source};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_core::Flow;
use windlass_core::job::QueueName;

const PREFIX: &str = "WINDLASS_QUEUE_";

/// The endings of the variables, and the field each sets. Longer ones first: `_KEY_RATE` is not the `_RATE` of a queue
/// named `…_key`.
const ENDINGS: &[(&str, &str)] = &[
    ("_KEY_CONCURRENCY", "limits/perKey/concurrency"),
    ("_KEY_RATE", "limits/perKey/rate"),
    ("_KEY_BURST", "limits/perKey/burst"),
    ("_KEY_BY", "limits/keyBy"),
    ("_CONCURRENCY", "limits/concurrency"),
    ("_RATE", "limits/rate"),
    ("_BURST", "limits/burst"),
    ("_ACROSS", "limits/across"),
    ("_BREAKER", "breaker"),
    ("_RETRY_BUDGET", "retryBudget"),
    ("_HONOR_RETRY_AFTER", "honorRetryAfter"),
    ("_MAX_HOLD", "maxHold"),
];

/// A limit from the environment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueLimit {
    /// The queue as the variable spells it: `BILLING`.
    pub(crate) queue: String,
    /// The path of the field in the queue's settings.
    pub(crate) field: &'static str,
    pub(crate) value: Value,
    pub(crate) variable: String,
}

/// Reads a variable that is about a queue's limits. `None`: it is about something else.
pub(super) fn read(name: &str, text: &str) -> Option<Result<QueueLimit, ConfigError>> {
    let rest = name.strip_prefix(PREFIX)?;
    let source = Source::Environment(name.to_owned());
    let is_found = |(ending, _): &&(&str, &str)| rest.len() > ending.len() && rest.ends_with(ending);
    let Some((ending, field)) = ENDINGS.iter().find(is_found) else {
        let endings = ENDINGS.iter().map(|(ending, _)| *ending).collect::<Vec<_>>().join(", ");
        let message = format!("is not a known setting: {PREFIX}<QUEUE> goes on with one of {endings}");
        return Some(Err(ConfigError::new(source, message)));
    };
    let queue = rest[..rest.len() - ending.len()].to_owned();
    let text = text.trim();
    let is_number = field.ends_with("concurrency") || field.ends_with("burst");
    let value = text.parse::<u64>().ok().filter(|_| is_number).map_or_else(|| json!(text), Value::from);
    let limit = QueueLimit { queue, field, value, variable: name.to_owned() };
    Some(match limit.check() {
        Ok(()) => Ok(limit),
        Err(message) => Err(ConfigError::new(source, message)),
    })
}

impl QueueLimit {
    /// Checks the value by itself. A burst needs a rate, which may be set elsewhere.
    fn check(&self) -> Result<(), String> {
        if spellings(&self.queue).is_empty() {
            return Err(format!("names no queue: `{}` cannot be a queue's name", self.queue.to_ascii_lowercase()));
        }
        let mut settings = Map::new();
        if let Some(rate) = self.field.strip_suffix("burst") {
            put(&mut settings, &format!("{rate}rate"), json!("1/s"));
        }
        put(&mut settings, self.field, self.value.clone());
        Flow::from_value(&Value::Object(settings)).map(drop).map_err(|error| error.message)
    }

    /// Whether the variable means this queue.
    fn is_of(&self, queue: &QueueName) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric();
        let spelled: String =
            queue.as_str().chars().map(|c| if is_plain(c) { c.to_ascii_uppercase() } else { '_' }).collect();
        spelled == self.queue
    }
}

/// Names that a queue may have that no file or store knows yet.
fn spellings(queue: &str) -> Vec<QueueName> {
    let own = queue.to_ascii_lowercase();
    let names = BTreeSet::from([own.clone(), own.replace('_', "-")]);
    names.iter().filter_map(|name| QueueName::new(name).ok()).collect()
}

fn put(settings: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('/') {
        None => drop(settings.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let inner = settings.entry(first).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

impl Config {
    /// The queues that the environment limits, each with the limits and the variables that set them.
    pub(super) fn limited_queues(&self, known: &BTreeSet<QueueName>) -> BTreeMap<QueueName, Vec<&QueueLimit>> {
        let mut found: BTreeMap<QueueName, Vec<&QueueLimit>> = BTreeMap::new();
        for limit in &self.limits {
            let mut names: Vec<QueueName> = known.iter().filter(|queue| limit.is_of(queue)).cloned().collect();
            if names.is_empty() {
                names = spellings(&limit.queue);
            }
            names.into_iter().for_each(|name| found.entry(name).or_default().push(limit));
        }
        found
    }
}

/// A queue's setting with these limits over it.
///
/// # Errors
/// The limits contradict each other or those of the file; the variables are named.
pub(super) fn over(setting: Value, limits: &[&QueueLimit]) -> Result<(Value, Source), ConfigError> {
    let mut settings = if let Value::Object(fields) = setting { fields } else { Map::new() };
    for limit in limits {
        put(&mut settings, limit.field, limit.value.clone());
    }
    let variables = limits.iter().map(|limit| limit.variable.as_str()).collect::<Vec<_>>().join(", ");
    let source = Source::Environment(variables);
    let settings = Value::Object(settings);
    match Flow::from_value(&settings) {
        Ok(_) => Ok((settings, source)),
        Err(error) => Err(ConfigError::new(source, format!("`{}`: {}", error.pointer, error.message))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_set_the_limits_of_their_queue() {
        for (name, text, queue, field, value) in [
            ("WINDLASS_QUEUE_BILLING_CONCURRENCY", "10", "BILLING", "limits/concurrency", json!(10)),
            ("WINDLASS_QUEUE_BILLING_KEY_CONCURRENCY", "2", "BILLING", "limits/perKey/concurrency", json!(2)),
            ("WINDLASS_QUEUE_PUSH_EU_RATE", "100/1m", "PUSH_EU", "limits/rate", json!("100/1m")),
            ("WINDLASS_QUEUE_BILLING_KEY_BURST", "5", "BILLING", "limits/perKey/burst", json!(5)),
            ("WINDLASS_QUEUE_BILLING_BREAKER", "on", "BILLING", "breaker", json!("on")),
            ("WINDLASS_QUEUE_BILLING_RETRY_BUDGET", "20%", "BILLING", "retryBudget", json!("20%")),
            ("WINDLASS_QUEUE_BILLING_MAX_HOLD", "1m", "BILLING", "maxHold", json!("1m")),
        ] {
            let limit = read(name, text).unwrap().unwrap();
            assert_eq!((limit.queue.as_str(), limit.field, &limit.value), (queue, field, &value), "{name}");
        }
        assert!(read("WINDLASS_LISTEN", "x").is_none());
        let limit = read("WINDLASS_QUEUE_PUSH_EU_RATE", "1/s").unwrap().unwrap();
        assert!(limit.is_of(&QueueName::new("push-eu").unwrap()) && limit.is_of(&QueueName::new("push.eu").unwrap()));
        assert!(!limit.is_of(&QueueName::new("push").unwrap()));
    }

    #[test]
    fn a_wrong_value_is_refused_by_the_name_of_its_variable() {
        for (name, text) in [
            ("WINDLASS_QUEUE_BILLING_CONCURRENCY", "many"),
            ("WINDLASS_QUEUE_BILLING_CONCURRENCY", "0"),
            ("WINDLASS_QUEUE_BILLING_RATE", "fast"),
            ("WINDLASS_QUEUE_BILLING_BURST", "-1"),
            ("WINDLASS_QUEUE_BILLING_KEY_BY", "moon"),
            ("WINDLASS_QUEUE_BILLING_ACROSS", "some"),
            ("WINDLASS_QUEUE_BILLING_BREAKER", "maybe"),
            ("WINDLASS_QUEUE_BILLING_RETRY_BUDGET", "20"),
            ("WINDLASS_QUEUE_BILLING_HONOR_RETRY_AFTER", "nobody"),
            ("WINDLASS_QUEUE_BILLING_MAX_HOLD", "long"),
            ("WINDLASS_QUEUE_BILLING_SPEED", "1"),
            ("WINDLASS_QUEUE__RATE", "1/s"),
        ] {
            let error = read(name, text).unwrap().expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn the_environment_goes_over_the_file() {
        let limit = |name: &str, text: &str| read(name, text).unwrap().unwrap();
        let (rate, burst) = (limit("WINDLASS_QUEUE_A_RATE", "5/s"), limit("WINDLASS_QUEUE_A_BURST", "2"));
        let file = json!({ "policy": "http", "limits": { "concurrency": 3, "rate": "1/s" } });
        let (value, _) = over(file, &[&rate, &burst]).unwrap();
        assert_eq!(value, json!({ "policy": "http", "limits": { "concurrency": 3, "rate": "5/s", "burst": 2 } }));
        let error = over(json!({}), &[&burst]).unwrap_err().to_string();
        assert!(error.contains("WINDLASS_QUEUE_A_BURST"), "{error}");
    }
}

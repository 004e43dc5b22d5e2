//! Rules as they are stored and configured: `{"measure","threshold","for","minCount","queue"}`, or `{"off":true}` for a
//! rule that is not judged. Pure.

use super::{Measure, Rule, default_rules};
use crate::store::{Setting, SettingKey, SettingSource};
use serde_json::{Map, Value, json};
use windlass_core::Millis;
use windlass_core::job::QueueName;

/// The fields of a rule.
pub const RULE_FIELDS: &[&str] = &["measure", "threshold", "for", "minCount", "queue"];
/// The field that disables a rule.
const OFF: &str = "off";

/// A field of a rule that is wrong, and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {form}")]
pub struct RuleError {
    /// The field.
    pub field: String,
    /// What is accepted.
    pub form: String,
}

impl Rule {
    /// Reads a rule. Omitted fields are those of the default rule of its measure; the measure may be omitted if the
    /// name is one.
    ///
    /// # Errors
    /// The field that is wrong, and what is accepted.
    pub fn from_json(name: &str, fields: &Map<String, Value>) -> Result<Self, RuleError> {
        let wrong = |field: &str, form: String| RuleError { field: field.into(), form };
        if let Some(unknown) = fields.keys().find(|field| !RULE_FIELDS.contains(&field.as_str())) {
            return Err(wrong(unknown, format!("is not a field of a rule; those are {}", RULE_FIELDS.join(", "))));
        }
        let named = fields.get("measure").map_or(Some(name), Value::as_str).and_then(Measure::parse);
        let words = Measure::ALL.map(Measure::as_str).join(", ");
        let measure = named.ok_or_else(|| wrong("measure", format!("must be one of {words}")))?;
        let usual = default_rules().into_iter().find(|rule| rule.measure == measure);
        let usual = usual.expect("every measure has a default rule");
        let span = |field: &str, value: &Value| {
            let read = value.as_str().and_then(|text| Millis::parse(text).ok());
            let read = read.or_else(|| value.as_u64().map(Millis::new));
            read.ok_or_else(|| wrong(field, "must be a duration: 500ms, 30s, 1m30s, or whole milliseconds".into()))
        };
        let whole =
            |field: &str, value: &Value| value.as_u64().ok_or_else(|| wrong(field, "must be a whole number".into()));
        let threshold = fields.get("threshold").map(|value| match measure {
            Measure::Backoff | Measure::OldestDue => span("threshold", value).map(Millis::get),
            Measure::DeadLetters | Measure::RetryRate | Measure::Exhausted => whole("threshold", value),
        });
        let queue = fields.get("queue").filter(|value| !value.is_null()).map(|value| {
            let name = value.as_str().ok_or_else(|| wrong("queue", "must be the name of a queue".into()))?;
            QueueName::new(name).map(|name| name.to_string()).map_err(|error| wrong("queue", format!(": {error}")))
        });
        let lasting = fields.get("for").map(|value| span("for", value)).transpose()?;
        let min_count = fields.get("minCount").map(|value| whole("minCount", value)).transpose()?;
        Ok(Self {
            name: name.to_owned(),
            measure,
            threshold: threshold.transpose()?.unwrap_or(usual.threshold),
            lasting: lasting.unwrap_or(usual.lasting),
            min_count: min_count.unwrap_or(usual.min_count),
            queue: queue.transpose()?,
        })
    }

    /// The rule as it is stored.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let threshold = match self.measure {
            Measure::Backoff | Measure::OldestDue => json!(Millis::new(self.threshold).to_string()),
            Measure::DeadLetters | Measure::RetryRate | Measure::Exhausted => json!(self.threshold),
        };
        json!({
            "measure": self.measure.as_str(),
            "threshold": threshold,
            "for": self.lasting.to_string(),
            "minCount": self.min_count,
            "queue": self.queue,
        })
    }
}

/// The stored value of a rule that is not judged.
pub(crate) fn off() -> Value {
    json!({ OFF: true })
}

/// Whether this is what operators set for the rule of this name.
pub(crate) fn is_of_operator(setting: &Setting, name: &str) -> bool {
    setting.source == SettingSource::Operator && matches!(&setting.key, SettingKey::Alert { name: own } if own == name)
}

/// Whether operators turned off the rule of this name.
pub(crate) fn is_turned_off(stored: &[Setting], name: &str) -> bool {
    let is_off = |setting: &Setting| {
        let value: Value = serde_json::from_str(&setting.value).unwrap_or_default();
        value.get(OFF).is_some_and(|off| *off == true)
    };
    stored.iter().any(|setting| is_of_operator(setting, name) && is_off(setting))
}

/// A node's rules with the operator's over them, by name: added, changed, or turned off.
pub(crate) fn with_operators(own: &[Rule], stored: &[Setting]) -> Vec<Rule> {
    let mut rules = own.to_vec();
    for setting in stored.iter().filter(|setting| setting.source == SettingSource::Operator) {
        let SettingKey::Alert { name } = &setting.key else { continue };
        let value: Value = serde_json::from_str(&setting.value).unwrap_or_default();
        rules.retain(|rule| rule.name != *name);
        if value.get(OFF).is_some_and(|off| *off == true) {
            continue;
        }
        match value.as_object().map(|fields| Rule::from_json(name, fields)) {
            Some(Ok(rule)) => rules.push(rule),
            Some(Err(error)) => tracing::warn!(rule = name, %error, "an alert rule cannot be read and is ignored"),
            None => tracing::warn!(rule = name, "an alert rule cannot be read and is ignored"),
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Timestamp;

    fn setting(name: &str, value: &Value, source: SettingSource) -> Setting {
        let key = SettingKey::Alert { name: name.into() };
        Setting { key, value: value.to_string(), source, set_at: Timestamp::from_millis(0) }
    }

    #[test]
    fn a_rule_reads_back_from_what_is_stored() {
        for rule in default_rules() {
            let rule = Rule { name: "ours".into(), queue: Some("email".into()), ..rule };
            assert_eq!(Rule::from_json("ours", rule.to_json().as_object().unwrap()), Ok(rule));
        }
    }

    #[test]
    fn operators_add_change_and_turn_off_rules() {
        let node = SettingSource::Node { node: "a".into(), origin: "windlass.toml:1".into() };
        let stored = [
            setting("dead_letters", &json!({ "threshold": 7 }), SettingSource::Operator),
            setting("backoff", &off(), SettingSource::Operator),
            setting("slow mail", &json!({ "measure": "oldest_due", "queue": "email" }), SettingSource::Operator),
            setting("of another node", &json!({ "measure": "exhausted" }), node),
            setting("broken", &json!({ "measure": "nothing" }), SettingSource::Operator),
        ];
        let rules = with_operators(&default_rules(), &stored);
        let mut names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["dead_letters", "exhausted", "oldest_due", "retry_rate", "slow mail"]);
        assert_eq!(rules.iter().find(|rule| rule.name == "dead_letters").unwrap().threshold, 7);
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (value, field) in [
            (json!({ "measure": "moon" }), "measure"),
            (json!({ "measure": "exhausted", "threshold": "many" }), "threshold"),
            (json!({ "measure": "backoff", "threshold": "long" }), "threshold"),
            (json!({ "measure": "exhausted", "for": true }), "for"),
            (json!({ "measure": "exhausted", "queue": "No Name" }), "queue"),
            (json!({ "measure": "exhausted", "treshold": 1 }), "treshold"),
        ] {
            assert_eq!(Rule::from_json("ours", value.as_object().unwrap()).unwrap_err().field, field);
        }
    }
}

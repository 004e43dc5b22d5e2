//! Rules as they are stored and configured: an object with [`RULE_FIELDS`], or `{"off":true}` for a rule that is not
//! judged. Pure.

use super::{Measure, Rule, default_rules};
use crate::store::{Setting, SettingKey, SettingSource};
use serde_json::{Map, Value, json};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Millis, QuietHours};

/// The fields of a rule.
pub const RULE_FIELDS: &[&str] =
    &["measure", "threshold", "for", "minCount", "queue", "tenant", "window", "notify", "remind", "quiet"];
/// Shorter windows would look at single attempts; longer ones would hide what happens now.
const WINDOWS: std::ops::RangeInclusive<Millis> = Millis::from_secs(60)..=Millis::from_secs(24 * 60 * 60);
/// More often would be noise.
const LEAST_REMIND: Millis = Millis::from_secs(60);
/// The most operators that a rule may name.
const MAX_NOTIFY: usize = 20;
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
        let threshold = fields.get("threshold").map(|value| match measure.is_span() {
            true => span("threshold", value).map(Millis::get),
            false => whole("threshold", value),
        });
        let queue = fields.get("queue").filter(|value| !value.is_null()).map(|value| {
            let name = value.as_str().ok_or_else(|| wrong("queue", "must be the name of a queue".into()))?;
            QueueName::new(name).map(|name| name.to_string()).map_err(|error| wrong("queue", format!(": {error}")))
        });
        let lasting = fields.get("for").map(|value| span("for", value)).transpose()?;
        let min_count = fields.get("minCount").map(|value| whole("minCount", value)).transpose()?;
        let rest = Rest::read(fields, usual.window, span)?;
        Ok(Self {
            name: name.to_owned(),
            measure,
            threshold: threshold.transpose()?.unwrap_or(usual.threshold),
            lasting: lasting.unwrap_or(usual.lasting),
            min_count: min_count.unwrap_or(usual.min_count),
            queue: queue.transpose()?,
            tenant: rest.tenant,
            window: rest.window,
            notify: rest.notify,
            remind: rest.remind,
            quiet: rest.quiet,
        })
    }

    /// The rule as it is stored.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let threshold = match self.measure.is_span() {
            true => json!(Millis::new(self.threshold).to_string()),
            false => json!(self.threshold),
        };
        json!({
            "measure": self.measure.as_str(),
            "threshold": threshold,
            "for": self.lasting.to_string(),
            "minCount": self.min_count,
            "queue": self.queue,
            "tenant": self.tenant,
            "window": self.window.to_string(),
            "notify": self.notify,
            "remind": self.remind.map(|interval| interval.to_string()),
            "quiet": self.quiet.as_ref().map(ToString::to_string),
        })
    }
}

/// Whom a rule is about and whom it notifies, when.
struct Rest {
    tenant: Option<String>,
    window: Millis,
    notify: Vec<String>,
    remind: Option<Millis>,
    quiet: Option<QuietHours>,
}

impl Rest {
    fn read(
        fields: &Map<String, Value>,
        usual_window: Millis,
        span: impl Fn(&str, &Value) -> Result<Millis, RuleError>,
    ) -> Result<Self, RuleError> {
        let wrong = |field: &str, form: String| RuleError { field: field.into(), form };
        let given = |field: &str| fields.get(field).filter(|value| !value.is_null());
        let tenant = given("tenant").map(|value| {
            let name = value.as_str().ok_or_else(|| wrong("tenant", "must be the name of a tenant".into()))?;
            Tenant::new(name).map(|name| name.to_string()).map_err(|error| wrong("tenant", format!(": {error}")))
        });
        let window = given("window").map(|value| span("window", value)).transpose()?.unwrap_or(usual_window);
        if !WINDOWS.contains(&window) {
            return Err(wrong("window", format!("must be from {} to {}", WINDOWS.start(), WINDOWS.end())));
        }
        let remind = given("remind").map(|value| span("remind", value)).transpose()?;
        if remind.is_some_and(|interval| interval < LEAST_REMIND) {
            return Err(wrong("remind", format!("must be at least {LEAST_REMIND}, or null for no reminders")));
        }
        let quiet = given("quiet").map(|value| {
            let text = value.as_str().unwrap_or_default();
            QuietHours::parse(text).map_err(|form| wrong("quiet", form))
        });
        let names = given("notify").map(|value| {
            let names = value.as_array().map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)));
            let names = names.and_then(Iterator::collect::<Option<Vec<String>>>);
            let names = names.filter(|names| names.len() <= MAX_NOTIFY && names.iter().all(|name| !name.is_empty()));
            names.ok_or_else(|| wrong("notify", format!("must be a list of at most {MAX_NOTIFY} names of operators")))
        });
        Ok(Self {
            tenant: tenant.transpose()?,
            window,
            notify: names.transpose()?.unwrap_or_default(),
            remind,
            quiet: quiet.transpose()?,
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
            let quiet = QuietHours::parse("22:00-07:00 Europe/Berlin").ok();
            let (tenant, remind) = (Some("acme".into()), Some(Millis::from_secs(3600)));
            let (window, notify) = (Millis::from_secs(600), vec!["oncall".into()]);
            let rule = Rule { name: "ours".into(), queue: Some("email".into()), ..rule };
            let rule = Rule { tenant, remind, window, notify, quiet, ..rule };
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
        assert_eq!(
            names,
            ["dead_letters", "exhausted", "holds", "oldest_due", "open_breakers", "retry_rate", "slow mail"]
        );
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
            (json!({ "measure": "exhausted", "tenant": 7 }), "tenant"),
            (json!({ "measure": "exhausted", "window": "10s" }), "window"),
            (json!({ "measure": "exhausted", "window": "2d" }), "window"),
            (json!({ "measure": "exhausted", "remind": "1s" }), "remind"),
            (json!({ "measure": "exhausted", "quiet": "at night" }), "quiet"),
            (json!({ "measure": "exhausted", "quiet": 22 }), "quiet"),
            (json!({ "measure": "exhausted", "notify": "oncall" }), "notify"),
            (json!({ "measure": "exhausted", "notify": [1] }), "notify"),
        ] {
            assert_eq!(Rule::from_json("ours", value.as_object().unwrap()).unwrap_err().field, field);
        }
    }
}

//! Alerts: rules from the file, and checks of the operators' URLs and secret.

use super::{Config, ConfigError, Source};
use serde_json::{Map, Value};
use windlass::alert::{Alerts, Operator, Rule, default_rules};
use windlass::http::{check_call, mask_after_host};
use windlass_core::Millis;
use windlass_core::signature::Secret;

pub(super) use windlass::alert::RULE_FIELDS;
/// The shortest interval: checking more often would take most of a node's time.
const LEAST_EVERY: Millis = Millis::new(100);

/// Reads `[alerts.rules.NAME]`. Omitted fields are those of the default rule of its measure.
///
/// # Errors
/// The field that is wrong, and what is accepted.
pub(super) fn read_rule(name: &str, fields: &Map<String, Value>) -> Result<Rule, String> {
    Rule::from_json(name, fields).map_err(|error| {
        let glue = if error.form.starts_with(':') { "" } else { " " };
        format!("`alerts.rules.{name}.{}`{glue}{}", error.field, error.form)
    })
}

/// Checks that a rule notifies only operators whom this node knows. A node that knows nobody accepts all names.
///
/// # Errors
/// The unknown name, and those that are known.
pub(crate) fn check_notified<'a>(
    named: impl IntoIterator<Item = &'a str>,
    operators: &[Operator],
) -> Result<(), String> {
    let known: Vec<&str> = operators.iter().map(|operator| operator.name.as_str()).collect();
    match named.into_iter().find(|name| !known.contains(name)) {
        Some(name) if !known.is_empty() => {
            let name: String = name.chars().take(64).collect();
            Err(format!("`{name}` is nobody that alerts.urls names; it names {}", known.join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}

impl Config {
    /// The rules to check and the operators to notify.
    pub(crate) fn alerts(&self) -> Alerts {
        let secret = Some(self.text("alerts.secret")).filter(|secret| !secret.is_empty());
        let operator =
            |text: String| Operator::parse(&text, secret).expect("operators were checked when they were read");
        Alerts {
            rules: self.rules().into_iter().map(|(_, rule, _)| rule).collect(),
            operators: self.list("alerts.urls").into_iter().map(operator).collect(),
            every: self.duration("alerts.every"),
        }
    }

    /// The alert rules of the file.
    pub(super) fn file_rules(&self) -> impl Iterator<Item = &(String, Rule, Source)> {
        self.rules.iter()
    }

    /// The alert rules: the file's, or the five default rules.
    pub(super) fn rules(&self) -> Vec<(String, Rule, Source)> {
        if !self.rules.is_empty() {
            return self.rules.clone();
        }
        let usual = |rule: Rule| (rule.measure.as_str().to_owned(), rule, Source::Default);
        default_rules().into_iter().map(usual).collect()
    }

    /// Adds a rule of the file, unless another has the same measure and queue: they would share their alerts.
    pub(super) fn add_rule(&mut self, name: &str, rule: Rule, source: Source) -> Result<(), ConfigError> {
        let is_same =
            |other: &Rule| (other.measure, &other.queue, &other.tenant) == (rule.measure, &rule.queue, &rule.tenant);
        if let Some((other, _, _)) = self.rules.iter().find(|(_, other, _)| is_same(other)) {
            let about = rule.queue.as_ref().map_or_else(|| "all queues".to_owned(), |queue| format!("queue `{queue}`"));
            let reported = format!(
                "`alerts.rules.{name}` measures {} of {about}, as `alerts.rules.{other}` does: give one of them \
                 another `queue`, `tenant` or `measure`, or remove it",
                rule.measure.as_str()
            );
            return Err(ConfigError::new(source, reported));
        }
        self.rules.push((name.to_owned(), rule, source));
        Ok(())
    }

    /// Checks that notices could be sent as configured. Only the form is checked; no URL is called.
    pub(super) fn check_alerts(&self) -> Result<(), ConfigError> {
        let wrong =
            |key: &'static str, reported: String| ConfigError::new(self.source(key), format!("`{key}` {reported}"));
        let urls = self.list("alerts.urls");
        let mut operators = Vec::new();
        for (position, url) in urls.iter().enumerate() {
            let shown = mask_after_host(url);
            let operator = Operator::parse(url, None)
                .map_err(|form| wrong("alerts.urls", format!("holds `{shown}`, which {form}")))?;
            check_call("POST", &operator.url, &[])
                .map_err(|error| wrong("alerts.urls", format!("holds `{shown}`: {}", error.message)))?;
            if urls[..position].contains(url) {
                return Err(wrong("alerts.urls", format!("names `{shown}` twice")));
            }
            operators.push(operator);
        }
        for (name, rule, source) in &self.rules {
            check_notified(rule.notify.iter().map(String::as_str), &operators)
                .map_err(|reported| ConfigError::new(source, format!("`alerts.rules.{name}.notify`: {reported}")))?;
        }
        let secret = self.text("alerts.secret");
        if !secret.is_empty() {
            Secret::parse(secret)
                .map_err(|error| wrong("alerts.secret", format!("is not a signing secret: {error}")))?;
        }
        if self.duration("alerts.every") < LEAST_EVERY {
            return Err(wrong("alerts.every", format!("must be at least {LEAST_EVERY}")));
        }
        Ok(())
    }
}

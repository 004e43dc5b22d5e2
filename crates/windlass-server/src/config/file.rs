//! `windlass.toml`: known keys, and tables of queues, kinds, policies, tenants and alert rules. Unknown keys are errors
//! that name their position and the nearest known key.

use super::keys::{self, KEYS};
use super::{Config, ConfigError, DEFAULT_FILE, Inputs, Source, StoreSetting, alerts};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use windlass::client::{Keep, SettingKey};
use windlass::protocol::{Catalogue, DEFAULTS};
use windlass_core::gate::FLOW_FIELDS;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::{Partial, Pattern, no_names};
use windlass_core::quota::Quotas;
use windlass_core::{Flow, PolicyError, Rule};

const TABLES: &[&str] = &["queues", "kinds", "policies", "tenants", "defaults"];
/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

pub(super) fn read(config: &mut Config, inputs: &Inputs) -> Result<(), ConfigError> {
    let path = match &inputs.file {
        Some(path) => path.as_path(),
        None if Path::new(DEFAULT_FILE).exists() => Path::new(DEFAULT_FILE),
        None => return Ok(()),
    };
    let refused = |error: std::io::Error| ConfigError::new(path.display(), format!("cannot be read: {error}"));
    if std::fs::metadata(path).map_err(refused)?.len() > MAX_FILE {
        return Err(ConfigError::new(path.display(), "is too large for a configuration"));
    }
    let text = std::fs::read_to_string(path).map_err(refused)?;
    config.file = Some(path.to_owned());
    parse(config, path, &text)
}

/// The file's text and the current position in it.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
    policies: HashMap<String, Partial>,
}

type Entry<'i, 'e> = (&'e Spanned<DeString<'i>>, &'e Spanned<DeValue<'i>>);

pub(super) fn parse(config: &mut Config, path: &Path, text: &str) -> Result<(), ConfigError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        ConfigError::new(format!("{}:{line}", path.display()), error.message().to_owned())
    })?;
    let mut file = File { path, text, policies: HashMap::new() };
    // Named policies first: the other tables may name them.
    if let Some((_, value)) = table.get_ref().iter().find(|(key, _)| key.get_ref() == "policies") {
        file.policies(config, value)?;
    }
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "policies" => {}
            "queues" => file.each(value, "queues", |file, entry| file.queue(config, entry))?,
            "kinds" => file.each(value, "kinds", |file, entry| file.kind(config, entry))?,
            "tenants" => file.each(value, "tenants", |file, entry| file.tenant(config, entry))?,
            "defaults" => file.defaults(config, (key, value))?,
            name => file.scalar(config, "", name, (key, value))?,
        }
    }
    Ok(())
}

impl File<'_> {
    fn source(&self, offset: usize) -> Source {
        Source::File { path: self.path.to_owned(), line: line_of(self.text, offset) }
    }

    fn wrong(&self, offset: usize, message: impl Into<String>) -> ConfigError {
        ConfigError::new(self.source(offset), message)
    }

    /// A key that holds one value, or a table of such keys.
    fn scalar(
        &self,
        config: &mut Config,
        under: &str,
        name: &str,
        (key, value): Entry<'_, '_>,
    ) -> Result<(), ConfigError> {
        let full = format!("{under}{name}");
        if full == "alerts.rules" {
            return self.each(value, "alerts.rules", |file, entry| file.rule(config, entry));
        }
        let section = format!("{full}.");
        if let DeValue::Table(table) = value.get_ref()
            && KEYS.iter().any(|key| key.name.starts_with(&section))
        {
            for (key, value) in table {
                self.scalar(config, &section, key.get_ref().as_ref(), (key, value))?;
            }
            return Ok(());
        }
        let Some(known) = keys::find(&full) else {
            return Err(self.wrong(key.span().start, format!("`{full}` is not a known key{}", hint(&full))));
        };
        let read = known.form.read(&to_json(value.get_ref()));
        let read = read.map_err(|form| self.wrong(value.span().start, format!("`{full}` {form}")))?;
        config.values.insert(known.name, (read, self.source(key.span().start)));
        Ok(())
    }

    fn each(
        &self,
        value: &Spanned<DeValue<'_>>,
        name: &str,
        mut read: impl FnMut(&Self, Entry<'_, '_>) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(value.span().start, format!("`{name}` must be a table: [{name}.NAME]")));
        };
        table.iter().try_for_each(|entry| read(self, entry))
    }

    /// The fields of a table; unknown fields are refused.
    fn fields(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        known: &[&str],
    ) -> Result<Map<String, Value>, ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            let form = format!("`{name}` must be a table with {}", known.join(", "));
            return Err(self.wrong(value.span().start, form));
        };
        if let Some((key, _)) = table.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let key_name = key.get_ref();
            let reported = format!("`{name}.{key_name}` is not a known key{}", keys::hint(key_name, known));
            return Err(self.wrong(key.span().start, reported));
        }
        Ok(table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref()))).collect())
    }

    fn policies(&mut self, config: &mut Config, value: &Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(value.span().start, "`policies` must be a table: [policies] NAME = \"…\""));
        };
        // A policy may name another in any order: read those that can be read until none are left.
        let mut left: Vec<Entry<'_, '_>> = table.iter().collect();
        while let Some((key, value)) = left.first().copied() {
            let readable = left.iter().position(|(_, value)| self.policy(&to_json(value.get_ref())).is_ok());
            let Some(position) = readable else {
                let error = self.policy(&to_json(value.get_ref())).map_or_else(|e| e.to_string(), |_| String::new());
                return Err(self.wrong(value.span().start, format!("policies.{}: {error}", key.get_ref())));
            };
            let (key, value) = left.remove(position);
            let (name, policy) = (key.get_ref().to_string(), to_json(value.get_ref()));
            let Ok(read) = self.policy(&policy) else { continue };
            // Stored without references to others, so that they can be read from the store in any order.
            let stands_alone = Partial::from_json(&policy, &no_names).is_ok();
            let kept = if stands_alone { policy } else { read.to_json() };
            self.policies.insert(name.clone(), read);
            self.keep(config, SettingKey::Policy { name }, kept, key.span().start);
        }
        Ok(())
    }

    fn queue(&self, config: &mut Config, (key, value): Entry<'_, '_>) -> Result<(), ConfigError> {
        let name = self.name(key, QueueName::new)?;
        let known = [&["policy", "retention"][..], &FLOW_FIELDS].concat();
        let mut fields = self.fields(&format!("queues.{name}"), value, &known)?;
        self.check_policy(&format!("queues.{name}"), &fields, value)?;
        if let Some(retention) = fields.get("retention") {
            self.check_retention(&format!("queues.{name}.retention"), retention, value.span().start)?;
        }
        self.check_flow(&format!("queues.{name}"), &mut fields, value)?;
        let key_of = SettingKey::Queue { tenant: None, name: name.to_string() };
        self.keep(config, key_of, Value::Object(fields), key.span().start);
        Ok(())
    }

    /// Checks limits, breaker, budget and rules. Rules are kept without references to policies, as the store wants
    /// them.
    fn check_flow(
        &self,
        under: &str,
        fields: &mut Map<String, Value>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let read = Flow::from_value_with(&Value::Object(fields.clone()), &|name| self.policies.get(name).cloned());
        let flow = read.map_err(|error| {
            let path = error.pointer.replace('/', ".");
            self.wrong(value.span().start, format!("`{under}{path}`: {}", error.message))
        })?;
        if let (Some(rules), Some(flow)) = (fields.get_mut("rules"), flow) {
            *rules = Rule::list_to_value(&flow.rules);
        }
        Ok(())
    }

    fn kind(&self, config: &mut Config, (key, value): Entry<'_, '_>) -> Result<(), ConfigError> {
        let name = self.name(key, Kind::new)?;
        let mut fields = self.fields(&format!("kinds.{name}"), value, &["policy", "rules"])?;
        self.check_policy(&format!("kinds.{name}"), &fields, value)?;
        self.check_flow(&format!("kinds.{name}"), &mut fields, value)?;
        self.keep(config, SettingKey::Kind { name: name.to_string() }, Value::Object(fields), key.span().start);
        Ok(())
    }

    fn tenant(&self, config: &mut Config, (key, value): Entry<'_, '_>) -> Result<(), ConfigError> {
        let name = self.name(key, Tenant::new)?;
        let mut fields = self.fields(&format!("tenants.{name}"), value, &["webhook", "quotas"])?;
        if let Some(webhook) = fields.get("webhook") {
            let catalogue = Catalogue::default();
            let read = catalogue.read_webhook(webhook).map_err(|error| error.to_string());
            let complete = |draft| catalogue.complete_webhook(&draft, &name).map_err(|error| error.to_string());
            let whole = read.and_then(complete);
            whole.map_err(|error| self.wrong(value.span().start, format!("tenants.{name}.webhook: {error}")))?;
        }
        if let Some(quotas) = fields.remove("quotas") {
            Quotas::from_value(&quotas).map_err(|error| {
                let path = error.pointer.replace('/', ".");
                self.wrong(value.span().start, format!("`tenants.{name}.quotas{path}`: {}", error.message))
            })?;
            self.keep(config, SettingKey::Quota { tenant: Some(name.clone()) }, quotas, key.span().start);
        }
        // A file without a webhook says nothing about it: another node's may have one.
        if !fields.is_empty() {
            self.keep(config, SettingKey::Tenant { name }, Value::Object(fields), key.span().start);
        }
        Ok(())
    }

    fn defaults(&self, config: &mut Config, (key, value): Entry<'_, '_>) -> Result<(), ConfigError> {
        let fields = self.fields("defaults", value, &["policy", "giveUpOn"])?;
        self.check_policy("defaults", &fields, value)?;
        if let Some(classes) = fields.get("giveUpOn") {
            let is_pattern = |item: &Value| item.as_str().is_some_and(|text| Pattern::parse(text).is_some());
            if !classes.as_array().is_some_and(|list| list.iter().all(is_pattern)) {
                let form = "`defaults.giveUpOn` must be a list of error classes and statuses, such as [\"ValidationError\", \"4xx\"]";
                return Err(self.wrong(value.span().start, form));
            }
        }
        let key_of = SettingKey::Server { name: DEFAULTS.into() };
        self.keep(config, key_of, Value::Object(fields), key.span().start);
        Ok(())
    }

    fn rule(&self, config: &mut Config, (key, value): Entry<'_, '_>) -> Result<(), ConfigError> {
        let name = key.get_ref().to_string();
        let fields = self.fields(&format!("alerts.rules.{name}"), value, alerts::RULE_FIELDS)?;
        let rule = alerts::read_rule(&name, &fields).map_err(|reported| self.wrong(value.span().start, reported))?;
        config.add_rule(&name, rule, self.source(key.span().start))
    }

    fn keep(&self, config: &mut Config, key: SettingKey, value: Value, offset: usize) {
        config.settings.push(StoreSetting { key, value, source: self.source(offset) });
    }

    fn name<T, E: std::fmt::Display>(
        &self,
        key: &Spanned<DeString<'_>>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, ConfigError> {
        parse(key.get_ref()).map_err(|error| self.wrong(key.span().start, error.to_string()))
    }

    fn policy(&self, value: &Value) -> Result<Partial, PolicyError> {
        Partial::from_json(value, &|name| self.policies.get(name).cloned())
    }

    fn check_policy(
        &self,
        under: &str,
        fields: &Map<String, Value>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let Some(policy) = fields.get("policy") else { return Ok(()) };
        let read = self.policy(policy);
        read.map(|_| ()).map_err(|error| self.wrong(value.span().start, format!("{under}.policy: {error}")))
    }

    fn check_retention(&self, under: &str, retention: &Value, offset: usize) -> Result<(), ConfigError> {
        const STATES: &[&str] = &["succeeded", "cancelled", "failed"];
        let form = || {
            format!(
                "`{under}` must be a table of succeeded, cancelled and failed, each a duration, 0 or forever, or one of these for all"
            )
        };
        if let Some(text) = retention.as_str() {
            return if Keep::parse(text).is_some() { Ok(()) } else { Err(self.wrong(offset, form())) };
        }
        let table = retention.as_object().ok_or_else(|| self.wrong(offset, form()))?;
        for (name, keep) in table {
            let is_known = STATES.contains(&name.as_str());
            if !is_known {
                let reported = format!("`{under}.{name}` is not a known key{}", keys::hint(name, STATES));
                return Err(self.wrong(offset, reported));
            }
            if keep.as_str().and_then(Keep::parse).is_none() {
                return Err(self.wrong(offset, form()));
            }
        }
        Ok(())
    }
}

fn hint(name: &str) -> String {
    let mut known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    known.extend(TABLES);
    known.extend(["egress", "quotas", "faktory", "logs", "metrics", "alerts"]);
    keys::hint(name, &known)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text.as_ref()),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            i64::from_str_radix(&digits, number.radix()).map_or(Value::Null, |n| json!(n))
        }
        DeValue::Float(number) => number.as_str().replace('_', "").parse::<f64>().map_or(Value::Null, |n| json!(n)),
        DeValue::Datetime(moment) => json!(moment.to_string()),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(
            table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref()))).collect(),
        ),
    }
}

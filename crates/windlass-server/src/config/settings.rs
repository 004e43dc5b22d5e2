//! A node writes the settings of file and environment to the store when it starts, so that every producer (API,
//! library, SQL) sees the same settings. What they no longer name is removed again.

use super::{Config, ConfigError, Source};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use windlass::client::{NodeSetting, Setting, SettingKey, SettingSource, SettingsFault};
use windlass::protocol::DEFAULTS;
use windlass::{StoreError, Windlass};
use windlass_core::job::QueueName;
use windlass_core::policy::{attempt_variables, attempts_from_environment};
use windlass_core::quota::{Quota, Quotas};

/// Queues that a fresh installation of a message-queue worker will have.
const USUAL_QUEUES: &[&str] = &["email", "payments", "reports"];
/// The endings that a queue's name may have beyond the name in its variable.
const ENDINGS: &[&str] = &["", "_queue", "-queue"];

/// Why the settings could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Settings(#[from] SettingsFault),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes what file and environment set, under the node's name. Returns how many settings in force changed.
///
/// # Errors
/// A limit that is not a number; settings under which jobs could not be stored; a store that cannot be written to.
pub(crate) async fn write_to_store(config: &Config, windlass: &Windlass, node: &str) -> Result<usize, WriteError> {
    let mut wanted: Vec<NodeSetting> = config.settings.iter().map(|s| named(&s.key, &s.value, &s.source)).collect();
    wanted.extend(
        config
            .file_rules()
            .map(|(name, rule, source)| named(&SettingKey::Alert { name: name.clone() }, &rule.to_json(), source)),
    );
    wanted.extend(default_quotas(config)?);
    let rows = windlass.queues().rows().await?;
    let known = known_queues(config, rows.iter().map(|queue| &queue.name));
    warn_of_strays(config, &known);
    for (queue, attempts) in queue_attempts(config, known.clone())? {
        let key = SettingKey::Queue { tenant: None, name: queue.to_string() };
        let own = config.settings.iter().find(|setting| setting.key == key);
        let has_default = config.settings.iter().any(|setting| is_default_policy(&setting.key, &setting.value));
        let value = limited(own.map(|setting| setting.value.clone()).unwrap_or_default(), attempts, has_default);
        wanted.retain(|setting| setting.key != key);
        wanted.push(named(&key, &value, &Source::Environment(variables_of(config, &queue))));
    }
    for (queue, limits) in config.limited_queues(&known) {
        let key = SettingKey::Queue { tenant: None, name: queue.to_string() };
        let own = wanted.iter().find(|setting| setting.key == key);
        let own = own.and_then(|setting| serde_json::from_str(&setting.value).ok()).unwrap_or_default();
        let (value, source) = super::limits::over(own, &limits)?;
        wanted.retain(|setting| setting.key != key);
        wanted.push(named(&key, &value, &source));
    }
    let put = windlass.settings().put_of_node(node, &wanted).await?;
    put.differing.iter().for_each(warn_of_difference);
    Ok(put.changed)
}

/// The quotas of tenants that have none of their own.
fn default_quotas(config: &Config) -> Result<Option<NodeSetting>, ConfigError> {
    let mut fields = Map::new();
    let mut sources = Vec::new();
    for quota in Quota::ALL {
        let key = format!("quotas.{}", quota.as_str());
        let value = config.value(&key);
        if value.as_str() != Some("") {
            fields.insert(quota.as_str().to_owned(), value.clone());
            sources.push(config.source(&key));
        }
    }
    let Some(source) = sources.first() else { return Ok(None) };
    let value = Value::Object(fields);
    Quotas::from_value(&value).map_err(|error| {
        let path = error.pointer.replace('/', ".");
        ConfigError::new(source, format!("`quotas{path}`: {}", error.message))
    })?;
    Ok(Some(named(&SettingKey::Quota { tenant: None }, &value, source)))
}

fn named(key: &SettingKey, value: &Value, source: &Source) -> NodeSetting {
    NodeSetting { key: key.clone(), value: value.to_string(), origin: source.to_string() }
}

fn is_default_policy(key: &SettingKey, value: &Value) -> bool {
    *key == SettingKey::Server { name: DEFAULTS.into() } && value.get("policy").is_some()
}

fn warn_of_difference(other: &Setting) {
    let (scope, _, name) = other.key.parts();
    match &other.source {
        SettingSource::Operator => tracing::warn!(
            "{scope} {name}: a value set by the API or the command line is in force instead of this node's; \
             remove it there to use the file's (`windlass config` shows both)"
        ),
        SettingSource::Node { node, origin } => tracing::warn!(
            "{scope} {name}: node {node} has another value ({origin}); this node started last, so its value is in force"
        ),
    }
}

/// Existing queues, queues in the file, and the usual ones.
fn known_queues<'a>(config: &Config, existing: impl Iterator<Item = &'a QueueName>) -> BTreeSet<QueueName> {
    let mut names: BTreeSet<QueueName> = existing.cloned().collect();
    let named = config.settings.iter().filter_map(|setting| match &setting.key {
        SettingKey::Queue { name, .. } => QueueName::new(name).ok(),
        SettingKey::Kind { .. }
        | SettingKey::Policy { .. }
        | SettingKey::Tenant { .. }
        | SettingKey::Server { .. }
        | SettingKey::Alert { .. }
        | SettingKey::Secret { .. }
        | SettingKey::Quota { .. } => None,
    });
    names.extend(named);
    names.extend(USUAL_QUEUES.iter().filter_map(|name| QueueName::new(name).ok()));
    names
}

/// Names each variable that no known queue has.
fn warn_of_strays(config: &Config, known: &BTreeSet<QueueName>) {
    for (middle, _) in &config.attempts {
        let variable = format!("MAX_{middle}_RETRY_ATTEMPTS");
        if !known.iter().any(|queue| attempt_variables(queue).contains(&variable)) {
            let own = middle.to_ascii_lowercase();
            tracing::warn!(
                "{variable} matches no known queue; it will apply to queues named {own}, {own}s or {own}_queue"
            );
        }
    }
}

/// The variables that limit a queue.
fn variables_of(config: &Config, queue: &QueueName) -> String {
    let set = |name: &String| config.attempts.iter().any(|(middle, _)| *name == format!("MAX_{middle}_RETRY_ATTEMPTS"));
    attempt_variables(queue).into_iter().filter(set).collect::<Vec<_>>().join(", ")
}

/// The limits of the environment: for known queues, and for those that its variables may name.
fn queue_attempts(config: &Config, mut names: BTreeSet<QueueName>) -> Result<Vec<(QueueName, u32)>, ConfigError> {
    for (middle, _) in &config.attempts {
        let own = middle.to_ascii_lowercase();
        let other = own.strip_suffix('s').map_or_else(|| format!("{own}s"), str::to_owned);
        let stems = [own.clone(), other.clone(), own.replace('_', "-"), other.replace('_', "-")];
        let spelled = stems.iter().flat_map(|stem| ENDINGS.iter().map(move |ending| format!("{stem}{ending}")));
        names.extend(spelled.filter_map(|name| QueueName::new(&name).ok()));
    }
    let variable = |name: &str| {
        let middle = name.strip_prefix("MAX_")?.strip_suffix("_RETRY_ATTEMPTS")?;
        config.attempts.iter().find(|(m, _)| m == middle).map(|(_, text)| text.clone())
    };
    let mut limits = Vec::new();
    for name in names {
        let level = attempts_from_environment(&name, &variable)
            .map_err(|error| ConfigError::new(Source::Environment(error.field.clone()), error.message))?;
        limits.extend(level.and_then(|level| level.max_retries).map(|retries| (name, retries + 1)));
    }
    Ok(limits)
}

/// A queue's setting with its policy limited to this many attempts. A limit alone selects the policy `queue-worker`.
fn limited(setting: Value, attempts: u32, has_default: bool) -> Value {
    let mut setting = if let Value::Object(fields) = setting { fields } else { Map::new() };
    let mut policy = match setting.remove("policy") {
        Some(Value::Object(fields)) => fields,
        Some(line @ Value::String(_)) => Map::from_iter([("policy".to_owned(), line)]),
        Some(_) | None if has_default => Map::new(),
        Some(_) | None => Map::from_iter([("policy".to_owned(), Value::from("queue-worker"))]),
    };
    policy.remove("maxRetries");
    policy.insert("maxAttempts".into(), attempts.into());
    setting.insert("policy".into(), Value::Object(policy));
    Value::Object(setting)
}

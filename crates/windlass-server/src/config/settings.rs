//! A node writes the settings of file and environment to the store when it starts, so that every producer (API,
//! library, SQL) sees the same settings.

use super::{Config, ConfigError, Source};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use windlass::client::SettingKey;
use windlass::{StoreError, Windlass};
use windlass_core::job::QueueName;
use windlass_core::policy::attempts_from_environment;

/// Why the settings could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes the configured settings that differ from the store's. Returns how many differed.
///
/// # Errors
/// A limit that is not a number; a store that cannot be written to.
pub(crate) async fn write_to_store(config: &Config, windlass: &Windlass) -> Result<usize, WriteError> {
    let stored = windlass.settings().all().await?;
    let held = |key: &SettingKey| stored.iter().find(|(k, _)| k == key).map(|(_, text)| text.as_str());
    let mut wanted: Vec<(SettingKey, Value)> =
        config.settings.iter().map(|setting| (setting.key.clone(), setting.value.clone())).collect();
    let queues = windlass.queues().rows().await?;
    for (queue, attempts) in queue_attempts(config, queues.iter().map(|queue| &queue.name))? {
        let key = SettingKey::Queue { tenant: None, name: queue.to_string() };
        let position = wanted.iter().position(|(k, _)| *k == key);
        let base = position.map(|i| wanted.remove(i).1);
        let base = base.or_else(|| held(&key).and_then(|text| serde_json::from_str(text).ok()));
        wanted.push((key, limited(base.unwrap_or_default(), attempts)));
    }
    let mut written = 0;
    for (key, value) in wanted {
        let text = value.to_string();
        if held(&key) != Some(text.as_str()) {
            windlass.settings().put(&key, &text).await?;
            written += 1;
        }
    }
    Ok(written)
}

/// The queues that a limit of the environment may mean: existing queues, queues in the file, and those with its name.
fn queue_attempts<'a>(
    config: &Config,
    existing: impl Iterator<Item = &'a QueueName>,
) -> Result<Vec<(QueueName, u32)>, ConfigError> {
    let mut names: BTreeSet<QueueName> = existing.cloned().collect();
    let named = config.settings.iter().filter_map(|setting| match &setting.key {
        SettingKey::Queue { name, .. } => QueueName::new(name).ok(),
        SettingKey::Kind { .. }
        | SettingKey::Policy { .. }
        | SettingKey::Tenant { .. }
        | SettingKey::Server { .. }
        | SettingKey::Alert { .. } => None,
    });
    names.extend(named);
    for (middle, _) in &config.attempts {
        let own = middle.to_ascii_lowercase();
        let other = own.strip_suffix('s').map_or_else(|| format!("{own}s"), str::to_owned);
        let spelled = [own.clone(), other.clone(), own.replace('_', "-"), other.replace('_', "-")];
        names.extend(spelled.iter().filter_map(|name| QueueName::new(name).ok()));
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

/// A queue's setting with its policy limited to this many attempts.
fn limited(setting: Value, attempts: u32) -> Value {
    let mut setting = if let Value::Object(fields) = setting { fields } else { Map::new() };
    let mut policy = match setting.remove("policy") {
        Some(Value::Object(fields)) => fields,
        Some(line @ Value::String(_)) => Map::from_iter([("policy".to_owned(), line)]),
        Some(_) | None => Map::new(),
    };
    policy.remove("maxRetries");
    policy.insert("maxAttempts".into(), attempts.into());
    setting.insert("policy".into(), Value::Object(policy));
    Value::Object(setting)
}

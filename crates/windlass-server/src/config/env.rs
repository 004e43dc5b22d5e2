//! The environment: `WINDLASS_…` for each key, `WINDLASS_QUEUE_<QUEUE>_…` for limits, `MAX_<QUEUE>_RETRY_ATTEMPTS`,
//! and the standard variables of OpenTelemetry.

use super::keys::{self, KEYS};
use super::{Config, ConfigError, Source, limits, telemetry};

const PREFIX: &str = "WINDLASS_";
/// Variables of the command line and the tests, which are not part of the configuration.
const OTHERS: &[&str] = &["WINDLASS_CONFIG", "WINDLASS_SERVER", "WINDLASS_TOKEN"];
const TESTS: &str = "WINDLASS_TEST_";

pub(super) fn read(config: &mut Config, environment: &[(String, String)]) -> Result<(), ConfigError> {
    telemetry::read(config, environment)?;
    let known: Vec<String> = KEYS.iter().map(keys::Key::variable).collect();
    for (name, text) in environment {
        if let Some(limit) = limits::read(name, text) {
            config.limits.push(limit?);
            continue;
        }
        if let Some(queue) = queue_of(name) {
            config.attempts.push((queue, text.clone()));
            continue;
        }
        if !name.starts_with(PREFIX) || name.starts_with(TESTS) || OTHERS.contains(&name.as_str()) {
            continue;
        }
        let source = Source::Environment(name.clone());
        let Some(position) = known.iter().position(|variable| variable == name) else {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(ConfigError::new(&source, format!("is not a known setting{}", keys::hint(name, &names))));
        };
        let key = &KEYS[position];
        let value = key.form.parse(text).map_err(|form| ConfigError::new(&source, form))?;
        config.values.insert(key.name, (value, source));
    }
    Ok(())
}

/// The middle of `MAX_<QUEUE>_RETRY_ATTEMPTS`.
fn queue_of(name: &str) -> Option<String> {
    let middle = name.strip_prefix("MAX_")?.strip_suffix("_RETRY_ATTEMPTS")?;
    (!middle.is_empty()).then(|| middle.to_owned())
}

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
            config.limits.push(limit.map_err(|error| service_link(name).unwrap_or(error))?);
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
            let unknown = || ConfigError::new(&source, format!("is not a known setting{}", keys::hint(name, &names)));
            return Err(service_link(name).unwrap_or_else(unknown));
        };
        let key = &KEYS[position];
        let value = key.form.parse(text).map_err(|form| ConfigError::new(&source, form))?;
        config.values.insert(key.name, (value, source));
    }
    Ok(())
}

/// What is wrong with a variable that Kubernetes makes of a Service: `…_SERVICE_HOST`, `…_SERVICE_PORT[_NAME]`,
/// `…_PORT`, `…_PORT_80_TCP[_ADDR]`.
fn service_link(name: &str) -> Option<ConfigError> {
    const PROTOCOLS: &[&str] = &["_TCP", "_UDP", "_SCTP"];
    const PARTS: &[&str] = &["_PROTO", "_PORT", "_ADDR"];
    let whole = PARTS.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
    let is_address = whole.contains("_PORT_") && PROTOCOLS.iter().any(|protocol| whole.ends_with(protocol));
    let is_link =
        is_address || name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || name.ends_with("_PORT");
    let form = "is not a known setting: Kubernetes sets it because of a Service whose name begins with `windlass`; \
                write `enableServiceLinks: false` into the pod's spec";
    is_link.then(|| ConfigError::new(Source::Environment(name.to_owned()), form))
}

/// The middle of `MAX_<QUEUE>_RETRY_ATTEMPTS`.
fn queue_of(name: &str) -> Option<String> {
    let middle = name.strip_prefix("MAX_")?.strip_suffix("_RETRY_ATTEMPTS")?;
    (!middle.is_empty()).then(|| middle.to_owned())
}

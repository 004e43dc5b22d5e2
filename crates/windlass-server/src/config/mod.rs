//! Configuration: defaults, `windlass.toml`, the environment, flags; later ones override. Every value keeps its source.

mod alerts;
mod dotenv;
mod env;
mod file;
mod key_ring;
mod keys;
mod limits;
mod settings;
mod show;
mod telemetry;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use alerts::check_notified;
pub(crate) use key_ring::{key_ring, key_ring_of_environment};
pub(crate) use keys::without_password;
use keys::{KEYS, Key};
pub(crate) use settings::{WriteError, write_to_store};
pub(crate) use show::{Shown, masked, subject};
pub(crate) use telemetry::{Protocol, Target, TelemetrySettings};
pub(crate) use template::template;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use windlass::alert::Rule;
use windlass::client::SettingKey;
use windlass::http::Percent;
use windlass_core::Millis;

/// The file that is read if it exists.
pub(crate) const DEFAULT_FILE: &str = "windlass.toml";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// An invalid configuration: where it is wrong, and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub(crate) struct ConfigError {
    place: String,
    message: String,
}

impl ConfigError {
    fn new(place: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { place: place.to_string(), message: message.into() }
    }
}

/// A setting that is kept in the store, so that every producer sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoreSetting {
    pub(crate) key: SettingKey,
    pub(crate) value: Value,
    pub(crate) source: Source,
}

/// The effective configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    values: BTreeMap<&'static str, (Value, Source)>,
    pub(crate) settings: Vec<StoreSetting>,
    rules: Vec<(String, Rule, Source)>,
    file: Option<PathBuf>,
    /// `MAX_<QUEUE>_RETRY_ATTEMPTS`, by the middle part.
    pub(crate) attempts: Vec<(String, String)>,
    /// `WINDLASS_QUEUE_<QUEUE>_…`
    pub(crate) limits: Vec<limits::QueueLimit>,
}

/// The inputs of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// The `.env` file that was named. The environment overrides it.
    pub(crate) env_file: Option<PathBuf>,
    /// The file that was named; without one, [`DEFAULT_FILE`] if it exists.
    pub(crate) file: Option<PathBuf>,
    pub(crate) environment: Vec<(String, String)>,
    /// Keys, the flags that set them, and their values.
    pub(crate) flags: Vec<(&'static str, &'static str, Value)>,
}

impl Inputs {
    /// The variables of the `.env` file and of the environment, which overrides it.
    fn variables(&self) -> Result<Vec<(String, String)>, ConfigError> {
        let mut variables = self.env_file.as_deref().map(dotenv::read).transpose()?.unwrap_or_default();
        variables.retain(|(name, _)| !self.environment.iter().any(|(other, _)| other == name));
        variables.extend(self.environment.iter().cloned());
        Ok(variables)
    }
}

impl Config {
    /// Reads all layers.
    ///
    /// # Errors
    /// The first error: where it is, and what is accepted.
    pub(crate) fn load(inputs: &Inputs) -> Result<Self, ConfigError> {
        let mut config = Self::defaults();
        file::read(&mut config, inputs)?;
        config.override_by(inputs)
    }

    /// The same, without a file.
    ///
    /// # Errors
    /// The first error: where it is, and what is accepted.
    pub(crate) fn load_without_file(inputs: &Inputs) -> Result<Self, ConfigError> {
        Self::defaults().override_by(inputs)
    }

    fn override_by(mut self, inputs: &Inputs) -> Result<Self, ConfigError> {
        let config = &mut self;
        env::read(config, &inputs.variables()?)?;
        for (name, flag, value) in &inputs.flags {
            let key = keys::find(name).expect("flags set known keys");
            let source = Source::Flag((*flag).to_owned());
            let value = key.form.read(value).map_err(|form| ConfigError::new(&source, form))?;
            config.values.insert(key.name, (value, source));
        }
        config.check_alerts()?;
        config.check_telemetry()?;
        Ok(self)
    }

    fn defaults() -> Self {
        let value = |key: &Key| (key.name, (key.default(), Source::Default));
        Self {
            values: KEYS.iter().map(value).collect(),
            settings: Vec::new(),
            rules: Vec::new(),
            file: None,
            attempts: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// The file that was read.
    pub(crate) fn file(&self) -> Option<&std::path::Path> {
        self.file.as_deref()
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.value(name).as_str().unwrap_or_default()
    }

    pub(crate) fn source(&self, name: &str) -> &Source {
        &self.values.get(name).expect("keys that are asked for are in the table").1
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value(name).as_bool().unwrap_or_default()
    }

    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.value(name).as_u64().unwrap_or_default()
    }

    pub(crate) fn duration(&self, name: &str) -> Millis {
        Millis::parse(self.text(name)).unwrap_or_default()
    }

    pub(crate) fn percent(&self, name: &str) -> Percent {
        keys::percent(self.text(name)).expect("shares have the right form")
    }

    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let items = self.value(name).as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn value(&self, name: &str) -> &Value {
        &self.values.get(name).expect("keys that are asked for are in the table").0
    }
}

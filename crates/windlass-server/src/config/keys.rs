//! The table of known keys: their forms, defaults and what they mean.

use super::telemetry;
use serde_json::{Value, json};
use std::net::SocketAddr;
use windlass::http::{Percent, mask_credentials, mask_url};
use windlass_core::Millis;
use windlass_core::nearest::nearest;

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    /// Never shown.
    Secret,
    /// Shown without its password.
    Url,
    Address,
    /// Empty, or a path such as `/windlass`.
    Path,
    Flag,
    Whole,
    /// Empty, or a whole number above 0.
    Count,
    Duration,
    /// `50%`
    Percent,
    /// From 0 to 1: `0.01`
    Share,
    List,
    /// One of a few words.
    Word(&'static [&'static str]),
}

/// One known key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    default: &'static str,
    pub(crate) help: &'static str,
}

const fn key(name: &'static str, form: Form, default: &'static str, help: &'static str) -> Key {
    Key { name, form, default, help }
}

/// All keys that hold one value. Tables (queues, kinds, policies, tenants, defaults, alert rules) are separate.
pub(crate) const KEYS: &[Key] = &[
    key("store", Form::Url, "sqlite:windlass.db", "where jobs are kept: sqlite:PATH or postgres://…"),
    key("schema", Form::Text, "windlass", "Postgres: the schema that holds the tables"),
    key("connections", Form::Whole, "8", "Postgres: connections for ordinary statements"),
    key("keyRing", Form::Secret, "", "keys that values at rest are sealed with: NAME:KEY, the first one seals"),
    key("keyRingFile", Form::Text, "", "a file with these keys, one on each line"),
    key("listen", Form::Address, "127.0.0.1:9463", "where the API listens"),
    key("allowedHosts", Form::List, "", "host names that browsers may use for the server, in addition to localhost"),
    key("basePath", Form::Path, "", "the path under which a proxy serves Windlass, such as /windlass"),
    key("maxConnections", Form::Whole, "1024", "the most connections at once"),
    key("addressShare", Form::Percent, "50%", "the most of them that one client address holds; 100% behind a proxy"),
    key("tokenShare", Form::Percent, "50%", "the most of them that requests with one token hold"),
    key("worker", Form::Text, "", "the worker's name; if empty, made from the machine and process"),
    key("concurrency", Form::Whole, "64", "how many HTTP jobs run at once"),
    key("lease", Form::Duration, "30s", "how long a lease lasts without renewal"),
    key("grace", Form::Duration, "25s", "how long running jobs may continue after a stop"),
    key(
        "faktory.listen",
        Form::Text,
        "",
        "where the Faktory protocol is offered, such as 127.0.0.1:7419; empty: nowhere",
    ),
    key("faktory.password", Form::Secret, "", "the password of Faktory clients; needed unless it listens on loopback"),
    key("faktory.allowFlush", Form::Flag, "false", "Faktory clients may FLUSH: cancel every waiting job"),
    key("faktory.tlsCertificate", Form::Text, "", "Faktory with TLS: the certificate chain, a PEM file"),
    key("faktory.tlsKey", Form::Text, "", "Faktory with TLS: the key, a PEM file"),
    key("faktory.maxConnections", Form::Whole, "1000", "the most Faktory connections at once"),
    key("egress.allowPrivateTargets", Form::Flag, "false", "allow calls to loopback and private networks"),
    key("egress.allow", Form::List, "", "networks that calls may reach, in addition to public ones"),
    key("egress.deny", Form::List, "", "networks that calls never reach"),
    key("egress.callsPerHost", Form::Whole, "32", "the most calls at once to one host"),
    key("egress.tenantShare", Form::Percent, "50%", "the most of a node's HTTP slots that one tenant holds"),
    key("egress.hostShare", Form::Percent, "25%", "the most of a node's HTTP slots that calls to one host hold"),
    key("quotas.waiting", Form::Count, "", "the most waiting jobs of a tenant; empty: no quota"),
    key("quotas.enqueueRate", Form::Text, "", "how many jobs of a tenant a node stores per time, such as 100/s"),
    key("quotas.streams", Form::Count, "", "the most event streams of a tenant on a node"),
    key("quotas.longPolls", Form::Count, "", "the most long polls of a tenant on a node"),
    key("quotas.httpConcurrency", Form::Count, "", "the most calls to URLs at once of a tenant on a node"),
    key("logs.format", Form::Word(&["auto", "text", "json"]), "auto", "text on a terminal, JSON otherwise"),
    key("logs.level", Form::Text, "info", "what is logged: error, warn, info, debug, or a filter"),
    key("logs.jobs", Form::Flag, "true", "log each start and success of an attempt"),
    key("metrics.tenants", Form::Flag, "false", "metrics have a tenant label, which multiplies them"),
    key(
        "telemetry.endpoint",
        Form::Url,
        "",
        "the OpenTelemetry collector for traces and metrics: http://HOST:4318, gRPC http://HOST:4317; empty: none",
    ),
    key("telemetry.protocol", Form::Word(telemetry::PROTOCOLS), "http/json", "how they are sent"),
    key("telemetry.headers", Form::Secret, "", "headers for the collector: NAME=VALUE, separated by commas"),
    key(
        "telemetry.certificate",
        Form::Text,
        "",
        "the certificate authorities of an https collector, a PEM file; empty: the public ones",
    ),
    key("telemetry.traces", Form::Flag, "true", "send traces, if there is an endpoint"),
    key("telemetry.sampled", Form::Share, "1", "the share of new traces that is recorded, from 0 to 1"),
    key("telemetry.serviceName", Form::Text, "windlass", "the name of this service"),
    key("telemetry.resource", Form::List, "", "facts about this node: NAME=VALUE"),
    key("telemetry.metrics", Form::Flag, "true", "send metrics, if there is an endpoint"),
    key("telemetry.metricsInterval", Form::Duration, "60s", "how often metrics are sent"),
    key("telemetry.metricsEndpoint", Form::Url, "", "where metrics are sent; empty: where traces are"),
    key(
        "telemetry.metricsProtocol",
        Form::Word(telemetry::METRICS_PROTOCOLS),
        "same",
        "how metrics are sent; same: as traces",
    ),
    key("telemetry.metricsHeaders", Form::Secret, "", "headers for metrics; if not set, those for traces"),
    key("telemetry.metricsCertificate", Form::Text, "", "the same for metrics; if not set, that for traces"),
    key("alerts.urls", Form::List, "", "whom alerts notify: [NAME=][slack+ or pagerduty+]URL"),
    key("alerts.secret", Form::Secret, "", "signs the alerts: whsec_…"),
    key("alerts.every", Form::Duration, "10s", "how often alert rules are checked"),
];

pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// ` (did you mean …?)`, or nothing.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or_else(String::new, |k| format!("; did you mean `{k}`?"))
}

impl Key {
    pub(crate) fn default(&self) -> Value {
        self.form.parse(self.default).expect("defaults have the right form")
    }

    /// `WINDLASS_EGRESS_ALLOW`
    pub(crate) fn variable(&self) -> String {
        let mut name = String::from("WINDLASS_");
        for c in self.name.chars() {
            match c {
                '.' => name.push('_'),
                c if c.is_ascii_uppercase() => {
                    name.push('_');
                    name.push(c);
                }
                c => name.push(c.to_ascii_uppercase()),
            }
        }
        name
    }
}

impl Form {
    /// Reads a value of the file or a flag.
    ///
    /// # Errors
    /// What is accepted.
    pub(crate) fn read(self, value: &Value) -> Result<Value, String> {
        match (self, value) {
            (Self::Flag, Value::Bool(_)) => Ok(value.clone()),
            (Self::Whole, Value::Number(number)) => self.parse(&number.to_string()),
            (Self::Duration, Value::Number(number)) => self.parse(&number.to_string()),
            (Self::List, Value::Array(items)) if items.iter().all(Value::is_string) => Ok(value.clone()),
            (Self::Share, Value::Number(number)) => self.parse(&number.to_string()),
            (Self::Count, Value::Number(number)) => self.parse(&number.to_string()),
            (Self::Flag | Self::Whole | Self::List, _) => Err(self.expected()),
            (_, Value::String(text)) => self.parse(text),
            (_, _) => Err(self.expected()),
        }
    }

    /// Reads a value written as text, as in environment variables.
    ///
    /// # Errors
    /// What is accepted.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let read = match self {
            Self::Text | Self::Secret | Self::Url => Some(json!(text)),
            Self::Address => text.parse::<SocketAddr>().ok().map(|address| json!(address.to_string())),
            Self::Path => {
                let path = text.trim_end_matches('/');
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._~-".contains(c);
                let is_path = path.is_empty() || path.starts_with('/') && !path.contains("//");
                (is_path && path.chars().all(is_plain)).then(|| json!(path))
            }
            Self::Flag => match text {
                "true" | "1" | "yes" | "on" => Some(json!(true)),
                "false" | "0" | "no" | "off" => Some(json!(false)),
                _ => None,
            },
            Self::Whole => text.parse::<u64>().ok().filter(|n| *n > 0).map(|n| json!(n)),
            Self::Count if text.is_empty() => Some(json!("")),
            Self::Count => text.parse::<u64>().ok().filter(|n| *n > 0).map(|n| json!(n)),
            Self::Duration => Millis::parse(text).ok().map(|span| json!(span.to_string())),
            Self::Percent => percent(text).map(|_| json!(text)),
            Self::Share => telemetry::share(text),
            Self::List => Some(text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()),
            Self::Word(words) => words.contains(&text).then(|| json!(text)),
        };
        read.ok_or_else(|| self.expected())
    }

    fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret | Self::Url => "must be a string".into(),
            Self::Address => "must be an address and port, such as 127.0.0.1:9463".into(),
            Self::Path => "must be a path such as /windlass".into(),
            Self::Flag => "must be true or false".into(),
            Self::Whole | Self::Count => "must be a whole number above 0".into(),
            Self::Duration => "must be a duration: 500ms, 30s, 1m30s, or whole milliseconds".into(),
            Self::Percent => "must be a share from 1% to 100%".into(),
            Self::Share => "must be a number from 0 to 1, such as 0.01".into(),
            Self::List => "must be a list of texts".into(),
            Self::Word(words) => format!("must be one of {}", words.join(", ")),
        }
    }

    /// How a value is shown.
    pub(crate) fn shown(self, value: &Value) -> Value {
        match self {
            Self::Secret if value.as_str().is_some_and(|text| !text.is_empty()) => json!("***"),
            Self::Url => json!(without_password(value.as_str().unwrap_or_default())),
            Self::Secret | Self::Text | Self::Address | Self::Path | Self::Flag => value.clone(),
            Self::List => {
                let item = |item: &Value| item.as_str().map_or_else(|| item.clone(), |text| json!(mask_url(text)));
                value.as_array().into_iter().flatten().map(item).collect()
            }
            Self::Whole | Self::Count | Self::Duration | Self::Percent | Self::Share | Self::Word(_) => value.clone(),
        }
    }
}

/// Reads a share such as `50%`.
pub(crate) fn percent(text: &str) -> Option<Percent> {
    text.strip_suffix('%')?.parse().ok().and_then(Percent::new)
}

/// A URL with its password masked, wherever it is in the URL.
pub(crate) fn without_password(text: &str) -> String {
    let Ok(mut url) = url::Url::parse(text) else {
        // Several hosts, each with its port, are no URL by the standard; nor is what has a typing error.
        return mask_url(&mask_credentials(text));
    };
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return "***".into();
    }
    mask_url(url.as_str())
}

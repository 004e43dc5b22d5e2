//! Traces and metrics: where they are sent, and how.

mod variables;

pub(super) use variables::read;

use super::{Config, ConfigError, Source, without_password};
use hyper::header::{HeaderName, HeaderValue};
use serde_json::json;
use std::path::PathBuf;
use url::Url;
use windlass::http::mask_credentials;
use windlass::telemetry::SampleShare;
use windlass_core::Millis;

/// The path of traces under the address of a collector.
const TRACES_PATH: &str = "v1/traces";
/// The path of metrics.
const METRICS_PATH: &str = "v1/metrics";
/// The most headers and facts.
const MAX_PAIRS: usize = 64;
/// Metrics are not sent more often: each time, the store is asked for its gauges.
const LEAST_INTERVAL: Millis = Millis::new(100);
/// The names of the protocols, as `OTEL_EXPORTER_OTLP_PROTOCOL` has them.
pub(super) const PROTOCOLS: &[&str] = &["http/json", "http/protobuf", "grpc"];
/// The same for metrics, or as for traces.
pub(super) const METRICS_PROTOCOLS: &[&str] = &["same", "http/json", "http/protobuf", "grpc"];

/// What is sent where.
#[derive(Debug, Clone)]
pub(crate) struct TelemetrySettings {
    /// Where traces go, and the share of new ones that is recorded.
    pub(crate) traces: Option<(Target, SampleShare)>,
    /// Where metrics go, and how often.
    pub(crate) metrics: Option<(Target, Millis)>,
    pub(crate) service_name: String,
    pub(crate) resource: Vec<(String, String)>,
}

/// How requests are written and carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    HttpJson,
    HttpProtobuf,
    Grpc,
}

/// A collector, for one kind of telemetry.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) protocol: Protocol,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The certificate authorities of an https URL; without it, the public ones.
    pub(crate) certificate: Option<PathBuf>,
}

impl Config {
    /// What is sent where; none if nothing is sent.
    pub(crate) fn telemetry(&self) -> Option<TelemetrySettings> {
        let settings = self.read_telemetry().expect("these settings were checked when they were read");
        Some(settings).filter(|settings| settings.traces.is_some() || settings.metrics.is_some())
    }

    pub(super) fn check_telemetry(&self) -> Result<(), ConfigError> {
        self.read_telemetry().map(drop)
    }

    fn read_telemetry(&self) -> Result<TelemetrySettings, ConfigError> {
        let resource = self.list("telemetry.resource");
        let resource =
            pairs(resource.iter().map(String::as_str)).map_err(|why| self.wrong("telemetry.resource", &why))?;
        // The name of the service may be given among its facts only.
        let named = resource.iter().find(|(name, _)| name == "service.name");
        let named = named.filter(|_| !self.is_given("telemetry.serviceName"));
        let service_name = named.map_or(self.text("telemetry.serviceName"), |(_, value)| value).to_owned();
        if service_name.is_empty() {
            return Err(self.wrong("telemetry.serviceName", "must not be empty"));
        }
        let share = SampleShare::parse(self.text("telemetry.sampled")).expect("shares have the right form");
        let every = self.duration("telemetry.metricsInterval");
        if every < LEAST_INTERVAL {
            return Err(self.wrong("telemetry.metricsInterval", &format!("must be at least {LEAST_INTERVAL}")));
        }
        let traces = self.traces_target()?.map(|target| (target, share));
        let metrics = self.metrics_target()?.map(|target| (target, every));
        Ok(TelemetrySettings { traces, metrics, service_name, resource })
    }

    fn traces_target(&self) -> Result<Option<Target>, ConfigError> {
        let headers = self.headers("telemetry.headers")?;
        let protocol = self.protocol("telemetry.protocol");
        let url = self.endpoint("telemetry.endpoint", protocol, TRACES_PATH)?;
        let url = url.filter(|_| self.flag("telemetry.traces"));
        let certificate = self.path("telemetry.certificate");
        Ok(url.map(|url| Target { url, protocol, headers, certificate }))
    }

    /// What is not given for metrics is as for traces.
    fn metrics_target(&self) -> Result<Option<Target>, ConfigError> {
        let is_given = self.is_given("telemetry.metricsHeaders");
        let headers = self.headers(if is_given { "telemetry.metricsHeaders" } else { "telemetry.headers" })?;
        let is_same = self.text("telemetry.metricsProtocol") == "same";
        let protocol = self.protocol(if is_same { "telemetry.protocol" } else { "telemetry.metricsProtocol" });
        let url = match self.endpoint("telemetry.metricsEndpoint", protocol, METRICS_PATH)? {
            Some(url) => Some(url),
            // Whoever names another path for traces must name one for metrics too.
            None => self.endpoint("telemetry.endpoint", protocol, METRICS_PATH)?.and_then(|mut url| {
                let path = url.path().to_owned();
                if let Some(base) = path.strip_suffix(TRACES_PATH) {
                    url.set_path(&format!("{base}{METRICS_PATH}"));
                }
                (protocol == Protocol::Grpc || url.path().ends_with(METRICS_PATH)).then_some(url)
            }),
        };
        let url = url.filter(|_| self.flag("telemetry.metrics"));
        let is_given = self.is_given("telemetry.metricsCertificate");
        let certificate = self.path(if is_given { "telemetry.metricsCertificate" } else { "telemetry.certificate" });
        Ok(url.map(|url| Target { url, protocol, headers, certificate }))
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.text(key)).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn is_given(&self, key: &str) -> bool {
        *self.source(key) != Source::Default
    }

    fn wrong(&self, key: &'static str, why: &str) -> ConfigError {
        ConfigError::new(self.source(key), format!("`{key}` {why}"))
    }

    fn headers(&self, key: &'static str) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
        let headers = pairs(self.text(key).split(',')).and_then(|pairs| pairs.iter().map(header).collect());
        headers.map_err(|why| self.wrong(key, &why))
    }

    fn protocol(&self, key: &str) -> Protocol {
        match self.text(key) {
            "grpc" => Protocol::Grpc,
            "http/protobuf" => Protocol::HttpProtobuf,
            _ => Protocol::HttpJson,
        }
    }

    fn endpoint(&self, key: &'static str, protocol: Protocol, path: &str) -> Result<Option<Url>, ConfigError> {
        let text = self.text(key);
        let url = (!text.is_empty()).then(|| endpoint(text, protocol, path)).transpose();
        url.map_err(|why| self.wrong(key, &why))
    }
}

/// The URL that requests are sent to. Without a path, the usual one is added; gRPC has none.
fn endpoint(text: &str, protocol: Protocol, path: &str) -> Result<Url, String> {
    let form = match protocol {
        Protocol::HttpJson | Protocol::HttpProtobuf => {
            format!("write http://HOST:4318, or a whole URL such as https://HOST/{path}")
        }
        Protocol::Grpc => "write http://HOST:4317 or https://HOST:4317".into(),
    };
    // Without `//`, a user name is read as the scheme, and the password as the path.
    let shown = if text.contains("://") { without_password(text) } else { mask_credentials(text) };
    let mut url = Url::parse(text).map_err(|error| format!("is `{shown}`, which is not a URL ({error}); {form}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("is `{shown}`, which is not an http or https URL; {form}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("is `{shown}`: put user name and password into telemetry.headers (authorization=…)"));
    }
    url.set_fragment(None);
    match protocol {
        Protocol::HttpJson | Protocol::HttpProtobuf if url.path() == "/" => url.set_path(path),
        Protocol::HttpJson | Protocol::HttpProtobuf => {}
        Protocol::Grpc => {
            // The path of the other protocols is what the variables add, and what is left when the protocol is changed.
            if !["", "/v1/traces", "/v1/metrics"].contains(&url.path().trim_end_matches('/')) {
                return Err(format!("is `{shown}`, which has a path; gRPC has none: {form}"));
            }
            url.set_path("/");
            url.set_query(None);
        }
    }
    Ok(url)
}

/// `NAME=VALUE` each; values may be percent-encoded. Errors do not repeat values, because they may be secrets.
fn pairs<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for text in texts.map(str::trim).filter(|text| !text.is_empty()) {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or("must have the form NAME=VALUE, separated by commas")?;
        pairs.push((decoded(name.trim()), decoded(value.trim())));
    }
    if pairs.len() > MAX_PAIRS { Err(format!("has more than {MAX_PAIRS} entries")) } else { Ok(pairs) }
}

fn decoded(text: &str) -> String {
    // A form would read `+` as a space and `&` as an end.
    let form = format!("={}", text.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(form.as_bytes()).next().map_or_else(String::new, |(_, value)| value.into_owned())
}

fn header((name, value): &(String, String)) -> Result<(HeaderName, HeaderValue), String> {
    const OWN: &[&str] =
        &["host", "content-length", "content-type", "transfer-encoding", "connection", "te", "grpc-timeout"];
    let header: HeaderName =
        name.to_ascii_lowercase().parse().map_err(|_| format!("names `{name}`, which is not a header's name"))?;
    if OWN.contains(&header.as_str()) {
        return Err(format!("names `{header}`, which Windlass sets itself"));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("has a value for `{header}` with characters that no header has"))?;
    value.set_sensitive(true);
    Ok((header, value))
}

/// A share as it is kept: as it was written, if it is one.
pub(super) fn share(text: &str) -> Option<serde_json::Value> {
    SampleShare::parse(text).map(|_| json!(text))
}

//! Traces: where they go, and the standard variables of OpenTelemetry, which override the file. `WINDLASS_…` overrides
//! them.

use super::{Config, ConfigError, Source, keys, without_password};
use hyper::header::{HeaderName, HeaderValue};
use serde_json::json;
use url::Url;
use windlass::telemetry::SampleShare;

/// The path of traces under the address of a collector.
const TRACES_PATH: &str = "v1/traces";
/// The most headers and facts.
const MAX_PAIRS: usize = 64;

/// Where traces go.
#[derive(Debug, Clone)]
pub(crate) struct TelemetrySettings {
    pub(crate) endpoint: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) share: SampleShare,
    pub(crate) service_name: String,
    pub(crate) resource: Vec<(String, String)>,
}

impl Config {
    /// Where traces go; none if nothing is traced.
    pub(crate) fn telemetry(&self) -> Option<TelemetrySettings> {
        self.read_telemetry().expect("these settings were checked when they were read")
    }

    /// Checks the settings, and takes the name of the service from its facts if it is given there only.
    pub(super) fn check_telemetry(&self) -> Result<(), ConfigError> {
        self.read_telemetry().map(drop)
    }

    fn read_telemetry(&self) -> Result<Option<TelemetrySettings>, ConfigError> {
        let wrong = |key: &'static str, why: String| ConfigError::new(self.source(key), format!("`{key}` {why}"));
        let headers = pairs(self.text("telemetry.headers").split(','))
            .and_then(|pairs| pairs.iter().map(header).collect())
            .map_err(|why| wrong("telemetry.headers", why))?;
        let resource = self.list("telemetry.resource");
        let resource =
            pairs(resource.iter().map(String::as_str)).map_err(|why| wrong("telemetry.resource", why.clone()))?;
        let share = SampleShare::parse(self.text("telemetry.sampled")).expect("shares have the right form");
        let is_named = *self.source("telemetry.serviceName") != Source::Default;
        let named = resource.iter().find(|(name, _)| name == "service.name").filter(|_| !is_named);
        let service_name = named.map_or(self.text("telemetry.serviceName"), |(_, value)| value).to_owned();
        if service_name.is_empty() {
            return Err(wrong("telemetry.serviceName", "must not be empty".into()));
        }
        if self.text("telemetry.endpoint").is_empty() {
            return Ok(None);
        }
        let endpoint = endpoint(self.text("telemetry.endpoint")).map_err(|why| wrong("telemetry.endpoint", why))?;
        Ok(Some(TelemetrySettings { endpoint, headers, share, service_name, resource }))
    }
}

/// The URL that spans are sent to. Without a path, the usual one is added.
fn endpoint(text: &str) -> Result<Url, String> {
    const FORM: &str = "write http://HOST:4318, or a whole URL such as https://HOST/v1/traces";
    let shown = without_password(text);
    let mut url = Url::parse(text).map_err(|error| format!("is `{shown}`, which is not a URL ({error}); {FORM}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("is `{shown}`, which is not an http or https URL; {FORM}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("is `{shown}`: put user name and password into telemetry.headers (authorization=…)"));
    }
    url.set_fragment(None);
    if url.path() == "/" {
        url.set_path(TRACES_PATH);
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
    const OWN: &[&str] = &["host", "content-length", "content-type", "transfer-encoding", "connection"];
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

/// Reads the standard variables. Empty ones count as absent.
pub(super) fn read(config: &mut Config, environment: &[(String, String)]) -> Result<(), ConfigError> {
    let find = |name: &str| {
        let found = environment.iter().find(|(other, value)| other == name && !value.trim().is_empty());
        found.map(|(name, value)| (name.clone(), value.trim().to_owned()))
    };
    let is = |name: &str, word: &str| find(name).is_some_and(|(_, value)| value.eq_ignore_ascii_case(word));
    let is_other = find("OTEL_TRACES_EXPORTER").is_some_and(|(_, value)| value != "otlp");
    if is("OTEL_SDK_DISABLED", "true") || is_other {
        return Ok(());
    }
    let mut set = |key: &'static str, (name, value): (String, String)| -> Result<(), ConfigError> {
        let source = Source::Environment(name);
        let form = keys::find(key).expect("telemetry keys are in the table").form;
        let value = form.parse(&value).map_err(|form| ConfigError::new(&source, form))?;
        config.values.insert(key, (value, source));
        Ok(())
    };
    let base = find("OTEL_EXPORTER_OTLP_ENDPOINT")
        .map(|(name, base)| (name, format!("{}/{TRACES_PATH}", base.trim_end_matches('/'))));
    if let Some(endpoint) = find("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(base) {
        let protocol = find("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| find("OTEL_EXPORTER_OTLP_PROTOCOL"));
        if let Some((name, _)) = protocol.filter(|(_, value)| value == "grpc") {
            let form = "is grpc; Windlass sends OTLP over HTTP, in JSON: set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT to the \
                        collector's HTTP port (usually 4318) and OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to http/json, or \
                        OTEL_SDK_DISABLED to true";
            return Err(ConfigError::new(Source::Environment(name), form));
        }
        set("telemetry.endpoint", endpoint)?;
    }
    let headers = find("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| find("OTEL_EXPORTER_OTLP_HEADERS"));
    let others = [
        ("telemetry.headers", headers),
        ("telemetry.serviceName", find("OTEL_SERVICE_NAME")),
        ("telemetry.resource", find("OTEL_RESOURCE_ATTRIBUTES")),
    ];
    for (key, found) in others {
        found.map_or(Ok(()), |found| set(key, found))?;
    }
    if is("OTEL_TRACES_SAMPLER", "parentbased_traceidratio") {
        find("OTEL_TRACES_SAMPLER_ARG").map_or(Ok(()), |found| set("telemetry.sampled", found))?;
    }
    Ok(())
}

/// A share as it is kept: as it was written, if it is one.
pub(super) fn share(text: &str) -> Option<serde_json::Value> {
    SampleShare::parse(text).map(|_| json!(text))
}

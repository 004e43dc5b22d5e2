//! The standard variables of OpenTelemetry. They override the file, and `WINDLASS_…` overrides them.

use super::{METRICS_PATH, TRACES_PATH};
use crate::config::{Config, ConfigError, Source, keys};
use serde_json::{Value, json};

/// A variable that is set.
type Found = (String, String);

/// Reads the variables. Empty ones count as absent.
pub(in crate::config) fn read(config: &mut Config, environment: &[Found]) -> Result<(), ConfigError> {
    let find = |name: &str| {
        let found = environment.iter().find(|(other, value)| other == name && !value.trim().is_empty());
        found.map(|(name, value)| (name.clone(), value.trim().to_owned()))
    };
    if let Some((name, _)) = find("OTEL_SDK_DISABLED").filter(|(_, value)| value.eq_ignore_ascii_case("true")) {
        config.set("telemetry.traces", json!(false), &name);
        config.set("telemetry.metrics", json!(false), &name);
        return Ok(());
    }
    for (variable, key) in
        [("OTEL_TRACES_EXPORTER", "telemetry.traces"), ("OTEL_METRICS_EXPORTER", "telemetry.metrics")]
    {
        if let Some((name, value)) = find(variable) {
            let is_ours = value.split(',').any(|exporter| exporter.trim() == "otlp");
            config.set(key, json!(is_ours), &name);
        }
    }
    endpoints(config, &find)?;
    for (key, general, of_metrics) in [
        ("telemetry.protocol", "OTEL_EXPORTER_OTLP_PROTOCOL", "telemetry.metricsProtocol"),
        ("telemetry.headers", "OTEL_EXPORTER_OTLP_HEADERS", "telemetry.metricsHeaders"),
        ("telemetry.certificate", "OTEL_EXPORTER_OTLP_CERTIFICATE", "telemetry.metricsCertificate"),
    ] {
        for_each_signal(config, &find, (key, general, of_metrics))?;
    }
    for (key, found) in [
        ("telemetry.serviceName", find("OTEL_SERVICE_NAME")),
        ("telemetry.resource", find("OTEL_RESOURCE_ATTRIBUTES")),
        ("telemetry.metricsInterval", find("OTEL_METRIC_EXPORT_INTERVAL")),
    ] {
        config.set_found(key, found)?;
    }
    let sampler = find("OTEL_TRACES_SAMPLER").filter(|(_, sampler)| sampler == "parentbased_traceidratio");
    config.set_found("telemetry.sampled", sampler.and_then(|_| find("OTEL_TRACES_SAMPLER_ARG")))
}

/// The general endpoint is a base that paths are added to; those of a signal are whole URLs.
fn endpoints(config: &mut Config, find: &impl Fn(&str) -> Option<Found>) -> Result<(), ConfigError> {
    let under = |path: &str| {
        find("OTEL_EXPORTER_OTLP_ENDPOINT").map(|(name, base)| (name, format!("{}/{path}", base.trim_end_matches('/'))))
    };
    let of_traces = find("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let of_metrics = find("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    if let Some((name, _)) = &of_traces
        && of_metrics.is_none()
        && under(METRICS_PATH).is_none()
        && config.text("telemetry.metricsEndpoint").is_empty()
    {
        // Whoever names a place for traces only has not asked for metrics there.
        config.set("telemetry.metrics", json!(false), name);
    }
    // With one base for both, the place of metrics follows that of traces, wherever that is set.
    let of_metrics = of_metrics.or_else(|| of_traces.as_ref().and_then(|_| under(METRICS_PATH)));
    config.set_found("telemetry.endpoint", of_traces.or_else(|| under(TRACES_PATH)))?;
    config.set_found("telemetry.metricsEndpoint", of_metrics)
}

/// A variable that exists for all signals, for traces and for metrics. What is said about traces only is not taken over
/// for metrics: it may be a secret for another receiver.
fn for_each_signal(
    config: &mut Config,
    find: &impl Fn(&str) -> Option<Found>,
    (key, general, metrics_key): (&'static str, &str, &'static str),
) -> Result<(), ConfigError> {
    let of = |signal: &str| find(&general.replace("_OTLP_", &format!("_OTLP_{signal}_")));
    let (of_traces, of_metrics) = (of("TRACES"), of("METRICS"));
    if let Some((name, _)) = &of_traces {
        config.set(metrics_key, keys::find(key).expect("telemetry keys are in the table").default(), name);
        config.set_found(metrics_key, find(general))?;
    }
    config.set_found(key, of_traces.or_else(|| find(general)))?;
    config.set_found(metrics_key, of_metrics)
}

impl Config {
    fn set(&mut self, key: &'static str, value: Value, variable: &str) {
        self.values.insert(key, (value, Source::Environment(variable.to_owned())));
    }

    fn set_found(&mut self, key: &'static str, found: Option<Found>) -> Result<(), ConfigError> {
        let Some((name, value)) = found else { return Ok(()) };
        let form = keys::find(key).expect("telemetry keys are in the table").form;
        let value = form.parse(&value).map_err(|form| ConfigError::new(Source::Environment(name.clone()), form))?;
        self.set(key, value, &name);
        Ok(())
    }
}

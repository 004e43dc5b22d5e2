//! OpenTelemetry: spans and metrics of the library are sent to a collector by OTLP. Off unless an endpoint is
//! configured. Exporting never delays a job: what the queue of spans has no room for is dropped and counted.

mod collector;
mod encode;
mod queue;
mod readings;
mod sender;
mod spans;
#[cfg(test)]
mod tests;

use crate::config::{Config, Target, without_password};
use collector::{Collector, Signal};
use readings::MetricsExporter;
use sender::Sender;
use spans::SpanExporter;
use tokio_util::sync::CancellationToken;
use windlass::telemetry::Tracer;
use windlass::{Metrics, Windlass};
use windlass_core::Millis;

/// What sends traces and metrics, as far as they are configured. It must be run.
#[derive(Debug, Default)]
pub(crate) struct Exporter {
    spans: Option<SpanExporter>,
    metrics: Option<MetricsExporter>,
}

/// Traces what `windlass` does from now on, if that is configured. `node` tells its nodes apart.
///
/// # Errors
/// The store cannot be read, or certificates that the settings name cannot be used.
pub(crate) async fn start(
    config: &Config,
    windlass: &Windlass,
    metrics: Option<&Metrics>,
    node: &str,
) -> anyhow::Result<Exporter> {
    let Some(settings) = config.telemetry() else { return Ok(Exporter::default()) };
    let resource = encode::resource(&settings, node);
    let sender = |signal, target: Target| {
        let collector = Collector::new(signal, target).map_err(|why| anyhow::anyhow!("telemetry: {why}"))?;
        anyhow::Ok(Sender::new(collector, windlass.clock().clone(), windlass.random().clone()))
    };
    let mut exporter = Exporter::default();
    if let Some((target, share)) = settings.traces {
        let (queue, spans) = queue::queue();
        Tracer::start(windlass, queue.clone(), share).await?;
        tracing::info!("traces are sent to {}", without_password(target.url.as_str()));
        let sender = sender(Signal::Traces, target)?;
        exporter.spans = Some(SpanExporter::new(spans, queue, sender, resource.clone()));
    }
    if let (Some((target, every)), Some(metrics)) = (settings.metrics, metrics) {
        tracing::info!("metrics are sent to {} every {every}", without_password(target.url.as_str()));
        let sender = sender(Signal::Metrics, target)?;
        exporter.metrics = Some(MetricsExporter::new(metrics.clone(), sender, resource, every));
    }
    Ok(exporter)
}

impl Exporter {
    /// Exports until it is stopped, and then what is left, for `last` at most.
    pub(crate) async fn run(self, stop: CancellationToken, last: Millis) {
        let spans = async {
            if let Some(spans) = self.spans {
                spans.run(stop.clone(), last).await;
            }
        };
        let metrics = async {
            if let Some(metrics) = self.metrics {
                metrics.run(stop.clone(), last).await;
            }
        };
        tokio::join!(spans, metrics);
    }
}

//! Traces for OpenTelemetry: spans of the library are sent to a collector, as OTLP over HTTP in the JSON encoding. Off
//! unless an endpoint is configured. Exporting never delays a job: what the queue has no room for is dropped and
//! counted.

mod collector;
mod encode;
mod export;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use export::Exporter;

use crate::config::{Config, without_password};
use collector::Collector;
use windlass::StoreError;
use windlass::Windlass;
use windlass::telemetry::Tracer;

/// Traces what `windlass` does from now on, if an endpoint is configured. The exporter must be run.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn start(config: &Config, windlass: &Windlass) -> Result<Option<Exporter>, StoreError> {
    let Some(settings) = config.telemetry() else { return Ok(None) };
    let (queue, spans) = queue::queue();
    Tracer::start(windlass, queue.clone(), settings.share).await?;
    tracing::info!("traces are sent to {}", without_password(settings.endpoint.as_str()));
    let resource = encode::resource(&settings);
    let collector = Collector::new(settings.endpoint, settings.headers);
    let (clock, random) = (windlass.clock().clone(), windlass.random().clone());
    Ok(Some(Exporter::new(spans, queue, collector, resource, clock, random)))
}

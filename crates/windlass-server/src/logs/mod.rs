//! Logs, on standard error: text on a terminal, JSON otherwise. Never a payload or a secret.

mod json;
#[cfg(test)]
mod tests;

use crate::config::Config;
use json::JsonLines;
use std::fmt;
use std::io::IsTerminal as _;
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, ParseError, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use windlass::AttemptLog;
use windlass::protocol::ATTEMPT_TARGET;

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Sends logs to standard error; called once per process.
///
/// # Errors
/// `logs.level` is not a filter.
pub(crate) fn start(config: &Config) -> anyhow::Result<()> {
    let format = match config.text("logs.format") {
        "text" => Format::Text,
        "json" => Format::Json,
        _ if std::io::stderr().is_terminal() => Format::Text,
        _ => Format::Json,
    };
    let attempts = if config.flag("logs.jobs") { AttemptLog::On } else { AttemptLog::Off };
    let level = config.text("logs.level");
    let refused =
        |error| anyhow::anyhow!("logs.level: `{level}` is not a level (error, warn, info, debug) or filter: {error}");
    let logs = subscriber(format, level, attempts, std::io::stderr).map_err(refused)?;
    // Only a test or an embedding program can have set one before; theirs stays in use.
    let _ = logs.try_init();
    Ok(())
}

/// The layer that writes the lines that pass the filter.
pub(crate) fn subscriber<W>(
    format: Format,
    filter: &str,
    attempts: AttemptLog,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, ParseError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines: Box<dyn Layer<_> + Send + Sync> = match format {
        Format::Text => {
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let fields = debug_fn(text_field).delimited(" ");
            Box::new(
                tracing_subscriber::fmt::layer()
                    .with_target(false)
                    .fmt_fields(fields)
                    .with_ansi(colours)
                    .with_writer(writer),
            )
        }
        Format::Json => Box::new(JsonLines::new(writer)),
    };
    let filter = read(filter, attempts)?.and(filter_fn(is_discreet));
    Ok(tracing_subscriber::registry().with(lines.with_filter(filter)))
}

/// A field in a line of text, under the same name as in JSON.
fn text_field(line: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(line, "{value:?}"),
        name => write!(line, "{}={value:?}", json::camel_case(name)),
    }
}

/// A plain level applies to Windlass itself, and libraries log only warnings. Any other text is a filter.
fn read(filter: &str, attempts: AttemptLog) -> Result<EnvFilter, ParseError> {
    let is_level = filter.parse::<LevelFilter>().is_ok();
    let read = match filter {
        "off" | "error" | "warn" => EnvFilter::try_new(filter)?,
        _ if is_level => EnvFilter::try_new(format!("warn,windlass={filter}"))?,
        _ => EnvFilter::try_new(filter)?,
    };
    Ok(match attempts {
        AttemptLog::On => read,
        AttemptLog::Off => read.add_directive(format!("{ATTEMPT_TARGET}=warn").parse()?),
    })
}

/// Below `info`, drivers and protocols log statements with their parameters, and headers. Those are always excluded,
/// whatever the filter says.
fn is_discreet(line: &Metadata<'_>) -> bool {
    line.target().starts_with("windlass") || *line.level() <= Level::INFO
}

//! Logs: text on a terminal, JSON otherwise. JSON fields are camelCase, as everywhere a machine reads.

use crate::config::Config;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Sends what is logged to standard error, once per process.
pub(crate) fn start(config: &Config) {
    let filter = EnvFilter::try_new(config.text("logs.level")).unwrap_or_else(|_| EnvFilter::new("info"));
    let is_text = match config.text("logs.format") {
        "text" => true,
        "json" => false,
        _ => std::io::stderr().is_terminal(),
    };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Only a test or an embedding program can have set one before: theirs stays.
    let _ = if is_text {
        logs.with_target(false).try_init()
    } else {
        logs.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
    };
}

//! The format of lines, and which lines are written.

use super::*;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// Collects log lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldLeases(Arc<Mutex<Vec<u8>>>);

impl HeldLeases {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl std::io::Write for HeldLeases {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(format: Format, filter: &str, attempts: AttemptLog, act: impl FnOnce()) -> HeldLeases {
    let held_leases = HeldLeases::default();
    let writer = held_leases.clone();
    let subscriber = subscriber(format, filter, attempts, move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, act);
    held_leases
}

fn json(filter: &str, act: impl FnOnce()) -> Vec<Value> {
    logged(Format::Json, filter, AttemptLog::On, act).lines()
}

#[test]
fn a_json_line_has_its_time_its_level_and_its_fields_in_camel_case() {
    let lines = json("info", || {
        let request = tracing::info_span!("request", request_id = "r-1");
        let _inside = request.enter();
        tracing::warn!(tenant_id = "acme", job_id = 123_i64, max_attempts = 4_u32, delay_ms = 1000_u64, next_run_at = %"2026-01-01T12:00:01Z",
            error_class = Some("ServerError"), error = None::<&str>, "job 123 failed, retry 1/3 in 1s");
    });
    let [line] = lines.as_slice() else { panic!("one line, not {lines:?}") };
    let time = line["timestamp"].as_str().unwrap();
    assert!(time.len() > 19 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time} is not RFC 3339");
    for (field, value) in [
        ("level", Value::from("WARN")),
        ("message", "job 123 failed, retry 1/3 in 1s".into()),
        ("requestId", "r-1".into()),
        ("tenantId", "acme".into()),
        ("jobId", 123.into()),
        ("maxAttempts", 4.into()),
        ("delayMs", 1000.into()),
        ("nextRunAt", "2026-01-01T12:00:01Z".into()),
        ("errorClass", "ServerError".into()),
        ("error", Value::Null),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    assert!(line.get("error").is_none(), "absent fields are omitted");
}

#[test]
fn a_text_line_is_readable() {
    let held_leases = logged(Format::Text, "info", AttemptLog::On, || tracing::warn!(job_id = 7, "job 7 failed"));
    assert!(
        held_leases.text().contains("WARN") && held_leases.text().contains("job 7 failed"),
        "{}",
        held_leases.text()
    );
}

#[test]
fn a_level_applies_to_windlass_and_libraries_log_only_warnings() {
    let lines = json("debug", || {
        tracing::debug!("ours");
        tracing::info!(target: "hyper", "theirs");
        tracing::warn!(target: "hyper", "their warning");
    });
    let messages: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["ours", "their warning"]);
}

#[test]
fn no_filter_makes_a_driver_log_its_parameters() {
    let lines = json("trace,tokio_postgres=trace", || {
        tracing::debug!(target: "tokio_postgres::query", "executing statement with parameters: [\"secret\"]");
        tracing::trace!("ours");
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn lines_about_each_attempt_can_be_turned_off() {
    let act = || {
        tracing::info!(target: ATTEMPT_TARGET, "job 1 email: attempt 1/4");
        tracing::info!("started");
    };
    assert_eq!(logged(Format::Json, "info", AttemptLog::On, act).lines().len(), 2);
    let lines = logged(Format::Json, "info", AttemptLog::Off, act).lines();
    assert_eq!((lines.len(), &lines[0]["message"]), (1, &Value::from("started")));
}

#[test]
fn an_invalid_filter_is_refused() {
    assert!(subscriber(Format::Json, "windlass=loud", AttemptLog::On, std::io::stderr).is_err());
}

//! The measurements: a table for reading, JSON for programs.

use super::ceiling::Ceiling;
use super::cost::Cost;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) jobs: usize,
    pub(crate) cost: Cost,
    /// Milliseconds: p50, p99, max.
    pub(crate) latency: Option<[f64; 3]>,
}

impl Figure {
    pub(crate) fn rate(what: String, jobs: usize, cost: Cost) -> Self {
        Self { what, jobs, cost, latency: None }
    }

    /// From single latencies, in milliseconds.
    pub(crate) fn latency(what: String, jobs: usize, cost: Cost, mut waits: Vec<f64>) -> Self {
        waits.sort_by(f64::total_cmp);
        let at = |share: f64| waits.get(((waits.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0);
        Self { what, jobs, cost, latency: Some([at(0.5), at(0.99), at(1.0)]) }
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.jobs as f64 / self.cost.seconds.max(1e-9)
    }
}

const LEGEND: &str = "
ratio: to the ceiling's drain. Per job: processor time of this process and of the database server, and bytes written (the
server's: to its log). MiB: the most memory this process held.
";

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

/// All results of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) store: String,
    pub(crate) durability: String,
    pub(crate) payload: usize,
    pub(crate) ceiling: Ceiling,
    pub(crate) figures: Vec<Figure>,
}

impl Report {
    /// The table, with a bar to scale against the ceiling.
    pub(crate) fn table(&self) -> String {
        let widest = self.figures.iter().map(|f| f.what.chars().count()).max().unwrap_or(0).max(24);
        let mut out = format!("{} ({}), {} bytes of payload\n", self.store, self.durability, self.payload);
        let _ =
            writeln!(out, "raw ceiling: {:.0} inserts/s, {:.0} drained/s\n", self.ceiling.insert, self.ceiling.drain);
        let _ = writeln!(
            out,
            "{:<widest$}  {:>8}  {:>5}  {:>6}  {:>9}  {:>7}  {:>6}",
            "", "jobs/s", "ratio", "cpu µs", "server µs", "bytes", "MiB"
        );
        for figure in &self.figures {
            let per_job = |total: f64| total / figure.jobs.max(1) as f64;
            if let Some([p50, p99, max]) = figure.latency {
                let _ = writeln!(out, "{:<widest$}  p50 {p50:.3} ms  p99 {p99:.3} ms  max {max:.3} ms", figure.what);
                continue;
            }
            let ratio = figure.per_second() / self.ceiling.drain;
            let bar = "█".repeat((ratio.clamp(0.0, 3.0) * 20.0) as usize);
            let _ = writeln!(
                out,
                "{:<widest$}  {:>8.0}  {ratio:>5.2}  {:>6.1}  {:>9.1}  {:>7.0}  {:>6.0}  {bar}",
                figure.what,
                figure.per_second(),
                per_job(figure.cost.cpu_seconds * 1e6),
                per_job(figure.cost.server_cpu_seconds * 1e6),
                per_job(figure.cost.written as f64),
                mebibytes(figure.cost.peak_bytes),
            );
        }
        out.push_str(LEGEND);
        out
    }

    /// The rates as bars.
    pub(crate) fn svg(&self) -> String {
        super::plot::draw(self)
    }

    pub(crate) fn json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("store".into(), json!(self.store));
        fields.insert("durability".into(), json!(self.durability));
        fields.insert("payloadBytes".into(), json!(self.payload));
        fields.insert("ceilingPerSec".into(), json!(self.ceiling.drain.round()));
        fields.insert("ceilingInsertPerSec".into(), json!(self.ceiling.insert.round()));
        let rate_of = |name: &str| self.figures.iter().find(|f| f.what.starts_with(name)).map(Figure::per_second);
        for (key, name) in [("enqueuePerSec", "enqueue in bulk"), ("drainPerSec", "drain")] {
            fields.insert(key.into(), json!(rate_of(name).map(f64::round)));
        }
        let ratio = rate_of("drain").map(|rate| (rate / self.ceiling.drain * 1000.0).round() / 1000.0);
        fields.insert("drainRatio".into(), json!(ratio));
        fields.insert("figures".into(), self.figures.iter().map(figure_json).collect());
        Value::Object(fields)
    }
}

fn figure_json(figure: &Figure) -> Value {
    let jobs = figure.jobs.max(1) as f64;
    json!({
        "what": figure.what,
        "jobs": figure.jobs,
        "perSec": figure.per_second().round(),
        "cpuMicrosPerJob": (figure.cost.cpu_seconds * 1e7 / jobs).round() / 10.0,
        "serverCpuMicrosPerJob": (figure.cost.server_cpu_seconds * 1e7 / jobs).round() / 10.0,
        "peakMebibytes": mebibytes(figure.cost.peak_bytes).round(),
        "bytesWrittenPerJob": (figure.cost.written as f64 / jobs).round(),
        "latencyMs": figure.latency.map(|[p50, p99, max]| json!({"p50": p50, "p99": p99, "max": max})),
    })
}

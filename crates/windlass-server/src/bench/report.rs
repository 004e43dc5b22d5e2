//! The measurements: a table for reading, JSON for programs.

use super::cost::Cost;
use super::raw::{Raw, Step};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) jobs: usize,
    pub(crate) cost: Cost,
    /// Milliseconds: p50, p99, max.
    pub(crate) latency: Option<[f64; 3]>,
    pub(crate) against: Against,
}

/// What a figure is compared to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Against {
    Nothing,
    /// A step of the bare database, in the same run.
    Raw(Step),
    /// A latency, compared to one insert and its commit.
    OneCommit,
    /// A rate measured in the same scenario.
    Rate(String, f64),
}

/// A ratio and what it is a ratio of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) ratio: f64,
    pub(crate) of: String,
}

impl Figure {
    pub(crate) fn rate(what: String, jobs: usize, cost: Cost) -> Self {
        Self { what, jobs, cost, latency: None, against: Against::Nothing }
    }

    /// From single latencies, in milliseconds.
    pub(crate) fn latency(what: String, jobs: usize, cost: Cost, mut waits: Vec<f64>) -> Self {
        let latency = [0.5, 0.99, 1.0].map(|share| quantile(&mut waits, share));
        Self { what, jobs, cost, latency: Some(latency), against: Against::Nothing }
    }

    pub(crate) fn against(self, against: Against) -> Self {
        Self { against, ..self }
    }

    pub(crate) fn of_step(self, step: Step) -> Self {
        self.against(Against::Raw(step))
    }

    pub(crate) fn of(self, other: &Self) -> Self {
        self.against(Against::Rate(other.what.clone(), other.per_second()))
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.jobs as f64 / self.cost.seconds.max(1e-9)
    }

    /// Counts another measurement of the same thing too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.cost.add(other.cost);
    }

    fn ratio(&self, raw: &Raw) -> Option<Ratio> {
        match &self.against {
            Against::Nothing => None,
            Against::Raw(step) => {
                let ratio = self.per_second() / raw.rate(*step)?;
                Some(Ratio { ratio, of: step.name().to_owned() })
            }
            Against::OneCommit => {
                let [p50, ..] = self.latency?;
                Some(Ratio { ratio: p50 / raw.commit_ms().max(1e-9), of: "one raw insert's commit".into() })
            }
            Against::Rate(of, rate) => Some(Ratio { ratio: self.per_second() / rate.max(1e-9), of: of.clone() }),
        }
    }
}

/// The value below which this share of `values` lies.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0)
}

const LEGEND: &str = "
ratio: to the rate named after it, measured in the same run; of a latency: p50 to one raw insert and its commit.
Per job: processor time of this process and of the database server in µs, bytes written (the server's: to its log), and
syncs of the server's log per 1000 jobs (the server updates that count once a second). MiB: the most memory this process held.
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
    pub(crate) raw: Raw,
    pub(crate) figures: Vec<Figure>,
}

impl Report {
    /// The raw ceilings first, then what was measured.
    pub(super) fn all(&self) -> impl Iterator<Item = &Figure> {
        self.raw.figures.iter().map(|(_, figure)| figure).chain(&self.figures)
    }

    pub(super) fn ratio(&self, figure: &Figure) -> Option<Ratio> {
        figure.ratio(&self.raw)
    }

    pub(crate) fn table(&self) -> String {
        let widest = self.all().map(|f| f.what.chars().count()).max().unwrap_or(0).max(24);
        let mut out = format!("{} ({}), {} bytes of payload\n", self.store, self.durability, self.payload);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "one raw insert and its commit: {:.3} ms\n", self.raw.commit_ms());
        let _ = writeln!(
            out,
            "{:<widest$}  {:>8}  {:>6}  {:>9}  {:>7}  {:>6}  {:>4}  ratio",
            "", "jobs/s", "cpu µs", "server µs", "bytes", "syncs", "MiB"
        );
        for figure in self.all() {
            let per_job = |total: f64| total / figure.jobs.max(1) as f64;
            let ratio = self.ratio(figure).map_or_else(String::new, |r| format!("{:.2} of {}", r.ratio, r.of));
            if let Some([p50, p99, max]) = figure.latency {
                let _ = writeln!(
                    out,
                    "{:<widest$}  p50 {p50:.3} ms  p99 {p99:.3} ms  max {max:.3} ms  {ratio}",
                    figure.what
                );
                continue;
            }
            let _ = writeln!(
                out,
                "{:<widest$}  {:>8.0}  {:>6.1}  {:>9.1}  {:>7.0}  {:>6.1}  {:>4.0}  {ratio}",
                figure.what,
                figure.per_second(),
                per_job(figure.cost.cpu_seconds * 1e6),
                per_job(figure.cost.server_cpu_seconds * 1e6),
                per_job(figure.cost.written as f64),
                per_job(figure.cost.syncs as f64 * 1000.0),
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

    pub(crate) fn json(&self, label: Option<&str>) -> Value {
        json!({
            "label": label,
            "store": self.store,
            "durability": self.durability,
            "payloadBytes": self.payload,
            "commitMs": self.raw.commit_ms(),
            "figures": self.all().map(|figure| self.figure_json(figure)).collect::<Vec<Value>>(),
        })
    }

    fn figure_json(&self, figure: &Figure) -> Value {
        let jobs = figure.jobs.max(1) as f64;
        let ratio = self.ratio(figure);
        json!({
            "what": figure.what,
            "jobs": figure.jobs,
            "perSec": figure.per_second().round(),
            "ratio": ratio.as_ref().map(|r| (r.ratio * 1000.0).round() / 1000.0),
            "ratioOf": ratio.map(|r| r.of),
            "cpuMicrosPerJob": (figure.cost.cpu_seconds * 1e7 / jobs).round() / 10.0,
            "serverCpuMicrosPerJob": (figure.cost.server_cpu_seconds * 1e7 / jobs).round() / 10.0,
            "bytesWrittenPerJob": (figure.cost.written as f64 / jobs).round(),
            "syncsPerThousandJobs": (figure.cost.syncs as f64 * 1e4 / jobs).round() / 10.0,
            "peakMebibytes": mebibytes(figure.cost.peak_bytes).round(),
            "latencyMs": figure.latency.map(|[p50, p99, max]| json!({"p50": p50, "p99": p99, "max": max})),
        })
    }
}

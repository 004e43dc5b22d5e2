//! A summary of several runs: the median of each figure, with the least and the greatest, as Markdown.

use super::report::quantile;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The runs of one build on one store.
#[derive(Debug)]
struct Group {
    name: String,
    /// In the order of the first run.
    rows: Vec<Row>,
    runs: usize,
}

/// All measurements of one figure.
#[derive(Debug)]
struct Row {
    what: String,
    ratio_of: Option<String>,
    figures: Vec<Value>,
}

/// Reads reports that `--json` printed and writes a table for each build and store.
///
/// # Errors
/// A file cannot be read or is no report.
pub(crate) fn summary(files: &[PathBuf]) -> Result<String> {
    let mut groups: Vec<Group> = Vec::new();
    for file in files {
        add(&mut groups, &read(file)?);
    }
    let mut out = String::new();
    for group in &groups {
        group.write(&mut out);
    }
    Ok(out)
}

fn read(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a report of `bench --json`", file.display()))
}

fn add(groups: &mut Vec<Group>, report: &Value) {
    let label = report["label"].as_str().map_or_else(String::new, |label| format!(", {label}"));
    let name = format!("{}{label}", report["store"].as_str().unwrap_or("unknown store"));
    let place = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
        groups.push(Group { name, rows: Vec::new(), runs: 0 });
        groups.len() - 1
    });
    let group = &mut groups[place];
    group.runs += 1;
    for figure in report["figures"].as_array().into_iter().flatten() {
        // The part after a colon is a result, which differs from run to run.
        let what = figure["what"].as_str().unwrap_or_default();
        let title = what.split(": ").next().filter(|_| what.starts_with("fairness") || what.starts_with("idle"));
        let what = title.unwrap_or(what).to_owned();
        match group.rows.iter_mut().find(|row| row.what == what) {
            Some(row) => row.figures.push(figure.clone()),
            None => {
                let ratio_of = figure["ratioOf"].as_str().map(str::to_owned);
                group.rows.push(Row { what, ratio_of, figures: vec![figure.clone()] });
            }
        }
    }
}

impl Group {
    fn write(&self, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "### {}\n\nMedians of {} runs (least to greatest).\n", self.name, self.runs);
        out.push_str("| | jobs/s | ratio | worker µs/job | server µs/job | bytes/job | syncs/1000 jobs |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for row in &self.rows {
            row.write(out);
        }
        out.push('\n');
    }
}

impl Row {
    fn write(&self, out: &mut String) {
        let rate = match (self.middle("/latencyMs/p50"), self.middle("/latencyMs/p99")) {
            (Some(p50), Some(p99)) => format!("p50 {p50:.2} ms, p99 {p99:.2} ms"),
            _ => self.spread("/perSec", 0),
        };
        let ratio = match &self.ratio_of {
            Some(of) => format!("{} of {of}", self.spread("/ratio", 2)),
            None => String::new(),
        };
        let mean = |field: &str| self.middle(field).map_or_else(String::new, |value| format!("{value:.1}"));
        let results: Vec<&str> =
            self.figures.iter().filter_map(|f| f["what"].as_str()?.split_once(": ").map(|(_, rest)| rest)).collect();
        let results = if self.figures.iter().all(|f| f["what"] == self.what.as_str()) { Vec::new() } else { results };
        let what =
            if results.is_empty() { self.what.clone() } else { format!("{}: {}", self.what, results.join("; ")) };
        let _ = writeln!(
            out,
            "| {what} | {rate} | {ratio} | {} | {} | {} | {} |",
            mean("/cpuMicrosPerJob"),
            mean("/serverCpuMicrosPerJob"),
            self.middle("/bytesWrittenPerJob").map_or_else(String::new, |value| format!("{value:.0}")),
            mean("/syncsPerThousandJobs"),
        );
    }

    fn values(&self, field: &str) -> Vec<f64> {
        self.figures.iter().filter_map(|figure| figure.pointer(field)?.as_f64()).collect()
    }

    fn middle(&self, field: &str) -> Option<f64> {
        let mut values = self.values(field);
        (!values.is_empty()).then(|| quantile(&mut values, 0.5))
    }

    fn spread(&self, field: &str, digits: usize) -> String {
        let mut values = self.values(field);
        let [least, middle, most] = [0.0, 0.5, 1.0].map(|share| quantile(&mut values, share));
        if values.len() < 2 {
            return format!("{middle:.digits$}");
        }
        format!("{middle:.digits$} ({least:.digits$}-{most:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(rate: u64, ratio: f64, spread: &str) -> Value {
        json!({"store": "sqlite on sqlite 3", "label": "new", "figures": [
            {"what": "drain, 10 jobs", "perSec": rate, "ratio": ratio, "ratioOf": "raw", "cpuMicrosPerJob": 1.0,
             "serverCpuMicrosPerJob": 0.0, "bytesWrittenPerJob": 500.0, "syncsPerThousandJobs": 0.0, "latencyMs": null},
            {"what": format!("fairness: {spread}"), "perSec": 7, "latencyMs": null},
        ]})
    }

    #[test]
    fn the_median_of_several_runs_stands_with_the_least_and_the_greatest() {
        let mut groups = Vec::new();
        for (rate, ratio, spread) in [(100, 0.5, "1 to 3"), (300, 0.9, "2 to 2"), (200, 0.7, "1 to 2")] {
            add(&mut groups, &report(rate, ratio, spread));
        }
        let mut out = String::new();
        groups[0].write(&mut out);
        assert!(out.contains("### sqlite on sqlite 3, new\n\nMedians of 3 runs"), "{out}");
        let drain = "| drain, 10 jobs | 200 (100-300) | 0.70 (0.50-0.90) of raw | 1.0 | 0.0 | 500 | 0.0 |";
        assert!(out.contains(drain), "{out}");
        assert!(out.contains("| fairness: 1 to 3; 2 to 2; 1 to 2 | 7 (7-7) |"), "{out}");
    }
}

//! Raw ceilings: the same database with a plain driver and without Windlass, in tables with only the columns this
//! needs. Every statement can be read with `--show-sql`.

pub(super) mod postgres;
mod sqlite;

use super::cost::Gauge;
use super::load::Load;
use super::report::Figure;
use super::target::Target;
use anyhow::Result;

/// Batches of the bulk steps.
const BATCH: usize = 1000;
/// Connections that insert at the same time.
const CONNECTIONS: usize = 16;
/// Single inserts per connection: each is a commit, so few are enough.
const INSERTS: usize = 400;

/// A step of the bare database that figures are compared to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// One insert per commit on one connection.
    Insert,
    /// The same on sixteen connections.
    Inserts,
    /// 1000 rows per commit.
    Bulk,
    /// Claim 1000 rows in one commit, delete them in another. No history.
    Drain,
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "raw insert, 1 connection",
            Self::Inserts => "raw insert, 16 connections",
            Self::Bulk => "raw bulk insert, 1000 a call",
            Self::Drain => "raw claim + delete, 1000 a call",
        }
    }
}

/// What the bare database did. `latencies` are the times of single inserts, in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raw {
    pub(crate) figures: Vec<(Step, Figure)>,
    latencies: Vec<f64>,
}

impl Raw {
    /// Both measurements as one, so that a machine that changed its speed in between counts with both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        for (step, figure) in other.figures {
            match self.figures.iter_mut().find(|(known, _)| *known == step) {
                Some((_, known)) => known.add(&figure),
                None => self.figures.push((step, figure)),
            }
        }
        self.latencies.extend(other.latencies);
        self
    }

    /// Jobs per second of a step, if this database has it.
    pub(crate) fn rate(&self, step: Step) -> Option<f64> {
        self.figures.iter().find(|(known, _)| *known == step).map(|(_, figure)| figure.per_second())
    }

    /// The median time of one insert and its commit, in milliseconds.
    pub(crate) fn commit_ms(&self) -> f64 {
        super::report::quantile(&mut self.latencies.clone(), 0.5)
    }

    fn add(&mut self, step: Step, figure: Figure) {
        self.figures.push((step, Figure { what: step.name().to_owned(), ..figure }));
    }
}

pub(crate) async fn measure(target: &Target, load: Load, gauge: &Gauge) -> Result<Raw> {
    match target {
        Target::Sqlite { path, .. } => sqlite::measure(&format!("{path}.raw"), load, gauge).await,
        Target::Postgres { url, .. } => postgres::measure(url, load, gauge).await,
    }
}

/// The statements, for readers.
pub(crate) fn statements(target: &Target) -> String {
    match target {
        Target::Sqlite { .. } => sqlite::statements(),
        Target::Postgres { .. } => postgres::statements(),
    }
}

/// Statements under their titles.
fn titled(parts: &[(&str, &str)]) -> String {
    parts.iter().map(|(title, sql)| format!("-- {title}\n{};\n\n", sql.trim().trim_end_matches(';'))).collect()
}

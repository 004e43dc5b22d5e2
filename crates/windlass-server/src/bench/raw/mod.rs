//! The ceiling: the same steps of a job (insert, claim, finish with attempts and archive) on the bare database with
//! a plain driver, one batch after another on one connection.

pub(super) mod postgres;
mod sqlite;

use super::{Load, Target};
use anyhow::Result;

/// Jobs per second of the bare database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceiling {
    pub(crate) insert: f64,
    /// Claim and finish.
    pub(crate) drain: f64,
}

impl Ceiling {
    /// The harmonic mean of two measurements.
    pub(crate) fn between(one: Self, other: Self) -> Self {
        let mean = |a: f64, b: f64| 2.0 / (1.0 / a + 1.0 / b);
        Self { insert: mean(one.insert, other.insert), drain: mean(one.drain, other.drain) }
    }
}

pub(crate) async fn ceiling(target: &Target, load: Load, batch: usize) -> Result<Ceiling> {
    match target {
        Target::Sqlite { path, .. } => {
            let path = format!("{path}.ceiling");
            tokio::task::spawn_blocking(move || sqlite::measure(&path, load, batch)).await?
        }
        Target::Postgres { url, .. } => postgres::measure(url, load, batch).await,
    }
}

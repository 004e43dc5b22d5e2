//! The fence: what the leases of some commits hold. A commit applies only if its lease exists, holds its job for that
//! attempt, and the attempt has not ended. The first two are judged here, on rows that are locked until the transaction
//! ends; the key of `attempts` guards the third.

use crate::store::gates::passes::{Passed, Passes};
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::gates;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Commit, StoreError};
use std::collections::{HashMap, HashSet};

/// The leases that commits name.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Fence {
    leases: HashMap<i64, Lease>,
    /// Whether a schedule waits for the end of its only run.
    pub(in crate::store::postgres) has_spent: bool,
    /// The gates that jobs under these leases have passed, by lease.
    passes: HashMap<i64, Passes>,
}

/// A job that runs under a lease, and what its row said when it waited. `None`: as it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::postgres) struct Held {
    pub(in crate::store::postgres) attempt: i32,
    pub(in crate::store::postgres) claimed_at: i64,
    pub(in crate::store::postgres) due_at: Option<i64>,
    pub(in crate::store::postgres) first_attempt_at: Option<i64>,
    pub(in crate::store::postgres) previous_delay: Option<i64>,
    pub(in crate::store::postgres) replays: Option<i32>,
    pub(in crate::store::postgres) priority: Option<i16>,
    pub(in crate::store::postgres) is_cancelled: bool,
}

#[derive(Debug)]
struct Lease {
    claimed_at: i64,
    /// Where each job stands in the arrays.
    places: HashMap<i64, usize>,
    attempts: Vec<Option<i32>>,
    replays: Vec<Option<i32>>,
    delays: Vec<Option<i64>>,
    firsts: Vec<Option<i64>>,
    dues: Vec<Option<i64>>,
    priorities: Vec<Option<i16>>,
    cancels: HashSet<i64>,
}

impl Fence {
    /// Locks the leases that these commits name.
    pub(in crate::store::postgres) async fn lock(on: On<'_>, commits: &[Commit]) -> Result<Self, StoreError> {
        let ids: HashSet<i64> = commits.iter().map(|commit| commit.lease.0).collect();
        if ids.is_empty() {
            return Ok(Self::default());
        }
        let ids: Vec<i64> = ids.into_iter().collect();
        let rows = on.query(Sql::LeaseLock, &[&ids]).await?;
        let mut fence = Self::default();
        for row in &rows {
            let c = Columns::new(row);
            fence.has_spent = c.get("has_spent")?;
            let id = c.get("id")?;
            if let Some(text) = c.get::<Option<&str>>("passes")? {
                fence.passes.insert(id, gates::passes_in(id, text)?);
            }
            fence.leases.insert(id, Lease::read(row)?);
        }
        Ok(fence)
    }

    /// The gates that the job of a commit passed.
    pub(in crate::store::postgres) fn passed(&self, commit: &Commit) -> Option<&Passed> {
        self.passes.get(&commit.lease.0)?.of(commit.job)
    }

    /// What is held for a commit; `None` if its lease has ended or is not for this attempt.
    pub(in crate::store::postgres) fn held(&self, commit: &Commit) -> Option<Held> {
        let lease = self.leases.get(&commit.lease.0)?;
        let held = lease.held(commit.job.0)?;
        (held.attempt == commit.attempt as i32).then_some(held)
    }
}

impl Lease {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        let ids: Vec<i64> = c.get("job_ids")?;
        Ok(Self {
            claimed_at: c.get("claimed_at")?,
            places: ids.into_iter().enumerate().map(|(place, id)| (id, place)).collect(),
            attempts: c.get::<Option<_>>("attempts")?.unwrap_or_default(),
            replays: c.get::<Option<_>>("replays")?.unwrap_or_default(),
            delays: c.get::<Option<_>>("previous_delays")?.unwrap_or_default(),
            firsts: c.get::<Option<_>>("first_attempts_at")?.unwrap_or_default(),
            dues: c.get::<Option<_>>("dues_at")?.unwrap_or_default(),
            priorities: c.get::<Option<_>>("priorities")?.unwrap_or_default(),
            cancels: c.get::<Option<Vec<i64>>>("cancels")?.unwrap_or_default().into_iter().collect(),
        })
    }

    fn held(&self, job: i64) -> Option<Held> {
        let place = *self.places.get(&job)?;
        Some(Held {
            // Jobs without a past are at their first attempt.
            attempt: at(&self.attempts, place).unwrap_or(1),
            claimed_at: self.claimed_at,
            due_at: at(&self.dues, place),
            first_attempt_at: at(&self.firsts, place),
            previous_delay: at(&self.delays, place),
            replays: at(&self.replays, place),
            priority: at(&self.priorities, place),
            is_cancelled: self.cancels.contains(&job),
        })
    }
}

impl Held {
    /// Whether the job is as it was stored, at its first attempt.
    pub(in crate::store::postgres) fn is_first(&self) -> bool {
        self.attempt == 1 && self.due_at.is_none()
    }

    /// When the first attempt of its allowance was claimed.
    pub(in crate::store::postgres) fn began_at(&self) -> i64 {
        self.first_attempt_at.unwrap_or(self.claimed_at)
    }
}

fn at<T: Copy>(values: &[Option<T>], place: usize) -> Option<T> {
    values.get(place).copied().flatten()
}

//! Successes in bulk. Most jobs succeed and leave nothing but that: a batch of them moves to the archive in three statements
//! instead of four per job. Whatever is not that simple takes the way of `finish`.

use super::finish::Batch;
use super::retention::keep;
use super::rows;
use super::sql::sql;
use super::tx::Tx;
use crate::store::{Commit, Keep, StoreError};
use rusqlite::params;
use std::collections::HashMap;
use std::fmt::Write;
use windlass_core::{JobId, State, Timestamp};

/// Fewer than this are not worth the setting up.
const FEWEST: usize = 4;

/// A running job, as far as a success must know it.
struct Held {
    /// Its place in the list that was asked for.
    place: usize,
    attempt: u32,
    lease: i64,
    failures: u32,
    schedule: Option<JobId>,
}

impl Tx<'_> {
    /// Applies what can be applied in bulk; answers for each commit whether that was done.
    pub(super) fn finish_bulk(&mut self, commits: &[Commit], batch: &Batch<'_>) -> Result<Vec<bool>, StoreError> {
        let mut is_applied = vec![false; commits.len()];
        let mut plain = self.plain(commits)?;
        if plain.len() < FEWEST {
            return Ok(is_applied);
        }
        // In the order of the table, and each job once.
        plain.sort_by_key(|place| commits[*place].job);
        plain.dedup_by_key(|place| commits[*place].job);
        let mut by_worker: HashMap<&str, Vec<&Commit>> = HashMap::new();
        for held in self.held(plain.iter().map(|place| commits[*place].job))? {
            let place = plain[held.place];
            let commit = &commits[place];
            let is_held = held.attempt == commit.attempt && held.lease == commit.lease.0;
            let is_ending = held.schedule.is_some_and(|schedule| batch.ending.contains(&schedule));
            if is_held && !is_ending && held.failures == commit.retry {
                is_applied[place] = true;
                by_worker.entry(&commit.worker).or_default().push(commit);
            }
        }
        for (worker, succeeded) in by_worker {
            self.archive_bulk(worker, &succeeded)?;
        }
        Ok(is_applied)
    }

    /// The places of plain successes of queues that keep them.
    fn plain(&mut self, commits: &[Commit]) -> Result<Vec<usize>, StoreError> {
        let mut places = Vec::with_capacity(commits.len());
        for (place, commit) in commits.iter().enumerate() {
            if commit.is_plain() {
                let retention = self.retentions.of(self.conn, self.names, commit.queue)?;
                if keep(retention, State::Succeeded) != Keep::Drop {
                    places.push(place);
                }
            }
        }
        Ok(places)
    }

    fn held(&self, jobs: impl Iterator<Item = JobId>) -> Result<Vec<Held>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("bulk_held"))?;
        rows::all(select.query([list(jobs)])?, |row| {
            Ok(Held {
                place: row.get::<_, i64>(0)? as usize,
                attempt: row.get(1)?,
                lease: row.get(2)?,
                failures: row.get(3)?,
                schedule: row.get::<_, Option<i64>>(4)?.map(JobId),
            })
        })
    }

    /// Moves running jobs that one worker has brought to success.
    fn archive_bulk(&self, worker: &str, commits: &[&Commit]) -> Result<(), StoreError> {
        let ids = list(commits.iter().map(|commit| commit.job));
        let started = digits(commits.iter().map(|commit| commit.started_at));
        let finished = digits(commits.iter().map(|commit| commit.finished_at));
        let moved = params![ids, self.now.as_millis(), started.as_bytes(), finished.as_bytes(), worker];
        self.conn.prepare_cached(sql!("bulk_archive"))?.execute(moved)?;
        self.conn.prepare_cached(sql!("bulk_delete"))?.execute([ids])?;
        let mut retried = commits.iter().filter(|commit| commit.attempt > 1).map(|commit| commit.job).peekable();
        if retried.peek().is_some() {
            self.archive_attempts(retried)?;
        }
        Ok(())
    }
}

/// A JSON array of ids.
pub(super) fn list(ids: impl Iterator<Item = JobId>) -> String {
    let mut text = String::from("[");
    for id in ids {
        let comma = if text.len() == 1 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{id}");
    }
    text.push(']');
    text
}

/// Moments as `bulk_archive` cuts them up: twenty digits each.
fn digits(moments: impl Iterator<Item = Timestamp>) -> String {
    let mut text = String::new();
    for moment in moments {
        // Writing to a String cannot fail.
        let _ = write!(text, "{:020}", moment.as_millis());
    }
    text
}

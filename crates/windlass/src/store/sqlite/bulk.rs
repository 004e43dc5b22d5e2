//! Successes in bulk. Most jobs succeed and leave nothing but that: a batch of them moves to the archive in three statements
//! instead of four per job. Whatever is not that simple takes the way of `finish`.

use super::commit::insert_attempt;
use super::finish::Batch;
use super::retention::keep;
use super::rows;
use super::sql::sql;
use super::tx::Tx;
use crate::store::{Commit, Keep, StoreError};
use rusqlite::params;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use windlass_core::{JobId, Next, State};

/// Fewer than this are not worth the setting up.
const FEWEST: usize = 4;

/// A running job, as far as a success must know it.
struct Held {
    id: JobId,
    attempt: u32,
    lease: i64,
    failures: u32,
    schedule: Option<JobId>,
}

impl Tx<'_> {
    /// Applies what can be applied in bulk; answers which commits (by their place) that was.
    pub(super) fn finish_bulk(
        &mut self,
        commits: &[Commit],
        batch: &mut Batch<'_>,
    ) -> Result<HashSet<usize>, StoreError> {
        let mut places: HashMap<JobId, usize> = HashMap::with_capacity(commits.len());
        for (place, commit) in commits.iter().enumerate() {
            if is_plain(commit) && self.is_kept(commit)? {
                places.entry(commit.job).or_insert(place);
            }
        }
        if places.len() < FEWEST {
            return Ok(HashSet::new());
        }
        let mut applied: Vec<usize> = Vec::with_capacity(places.len());
        for held in self.held_of(commits, &places)? {
            let place = places[&held.id];
            let commit = &commits[place];
            let is_held = held.attempt == commit.attempt && held.lease == commit.lease.0;
            let is_ending = held.schedule.is_some_and(|schedule| batch.ending.contains(&schedule));
            if is_held && !is_ending && held.failures == commit.transition.failures {
                applied.push(place);
            }
        }
        let ids = list(applied.iter().map(|place| commits[*place].job));
        self.conn.prepare_cached(sql!("bulk_archive"))?.execute(params![ids, self.now.as_millis()])?;
        self.conn.prepare_cached(sql!("bulk_delete"))?.execute([ids])?;
        for commit in applied.iter().map(|place| &commits[*place]) {
            if commit.attempt > 1 {
                self.archive_attempts(commit.job)?;
            }
            insert_attempt(&mut batch.attempt, commit)?;
        }
        Ok(applied.into_iter().collect())
    }

    fn is_kept(&mut self, commit: &Commit) -> Result<bool, StoreError> {
        let retention = self.retentions.of(self.conn, self.names, commit.queue)?;
        Ok(keep(retention, State::Succeeded) != Keep::Drop)
    }

    fn held_of(&self, commits: &[Commit], places: &HashMap<JobId, usize>) -> Result<Vec<Held>, StoreError> {
        let first = |(place, commit): (usize, &Commit)| (places.get(&commit.job) == Some(&place)).then_some(commit.job);
        let ids = list(commits.iter().enumerate().filter_map(first));
        let mut select = self.conn.prepare_cached(sql!("bulk_held"))?;
        rows::all(select.query([ids])?, |row| {
            Ok(Held {
                id: JobId(row.get(0)?),
                attempt: row.get(1)?,
                lease: row.get(2)?,
                failures: row.get(3)?,
                schedule: row.get::<_, Option<i64>>(4)?.map(JobId),
            })
        })
    }
}

/// A success that leaves nothing with the job but its attempt.
fn is_plain(commit: &Commit) -> bool {
    let is_success = match commit.transition.next {
        Next::Succeeded => true,
        Next::Failed(_) | Next::Cancelled | Next::Wait { .. } => false,
    };
    is_success && commit.transition.crashes == 0 && commit.error_class.is_none() && commit.result.is_none()
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

//! Commits in bulk. Most jobs succeed and record nothing else: a batch of them ends in three statements instead of
//! three per job. Jobs that wait again are read together (`wait`). All others are handled by `finish`.

use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::life::wait;
use crate::store::sqlite::reads::columns::succeeding;
use crate::store::sqlite::reads::rows;
use crate::store::{Commit, Committed, Keep, StoreError};
use rusqlite::params;
use std::collections::HashMap;
use std::fmt::Write;
use windlass_core::{JobId, State, Timestamp};

/// Below this number, the setup costs more than it saves.
const FEWEST: usize = 4;

/// The columns of a running job that a success needs.
struct Held {
    /// Its position in the requested list.
    place: usize,
    attempt: u32,
    lease: i64,
    failures: u32,
    schedule: Option<JobId>,
}

/// The result of a commit in bulk.
#[derive(Debug, Clone)]
pub(in crate::store::sqlite) enum Bulk {
    Applied,
    Refused(Committed),
}

/// Applies what can be applied in bulk. Returns the result of each commit that was tried.
pub(in crate::store::sqlite) fn bulk<'t>(
    tx: &mut Tx<'t>,
    commits: &[Commit],
    batch: &mut Batch<'t>,
) -> Result<Vec<Option<Bulk>>, StoreError> {
    let mut answers = vec![None; commits.len()];
    finish_bulk(tx, commits, batch, &mut answers)?;
    wait_bulk(tx, commits, batch, &mut answers)?;
    Ok(answers)
}

fn wait_bulk<'t>(
    tx: &mut Tx<'t>,
    commits: &[Commit],
    batch: &mut Batch<'t>,
    answers: &mut [Option<Bulk>],
) -> Result<(), StoreError> {
    let waits = |place: &usize| commits[*place].transition.next.wait().is_some();
    let mut places: Vec<usize> = (0..commits.len()).filter(waits).collect();
    // In table order, each job once.
    places.sort_by_key(|place| commits[*place].job);
    places.dedup_by_key(|place| commits[*place].job);
    if places.is_empty() {
        return Ok(());
    }
    let waiting: Vec<&Commit> = places.iter().map(|place| &commits[*place]).collect();
    for (place, refused) in places.into_iter().zip(wait::wait_all(tx, &waiting, &mut batch.attempt)?) {
        answers[place] = Some(refused.map_or(Bulk::Applied, Bulk::Refused));
    }
    Ok(())
}

fn finish_bulk(
    tx: &mut Tx<'_>,
    commits: &[Commit],
    batch: &Batch<'_>,
    answers: &mut [Option<Bulk>],
) -> Result<(), StoreError> {
    let mut plain = plain(tx, commits)?;
    if plain.len() < FEWEST {
        return Ok(());
    }
    // In table order, each job once.
    plain.sort_by_key(|place| commits[*place].job);
    plain.dedup_by_key(|place| commits[*place].job);
    let mut by_worker: HashMap<&str, Vec<&Commit>> = HashMap::new();
    for held in held(tx, plain.iter().map(|place| commits[*place].job))? {
        let place = plain[held.place];
        let commit = &commits[place];
        let is_held = held.attempt == commit.attempt && held.lease == commit.lease.0;
        let is_ending = held.schedule.is_some_and(|schedule| batch.ending.contains(&schedule));
        if is_held && !is_ending && held.failures == commit.retry {
            answers[place] = Some(Bulk::Applied);
            by_worker.entry(&commit.worker).or_default().push(commit);
        }
    }
    for (worker, succeeded) in by_worker {
        archive_bulk(tx, worker, &succeeded)?;
    }
    Ok(())
}

/// The places of plain successes of queues that keep them.
fn plain(tx: &mut Tx<'_>, commits: &[Commit]) -> Result<Vec<usize>, StoreError> {
    let mut places = Vec::with_capacity(commits.len());
    for (place, commit) in commits.iter().enumerate() {
        if commit.is_plain() {
            let retention = tx.retentions.of(tx.conn, tx.names, commit.queue)?;
            if retention.of(State::Succeeded) != Keep::Drop {
                places.push(place);
            }
        }
    }
    Ok(places)
}

fn held(tx: &Tx<'_>, jobs: impl Iterator<Item = JobId>) -> Result<Vec<Held>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("commit.sql", "succeed_held"))?;
    rows::all(select.query([list(jobs)])?, |row| {
        Ok(Held {
            place: row.get::<_, i64>(succeeding::place)? as usize,
            attempt: row.get(succeeding::attempt)?,
            lease: row.get(succeeding::lease_id)?,
            failures: row.get(succeeding::failures)?,
            schedule: row.get::<_, Option<i64>>(succeeding::schedule_id)?.map(JobId),
        })
    })
}

/// Archives running jobs that one worker completed successfully.
fn archive_bulk(tx: &Tx<'_>, worker: &str, commits: &[&Commit]) -> Result<(), StoreError> {
    let ids = list(commits.iter().map(|commit| commit.job));
    let started = digits(commits.iter().map(|commit| commit.started_at));
    let finished = digits(commits.iter().map(|commit| commit.finished_at));
    let moved = params![ids, tx.now.as_millis(), started.as_bytes(), finished.as_bytes(), worker];
    tx.conn.prepare_cached(sql!("commit.sql", "succeed"))?.execute(moved)?;
    tx.conn.prepare_cached(sql!("commit.sql", "lives_delete"))?.execute([ids])?;
    Ok(())
}

/// A JSON array of ids.
pub(in crate::store::sqlite) fn list(ids: impl Iterator<Item = JobId>) -> String {
    let mut text = String::from("[");
    for id in ids {
        let comma = if text.len() == 1 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{id}");
    }
    text.push(']');
    text
}

/// Moments as the statement `succeed` splits them: twenty digits each.
fn digits(moments: impl Iterator<Item = Timestamp>) -> String {
    let mut text = String::new();
    for moment in moments {
        // Writing to a String cannot fail.
        let _ = write!(text, "{:020}", moment.as_millis());
    }
    text
}

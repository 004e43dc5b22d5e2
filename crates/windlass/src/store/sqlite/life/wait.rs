//! Wait: running jobs that get another attempt wait again. Their columns are read for the whole batch at once.

use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::claim::lane_after;
use crate::store::sqlite::life::commit;
use crate::store::sqlite::life::commit::insert_attempt;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::reads::columns::waiting;
use crate::store::sqlite::reads::rows;
use crate::store::{Commit, Committed, StoreError};
use rusqlite::{CachedStatement, params};
use windlass_core::{Next, State};

/// The columns of a running job that waiting again needs.
struct Held {
    /// Its position in the requested list.
    place: usize,
    attempt: u32,
    lease: i64,
    cancel_requested: bool,
    lane: i64,
}

/// The prepared statements, run once per job.
struct Waits<'w, 't> {
    job: CachedStatement<'t>,
    waiting: CachedStatement<'t>,
    attempt: &'w mut CachedStatement<'t>,
}

/// Makes jobs wait as their commits say, each job once. Returns the refused ones; the others are done.
pub(in crate::store::sqlite) fn wait_all<'t>(
    tx: &mut Tx<'t>,
    commits: &[&Commit],
    attempt: &mut CachedStatement<'t>,
) -> Result<Vec<Option<Committed>>, StoreError> {
    let mut answers: Vec<Option<Option<Committed>>> = vec![None; commits.len()];
    let (job, waiting) = (
        tx.conn.prepare_cached(sql!("commit.sql", "wait"))?,
        tx.conn.prepare_cached(sql!("enqueue.sql", "waiting_put"))?,
    );
    let mut waits = Waits { job, waiting, attempt };
    for held in wait_held(tx, commits)? {
        let commit = commits[held.place];
        if held.attempt != commit.attempt || held.lease != commit.lease.0 {
            continue;
        }
        answers[held.place] = Some(held.cancel_requested.then_some(Committed::CancelRequested));
        if !held.cancel_requested {
            wait_one(tx, commit, &held, &mut waits)?;
        }
    }
    let answer = |(answer, commit): (Option<Option<Committed>>, &&Commit)| match answer {
        Some(answer) => Ok(answer),
        None => commit::not_held(tx, commit).map(Some),
    };
    answers.into_iter().zip(commits).map(answer).collect()
}

fn wait_held(tx: &Tx<'_>, commits: &[&Commit]) -> Result<Vec<Held>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("commit.sql", "wait_held"))?;
    rows::all(select.query([list(commits.iter().map(|commit| commit.job))])?, |row| {
        Ok(Held {
            place: row.get::<_, i64>(waiting::place)? as usize,
            attempt: row.get(waiting::attempt)?,
            lease: row.get(waiting::lease_id)?,
            cancel_requested: row.get(waiting::cancel_requested)?,
            lane: row.get(waiting::lane)?,
        })
    })
}

fn wait_one(tx: &mut Tx<'_>, commit: &Commit, held: &Held, waits: &mut Waits<'_, '_>) -> Result<(), StoreError> {
    let Next::Wait { state, due_at, .. } = commit.transition.next else {
        return Err(StoreError::Invalid("only a job that is to wait can wait".into()));
    };
    let lane = lane_after(held.lane, commit.transition.crashes);
    waits.job.execute(params![
        commit.job.0,
        state == State::Retrying,
        lane,
        due_at.as_millis(),
        commit.attempt,
        commit.transition.failures,
        commit.transition.crashes,
        commit.transition.next.remembered_delay().map(millis),
        commit.error_class,
        commit.error,
    ])?;
    waits.waiting.execute([lane, due_at.as_millis(), commit.job.0])?;
    tx.waiting(lane, 1);
    tx.rings |= due_at <= tx.now;
    insert_attempt(waits.attempt, commit)
}

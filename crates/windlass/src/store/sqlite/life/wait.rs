//! Wait: running jobs that are to be tried again, or later, wait anew. What must be known of them is read for the whole batch at once.

use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::claim::lane;
use crate::store::sqlite::life::commit::insert_attempt;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::reads::rows;
use crate::store::{Commit, Committed, StoreError};
use rusqlite::{CachedStatement, params};
use windlass_core::{Delivery, Next, Priority, State};

/// A running job, as far as waiting anew must know it.
struct Held {
    /// Its place in the list that was asked for.
    place: usize,
    attempt: u32,
    lease: i64,
    claimed_at: i64,
    cancel_requested: bool,
    priority: i64,
    once: bool,
}

/// The statements of each job, ready to run again and again.
struct Waits<'w, 't> {
    job: CachedStatement<'t>,
    waiting: CachedStatement<'t>,
    attempt: &'w mut CachedStatement<'t>,
}

impl<'t> Tx<'t> {
    /// Lets jobs wait as their commits say, each job once. Answers what was refused: the others are done.
    pub(in crate::store::sqlite) fn wait_all(
        &mut self,
        commits: &[&Commit],
        attempt: &mut CachedStatement<'t>,
    ) -> Result<Vec<Option<Committed>>, StoreError> {
        let mut answers: Vec<Option<Option<Committed>>> = vec![None; commits.len()];
        let (job, waiting) =
            (self.conn.prepare_cached(sql!("commit_wait"))?, self.conn.prepare_cached(sql!("waiting_put"))?);
        let mut waits = Waits { job, waiting, attempt };
        let mut done = Vec::new();
        for held in self.wait_held(commits)? {
            let commit = commits[held.place];
            if held.attempt != commit.attempt || held.lease != commit.lease.0 {
                continue;
            }
            answers[held.place] = Some(held.cancel_requested.then_some(Committed::CancelRequested));
            if !held.cancel_requested {
                self.wait_one(commit, &held, &mut waits)?;
                done.push(commit.job);
            }
        }
        if !done.is_empty() {
            self.conn.prepare_cached(sql!("bulk_running_drop"))?.execute([list(done.into_iter())])?;
        }
        let answer = |(answer, commit): (Option<Option<Committed>>, &&Commit)| match answer {
            Some(answer) => Ok(answer),
            None => self.not_held(commit).map(Some),
        };
        answers.into_iter().zip(commits).map(answer).collect()
    }

    fn wait_held(&self, commits: &[&Commit]) -> Result<Vec<Held>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("wait_held"))?;
        rows::all(select.query([list(commits.iter().map(|commit| commit.job))])?, |row| {
            Ok(Held {
                place: row.get::<_, i64>(0)? as usize,
                attempt: row.get(1)?,
                lease: row.get(2)?,
                claimed_at: row.get(3)?,
                cancel_requested: row.get(4)?,
                priority: row.get(5)?,
                once: row.get(6)?,
            })
        })
    }

    fn wait_one(&mut self, commit: &Commit, held: &Held, waits: &mut Waits<'_, '_>) -> Result<(), StoreError> {
        let Next::Wait { state, due_at, delay } = commit.transition.next else {
            return Err(StoreError::Invalid("only a job that is to wait can wait".into()));
        };
        // Decorrelated jitter grows from the delay before a retry; a snooze is not one.
        let previous = (state == State::Retrying).then(|| millis(delay));
        waits.job.execute(params![
            commit.job.0,
            state == State::Retrying,
            due_at.as_millis(),
            commit.attempt,
            held.claimed_at,
            commit.transition.failures,
            commit.transition.crashes,
            previous,
            commit.error_class,
            commit.error,
        ])?;
        let priority = Priority::from_rank(held.priority)
            .ok_or_else(|| StoreError::corrupt(format!("job {}", commit.job), "a priority is -2 to 2"))?;
        let delivery = if held.once { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
        let lane = lane(commit.queue, priority, delivery, commit.transition.crashes);
        waits.waiting.execute([lane, due_at.as_millis(), commit.job.0])?;
        self.rings |= due_at <= self.now;
        insert_attempt(waits.attempt, commit)
    }
}

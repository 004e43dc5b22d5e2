//! Commit: transitions whose attempts still hold, with ledger, tallies and follow-ups.

use super::enqueue::millis;
use super::retention::keep;
use super::sql::sql;
use super::tx::Tx;
use crate::fingerprint::fingerprint;
use crate::job::{LeaseId, QueueId};
use crate::store::{Commit, Committed, Enqueued, Keep, StoreError};
use crate::tally::Tally;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;
use windlass_core::job::Kind;
use windlass_core::{JobId, Next, Reason, State, Timestamp, Why};

/// The one word that most attempts end with, ready to store.
const SUCCEEDED: &str = "succeeded";

/// One-shot schedules that end with their run: hardly ever any, so asked for once per batch.
pub(super) type Ending = HashSet<JobId>;

impl Tx<'_> {
    pub(super) fn commit(&mut self, commits: &[Commit], ended: &[LeaseId]) -> Result<Vec<Committed>, StoreError> {
        let ending = self.ending_schedules()?;
        let mut kept_leases = Vec::new();
        let mut results = Vec::with_capacity(commits.len());
        for commit in commits {
            let result = self.commit_one(commit, &ending)?;
            if result == Committed::CancelRequested {
                // The job still runs under its lease: without it, nobody would miss a worker that dies now.
                kept_leases.push(commit.lease);
            }
            results.push(result);
        }
        let mut delete = self.conn.prepare_cached(sql!("lease_delete"))?;
        for lease in ended.iter().filter(|lease| !kept_leases.contains(lease)) {
            delete.execute([lease.0])?;
        }
        Ok(results)
    }

    pub(super) fn ending_schedules(&self) -> Result<Ending, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("one_shots_ending"))?;
        let ids: Vec<i64> = super::rows::column(select.query([])?)?;
        Ok(ids.into_iter().map(JobId).collect())
    }

    pub(super) fn commit_one(&mut self, commit: &Commit, ending: &Ending) -> Result<Committed, StoreError> {
        let is_applied = match commit.transition.next {
            Next::Wait { state, due_at, delay } => {
                // Decorrelated jitter grows from the delay before a retry; a snooze is not one.
                let previous = (state == State::Retrying).then(|| millis(delay));
                let is_applied = self.wait(commit, state, due_at, previous)?;
                self.rings |= is_applied && due_at <= self.now;
                is_applied
            }
            Next::Succeeded | Next::Cancelled => self.end(commit, None, ending)?,
            Next::Failed(reason) => self.end(commit, Some(reason), ending)?,
        };
        if !is_applied {
            return self.unapplied(commit);
        }
        self.count(commit.queue, &commit.kind, Tally::of(commit));
        let mut follow_ups = Vec::with_capacity(commit.follow_ups.len());
        for job in &commit.follow_ups {
            follow_ups.extend(self.store_follow_up(job)?);
        }
        Ok(Committed::Applied(follow_ups))
    }

    /// A follow-up exists exactly if the commit happened: one that the database refuses takes the commit with it.
    pub(super) fn store_follow_up(&mut self, job: &crate::job::NewJob) -> Result<Option<JobId>, StoreError> {
        match self.store(job)? {
            Enqueued::Refused(why) => Err(StoreError::Invalid(format!("a follow-up was refused: {why}"))),
            stored => Ok(stored.id()),
        }
    }

    fn wait(
        &mut self,
        commit: &Commit,
        state: State,
        due_at: Timestamp,
        previous: Option<i64>,
    ) -> Result<bool, StoreError> {
        let mut update = self.conn.prepare_cached(sql!("commit_wait"))?;
        let changed = update.execute(params![
            commit.job.0,
            commit.attempt,
            commit.lease.0,
            state.as_str(),
            due_at.as_millis(),
            commit.transition.failures,
            commit.transition.crashes,
            previous,
            commit.error_class,
            commit.error,
        ])?;
        if changed == 1 {
            insert_attempt(self.conn, sql!("attempts_insert"), commit)?;
        }
        Ok(changed == 1)
    }

    /// Ends a running job: to the archive with its attempts, or away if its queue keeps none.
    fn end(&mut self, commit: &Commit, reason: Option<Reason>, ending: &Ending) -> Result<bool, StoreError> {
        let state = commit.transition.next.state();
        let retention = self.retentions.of(self.conn, self.names, commit.queue)?;
        let schedule = self.schedule_of(commit.job, ending)?;
        // Success and cancellation stand whatever was asked; a failure must honour a cancel.
        let cancel_allowed = i64::from(commit.stands_despite_cancel());
        let is_applied = if keep(retention, state) == Keep::Drop {
            let mut delete = self.conn.prepare_cached(sql!("job_drop"))?;
            let fence = params![commit.job.0, commit.attempt, commit.lease.0, cancel_allowed];
            let is_applied = delete.execute(fence)? == 1;
            if is_applied && commit.attempt > 1 {
                self.conn.prepare_cached(sql!("attempts_delete"))?.execute([commit.job.0])?;
            }
            is_applied
        } else {
            self.archive(commit, reason, cancel_allowed)?
        };
        if let Some(schedule) = schedule.filter(|_| is_applied) {
            self.end_one_shot(schedule)?;
        }
        Ok(is_applied)
    }

    fn archive(&mut self, commit: &Commit, reason: Option<Reason>, cancel_allowed: i64) -> Result<bool, StoreError> {
        let print = match reason {
            Some(_) => Some(self.fingerprint_of(commit)?),
            None => None,
        };
        let mut insert = self.conn.prepare_cached(sql!("archive_attempted"))?;
        let moved = insert.execute(params![
            commit.job.0,
            commit.attempt,
            commit.lease.0,
            commit.transition.next.state().as_str(),
            commit.transition.failures,
            commit.transition.crashes,
            commit.error_class,
            commit.error,
            self.now.as_millis(),
            reason.map(Reason::as_str),
            print,
            commit.result.as_deref(),
            cancel_allowed,
        ])?;
        if moved == 0 {
            return Ok(false);
        }
        self.conn.prepare_cached(sql!("job_delete"))?.execute([commit.job.0])?;
        if commit.attempt > 1 {
            self.archive_attempts(commit.job)?;
        }
        insert_attempt(self.conn, sql!("archive_attempts_insert"), commit)?;
        Ok(true)
    }

    /// Earlier attempts move along with their job.
    pub(super) fn archive_attempts(&self, job: JobId) -> Result<(), StoreError> {
        if self.conn.prepare_cached(sql!("attempts_archive"))?.execute([job.0])? > 0 {
            self.conn.prepare_cached(sql!("attempts_delete"))?.execute([job.0])?;
        }
        Ok(())
    }

    /// The schedule a job is a run of, if that is one that ends with it.
    pub(super) fn schedule_of(&self, job: JobId, ending: &Ending) -> Result<Option<JobId>, StoreError> {
        if ending.is_empty() {
            return Ok(None);
        }
        let mut select = self.conn.prepare_cached(sql!("job_schedule"))?;
        let schedule: Option<Option<i64>> = select.query_row([job.0], |row| row.get(0)).optional()?;
        Ok(schedule.flatten().map(JobId).filter(|schedule| ending.contains(schedule)))
    }

    pub(super) fn end_one_shot(&self, schedule: JobId) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql!("schedule_delete"))?.execute([schedule.0])?;
        Ok(())
    }

    fn fingerprint_of(&mut self, commit: &Commit) -> Result<String, StoreError> {
        if let Some(class) = &commit.error_class {
            let error = commit.error.as_deref().unwrap_or_default();
            return self.fingerprint(commit.queue, &commit.kind, class, error);
        }
        // This attempt left no error: the job's last one counts.
        let mut select = self.conn.prepare_cached(sql!("job_error"))?;
        let (class, error): (Option<String>, Option<String>) =
            select.query_row([commit.job.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?.unwrap_or_default();
        self.fingerprint(commit.queue, &commit.kind, &class.unwrap_or_default(), &error.unwrap_or_default())
    }

    pub(super) fn fingerprint(
        &mut self,
        queue: QueueId,
        kind: &Kind,
        class: &str,
        error: &str,
    ) -> Result<String, StoreError> {
        let queue = self.names.queue(self.conn, queue)?;
        Ok(fingerprint(class, error, kind, &queue.1))
    }

    /// Why a commit changed nothing.
    fn unapplied(&self, commit: &Commit) -> Result<Committed, StoreError> {
        let fence = params![commit.job.0, commit.attempt, commit.lease.0];
        if self.conn.prepare_cached(sql!("commit_fence"))?.exists(fence)? {
            return Ok(Committed::CancelRequested);
        }
        let line = params![commit.job.0, commit.attempt, commit.lease.0, commit.transition.status.as_str()];
        let is_repeated = self.conn.prepare_cached(sql!("attempt_repeated"))?.exists(line)?;
        Ok(if is_repeated { Committed::Repeated } else { Committed::Stale })
    }
}

fn insert_attempt(conn: &Connection, insert: &str, commit: &Commit) -> Result<(), StoreError> {
    let transition = &commit.transition;
    let wait = transition.next.wait();
    let told;
    let why = if transition.why == Why::Succeeded {
        SUCCEEDED
    } else {
        told = transition.why.to_string();
        &told
    };
    conn.prepare_cached(insert)?.execute(params![
        commit.job.0,
        commit.attempt,
        commit.lease.0,
        commit.retry,
        transition.status.as_str(),
        commit.started_at.as_millis(),
        commit.finished_at.as_millis(),
        commit.error_class,
        commit.error,
        commit.note,
        commit.worker,
        wait.map(|(due_at, _)| due_at.as_millis()),
        wait.map(|(_, delay)| millis(delay)),
        why,
    ])?;
    Ok(())
}

//! Finish: a running job ends and moves to the archive, or away with its attempts if its queue keeps none.

use crate::fingerprint::fingerprint;
use crate::job::QueueId;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::commit::insert_attempt;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::retention::keep;
use crate::store::{Commit, Committed, Keep, StoreError};
use rusqlite::types::ToSqlOutput;
use rusqlite::{CachedStatement, Row, params};
use std::collections::HashSet;
use windlass_core::job::Kind;
use windlass_core::{JobId, Reason};

/// Columns of `commit_row` that the archive copies; class and message of the last failure follow them.
const COPIED: usize = 23;
const CANCEL_REQUESTED: usize = 10;
const SCHEDULE: usize = 17;

/// Class and message of a failure.
type Told<'a> = (Option<&'a str>, Option<&'a str>);

/// What a batch of outcomes needs, looked up once.
pub(in crate::store::sqlite) struct Batch<'t> {
    /// One-shot schedules that end with their run: hardly ever any.
    pub ending: HashSet<JobId>,
    pub attempt: CachedStatement<'t>,
    row: CachedStatement<'t>,
    archive: CachedStatement<'t>,
    delete: CachedStatement<'t>,
    stop: CachedStatement<'t>,
}

impl<'t> Tx<'t> {
    pub(in crate::store::sqlite) fn batch(&self) -> Result<Batch<'t>, StoreError> {
        let conn = self.conn;
        let mut select = conn.prepare_cached(sql!("one_shots_ending"))?;
        let ids: Vec<i64> = rows::column(select.query([])?)?;
        Ok(Batch {
            ending: ids.into_iter().map(JobId).collect(),
            attempt: conn.prepare_cached(sql!("attempts_insert"))?,
            row: conn.prepare_cached(sql!("commit_row"))?,
            archive: conn.prepare_cached(sql!("archive_insert"))?,
            delete: conn.prepare_cached(sql!("job_delete"))?,
            stop: conn.prepare_cached(sql!("running_drop"))?,
        })
    }

    /// Ends a running job, or says why not.
    pub(in crate::store::sqlite) fn end(
        &mut self,
        commit: &Commit,
        reason: Option<Reason>,
        batch: &mut Batch<'_>,
    ) -> Result<Option<Committed>, StoreError> {
        let retention = self.retentions.of(self.conn, self.names, commit.queue)?;
        let is_kept = keep(retention, commit.transition.next.state()) != Keep::Drop;
        let mut found = batch.row.query(params![commit.job.0, commit.attempt, commit.lease.0])?;
        let Some(row) = found.next()? else { return self.not_held(commit).map(Some) };
        if row.get(CANCEL_REQUESTED)? && !commit.stands_despite_cancel() {
            return Ok(Some(Committed::CancelRequested));
        }
        let schedule = row.get::<_, Option<i64>>(SCHEDULE)?.map(JobId);
        if is_kept {
            self.archive(commit, reason, row, &mut batch.archive)?;
        }
        drop(found);
        batch.delete.execute([commit.job.0])?;
        batch.stop.execute([commit.job.0])?;
        if is_kept {
            insert_attempt(&mut batch.attempt, commit)?;
        }
        if commit.attempt > 1 && !is_kept {
            self.drop_attempts(commit.job)?;
        }
        if let Some(schedule) = schedule.filter(|schedule| batch.ending.contains(schedule)) {
            self.end_one_shot(schedule)?;
        }
        Ok(None)
    }

    fn archive(
        &mut self,
        commit: &Commit,
        reason: Option<Reason>,
        row: &Row<'_>,
        insert: &mut CachedStatement<'_>,
    ) -> Result<(), StoreError> {
        let (class, error) = if commit.error_class.is_some() {
            (commit.error_class.as_deref(), commit.error.as_deref())
        } else {
            // This attempt left no error: the job's last one stands.
            (rows::maybe(row, COPIED)?, rows::maybe(row, COPIED + 1)?)
        };
        let print = match reason {
            Some(_) => Some(self.fingerprint(commit.queue, &commit.kind, (class, error))?),
            None => None,
        };
        for column in 0..COPIED {
            insert.raw_bind_parameter(column + 1, ToSqlOutput::Borrowed(row.get_ref(column)?))?;
        }
        let transition = &commit.transition;
        insert.raw_bind_parameter(COPIED + 1, class)?;
        insert.raw_bind_parameter(COPIED + 2, error)?;
        insert.raw_bind_parameter(COPIED + 3, transition.next.state().as_str())?;
        insert.raw_bind_parameter(COPIED + 4, transition.failures)?;
        insert.raw_bind_parameter(COPIED + 5, transition.crashes)?;
        insert.raw_bind_parameter(COPIED + 6, self.now.as_millis())?;
        insert.raw_bind_parameter(COPIED + 7, reason.map(Reason::as_str))?;
        insert.raw_bind_parameter(COPIED + 8, print)?;
        insert.raw_bind_parameter(COPIED + 9, commit.result.as_deref())?;
        insert.raw_execute()?;
        Ok(())
    }

    /// Attempts of a job whose queue keeps none.
    pub(in crate::store::sqlite) fn drop_attempts(&self, job: JobId) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql!("attempts_delete"))?.execute([job.0])?;
        Ok(())
    }

    pub(in crate::store::sqlite) fn end_one_shot(&self, schedule: JobId) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql!("schedule_delete"))?.execute([schedule.0])?;
        Ok(())
    }

    pub(in crate::store::sqlite) fn fingerprint(
        &mut self,
        queue: QueueId,
        kind: &Kind,
        (class, error): Told<'_>,
    ) -> Result<String, StoreError> {
        let queue = self.names.queue(self.conn, queue)?;
        Ok(fingerprint(class.unwrap_or_default(), error.unwrap_or_default(), kind, &queue.1))
    }
}

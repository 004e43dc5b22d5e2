//! What people do: cancel, replay, discard, amend.

use crate::job::{Job, QueueId};
use crate::store::replay::ACTION;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::finish::Batch;
use crate::store::sqlite::reads::rows;
use crate::store::{
    Amend, Amended, Audit, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope, StoreError,
};
use crate::tally::Tally;
use rusqlite::{OptionalExtension, params};
use windlass_core::job::Kind;
use windlass_core::{JobId, Next, Priority, State, Timestamp};

/// Where a job stands.
struct Place {
    queue: QueueId,
    state: State,
    kind: Kind,
    is_dead_letter: bool,
}

impl Tx<'_> {
    /// A job's place, live or archived, if the scope covers it.
    fn place(&mut self, scope: &Scope, id: JobId) -> Result<Option<Place>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("job_place"))?;
        let found = rows::all(select.query([id.0])?, |row| {
            Ok(Place {
                queue: QueueId(row.get(0)?),
                state: rows::word(row, 1, State::parse)?,
                kind: self.names.kind(rows::must(row, 2)?)?,
                is_dead_letter: row.get(3)?,
            })
        })?;
        let Some(place) = found.into_iter().next() else { return Ok(None) };
        let covers = scope.covers(&self.names.queue(self.conn, place.queue)?.0);
        Ok(covers.then_some(place))
    }

    pub(in crate::store::sqlite) fn live_job(&mut self, id: JobId) -> Result<Option<Job>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("live_select", "by_id"))?;
        let found = rows::all(select.query([id.0])?, |row| rows::live(row, self.conn, self.names))?;
        Ok(found.into_iter().next())
    }

    pub(in crate::store::sqlite) fn cancel(
        &mut self,
        scope: &Scope,
        ids: &[JobId],
    ) -> Result<Vec<Cancelled>, StoreError> {
        let batch = self.batch()?;
        ids.iter().map(|id| self.cancel_one(scope, *id, &batch)).collect()
    }

    fn cancel_one(&mut self, scope: &Scope, id: JobId, batch: &Batch<'_>) -> Result<Cancelled, StoreError> {
        let Some(place) = self.place(scope, id)? else { return Ok(Cancelled::NotFound) };
        match place.state {
            State::Queued | State::Retrying => {
                if let Some(job) = self.live_job(id)? {
                    self.end_waiting(job, Next::Cancelled, batch)?;
                }
                Ok(Cancelled::Now)
            }
            State::Running => {
                self.conn.prepare_cached(sql!("cancel_request"))?.execute([id.0])?;
                Ok(Cancelled::Requested)
            }
            State::Succeeded | State::Failed | State::Cancelled => Ok(Cancelled::Finished(place.state)),
        }
    }

    pub(in crate::store::sqlite) fn replay(
        &mut self,
        scope: &Scope,
        replay: &Replay,
    ) -> Result<Vec<Replayed>, StoreError> {
        let mut count = 0;
        let mut replayed = Vec::with_capacity(replay.ids.len());
        for id in &replay.ids {
            let result = self.replay_one(scope, *id, replay.only, replay.due_at(count, self.now))?;
            count += u64::from(result == Replayed::Queued);
            replayed.push(result);
        }
        self.rings = true;
        self.note(&replay.by, ACTION, count, &replay.detail(count, self.now))?;
        Ok(replayed)
    }

    fn replay_one(
        &mut self,
        scope: &Scope,
        id: JobId,
        only: ReplayOnly,
        due_at: Timestamp,
    ) -> Result<Replayed, StoreError> {
        let Some(place) = self.place(scope, id)? else { return Ok(Replayed::NotFound) };
        match place.state {
            State::Running => return Ok(Replayed::Running),
            State::Queued | State::Retrying => {
                if only == ReplayOnly::Any {
                    let now = self.now.as_millis();
                    self.moving(id, |tx| Ok(tx.conn.prepare_cached(sql!("job_due"))?.execute([id.0, now])?))?;
                }
                return Ok(Replayed::AlreadyLive);
            }
            State::Succeeded | State::Failed | State::Cancelled => {}
        }
        if only == ReplayOnly::DeadLetters && !place.is_dead_letter {
            return Ok(Replayed::NotDead);
        }
        let mut restore = self.conn.prepare_cached(sql!("replay_restore"))?;
        restore.execute([id.0, due_at.as_millis(), self.now.as_millis()])?;
        self.conn.prepare_cached(sql!("waiting_enter"))?.execute([id.0])?;
        self.conn.prepare_cached(sql!("attempts_restore"))?.execute([id.0])?;
        self.conn.prepare_cached(sql!("archive_delete"))?.execute([id.0])?;
        self.count(place.queue, &place.kind, Tally { replayed: 1, ..Tally::default() });
        Ok(Replayed::Queued)
    }

    pub(in crate::store::sqlite) fn discard(
        &mut self,
        scope: &Scope,
        discard: &Discard,
    ) -> Result<Vec<Discarded>, StoreError> {
        let mut count = 0;
        let mut discarded = Vec::with_capacity(discard.ids.len());
        for id in &discard.ids {
            let result = match self.place(scope, *id)?.map(|place| place.state) {
                None => Discarded::NotFound,
                Some(State::Failed) => Discarded::Done,
                Some(State::Queued | State::Running | State::Retrying | State::Succeeded | State::Cancelled) => {
                    Discarded::NotDead
                }
            };
            if result == Discarded::Done {
                let mut update = self.conn.prepare_cached(sql!("discard"))?;
                count += update.execute(params![id.0, self.now.as_millis(), discard.reason])? as u64;
            }
            discarded.push(result);
        }
        self.note(&discard.by, "discard", count, &discard.reason)?;
        Ok(discarded)
    }

    pub(in crate::store::sqlite) fn amend(
        &mut self,
        scope: &Scope,
        id: JobId,
        change: Amend,
    ) -> Result<Amended, StoreError> {
        let Some(place) = self.place(scope, id)? else { return Ok(Amended::NotFound) };
        match place.state {
            State::Queued | State::Retrying => {}
            State::Running | State::Succeeded | State::Failed | State::Cancelled => {
                return Ok(Amended::NotWaiting(place.state));
            }
        }
        let (priority, run_at) = (change.priority.map(Priority::rank), change.run_at.map(Timestamp::as_millis));
        self.moving(id, |tx| {
            Ok(tx.conn.prepare_cached(sql!("job_amend"))?.execute(params![id.0, priority, run_at])?)
        })?;
        self.rings = true;
        Ok(Amended::Done)
    }

    /// Changes when or in which lane a job waits.
    fn moving(&self, id: JobId, change: impl FnOnce(&Self) -> Result<usize, StoreError>) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql!("waiting_leave"))?.execute([id.0])?;
        change(self)?;
        self.conn.prepare_cached(sql!("waiting_enter"))?.execute([id.0])?;
        Ok(())
    }

    /// An audit line, unless nothing was done.
    fn note(&self, by: &str, action: &str, count: u64, detail: &str) -> Result<(), StoreError> {
        if count == 0 {
            return Ok(());
        }
        self.audit(&Audit { at: self.now, by: by.into(), action: action.into(), count, detail: detail.into() })
    }

    pub(in crate::store::sqlite) fn audit(&self, entry: &Audit) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(sql!("audit_insert"))?;
        let count = i64::try_from(entry.count).unwrap_or(i64::MAX);
        insert.execute(params![entry.at.as_millis(), entry.by, entry.action, count, entry.detail])?;
        Ok(())
    }

    pub(in crate::store::sqlite) fn queue_row(&self, id: QueueId) -> Result<crate::store::Queue, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("queue_select", "queue_by_id"))?;
        let found = rows::all(select.query([id.0])?, rows::queue)?;
        found.into_iter().next().ok_or_else(|| StoreError::corrupt(format!("queue {}", id.0), "it was just there"))
    }

    pub(in crate::store::sqlite) fn is_live(&self, job: JobId) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached(sql!("job_is_live"))?.query_row([job.0], |_| Ok(())).optional()?.is_some())
    }
}

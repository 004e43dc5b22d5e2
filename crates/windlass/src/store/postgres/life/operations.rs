//! What people do: cancel, replay, discard, amend.

use crate::job::{Job, NewJob};
use crate::leases::transition;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::upkeep::partitions::Class;
use crate::store::replay::ACTION;
use crate::store::{Amend, Amended, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope, StoreError};
use crate::tally::{Tallies, Tally};
use futures_util::join;
use std::collections::{HashMap, HashSet};
use windlass_core::{JobId, Next, State, Timestamp};

/// Live and archived jobs among some ids, those in scope.
struct Found {
    live: HashMap<JobId, Job>,
    archived: HashMap<JobId, Job>,
}

impl Inner {
    /// Locks the jobs of these ids, live ones first, then archived ones: in id order.
    async fn lock_jobs(&self, on: On<'_>, scope: &Scope, ids: &[JobId]) -> Result<Found, StoreError> {
        let mut ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let live = on.query(Sql::LiveLock, &[&ids]).await?;
        let live = self.jobs_in(on, &live).await?;
        let known: HashSet<i64> = live.iter().map(|job| job.id.0).collect();
        // What is locked there stays there.
        ids.retain(|id| !known.contains(id));
        let archived = if ids.is_empty() { Vec::new() } else { on.query(Sql::ArchivedLock, &[&ids]).await? };
        let archived = self.jobs_in(on, &archived).await?;
        let by_id = |jobs: Vec<Job>| {
            jobs.into_iter().filter(|job| scope.covers(&job.tenant)).map(|job| (job.id, job)).collect()
        };
        Ok(Found { live: by_id(live), archived: by_id(archived) })
    }

    pub(in crate::store::postgres) async fn now_on(&self, on: On<'_>) -> Result<Timestamp, StoreError> {
        let rows = on.query(Sql::Now, &[&self.fixed()]).await?;
        rows.first().map_or_else(|| Ok(self.clock.now()), |row| Columns::new(row).moment("now"))
    }

    pub(in crate::store::postgres) async fn cancel(
        &self,
        scope: &Scope,
        ids: &[JobId],
    ) -> Result<Vec<Cancelled>, StoreError> {
        self.finishing(|| async {
            self.ensure_partitions([Class::Done]).await?;
            let lent = self.pool.get().await?;
            let (begun, cancelled) = join!(lent.begin(), self.cancel_on(On::Own(&lent), scope, ids));
            lent.conclude(begun, cancelled).await
        })
        .await
    }

    async fn cancel_on(&self, on: On<'_>, scope: &Scope, ids: &[JobId]) -> Result<Vec<Cancelled>, StoreError> {
        let mut found = self.lock_jobs(on, scope, ids).await?;
        let now = self.now_on(on).await?;
        let (mut endings, mut asked) = (Vec::new(), Vec::new());
        let mut deliveries: Vec<NewJob> = Vec::new();
        let mut results = Vec::with_capacity(ids.len());
        for id in ids {
            let state = found.live.get(id).or_else(|| found.archived.get(id)).map(|job| job.state);
            results.push(match state {
                None => Cancelled::NotFound,
                Some(State::Running) => {
                    asked.push(id.0);
                    Cancelled::Requested
                }
                Some(State::Queued | State::Retrying) => {
                    let mut job = found.live.remove(id).expect("a waiting job is live");
                    deliveries.extend(transition::ended_waiting(&job, Next::Cancelled, now).1);
                    endings.push((job.clone(), Next::Cancelled));
                    job.state = State::Cancelled;
                    found.archived.insert(*id, job);
                    Cancelled::Now
                }
                Some(state @ (State::Succeeded | State::Failed | State::Cancelled)) => Cancelled::Finished(state),
            });
        }
        if !endings.is_empty() {
            let numbers = self.numbers(&deliveries).await?;
            self.end_waiting(on, &endings, &deliveries, &numbers).await?;
        }
        if !asked.is_empty() {
            on.query(Sql::RequestCancel, &[&asked]).await?;
        }
        Ok(results)
    }

    pub(in crate::store::postgres) async fn replay(
        &self,
        scope: &Scope,
        replay: &Replay,
    ) -> Result<Vec<Replayed>, StoreError> {
        let replayed = again(|| async {
            let lent = self.pool.get().await?;
            let (begun, replayed) = join!(lent.begin(), self.replay_on(On::Own(&lent), scope, replay));
            lent.conclude(begun, replayed).await
        })
        .await?;
        self.frontier.forget();
        Ok(replayed)
    }

    async fn replay_on(&self, on: On<'_>, scope: &Scope, replay: &Replay) -> Result<Vec<Replayed>, StoreError> {
        let mut found = self.lock_jobs(on, scope, &replay.ids).await?;
        let now = self.now_on(on).await?;
        let (mut back, mut dues, mut run_now) = (Vec::new(), Vec::new(), Vec::new());
        let mut tallies = Tallies::default();
        let mut results = Vec::with_capacity(replay.ids.len());
        for id in &replay.ids {
            if let Some(job) = found.live.get(id) {
                if job.state == State::Running {
                    results.push(Replayed::Running);
                    continue;
                }
                if replay.only == ReplayOnly::Any {
                    run_now.push(id.0);
                }
                results.push(Replayed::AlreadyLive);
                continue;
            }
            let Some(job) = found.archived.get(id) else {
                results.push(Replayed::NotFound);
                continue;
            };
            let is_dead_letter = job.state == State::Failed && job.discarded_at.is_none();
            if replay.only == ReplayOnly::DeadLetters && !is_dead_letter {
                results.push(Replayed::NotDead);
                continue;
            }
            tallies.add(job.queue_id, &job.kind, Tally { replayed: 1, ..Tally::default() });
            back.push(id.0);
            dues.push(replay.due_at(dues.len() as u64, now).as_millis());
            let mut job = found.archived.remove(id).expect("it was just found");
            job.state = State::Queued;
            found.live.insert(*id, job);
            results.push(Replayed::Queued);
        }
        if !back.is_empty() {
            on.query(Sql::Replay, &[&back, &dues, &now.as_millis()]).await?;
            self.tally(on, &tallies).await?;
            let detail = replay.detail(back.len() as u64, now);
            self.note(on, now, &replay.by, ACTION, back.len(), &detail).await?;
        }
        if !run_now.is_empty() {
            on.query(Sql::RunNow, &[&run_now, &now.as_millis()]).await?;
        }
        Ok(results)
    }

    pub(in crate::store::postgres) async fn discard(
        &self,
        scope: &Scope,
        discard: &Discard,
    ) -> Result<Vec<Discarded>, StoreError> {
        again(|| async {
            let lent = self.pool.get().await?;
            let (begun, discarded) = join!(lent.begin(), self.discard_on(On::Own(&lent), scope, discard));
            lent.conclude(begun, discarded).await
        })
        .await
    }

    async fn discard_on(&self, on: On<'_>, scope: &Scope, discard: &Discard) -> Result<Vec<Discarded>, StoreError> {
        let found = self.lock_jobs(on, scope, &discard.ids).await?;
        let judge = |id: &JobId| match found.archived.get(id).or_else(|| found.live.get(id)).map(|job| job.state) {
            None => Discarded::NotFound,
            Some(State::Failed) => Discarded::Done,
            Some(State::Queued | State::Running | State::Retrying | State::Succeeded | State::Cancelled) => {
                Discarded::NotDead
            }
        };
        let results: Vec<Discarded> = discard.ids.iter().map(judge).collect();
        let dead = discard.ids.iter().zip(&results).filter(|(_, result)| **result == Discarded::Done);
        let ids: Vec<i64> = dead.map(|(id, _)| id.0).collect();
        if !ids.is_empty() {
            let done = on.query(Sql::Discard, &[&self.fixed(), &ids, &discard.reason]).await?;
            let now = self.now_on(on).await?;
            self.note(on, now, &discard.by, "discard", done.len(), &discard.reason).await?;
        }
        Ok(results)
    }

    pub(in crate::store::postgres) async fn amend(
        &self,
        scope: &Scope,
        id: JobId,
        change: Amend,
    ) -> Result<Amended, StoreError> {
        let amended = again(|| async {
            let lent = self.pool.get().await?;
            let (begun, amended) = join!(lent.begin(), self.amend_on(On::Own(&lent), scope, id, change));
            lent.conclude(begun, amended).await
        })
        .await?;
        self.frontier.forget();
        Ok(amended)
    }

    async fn amend_on(&self, on: On<'_>, scope: &Scope, id: JobId, change: Amend) -> Result<Amended, StoreError> {
        let found = self.lock_jobs(on, scope, &[id]).await?;
        let Some(job) = found.live.get(&id).or_else(|| found.archived.get(&id)) else {
            return Ok(Amended::NotFound);
        };
        match job.state {
            State::Queued | State::Retrying => {
                let priority = change.priority.map(windlass_core::Priority::rank);
                let run_at = change.run_at.map(Timestamp::as_millis);
                on.query(Sql::Amend, &[&id.0, &priority, &run_at]).await?;
                Ok(Amended::Done)
            }
            state @ (State::Running | State::Succeeded | State::Failed | State::Cancelled) => {
                Ok(Amended::NotWaiting(state))
            }
        }
    }

    /// An audit line, unless nothing was done.
    async fn note(
        &self,
        on: On<'_>,
        at: Timestamp,
        by: &str,
        action: &str,
        count: usize,
        detail: &str,
    ) -> Result<(), StoreError> {
        if count == 0 {
            return Ok(());
        }
        on.query(Sql::Audit, &[&at.as_millis(), &by, &action, &(count as i64), &detail]).await.map(drop)
    }
}

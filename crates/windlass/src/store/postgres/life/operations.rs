//! What operators do: cancel, replay, discard, amend. Core decides; here the jobs are locked and the answer is applied.

use crate::job::{Job, NewJob, QueueId};
use crate::leases::transition;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::{commit, enqueue, names};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::arrays;
use crate::store::postgres::statements::columns::{Columns, JobColumn};
use crate::store::postgres::statements::row::Row;
use crate::store::replay::{ACTION, Paced, respaced};
use crate::store::{Amend, Amended, Cancelled, Discard, Discarded, Replay, Replayed, Scope, Spacing, StoreError};
use crate::tally::{Tallies, Tally};
use futures_util::join;
use std::collections::{BTreeSet, HashMap, HashSet};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::verdict::{self, Allowance, AmendVerdict, CancelVerdict, DiscardVerdict, ReplayVerdict};
use windlass_core::{JobId, Next, State, Timestamp};

/// How often the locks of jobs are taken again because the jobs moved meanwhile.
const LOCK_ROUNDS: u32 = 20;

/// Jobs among some ids, live and archived, those in scope: locked by this transaction.
struct Found {
    jobs: HashMap<JobId, Job>,
    /// The leases of those that run.
    leases: HashMap<JobId, i64>,
}

impl Found {
    fn get(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id)
    }
}

/// Locks the jobs of these ids where they are: waiting, under a lease or finished; in id order. A job that moves before
/// its lock is held is locked again at its new place.
async fn lock_jobs(store: &Inner, on: On<'_>, scope: &Scope, ids: &[JobId]) -> Result<Found, StoreError> {
    let mut missing: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let mut found = Found { jobs: HashMap::new(), leases: HashMap::new() };
    let mut locked = Locked::default();
    for _ in 0..LOCK_ROUNDS {
        locked.add(on, &missing).await?;
        let mut rows = on.query(Sql::JobFound, &[&missing]).await?;
        rows.extend(on.query(Sql::JobRunning, &[&missing]).await?);
        for (row, job) in rows.iter().zip(names::jobs_in(store, on, &rows).await?) {
            let lease: Option<i64> = Columns::new(row).get(JobColumn::LeaseId)?;
            if locked.holds(&job, lease) {
                found.leases.extend(lease.map(|lease| (job.id, lease)));
                found.jobs.insert(job.id, job);
            }
        }
        missing.retain(|id| !found.jobs.contains_key(&JobId(*id)));
        if missing.is_empty() || rows.is_empty() {
            found.jobs.retain(|_, job| scope.covers(&job.tenant));
            return Ok(found);
        }
    }
    Err(StoreError::unavailable("these jobs move too fast to be locked"))
}

/// What this transaction has locked.
#[derive(Default)]
struct Locked {
    waiting: HashSet<i64>,
    leases: HashSet<i64>,
    archived: HashSet<i64>,
}

impl Locked {
    async fn add(&mut self, on: On<'_>, ids: &[i64]) -> Result<(), StoreError> {
        self.waiting.extend(column(&on.query(Sql::WaitingLock, &[&ids]).await?, "id")?);
        self.leases.extend(column(&on.query(Sql::RunningLock, &[&ids]).await?, "id")?);
        self.archived.extend(column(&on.query(Sql::ArchivedLock, &[&ids]).await?, "job_id")?);
        Ok(())
    }

    fn holds(&self, job: &Job, lease: Option<i64>) -> bool {
        match job.state {
            State::Queued | State::Retrying => self.waiting.contains(&job.id.0),
            State::Running => lease.is_some_and(|lease| self.leases.contains(&lease)),
            State::Succeeded | State::Failed | State::Cancelled => self.archived.contains(&job.id.0),
        }
    }
}

fn column(rows: &[Row], name: &'static str) -> Result<Vec<i64>, StoreError> {
    rows.iter().map(|row| Columns::new(row).get(name)).collect()
}

pub(in crate::store::postgres) async fn cancel(
    store: &Inner,
    scope: &Scope,
    ids: &[JobId],
) -> Result<Vec<Cancelled>, StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, cancelled) = join!(lent.begin(), cancel_on(store, On::Own(&lent), scope, ids));
        lent.conclude(begun, cancelled).await
    })
    .await
}

async fn cancel_on(store: &Inner, on: On<'_>, scope: &Scope, ids: &[JobId]) -> Result<Vec<Cancelled>, StoreError> {
    let mut found = lock_jobs(store, on, scope, ids).await?;
    let now = store.now_on(on).await?;
    let (mut endings, mut asked) = (Vec::new(), Vec::new());
    let mut deliveries: Vec<NewJob> = Vec::new();
    let mut results = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(job) = found.get(*id) else {
            results.push(Cancelled::NotFound);
            continue;
        };
        results.push(match verdict::cancel(job.state) {
            CancelVerdict::EndNow => {
                deliveries.extend(transition::ended_waiting(job, Next::Cancelled, now).1);
                endings.push((job.clone(), Next::Cancelled));
                // The same id again finds it finished.
                job.state = Next::Cancelled.state();
                Cancelled::Now
            }
            CancelVerdict::AskToStop => {
                // The same id again finds it asked.
                if !std::mem::replace(&mut job.cancel_requested, true) {
                    asked.push(*id);
                }
                Cancelled::Requested
            }
            CancelVerdict::Finished(state) => Cancelled::Finished(state),
        });
    }
    if !endings.is_empty() {
        let numbers = names::numbers(store, &deliveries).await?;
        commit::end_waiting(store, on, &endings, &deliveries, &numbers).await?;
    }
    if !asked.is_empty() {
        let leases: Vec<Option<i64>> = asked.iter().map(|id| found.leases.get(id).copied()).collect();
        let ids: Vec<i64> = asked.iter().map(|id| id.0).collect();
        on.query(Sql::RequestCancel, &[&ids, &leases]).await?;
    }
    Ok(results)
}

pub(in crate::store::postgres) async fn replay(
    store: &Inner,
    scope: &Scope,
    replay: &Replay,
) -> Result<Vec<Replayed>, StoreError> {
    let replayed = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, replayed) = join!(lent.begin(), replay_on(store, On::Own(&lent), scope, replay));
        lent.conclude(begun, replayed).await
    })
    .await?;
    store.forget_places();
    if replay.spacing != Spacing::NONE {
        // Its queues have gates now.
        store.remembered.forget();
    }
    Ok(replayed)
}

async fn replay_on(store: &Inner, on: On<'_>, scope: &Scope, replay: &Replay) -> Result<Vec<Replayed>, StoreError> {
    let mut found = lock_jobs(store, on, scope, &replay.ids).await?;
    let now = store.now_on(on).await?;
    let (mut requeued, mut sooner) = (Requeued::default(), RunNow::default());
    let mut tallies = Tallies::default();
    let mut paced = BTreeSet::new();
    let (mut undead, mut queues) = (Vec::new(), Vec::new());
    let mut results = Vec::with_capacity(replay.ids.len());
    for id in &replay.ids {
        let Some(job) = found.get(*id) else {
            results.push(Replayed::NotFound);
            continue;
        };
        let due_at = replay.due_at(requeued.id.len() as u64, now);
        results.push(match verdict::replay(&job.standing(), replay.only, due_at, now) {
            ReplayVerdict::Running => Replayed::Running,
            ReplayVerdict::NotDead => Replayed::NotDead,
            ReplayVerdict::LeaveWaiting => Replayed::AlreadyLive,
            ReplayVerdict::RunNow(due_at) => {
                sooner.id.push(id.0);
                sooner.due_at.push(due_at.as_millis());
                Replayed::AlreadyLive
            }
            ReplayVerdict::Requeue(allowance) => {
                requeued.push(*id, &allowance);
                tallies.add(job.queue_id, &job.kind, Tally { replayed: 1, ..Tally::default() });
                paced.insert(job.queue_id.0);
                queues.push(job.queue_id.0);
                undead.extend(is_dead_letter(job).then_some(job.queue_id.0));
                // The same id again finds it waiting.
                (job.state, job.due_at) = (State::Queued, allowance.due_at);
                Replayed::Queued
            }
        });
    }
    if !requeued.id.is_empty() {
        on.query(Sql::Replay, &requeued.params()).await?;
        enqueue::tally(store, on, &tallies).await?;
        if replay.spacing != Spacing::NONE {
            let until = requeued.due_at.iter().max().copied();
            on.query(Sql::QueuePace, &[&paced.into_iter().collect::<Vec<i64>>(), &until]).await?;
        }
        match replay.gate_key() {
            Some(key) => drop(on.query(Sql::ReplayedPut, &[&requeued.id, &queues, &&*key]).await?),
            None => drop(on.query(Sql::ReplayedEnd, &[&requeued.id]).await?),
        }
        commit::count_undead(store, on, &undead).await?;
        let count = requeued.id.len();
        note(on, now, &replay.by, ACTION, count, &replay.detail(count as u64, now)).await?;
    }
    if !sooner.id.is_empty() {
        on.query(Sql::RunNow, &sooner.params()).await?;
    }
    Ok(results)
}

arrays!(
    /// Archived jobs that become live again with a fresh allowance, as the statement `replay` takes them.
    Requeued<'a> {
        id: i64,
        due_at: i64,
        failures: i32,
        crashes: i32,
        previous_delay: i64,
        start_by: Option<i64>,
    }
);

impl Requeued<'_> {
    fn push(&mut self, id: JobId, allowance: &Allowance) {
        self.id.push(id.0);
        self.due_at.push(allowance.due_at.as_millis());
        self.failures.push(allowance.failures as i32);
        self.crashes.push(allowance.crashes as i32);
        self.previous_delay.push(allowance.previous_delay.get() as i64);
        self.start_by.push(allowance.start_by.map(Timestamp::as_millis));
    }
}

arrays!(
    /// Waiting jobs that become due, as the statement `run_now` takes them.
    RunNow<'a> {
        id: i64,
        due_at: i64,
    }
);

/// Pauses or resumes every queue of a name. Replays that waited in it stay as far apart as they were.
pub(in crate::store::postgres) async fn pause_queue(
    store: &Inner,
    tenant: &Tenant,
    name: &QueueName,
    paused: bool,
) -> Result<u64, StoreError> {
    let count = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, count) = join!(lent.begin(), pause_queue_on(store, On::Own(&lent), tenant, name, paused));
        lent.conclude(begun, count).await
    })
    .await?;
    store.forget_places();
    Ok(count)
}

async fn pause_queue_on(
    store: &Inner,
    on: On<'_>,
    tenant: &Tenant,
    name: &QueueName,
    paused: bool,
) -> Result<u64, StoreError> {
    if !paused {
        let mut waiting = Vec::new();
        for row in on.query(Sql::QueuePaced, &[&tenant.as_str(), &name.as_str()]).await? {
            let c = Columns::new(&row);
            waiting.push(Paced {
                queue: QueueId(c.get("queue_id")?),
                id: JobId(c.get("id")?),
                due_at: c.moment("due_at")?,
            });
        }
        let mut later = RunNow::default();
        for (id, due_at) in respaced(&waiting, store.now_on(on).await?) {
            later.id.push(id.0);
            later.due_at.push(due_at.as_millis());
        }
        if !later.id.is_empty() {
            on.query(Sql::RunNow, &later.params()).await?;
        }
    }
    let params: Params<'_> = &[&store.fixed(), &tenant.as_str(), &name.as_str(), &paused];
    Ok(on.query(Sql::QueuePause, params).await?.len() as u64)
}

pub(in crate::store::postgres) async fn discard(
    store: &Inner,
    scope: &Scope,
    discard: &Discard,
) -> Result<Vec<Discarded>, StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, discarded) = join!(lent.begin(), discard_on(store, On::Own(&lent), scope, discard));
        lent.conclude(begun, discarded).await
    })
    .await
}

async fn discard_on(store: &Inner, on: On<'_>, scope: &Scope, discard: &Discard) -> Result<Vec<Discarded>, StoreError> {
    let mut found = lock_jobs(store, on, scope, &discard.ids).await?;
    let now = store.now_on(on).await?;
    let (mut ids, mut undead) = (Vec::new(), Vec::new());
    let mut results = Vec::with_capacity(discard.ids.len());
    for id in &discard.ids {
        let Some(job) = found.get(*id) else {
            results.push(Discarded::NotFound);
            continue;
        };
        results.push(match verdict::discard(job.state, job.discarded_at.is_some()) {
            DiscardVerdict::Discard => {
                ids.push(id.0);
                undead.push(job.queue_id.0);
                // The same id again finds it discarded.
                job.discarded_at = Some(now);
                Discarded::Done
            }
            DiscardVerdict::AlreadyDiscarded => Discarded::Done,
            DiscardVerdict::NotDead => Discarded::NotDead,
        });
    }
    if !ids.is_empty() {
        on.query(Sql::Discard, &[&now.as_millis(), &ids, &discard.reason]).await?;
        commit::count_undead(store, on, &undead).await?;
        note(on, now, &discard.by, "discard", ids.len(), &discard.detail()).await?;
    }
    Ok(results)
}

pub(in crate::store::postgres) async fn amend(
    store: &Inner,
    scope: &Scope,
    id: JobId,
    change: Amend,
) -> Result<Amended, StoreError> {
    let amended = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, amended) = join!(lent.begin(), amend_on(store, On::Own(&lent), scope, id, change));
        lent.conclude(begun, amended).await
    })
    .await?;
    store.forget_places();
    Ok(amended)
}

async fn amend_on(store: &Inner, on: On<'_>, scope: &Scope, id: JobId, change: Amend) -> Result<Amended, StoreError> {
    let mut found = lock_jobs(store, on, scope, &[id]).await?;
    let Some(job) = found.get(id) else {
        return Ok(Amended::NotFound);
    };
    match verdict::amend(&job.standing(), change) {
        AmendVerdict::Change { priority, due_at } => {
            on.query(Sql::Amend, &[&id.0, &priority.rank(), &due_at.as_millis()]).await?;
            Ok(Amended::Done)
        }
        AmendVerdict::NotWaiting(state) => Ok(Amended::NotWaiting(state)),
    }
}

fn is_dead_letter(job: &Job) -> bool {
    job.state == State::Failed && job.discarded_at.is_none()
}

/// An audit line.
async fn note(on: On<'_>, at: Timestamp, by: &str, action: &str, count: usize, detail: &str) -> Result<(), StoreError> {
    on.query(Sql::Audit, &[&at.as_millis(), &by, &action, &(count as i64), &detail]).await.map(drop)
}

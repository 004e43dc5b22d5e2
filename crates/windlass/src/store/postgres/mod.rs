//! Postgres: one schema for a fleet. Hot statements are set statements over arrays; claims are heap-only updates; the archive is
//! partitioned. Works behind a pooler in transaction mode: qualified names, transaction-level locks and settings only.

mod claim;
mod columns;
mod commit;
mod connect;
mod enqueue;
mod fault;
mod frontier;
mod gather;
mod health;
mod listen;
mod migrate;
mod names;
mod partitions;
mod people;
mod pool;
mod prune;
mod read;
mod records;
mod retention;
mod rows;
mod schedules;
mod sql;
mod upkeep;

use super::{
    Alert, AlertChange, Amend, Amended, Atomicity, Audit, Cancelled, Claim, Claimed, Commit, Committed, DeadGroup,
    Depth, Discard, Discarded, Enqueued, Fired, Firing, Health, JobFilter, Migrations, Options, Page, Queue, Reap,
    Renewed, Replay, Replayed, Result, Schedule, ScheduleChange, ScheduleSpec, Scope, SettingKey, Settled, Store,
    StoreError, Token, WorkerId, WorkerLock, WorkerReport,
};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::job::{Job, LeaseId, NewJob};
use crate::tally::Tally;
use crate::wake::Wake;
use async_trait::async_trait;
use connect::{Connector, Link};
use fault::again;
use frontier::Frontier;
use futures_util::join;
use gather::{GATHERED, Lanes};
use names::Names;
use partitions::Partitions;
use pool::{On, Params, Pool};
use retention::Remembered;
use rows::Columns;
use sql::{Sql, Texts};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::Row;
use tokio_util::task::AbortOnDropHandle;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, Millis, Timestamp};

/// How often, and how far apart, a worker's lock is asked for: a holder that just went away takes a moment to be noticed.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Jobs in Postgres.
#[derive(Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
    lanes: Lanes,
    _listeners: Vec<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    pool: Arc<Pool>,
    /// One connection for registering queues and policies.
    registry: Arc<Pool>,
    clock: Clock,
    dice: Dice,
    wake: Wake,
    /// Asks the notifier to tell the fleet.
    news: Notify,
    names: Names,
    frontier: Frontier,
    remembered: Remembered,
    partitions: Partitions,
}

impl PostgresStore {
    /// Opens the store at a URL (`postgres://user:password@host/database?sslmode=require`), or, if it is just `postgres://`,
    /// where the `PG*` environment variables say.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a wrong URL or schema name, [`StoreError::Schema`] for a schema this version cannot work
    /// with, [`StoreError::Unavailable`] if the server cannot be reached.
    pub async fn open(url: &str, options: Options) -> Result<Arc<Self>> {
        if !sql::is_schema_name(&options.schema) {
            let form = "[a-z_][a-z0-9_]{0,62}";
            return Err(StoreError::Invalid(format!("schema `{}` is not a name; names match {form}", options.schema)));
        }
        let texts = Arc::new(Texts::new(&options.schema));
        let connector = Connector::new(url)?;
        let inner = Arc::new(Inner {
            registry: Pool::new(connector.clone(), texts.clone(), 1),
            pool: Pool::new(connector, texts, options.connections),
            clock: options.clock,
            dice: options.dice,
            wake: Wake::default(),
            news: Notify::new(),
            names: Names::default(),
            frontier: Frontier::default(),
            remembered: Remembered::default(),
            partitions: Partitions::default(),
        });
        match options.migrations {
            Migrations::Run => inner.migrate().await?,
            Migrations::LeaveToOperator => inner.check_schema().await?,
        }
        inner.follow_server().await?;
        let lanes = Lanes::new(&inner);
        let listeners = listen::tasks(&inner);
        Ok(Arc::new(Self { inner, lanes, _listeners: listeners }))
    }

    /// Stores jobs in the caller's own transaction: they exist exactly if it commits. Their queues are registered at once.
    ///
    /// # Errors
    /// As [`Store::enqueue`]; after an error the transaction can only be rolled back.
    pub async fn enqueue_in(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        let numbers = self.inner.numbers(&jobs).await?;
        let on = On::Callers(transaction, self.inner.pool.texts());
        self.inner.enqueue_on(on, &jobs, &numbers, Atomicity::All).await
    }

    /// Applies commits in the transaction that holds their effects.
    ///
    /// # Errors
    /// As [`Store::commit`]; after an error the transaction can only be rolled back.
    pub async fn commit_in(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        commits: Vec<Commit>,
        ended: Vec<LeaseId>,
    ) -> Result<Vec<Committed>> {
        self.inner.ensure_partitions(commit::classes(&commits)).await?;
        let numbers = self.inner.follow_up_numbers(&commits).await?;
        let on = On::Callers(transaction, self.inner.pool.texts());
        self.inner.apply(on, &commits, &numbers, &ended).await
    }

    /// Prepares every statement on one connection: whether the schema is what they expect.
    ///
    /// # Errors
    /// The first statement that does not fit, and why.
    pub async fn check_statements(&self) -> Result<usize> {
        let lent = self.inner.pool.get().await?;
        for sql in Sql::ALL {
            let text = self.inner.pool.texts().get(*sql);
            let prepared = lent.client().prepare(text).await;
            prepared.map_err(|error| StoreError::Schema(format!("{sql:?}: {}", fault::message(&error))))?;
        }
        Ok(Sql::ALL.len())
    }

    /// For verbs that may make work due.
    fn ringing<T>(&self, done: T) -> T {
        self.inner.wake.ring();
        self.inner.news.notify_one();
        done
    }
}

impl Inner {
    /// What a test says the time is.
    fn fixed(&self) -> Option<i64> {
        self.clock.fixed().map(Timestamp::as_millis)
    }

    async fn follow_server(&self) -> Result<()> {
        let rows = self.read(Sql::Now, &[&self.fixed()]).await?;
        if let Some(row) = rows.first() {
            self.clock.follow(Columns::new(row).moment()?);
        }
        Ok(())
    }

    /// One statement that changes nothing.
    async fn read(&self, sql: Sql, params: Params<'_>) -> Result<Vec<Row>> {
        again(|| async { self.pool.get().await?.query(sql, params).await }).await
    }

    /// One statement in a transaction of its own.
    async fn write(&self, sql: Sql, params: Params<'_>) -> Result<Vec<Row>> {
        again(|| async {
            let lent = self.pool.get().await?;
            let (begun, rows) = join!(lent.begin(), lent.query(sql, params));
            lent.conclude(begun, rows).await
        })
        .await
    }

    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<Link>> {
        let link = self.pool.connector().connect(None).await?;
        let begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0";
        link.client.batch_execute(begin).await.map_err(fault::before)?;
        let text = self.pool.texts().get(Sql::WorkerLock);
        for attempt in 0..LOCK_TRIES {
            if attempt > 0 {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            let row = link.client.query_one(text, &[&&*worker.0]).await.map_err(fault::before)?;
            if Columns::new(&row).next()? {
                return Ok(Some(link));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let is_plain = jobs.iter().all(|job| job.idempotency.is_none());
        let stored = if atomicity == Atomicity::Each && is_plain && jobs.len() <= GATHERED {
            self.lanes.enqueue(jobs).await?
        } else {
            self.inner.enqueue(&jobs, atomicity).await?
        };
        Ok(self.ringing(stored))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.inner.claim(&claim).await
    }

    async fn held(&self, lease: LeaseId) -> Result<Vec<Job>> {
        self.inner.held(lease).await
    }

    async fn commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        if commits.is_empty() && ended.is_empty() {
            return Ok(Vec::new());
        }
        // Only what waits again, and what follows, makes work due.
        let is_due = commits.iter().any(|c| !c.follow_ups.is_empty() || c.transition.next.wait().is_some());
        let committed = if commits.len() <= GATHERED {
            self.lanes.commit(commits, ended).await?
        } else {
            self.inner.commit(&commits, &ended).await?
        };
        Ok(if is_due { self.ringing(committed) } else { committed })
    }

    async fn renew(&self, _worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        self.inner.renew(&leases, lease_for).await
    }

    async fn reap(&self, reap: Reap, limit: u32) -> Result<Vec<Settled>> {
        let settled = self.inner.reap(&reap, limit).await?;
        Ok(if settled.is_empty() { settled } else { self.ringing(settled) })
    }

    async fn expire(&self, limit: u32) -> Result<Vec<Settled>> {
        self.inner.expire(limit).await
    }

    async fn cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        self.inner.cancel(scope, &ids).await
    }

    async fn replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        self.inner.replay(scope, &replay).await.map(|replayed| self.ringing(replayed))
    }

    async fn discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        self.inner.discard(scope, &discard).await
    }

    async fn amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        self.inner.amend(scope, id, change).await.map(|amended| self.ringing(amended))
    }

    async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        self.inner.job(scope, id).await
    }

    async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        self.inner.jobs(scope, filter, page).await
    }

    async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        self.inner.attempts(scope, id, limit).await
    }

    async fn schedule_attempts(&self, scope: &Scope, schedule: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>> {
        self.inner.schedule_attempts(scope, schedule, limit).await
    }

    async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
        self.inner.dead_groups(scope, filter, limit).await
    }

    async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
        self.inner.depths(scope).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.inner.queues().await
    }

    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
        self.inner.find_or_add_queue(tenant, name, executor).await.map(|queue| (*queue).clone())
    }

    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64> {
        self.inner.pause_queue(tenant, name, paused).await.map(|count| self.ringing(count))
    }

    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        self.inner.settings().await
    }

    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        self.inner.put_setting(key, value).await
    }

    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
        self.inner.add_schedule(&spec, next_at).await.map(|schedule| self.ringing(schedule))
    }

    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        self.inner.schedule(scope, id).await
    }

    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        self.inner.schedules(scope, page).await
    }

    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
        self.inner.change_schedule(scope, id, &change).await.map(|changed| self.ringing(changed))
    }

    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
        self.inner.remove_schedule(scope, id).await
    }

    async fn due_schedules(&self, limit: u32) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        self.inner.due_schedules(limit).await
    }

    async fn fire(&self, firing: Firing) -> Result<Fired> {
        self.inner.fire(&firing).await.map(|fired| self.ringing(fired))
    }

    async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
        self.inner.tallies(scope, since).await
    }

    async fn put_token(&self, token: &Token) -> Result<()> {
        self.inner.put_token(token).await
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.inner.tokens().await
    }

    async fn revoke_token(&self, id: &str) -> Result<bool> {
        self.inner.revoke_token(id).await
    }

    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
        Ok(self.inner.lock_worker(worker).await?.map(|link| Box::new(link) as WorkerLock))
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        self.inner.report_worker(report).await
    }

    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        self.inner.workers(since).await
    }

    async fn alerts(&self) -> Result<Vec<Alert>> {
        self.inner.alerts().await
    }

    async fn change_alert(&self, change: AlertChange) -> Result<bool> {
        self.inner.change_alert(&change).await.map(|changed| self.ringing(changed))
    }

    async fn audit(&self, entry: &Audit) -> Result<()> {
        self.inner.audit(entry).await
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        self.inner.audits(limit).await
    }

    async fn prune(&self) -> Result<u64> {
        self.inner.prune().await
    }

    async fn migrate(&self) -> Result<()> {
        self.inner.migrate().await
    }

    async fn health(&self) -> Result<Health> {
        self.inner.health().await
    }

    fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    fn wake(&self) -> &Wake {
        &self.inner.wake
    }
}

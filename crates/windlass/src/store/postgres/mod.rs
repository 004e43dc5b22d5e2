//! Postgres: one schema for a fleet. Hot statements are set statements over arrays; claims are heap-only updates; the archive is
//! partitioned. Works behind a pooler in transaction mode: qualified names, transaction-level locks and settings only.

mod api;
mod connection;
mod life;
mod reads;
mod statements;
mod upkeep;

use super::{Atomicity, Commit, Committed, Enqueued, Migrations, Options, Result, StoreError, WorkerId};
use crate::clock::Clock;
use crate::job::{LeaseId, NewJob};
use crate::random::Random;
use crate::wake::Wake;
use connection::connect::{Connector, Link};
use connection::fault::again;
use connection::gather::Gatherers;
use connection::pool::{On, Params, Pool};
use futures_util::join;
use life::frontier::Frontier;
use life::names::Names;
use statements::Sql;
use statements::columns::Columns;
use statements::texts::Texts;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::Row;
use tokio_util::task::AbortOnDropHandle;
use upkeep::fold::{Last, Unfolded};
use upkeep::partitions::Partitions;
use upkeep::retention::Remembered;
use windlass_core::Timestamp;

/// How often, and how far apart, a worker's lock is asked for: a holder that just went away takes a moment to be noticed.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// The parameter types of the statement that is being checked.
const CHECKED: &str = "SELECT array_to_string(parameter_types::oid[], ' ') \
     FROM pg_prepared_statements WHERE name = 'windlass_check'";

/// Jobs in Postgres.
#[derive(Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
    gatherers: Gatherers,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    pool: Arc<Pool>,
    /// One connection for registering queues and policies.
    registry: Arc<Pool>,
    clock: Clock,
    random: Random,
    wake: Wake,
    /// Asks the notifier to tell the fleet.
    news: Notify,
    names: Names,
    frontier: Frontier,
    remembered: Remembered,
    partitions: Partitions,
    unfolded: Unfolded,
    /// When this node last counted what is live.
    recounted: Last,
}

impl PostgresStore {
    /// Opens the store at a URL (`postgres://user:password@host/database?sslmode=require`), or, if it is just `postgres://`,
    /// where the `PG*` environment variables say. Statements are prepared where the connection goes straight to the server;
    /// behind a pooler they are not, unless the URL says `prepared=on` (or, against all signs, `prepared=off`).
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a wrong URL or schema name, [`StoreError::Schema`] for a schema this version cannot work
    /// with, [`StoreError::Unavailable`] if the server cannot be reached.
    pub async fn open(url: &str, options: Options) -> Result<Arc<Self>> {
        if !statements::texts::is_schema_name(&options.schema) {
            let form = "[a-z_][a-z0-9_]{0,62}";
            return Err(StoreError::Invalid(format!("schema `{}` is not a name; names match {form}", options.schema)));
        }
        let texts = Arc::new(Texts::new(&options.schema));
        let connector = Connector::new(url)?;
        let inner = Arc::new(Inner {
            registry: Pool::new(connector.clone(), texts.clone(), 1),
            pool: Pool::new(connector, texts, options.connections),
            clock: options.clock,
            random: options.random,
            wake: Wake::default(),
            news: Notify::new(),
            names: Names::default(),
            frontier: Frontier::default(),
            remembered: Remembered::default(),
            partitions: Partitions::default(),
            unfolded: Unfolded::default(),
            recounted: Last::default(),
        });
        match options.migrations {
            Migrations::Run => inner.migrate().await?,
            Migrations::LeaveToOperator => inner.check_schema().await?,
        }
        inner.follow_server().await?;
        let gatherers = Gatherers::new(&inner);
        let mut tasks = connection::listen::tasks(&inner);
        tasks.push(AbortOnDropHandle::new(tokio::spawn(upkeep::fold::fold_many(inner.clone()))));
        Ok(Arc::new(Self { inner, gatherers, _tasks: tasks }))
    }

    /// Stores jobs in the caller's own transaction: they exist exactly if it commits. Their queues are registered at once.
    ///
    /// # Errors
    /// As [`crate::store::Store::enqueue`]; after an error the transaction can only be rolled back.
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
    /// As [`crate::store::Store::commit`]; after an error the transaction can only be rolled back.
    pub async fn commit_in(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        commits: Vec<Commit>,
        ended: Vec<LeaseId>,
    ) -> Result<Vec<Committed>> {
        self.inner.ensure_partitions(life::commit::classes(&commits)).await?;
        let numbers = self.inner.follow_up_numbers(&commits).await?;
        let on = On::Callers(transaction, self.inner.pool.texts());
        self.inner.apply(on, &commits, &numbers, &ended).await
    }

    /// Prepares every statement on one connection and forgets it: whether the schema, and the types that statements are sent
    /// with, are what they expect.
    ///
    /// # Errors
    /// The first statement that does not fit, and why.
    pub async fn check_statements(&self) -> Result<usize> {
        let lent = self.inner.pool.get().await?;
        for sql in Sql::ALL {
            let text = self.inner.pool.texts().get(*sql);
            // In one message, so that it meets one server process behind a pooler too.
            let script = format!("PREPARE windlass_check AS {text}; {CHECKED}; DEALLOCATE windlass_check");
            let wrong = |why: &str| StoreError::Schema(format!("{sql:?}: {why}"));
            let answers = lent
                .client()
                .simple_query(&script)
                .await
                .map_err(|error| wrong(&connection::fault::message(&error)))?;
            let expected = connection::pooler::first(&answers);
            let types: Vec<String> = statements::texts::types(text).iter().map(|kind| kind.oid().to_string()).collect();
            if expected != Some(&types.join(" ")) {
                return Err(wrong(&format!("its parameters are {expected:?}, not {types:?}")));
            }
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
            self.clock.follow(Columns::new(row).moment("now")?);
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
        link.client.batch_execute(begin).await.map_err(connection::fault::before)?;
        let texts = self.pool.texts();
        for attempt in 0..LOCK_TRIES {
            if attempt > 0 {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            let name: Params<'_> = &[&&*worker.0];
            let typed = texts.typed(Sql::WorkerLock, name);
            let row = link
                .client
                .query_typed_one(texts.get(Sql::WorkerLock), &typed)
                .await
                .map_err(connection::fault::before)?;
            if Columns::new(&row).get("is_mine")? {
                return Ok(Some(link));
            }
        }
        Ok(None)
    }
}

//! Postgres: one schema for a fleet. A job is written once; a claim removes its narrow row from `waiting`, and the end
//! of an attempt is one row of `attempts`. Hot statements are set statements over arrays. Works behind a pooler in
//! transaction mode: qualified names, transaction-level locks and settings only.

mod api;
mod connection;
mod life;
mod reads;
mod registry;
mod statements;
mod upkeep;

use super::passed_over::PassedOver;
use super::{Atomicity, Commit, Committed, Enqueued, Migrations, Options, Result, StoreError};
use crate::clock::Clock;
use crate::job::{LeaseId, NewJob};
use crate::random::Random;
use crate::transaction::driver::{self, Driver};
use crate::wake::Wake;
use connection::connect::Connector;
use connection::contact::{self, Contact};
use connection::fault::again;
use connection::gather::Gatherers;
use connection::pool::{On, Params, Pool, Reserve, Source};
use connection::through::Through;
use futures_util::join;
use life::frontier::Frontier;
use life::gates::looks::GateLooks;
use life::gates::rows::GateIds;
use life::leases::Ahead;
use life::names::{self, Names};
use life::{commit, enqueue};
use statements::Sql;
use statements::columns::Columns;
use statements::row::Row;
use statements::texts::Texts;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use upkeep::fold::{Last, Unfolded};
use upkeep::retention::Remembered;
use windlass_core::{Millis, Timestamp};

/// The parameter types of the statement that is being checked.
const CHECKED: &str = "SELECT array_to_string(parameter_types::oid[], ' ') \
     FROM pg_prepared_statements WHERE name = 'windlass_check'";

/// Jobs in Postgres.
#[derive(Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
    gatherers: Gatherers,
    _tasks: Vec<AbortOnDropHandle<()>>,
    /// Where its connections live.
    runtime: Handle,
}

/// What all steps share. The steps are functions over it, in the folders' files.
#[derive(Debug)]
struct Inner {
    pool: Arc<Pool>,
    /// One connection for registering queues and policies and for reading the settings, so that a caller who holds a
    /// connection never waits for one that other callers hold.
    registry: Arc<Pool>,
    clock: Clock,
    random: Random,
    wake: Wake,
    /// Asks the notifier to wake the fleet.
    news: Notify,
    names: Names,
    frontier: Frontier,
    passed_over: PassedOver,
    remembered: Remembered,
    unfolded: Unfolded,
    /// When this node last counted what is live.
    recounted: Last,
    /// Leases that end too late to be true.
    ahead: Ahead,
    /// The last replayed job that a prune looked at.
    replayed_pruned: AtomicI64,
    gate_looks: GateLooks,
    gate_ids: GateIds,
}

impl PostgresStore {
    /// Opens the store at a URL (`postgres://user:password@host/database?sslmode=require`), or, for just `postgres://`,
    /// where the `PG*` environment variables point. Statements are prepared where the connection goes straight to the
    /// server; behind a pooler they are not. `prepared=on` or `prepared=off` in the URL overrides this.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a wrong URL or schema name, [`StoreError::Schema`] for a schema this version cannot
    /// work with, [`StoreError::Unavailable`] if the server cannot be reached.
    pub async fn open(url: &str, options: Options) -> Result<Arc<Self>> {
        Self::open_from(Source::Own(Box::new(Connector::new(url)?)), options).await
    }

    /// Opens the store on a pool of the caller. It keeps one connection, one more for each worker and one for the
    /// listener, if the pool can listen; it takes at most `options.connections` others at once.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_on(pool: Arc<dyn driver::Pool>, options: Options) -> Result<Arc<Self>> {
        Self::open_from(Source::Callers(pool), options).await
    }

    async fn open_from(source: Source, options: Options) -> Result<Arc<Self>> {
        if !statements::texts::is_schema_name(&options.schema) {
            let form = "[a-z_][a-z0-9_]{0,62}";
            return Err(StoreError::Invalid(format!("schema `{}` is not a name; names match {form}", options.schema)));
        }
        let texts = Arc::new(Texts::new(&options.schema));
        let inner = Arc::new(Inner {
            registry: Pool::new(source.clone(), texts.clone(), 1, Reserve::Kept),
            pool: Pool::new(source, texts, options.connections, Reserve::None),
            clock: options.clock,
            random: options.random,
            wake: Wake::default(),
            news: Notify::new(),
            names: Names::default(),
            frontier: Frontier::default(),
            passed_over: PassedOver::default(),
            remembered: Remembered::default(),
            unfolded: Unfolded::default(),
            recounted: Last::default(),
            ahead: Ahead::default(),
            replayed_pruned: AtomicI64::default(),
            gate_looks: GateLooks::default(),
            gate_ids: GateIds::default(),
        });
        drop(inner.registry.get().await.map_err(connection::fault::for_good)?);
        match options.migrations {
            Migrations::Run => connection::migrate::migrate(&inner).await?,
            Migrations::LeaveToOperator => connection::migrate::check_schema(&inner).await?,
        }
        inner.follow_server().await?;
        let gatherers = Gatherers::new(&inner);
        let mut tasks = connection::listen::tasks(&inner);
        tasks.push(AbortOnDropHandle::new(tokio::spawn(upkeep::fold::fold_many(inner.clone()))));
        Ok(Arc::new(Self { inner, gatherers, _tasks: tasks, runtime: Handle::current() }))
    }

    /// Stores jobs in the caller's own transaction: they exist exactly if it commits. Their queues are registered at
    /// once.
    ///
    /// # Errors
    /// As [`crate::store::Store::enqueue`]; after an error the transaction can only be rolled back.
    pub async fn enqueue_in(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        self.enqueue_on(On::Callers(transaction, self.inner.pool.texts()), jobs).await
    }

    /// The same through another driver's transaction.
    pub(crate) async fn enqueue_through(&self, driver: &mut dyn Driver, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.enqueue_on(On::Through(&Through::new(driver), self.inner.pool.texts()), jobs).await
    }

    async fn enqueue_on(&self, on: On<'_>, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let numbers = names::numbers(&self.inner, &jobs).await?;
        enqueue::enqueue_on(&self.inner, on, &jobs, &numbers, Atomicity::All).await
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
        self.commit_on(On::Callers(transaction, self.inner.pool.texts()), commits, ended).await
    }

    /// The same through another driver's transaction.
    pub(crate) async fn commit_through(
        &self,
        driver: &mut dyn Driver,
        commits: Vec<Commit>,
        ended: Vec<LeaseId>,
    ) -> Result<Vec<Committed>> {
        self.commit_on(On::Through(&Through::new(driver), self.inner.pool.texts()), commits, ended).await
    }

    async fn commit_on(&self, on: On<'_>, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        let numbers = commit::follow_up_numbers(&self.inner, &commits).await?;
        commit::apply(&self.inner, on, &commits, &numbers, &ended).await
    }

    /// The runtime that the store was opened in.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Prepares every statement on one connection and discards it, to check that the schema and the types of parameters
    /// are as expected.
    ///
    /// # Errors
    /// The first statement that does not fit, and why.
    pub async fn check_statements(&self) -> Result<usize> {
        let lent = self.inner.pool.get().await?;
        let client = lent.client().ok_or_else(|| StoreError::unavailable("the connection is of the caller's pool"))?;
        for sql in Sql::ALL {
            let text = self.inner.pool.texts().get(*sql);
            // In one message, so that one server process gets it behind a pooler too.
            let script = format!("PREPARE windlass_check AS {text}; {CHECKED}; DEALLOCATE windlass_check");
            let wrong = |why: &str| StoreError::Schema(format!("{sql:?}: {why}"));
            let answers =
                client.simple_query(&script).await.map_err(|error| wrong(&connection::fault::message(&error)))?;
            let expected = connection::pooler::first(&answers);
            let types: Vec<String> = statements::texts::types(text).iter().map(|kind| kind.oid().to_string()).collect();
            if expected != Some(&types.join(" ")) {
                return Err(wrong(&format!("its parameters are {expected:?}, not {types:?}")));
            }
        }
        Ok(Sql::ALL.len())
    }

    /// Called after anything that may make jobs due.
    fn ringing<T>(&self, done: T) -> T {
        self.inner.wake.ring();
        self.inner.news.notify_one();
        done
    }
}

impl Inner {
    /// Jobs became due before the places at which claims start.
    fn forget_places(&self) {
        self.frontier.forget();
        self.passed_over.forget();
    }

    /// How much later than this node another one may notice that the server is back.
    fn notice_time(&self) -> Millis {
        match self.pool.source() {
            Source::Own(connector) => connector.contact().notice_time(),
            // Nobody knows how the caller's other processes connect.
            Source::Callers(_) => Contact::new(contact::SILENCE).notice_time(),
        }
    }

    /// A test's time.
    fn fixed(&self) -> Option<i64> {
        self.clock.fixed().map(Timestamp::as_millis)
    }

    async fn follow_server(&self) -> Result<()> {
        let asked = self.clock.monotonic();
        let rows = self.read(Sql::Now, &[&self.fixed()]).await?;
        if let Some(row) = rows.first() {
            self.clock.follow(Columns::new(row).moment("now")?, asked);
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

    /// The server's time, which this process's clock then follows.
    async fn now_on(&self, on: On<'_>) -> Result<Timestamp> {
        let asked = self.clock.monotonic();
        let rows = on.query(Sql::Now, &[&self.fixed()]).await?;
        let Some(row) = rows.first() else { return Ok(self.clock.now()) };
        let now = Columns::new(row).moment("now")?;
        self.clock.follow(now, asked);
        Ok(now)
    }
}

//! The pool: a bounded number of connections, each with its prepared statements (behind a pooler: without). A
//! connection whose transaction did not end is closed, not reused. (Written by hand because a commit's notices must be
//! received on its own connection.) On a caller's pool it only bounds how many connections are taken at once.

use crate::clock::Stopwatch;
use crate::store::StoreError;
use crate::store::postgres::connection::connect::{Connector, Link};
use crate::store::postgres::connection::fault::{Phase, before, classify};
use crate::store::postgres::connection::through::{Taken, Through};
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::texts::Texts;
use crate::store::postgres::statements::{Script, Sql};
use crate::transaction::driver;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

/// Longest wait for a free connection.
const WAIT: Duration = Duration::from_secs(10);

/// A connection that was not used for this long is tried before anything is sent over it.
const RESTED: Duration = Duration::from_millis(10);

/// A statement's parameters.
pub(in crate::store::postgres) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Where connections come from.
#[derive(Debug, Clone)]
pub(in crate::store::postgres) enum Source {
    /// The store connects by itself.
    Own(Box<Connector>),
    /// A pool of the caller.
    Callers(Arc<dyn driver::Pool>),
}

#[derive(Debug)]
pub(in crate::store::postgres) struct Pool {
    source: Source,
    texts: Arc<Texts>,
    idle: Mutex<Vec<Conn>>,
    slots: Arc<Semaphore>,
    reserve: Reserve,
}

/// What happens to connections of the caller's pool that are not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::postgres) enum Reserve {
    /// They go back.
    None,
    /// They are kept: while the caller's transactions hold all others, those transactions must not wait for us.
    Kept,
}

#[derive(Debug)]
enum Conn {
    Own(OwnConn),
    /// Nothing is prepared on it, and each transaction makes its own settings.
    Callers(Taken),
}

#[derive(Debug)]
struct OwnConn {
    link: Link,
    /// `None` where statements cannot be prepared: then their text is sent with the parameters, in one message.
    prepared: Option<Mutex<Vec<Option<Statement>>>>,
    /// No pooler is in between: the session is ours, and has our settings.
    is_direct: bool,
    /// Since it was used last.
    rested: Stopwatch,
}

/// A borrowed connection. It is closed if it is dropped while a transaction is open.
#[derive(Debug)]
pub(in crate::store::postgres) struct Lent {
    conn: Option<Conn>,
    pool: Arc<Pool>,
    /// Whether a transaction is open.
    is_open: AtomicBool,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(in crate::store::postgres) fn new(
        source: Source,
        texts: Arc<Texts>,
        size: usize,
        reserve: Reserve,
    ) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(size.max(1)));
        Arc::new(Self { source, texts, idle: Mutex::new(Vec::new()), slots, reserve })
    }

    pub(in crate::store::postgres) fn source(&self) -> &Source {
        &self.source
    }

    pub(in crate::store::postgres) fn texts(&self) -> &Arc<Texts> {
        &self.texts
    }

    pub(in crate::store::postgres) async fn get(self: &Arc<Self>) -> Result<Lent, StoreError> {
        self.check()?;
        let slot = tokio::select! {
            slot = tokio::time::timeout(WAIT, self.slots.clone().acquire_owned()) => slot
                .map_err(|_| StoreError::unavailable("all connections to Postgres are busy"))?
                .map_err(StoreError::unavailable)?,
            error = self.lost() => return Err(error),
        };
        while let Some(conn) = self.take_idle() {
            if !conn.is_closed() && conn.answers().await {
                return Ok(self.lend(conn, Some(slot)));
            }
        }
        self.check()?;
        let conn = match &self.source {
            Source::Own(connector) => Conn::Own(self.open(connector).await?),
            Source::Callers(pool) => Conn::Callers(take(&**pool).await?),
        };
        Ok(self.lend(conn, Some(slot)))
    }

    /// A connection that its user keeps for long: it takes no slot, and it is closed at the end.
    pub(in crate::store::postgres) async fn keep(self: &Arc<Self>) -> Result<Lent, StoreError> {
        let conn = match &self.source {
            Source::Own(connector) => Conn::Own(OwnConn {
                link: connector.connect(None).await?,
                prepared: None,
                is_direct: false,
                rested: Stopwatch::start(),
            }),
            Source::Callers(pool) => Conn::Callers(take(&**pool).await?),
        };
        let lent = self.lend(conn, None);
        lent.is_open.store(true, Ordering::Release);
        Ok(lent)
    }

    async fn open(&self, connector: &Connector) -> Result<OwnConn, StoreError> {
        let link = connector.connect(None).await?;
        let (is_direct, prepares) = connector.prepares(&link).await?;
        if is_direct {
            let session = link.client.batch_execute(self.texts.script(Script::Session));
            link.asking(session).await.map_err(before)?;
        }
        Ok(OwnConn {
            rested: Stopwatch::start(),
            link,
            prepared: prepares.then(|| Mutex::new(vec![None; Sql::ALL.len()])),
            is_direct,
        })
    }

    /// Refuses while the server is known to be away.
    fn check(&self) -> Result<(), StoreError> {
        match &self.source {
            Source::Own(connector) => connector.contact().check(),
            Source::Callers(_) => Ok(()),
        }
    }

    /// Waits until the server is known to be away.
    async fn lost(&self) -> StoreError {
        let Source::Own(connector) = &self.source else { return std::future::pending().await };
        connector.contact().lost().await;
        StoreError::unavailable("Postgres does not answer")
    }

    fn lend(self: &Arc<Self>, conn: Conn, slot: Option<OwnedSemaphorePermit>) -> Lent {
        Lent { conn: Some(conn), pool: self.clone(), is_open: AtomicBool::new(false), _slot: slot }
    }

    fn take_idle(&self) -> Option<Conn> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

async fn take(pool: &dyn driver::Pool) -> Result<Taken, StoreError> {
    let taken = tokio::time::timeout(WAIT, pool.get())
        .await
        .map_err(|_| StoreError::unavailable("all connections of the pool are busy"))?
        .map_err(|error| StoreError::unavailable(format!("the pool gave no connection: {error}")))?;
    Ok(Taken::new(taken))
}

impl Conn {
    fn is_closed(&self) -> bool {
        match self {
            Self::Own(conn) => conn.link.client.is_closed(),
            Self::Callers(taken) => taken.is_lost(),
        }
    }

    /// Whether a connection that has rested still leads to the server. Without this, a job sent over a connection that
    /// was closed meanwhile would be a job of unknown outcome, once for every such connection.
    async fn answers(&self) -> bool {
        match self {
            Self::Own(conn) if conn.rested.elapsed() >= RESTED => {
                conn.link.asking(conn.link.client.check_connection()).await.is_ok()
            }
            Self::Own(_) | Self::Callers(_) => true,
        }
    }

    fn rest(self) -> Self {
        match self {
            Self::Own(conn) => Self::Own(OwnConn { rested: Stopwatch::start(), ..conn }),
            Self::Callers(taken) => Self::Callers(taken),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        let is_usable = !self.is_open.load(Ordering::Acquire) && !conn.is_closed();
        match conn {
            Conn::Callers(taken) if !is_usable => taken.close(),
            // Dropping it gives it back.
            Conn::Callers(_) if self.pool.reserve == Reserve::None => {}
            conn if is_usable => self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn.rest()),
            Conn::Own(_) | Conn::Callers(_) => {}
        }
    }
}

impl Lent {
    fn conn(&self) -> &Conn {
        self.conn.as_ref().expect("a connection is lent until it is dropped")
    }

    /// The driver's client, if the connection is the store's own.
    pub(in crate::store::postgres) fn client(&self) -> Option<&tokio_postgres::Client> {
        match self.conn() {
            Conn::Own(conn) => Some(&conn.link.client),
            Conn::Callers(_) => None,
        }
    }

    /// Whether statements are prepared on this connection.
    pub(in crate::store::postgres) fn prepares(&self) -> bool {
        match self.conn() {
            Conn::Own(conn) => conn.prepared.is_some(),
            Conn::Callers(_) => false,
        }
    }

    async fn statement(&self, conn: &OwnConn, sql: Sql) -> Option<Result<Statement, tokio_postgres::Error>> {
        let prepared = conn.prepared.as_ref()?;
        let lock = || prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = lock()[sql as usize].clone() {
            return Some(Ok(statement));
        }
        let made = conn.link.asking(conn.link.client.prepare(self.pool.texts.get(sql))).await;
        if let Ok(statement) = &made {
            lock()[sql as usize] = Some(statement.clone());
        }
        Some(made)
    }

    /// Opens a transaction. Statements may be sent without waiting for this: if they are polled after it, they arrive
    /// after it, and if it fails they fail.
    pub(in crate::store::postgres) async fn begin(&self) -> Result<(), StoreError> {
        self.begin_by(if self.is_direct() { "BEGIN" } else { self.pool.texts.script(Script::Begin) }).await
    }

    /// Opens a transaction for a statement whose best plan depends on its parameters.
    pub(in crate::store::postgres) async fn begin_reading(&self) -> Result<(), StoreError> {
        self.begin_by(self.pool.texts.script(Script::BeginReading)).await
    }

    /// Opens a transaction that only reads, and whose statements all see the same jobs.
    pub(in crate::store::postgres) async fn begin_snapshot(&self) -> Result<(), StoreError> {
        self.begin_by(self.pool.texts.script(Script::BeginSnapshot)).await
    }

    async fn begin_by(&self, script: &str) -> Result<(), StoreError> {
        self.is_open.store(true, Ordering::Release);
        self.run(script).await
    }

    /// Runs statements without parameters and results.
    pub(in crate::store::postgres) async fn run(&self, script: &str) -> Result<(), StoreError> {
        match self.conn() {
            Conn::Own(conn) => conn.link.asking(conn.link.client.batch_execute(script)).await.map_err(before),
            Conn::Callers(taken) => taken.run(script).await,
        }
    }

    /// Whether a statement of its own has the settings of our transactions.
    pub(in crate::store::postgres) fn is_direct(&self) -> bool {
        match self.conn() {
            Conn::Own(conn) => conn.is_direct,
            Conn::Callers(_) => false,
        }
    }

    /// Runs a statement that commits by itself. After it was sent, an error may mean that the outcome is unknown.
    pub(in crate::store::postgres) async fn run_alone(
        &self,
        sql: Sql,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let unprepared = || StoreError::unavailable("statements are not prepared on this connection");
        let Conn::Own(conn) = self.conn() else { return Err(unprepared()) };
        let statement = self.statement(conn, sql).await.ok_or_else(unprepared)?.map_err(before)?;
        let warned = &conn.link.warned;
        warned.store(false, Ordering::Release);
        let rows = conn.link.asking(conn.link.client.query(&statement, params)).await;
        let rows = rows.map_err(|error| classify(error, Phase::Alone))?;
        if warned.load(Ordering::Acquire) {
            return Err(replication_cancelled());
        }
        Ok(rows.into_iter().map(Row::Ours).collect())
    }

    pub(in crate::store::postgres) async fn query(&self, sql: Sql, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        let texts = self.pool.texts();
        let conn = match self.conn() {
            Conn::Own(conn) => conn,
            Conn::Callers(taken) => return taken.query(texts.get(sql), &texts.typed(sql, params)).await,
        };
        match self.statement(conn, sql).await {
            Some(statement) => {
                ours(conn.link.asking(conn.link.client.query(&statement.map_err(before)?, params)).await)
            }
            None => {
                let typed = texts.typed(sql, params);
                ours(conn.link.asking(conn.link.client.query_typed(texts.get(sql), &typed)).await)
            }
        }
    }

    /// Ends a transaction whose work is done or has failed.
    pub(in crate::store::postgres) async fn conclude<T>(
        self,
        begun: Result<(), StoreError>,
        done: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match begun.and(done) {
            Ok(done) => self.commit().await.map(|()| done),
            Err(error) => {
                self.rollback().await;
                Err(error)
            }
        }
    }

    /// Commits. After this was sent, an error means that the outcome is unknown.
    async fn commit(self) -> Result<(), StoreError> {
        match self.conn() {
            Conn::Own(OwnConn { link, .. }) => {
                link.warned.store(false, Ordering::Release);
                let committed = link.asking(link.client.batch_execute("COMMIT")).await;
                committed.map_err(|error| classify(error, Phase::Commit))?;
                if link.warned.load(Ordering::Acquire) {
                    return Err(replication_cancelled());
                }
            }
            Conn::Callers(taken) => taken.commit().await?,
        }
        self.is_open.store(false, Ordering::Release);
        Ok(())
    }

    /// Ends the transaction without effect and gives the connection back.
    async fn rollback(self) {
        if self.run("ROLLBACK").await.is_ok() {
            self.is_open.store(false, Ordering::Release);
        }
    }
}

fn replication_cancelled() -> StoreError {
    StoreError::unknown("the wait for synchronous replication was cancelled")
}

/// Where statements run: in a transaction of the store's own, or in the caller's.
#[derive(Clone, Copy)]
pub(in crate::store::postgres) enum On<'a> {
    Own(&'a Lent),
    Callers(&'a tokio_postgres::Transaction<'a>, &'a Texts),
    Through(&'a Through<'a>, &'a Texts),
}

impl On<'_> {
    pub(in crate::store::postgres) async fn query(&self, sql: Sql, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Own(lent) => lent.query(sql, params).await,
            // One message, and nothing stays prepared on a connection that is not ours.
            Self::Callers(transaction, texts) => {
                ours(transaction.query_typed(texts.get(sql), &texts.typed(sql, params)).await)
            }
            Self::Through(driver, texts) => driver.query(texts.get(sql), &texts.typed(sql, params)).await,
        }
    }

    pub(in crate::store::postgres) async fn run(&self, statement: &str) -> Result<(), StoreError> {
        match self {
            Self::Own(lent) => lent.run(statement).await,
            Self::Callers(transaction, _) => transaction.batch_execute(statement).await.map_err(before),
            Self::Through(driver, _) => driver.query(statement, &[]).await.map(drop),
        }
    }
}

fn ours(rows: Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>) -> Result<Vec<Row>, StoreError> {
    Ok(rows.map_err(before)?.into_iter().map(Row::Ours).collect())
}

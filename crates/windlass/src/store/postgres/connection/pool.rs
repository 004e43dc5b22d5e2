//! The pool: a bounded number of connections, each with its prepared statements (behind a pooler: without). A
//! connection whose transaction did not end is closed, not reused. (Written by hand because a commit's notices must be
//! received on its own connection.)

use crate::store::StoreError;
use crate::store::postgres::connection::connect::{Connector, Link};
use crate::store::postgres::connection::fault::{Phase, before, classify};
use crate::store::postgres::connection::through::Through;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::texts::Texts;
use crate::store::postgres::statements::{Script, Sql};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

/// Longest wait for a free connection.
const WAIT: Duration = Duration::from_secs(10);

/// A statement's parameters.
pub(in crate::store::postgres) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

#[derive(Debug)]
pub(in crate::store::postgres) struct Pool {
    connector: Connector,
    texts: Arc<Texts>,
    idle: Mutex<Vec<Conn>>,
    slots: Arc<Semaphore>,
}

#[derive(Debug)]
struct Conn {
    link: Link,
    /// `None` where statements cannot be prepared: then their text is sent with the parameters, in one message.
    prepared: Option<Mutex<Vec<Option<Statement>>>>,
    /// No pooler is in between: the session is ours, and has our settings.
    is_direct: bool,
}

/// A borrowed connection. It is closed if it is dropped while a transaction is open.
#[derive(Debug)]
pub(in crate::store::postgres) struct Lent {
    conn: Option<Conn>,
    pool: Arc<Pool>,
    /// Whether a transaction is open.
    is_open: AtomicBool,
    _slot: OwnedSemaphorePermit,
}

impl Pool {
    pub(in crate::store::postgres) fn new(connector: Connector, texts: Arc<Texts>, size: usize) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(size.max(1)));
        Arc::new(Self { connector, texts, idle: Mutex::new(Vec::new()), slots })
    }

    pub(in crate::store::postgres) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(in crate::store::postgres) fn texts(&self) -> &Arc<Texts> {
        &self.texts
    }

    pub(in crate::store::postgres) async fn get(self: &Arc<Self>) -> Result<Lent, StoreError> {
        let slot = tokio::time::timeout(WAIT, self.slots.clone().acquire_owned())
            .await
            .map_err(|_| StoreError::unavailable("all connections to Postgres are busy"))?
            .map_err(StoreError::unavailable)?;
        let lent = |conn| Lent { conn: Some(conn), pool: self.clone(), is_open: AtomicBool::new(false), _slot: slot };
        while let Some(conn) = self.take_idle() {
            if !conn.link.client.is_closed() {
                return Ok(lent(conn));
            }
        }
        let link = self.connector.connect(None).await?;
        let (is_direct, prepares) = self.connector.prepares(&link).await?;
        if is_direct {
            link.client.batch_execute(self.texts.script(Script::Session)).await.map_err(before)?;
        }
        Ok(lent(Conn { link, prepared: prepares.then(|| Mutex::new(vec![None; Sql::ALL.len()])), is_direct }))
    }

    fn take_idle(&self) -> Option<Conn> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take()
            && !self.is_open.load(Ordering::Acquire)
            && !conn.link.client.is_closed()
        {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
    }
}

impl Lent {
    fn conn(&self) -> &Conn {
        self.conn.as_ref().expect("a connection is lent until it is dropped")
    }

    pub(in crate::store::postgres) fn client(&self) -> &tokio_postgres::Client {
        &self.conn().link.client
    }

    /// Whether statements are prepared on this connection.
    pub(in crate::store::postgres) fn prepares(&self) -> bool {
        self.conn().prepared.is_some()
    }

    async fn statement(
        &self,
        prepared: &Mutex<Vec<Option<Statement>>>,
        sql: Sql,
    ) -> Result<Statement, tokio_postgres::Error> {
        let conn = self.conn();
        let lock = || prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = lock()[sql as usize].clone() {
            return Ok(statement);
        }
        let statement = conn.link.client.prepare(self.pool.texts.get(sql)).await?;
        lock()[sql as usize] = Some(statement.clone());
        Ok(statement)
    }

    /// Opens a transaction. Statements may be sent without waiting for this: if they are polled after it, they arrive
    /// after it, and if it fails they fail.
    pub(in crate::store::postgres) async fn begin(&self) -> Result<(), StoreError> {
        self.is_open.store(true, Ordering::Release);
        let text = if self.conn().is_direct { "BEGIN" } else { self.pool.texts.script(Script::Begin) };
        self.client().batch_execute(text).await.map_err(before)
    }

    /// Opens a transaction for a statement whose best plan depends on its parameters.
    pub(in crate::store::postgres) async fn begin_reading(&self) -> Result<(), StoreError> {
        self.is_open.store(true, Ordering::Release);
        self.client().batch_execute(self.pool.texts.script(Script::BeginReading)).await.map_err(before)
    }

    /// Opens a transaction that only reads, and whose statements all see the same jobs.
    pub(in crate::store::postgres) async fn begin_snapshot(&self) -> Result<(), StoreError> {
        self.is_open.store(true, Ordering::Release);
        self.client().batch_execute(self.pool.texts.script(Script::BeginSnapshot)).await.map_err(before)
    }

    /// Whether a statement of its own has the settings of our transactions.
    pub(in crate::store::postgres) fn is_direct(&self) -> bool {
        self.conn().is_direct
    }

    /// Runs a statement that commits by itself. After it was sent, an error may mean that the outcome is unknown.
    pub(in crate::store::postgres) async fn run_alone(
        &self,
        sql: Sql,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let Some(prepared) = &self.conn().prepared else {
            return Err(StoreError::unavailable("statements are not prepared on this connection"));
        };
        let statement = self.statement(prepared, sql).await.map_err(before)?;
        let warned = &self.conn().link.warned;
        warned.store(false, Ordering::Release);
        let rows = self.client().query(&statement, params).await.map_err(|error| classify(error, Phase::Alone))?;
        if warned.load(Ordering::Acquire) {
            return Err(replication_cancelled());
        }
        Ok(rows.into_iter().map(Row::Ours).collect())
    }

    pub(in crate::store::postgres) async fn query(&self, sql: Sql, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        let Some(prepared) = &self.conn().prepared else {
            let texts = self.pool.texts();
            return ours(self.client().query_typed(texts.get(sql), &texts.typed(sql, params)).await);
        };
        let statement = self.statement(prepared, sql).await.map_err(before)?;
        ours(self.client().query(&statement, params).await)
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
        let warned = &self.conn().link.warned;
        warned.store(false, Ordering::Release);
        self.client().batch_execute("COMMIT").await.map_err(|error| classify(error, Phase::Commit))?;
        if warned.load(Ordering::Acquire) {
            return Err(replication_cancelled());
        }
        self.is_open.store(false, Ordering::Release);
        Ok(())
    }

    /// Ends the transaction without effect and gives the connection back.
    async fn rollback(self) {
        if self.client().batch_execute("ROLLBACK").await.is_ok() {
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
            Self::Own(lent) => lent.client().batch_execute(statement).await.map_err(before),
            Self::Callers(transaction, _) => transaction.batch_execute(statement).await.map_err(before),
            Self::Through(driver, _) => driver.query(statement, &[]).await.map(drop),
        }
    }
}

fn ours(rows: Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>) -> Result<Vec<Row>, StoreError> {
    Ok(rows.map_err(before)?.into_iter().map(Row::Ours).collect())
}

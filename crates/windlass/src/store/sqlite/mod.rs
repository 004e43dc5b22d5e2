//! The store in a SQLite file: one writer thread with group commit, a few readers, nothing to install. Several
//! processes may share the file, and the tables (all named `windlass_…`) may be in an application's own file.

mod api;
mod connection;
mod life;
mod reads;
#[cfg(test)]
mod tests;
mod upkeep;

use super::passed_over::PassedOver;
use super::{Migrations, Options, StoreError};
use crate::clock::Clock;
use crate::job::{ClaimedJob, LeaseId};
use crate::random::Random;
use crate::wake::Wake;
use connection::checkpoint::Checkpoints;
use connection::fault::Damage;
use connection::file_time::FileTime;
use connection::pace::Pace;
use connection::readers::{Reader, Readers};
use connection::tx::Tx;
use connection::watch::Watch;
use connection::writer::{Message, Work, Writer};
use reads::names::Names;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::mpsc;
use upkeep::retention::Retentions;
use windlass_core::JobId;

/// Jobs in a SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    clock: Clock,
    random: Random,
    wake: Wake,
    /// `None` only while the store is being dropped.
    writer: Option<mpsc::Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    watch: Watch,
    readers: Arc<Readers>,
    /// Reads claimed jobs. Separate, so that they do not wait for long reads.
    claimed: Arc<Readers>,
    commits: Arc<AtomicU64>,
    pruned: Mutex<upkeep::prune::Progress>,
    damage: Damage,
    passed_over: Arc<PassedOver>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file at `path`. Creates it, readable by its owner only, if it does not exist. Migrates its tables,
    /// unless `options` leaves that to the operator.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be used now, [`StoreError::Schema`] if its tables are not ones
    /// this version can work with.
    pub async fn open(path: &str, options: Options) -> Result<Arc<Self>, StoreError> {
        let path = PathBuf::from(path);
        let opening = tokio::task::spawn_blocking(move || Self::open_now(path, options));
        opening.await.unwrap_or_else(|error| Err(StoreError::unavailable(error))).map(Arc::new)
    }

    fn open_now(path: PathBuf, options: Options) -> Result<Self, StoreError> {
        let conn = connection::connect::writer(&path)?;
        match options.migrations {
            // Only if needed: getting the lock may take long if other processes write to the file.
            Migrations::Run if connection::migrate::SCHEMA.verify(&conn).is_ok() => {}
            Migrations::Run => connection::migrate::SCHEMA.migrate(&conn, options.clock.now())?,
            Migrations::LeaveToOperator => connection::migrate::SCHEMA.verify(&conn)?,
        }
        let time = FileTime::open(&path, &conn, &options.clock)?;
        let checkpoints = Checkpoints::start(path.clone()).map_err(StoreError::unavailable)?;
        let wake = Wake::default();
        let commits = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            path: path.clone(),
            conn: Some(checkpoints.of(conn)?),
            checkpoints,
            clock: options.clock.clone(),
            random: options.random.clone(),
            wake: wake.clone(),
            commits: commits.clone(),
            names: Names::default(),
            retentions: Retentions::default(),
            pace: Pace::default(),
            folding: upkeep::fold::Folding::default(),
            time,
            has_news: false,
        };
        let (sender, inbox) = mpsc::channel(connection::writer::QUEUE);
        let spawned = std::thread::Builder::new().name("windlass-sqlite".into()).spawn(move || writer.run(inbox));
        let thread = spawned.map_err(StoreError::unavailable)?;
        let watch = Watch::start(sender.downgrade(), wake.clone()).map_err(StoreError::unavailable)?;
        Ok(Self {
            readers: Readers::new(path.clone()),
            claimed: Readers::new(path.clone()),
            path,
            clock: options.clock,
            random: options.random,
            wake,
            writer: Some(sender),
            thread: Some(thread),
            watch,
            commits,
            pruned: Mutex::default(),
            damage: Damage::default(),
            passed_over: Arc::default(),
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many transactions this store has committed: many commands share one under load.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Copies a snapshot of the database into a new file at `to` while work continues.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if either file cannot be used; [`StoreError::Invalid`] if there is a file at `to`
    /// already.
    pub async fn backup(&self, to: &str) -> Result<(), StoreError> {
        let to = PathBuf::from(to);
        self.readers.backup(to).await
    }

    /// Runs `work` in the writer's next transaction; returns when it is durable.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (command, answer) = Work::new(work);
        let writer = self.writer.as_ref().expect("the writer's queue is open while the store is");
        if writer.send(Message::Write(command)).await.is_err() {
            return Err(StoreError::unavailable("the writer has stopped"));
        }
        let stopped = |_| Err(StoreError::unknown("the writer stopped before it answered"));
        self.damage.noted(answer.await.unwrap_or_else(stopped))
    }

    /// The same for a batch. It is returned and dropped here, because every command waits while the writer frees
    /// memory.
    async fn write_all<I: Send + 'static, T: Send + 'static>(
        &self,
        batch: Vec<I>,
        work: impl FnOnce(&mut Tx<'_>, &[I]) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, _batch) = self.write(move |tx| Ok((work(tx, &batch)?, batch))).await?;
        Ok(done)
    }

    /// Runs `read` on a snapshot of the database.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.damage.noted(self.readers.read(read).await)
    }

    /// Like `write`, for what may make jobs due before the places at which claims of some kinds start.
    async fn write_behind<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let written = self.write(work).await;
        self.passed_over.forget();
        written
    }

    /// Reads jobs that were just claimed. They are claimed whether this succeeds or not.
    async fn read_claimed(&self, jobs: Vec<(JobId, LeaseId)>) -> Result<Vec<ClaimedJob>, StoreError> {
        let read = self.claimed.read(move |reader| life::leases::running(&reader.conn, &mut reader.names, &jobs)).await;
        let read = self.damage.noted(read);
        read.map_err(|error| StoreError::unknown(format!("the claimed jobs could not be read ({error})")))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.watch.stop();
        // Readers close first: the last connection to a file copies and removes the log, which a read-only connection
        // cannot do.
        self.readers.close();
        self.claimed.close();
        // Closing the queue stops the writer after the commands still in it.
        drop(self.writer.take());
        if let Some(thread) = self.thread.take() {
            // If the writer panicked, its callers got an error.
            let _ = thread.join();
        }
    }
}

//! Checkpoints: a thread with its own connection copies the log into the file while the writer continues. The log
//! restarts only when all of it is copied and no transaction adds to it. So the writer copies the rest, which is little
//! by then.

use crate::store::StoreError;
use crate::store::sqlite::connection::connect;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

/// Pages in the log at which copying begins: 16 MiB.
const BEGIN: i32 = 4_000;
/// Pages in the log at which the writer waits for the other thread and copies the rest. Without the wait, a thread
/// that gets no processor time keeps the log locked against the writer's copy, and the log grows without bound.
const ALL: i32 = 4 * BEGIN;
/// How many times the thread copies new pages. The second pass has far fewer.
const PASSES: usize = 2;

pub(in crate::store::sqlite) struct Checkpoints {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicI32>,
    is_asked: bool,
    /// `None` only while this is being dropped.
    ask: Option<SyncSender<()>>,
    copied: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    pub(in crate::store::sqlite) fn start(path: PathBuf) -> std::io::Result<Self> {
        // Opened when it is first needed: most programs write little.
        let mut conn = None;
        Self::start_with(move || copy(&path, &mut conn))
    }

    fn start_with(mut copy: impl FnMut() + Send + 'static) -> std::io::Result<Self> {
        let (ask, asked) = sync_channel(1);
        let (done, copied) = sync_channel(1);
        let copying = move || {
            while asked.recv().is_ok() {
                copy();
                // The writer is gone only when everything closes.
                let _ = done.send(());
            }
        };
        let thread = std::thread::Builder::new().name("windlass-copy".into()).spawn(copying)?;
        Ok(Self { pages: Arc::default(), is_asked: false, ask: Some(ask), copied, thread: Some(thread) })
    }

    /// Takes over the checkpoints of the writing connection.
    pub(in crate::store::sqlite) fn of(&self, mut conn: Connection) -> Result<Connection, StoreError> {
        let pages = self.pages.clone();
        // By `&mut`, which the method of version 0.41 takes: otherwise the different one of 0.37 to 0.40 is found.
        let hooked = &mut conn;
        hooked.wal_hook(Some(move |_: &mut _, count| {
            pages.store(count, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(conn)
    }

    /// Must be called between transactions.
    pub(in crate::store::sqlite) fn maintain(&mut self, conn: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if !self.is_asked && pages >= BEGIN {
            self.is_asked = true;
            // Without the thread, the log grows until the writer copies it all.
            let _ = self.ask.as_ref().map(|ask| ask.try_send(()));
            return;
        }
        if self.is_asked && self.has_copied(pages) {
            self.is_asked = false;
            checkpoint(conn);
        }
    }

    /// Whether the thread has copied what it was asked to. Waits for it when the log is long.
    fn has_copied(&self, pages: i32) -> bool {
        if pages >= ALL {
            // An error means that the thread is gone: the writer copies alone.
            let _ = self.copied.recv();
            return true;
        }
        !matches!(self.copied.try_recv(), Err(TryRecvError::Empty))
    }
}

/// Stands in for `Connection::wal_hook` with versions of the driver before 0.41, where it takes no closure or does not
/// exist. (Where it does, that one is called.) Then the log's size is not known here, and SQLite's own checkpoints stay
/// on.
trait WithoutWalHook {
    #[allow(dead_code, reason = "used with older versions of the driver only")]
    fn wal_hook<F>(&mut self, _hook: Option<F>) -> rusqlite::Result<()>
    where
        F: FnMut(&mut (), i32) -> rusqlite::Result<()> + Send + 'static,
    {
        Ok(())
    }
}

impl WithoutWalHook for Connection {}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        drop(self.ask.take());
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the writer copies the log.
            let _ = thread.join();
        }
    }
}

/// Copies the log with a connection that is replaced after a failure.
fn copy(path: &Path, conn: &mut Option<Connection>) {
    if conn.is_none() {
        *conn = connect::writer(path).ok();
    }
    let is_sound = conn.as_ref().is_some_and(|conn| (0..PASSES).all(|_| checkpoint(conn)));
    if !is_sound {
        *conn = None;
    }
}

/// Copies as much as possible without waiting for other connections. After a failure, the pages stay in the log until
/// the next checkpoint.
fn checkpoint(conn: &Connection) -> bool {
    let copied =
        conn.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)").and_then(|mut copy| copy.query_row([], |_| Ok(())));
    if let Err(error) = &copied {
        tracing::debug!(%error, "the log could not be copied into the file now");
    }
    copied.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A thread that gets no processor time holds the log's lock, so the writer's own copy would do nothing.
    #[test]
    fn a_long_log_waits_for_the_thread_that_copies_it() {
        let (release, released) = sync_channel::<()>(0);
        let mut checkpoints = Checkpoints::start_with(move || released.recv().unwrap()).unwrap();
        let conn = Connection::open_in_memory().unwrap();
        checkpoints.pages.store(ALL, Ordering::Relaxed);
        checkpoints.maintain(&conn);
        let (say, returned) = sync_channel(1);
        let writer = std::thread::spawn(move || {
            checkpoints.maintain(&conn);
            say.send(()).unwrap();
        });
        assert!(returned.recv_timeout(Duration::from_millis(50)).is_err(), "the writer did not wait");
        release.send(()).unwrap();
        returned.recv().unwrap();
        writer.join().unwrap();
    }
}

//! Checkpoints: a thread with its own connection copies the log into the file while the writer continues. The log
//! restarts only when all of it is copied and no transaction adds to it. So the writer copies the rest, which is little
//! by then.

use crate::store::StoreError;
use crate::store::sqlite::connection::connect;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Pages in the log at which copying begins: 16 MiB.
const BEGIN: i32 = 4_000;
/// Pages in the log at which the writer copies them all, whatever the state of the other thread.
const ALL: i32 = 4 * BEGIN;
/// How many times the thread copies new pages. The second pass has far fewer.
const PASSES: usize = 2;

pub(in crate::store::sqlite) struct Checkpoints {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicI32>,
    is_asked: bool,
    is_copied: Arc<AtomicBool>,
    /// `None` only while this is being dropped.
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    pub(in crate::store::sqlite) fn start(path: PathBuf) -> std::io::Result<Self> {
        let (ask, asked) = sync_channel(1);
        let is_copied = Arc::new(AtomicBool::new(false));
        let done = is_copied.clone();
        let copying = move || copy_when_asked(&path, &asked, &done);
        let thread = std::thread::Builder::new().name("windlass-copy".into()).spawn(copying)?;
        Ok(Self { pages: Arc::default(), is_asked: false, is_copied, ask: Some(ask), thread: Some(thread) })
    }

    /// Takes over the checkpoints of the writing connection.
    pub(in crate::store::sqlite) fn of(&self, mut conn: Connection) -> Result<Connection, StoreError> {
        let pages = self.pages.clone();
        conn.wal_hook(Some(move |_: &mut Wal, count| {
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
        let is_copied = self.is_copied.swap(false, Ordering::Acquire);
        if is_copied || pages >= ALL {
            self.is_asked &= !is_copied;
            checkpoint(conn);
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        drop(self.ask.take());
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the writer copies the log.
            let _ = thread.join();
        }
    }
}

fn copy_when_asked(path: &Path, asked: &Receiver<()>, done: &AtomicBool) {
    // Opened when it is first needed: most programs write little.
    let mut conn = None;
    while asked.recv().is_ok() {
        if conn.is_none() {
            conn = connect::writer(path).ok();
        }
        let is_sound = conn.as_ref().is_some_and(|conn| (0..PASSES).all(|_| checkpoint(conn)));
        if !is_sound {
            conn = None;
        }
        done.store(true, Ordering::Release);
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

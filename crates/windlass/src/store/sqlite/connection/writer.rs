//! The writer: one thread, one connection. While a commit is written to disk, commands queue up, and the next
//! transaction takes them all. So an idle store commits at once and a busy one commits hundreds together, without a
//! timer.

use crate::clock::Clock;
use crate::random::Random;
use crate::store::StoreError;
use crate::store::sqlite::connection::checkpoint::Checkpoints;
use crate::store::sqlite::connection::connect;
use crate::store::sqlite::connection::fault;
use crate::store::sqlite::connection::file_time::FileTime;
use crate::store::sqlite::connection::pace::Pace;
use crate::store::sqlite::connection::tx::{Counts, Tx};
use crate::store::sqlite::reads::names::Names;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::fold::Folding;
use crate::store::sqlite::upkeep::retention::Retentions;
use crate::wake::Wake;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};
use windlass_core::Millis;

/// Commands that may wait for the writer; further callers wait until there is room.
pub(in crate::store::sqlite) const QUEUE: usize = 1024;
/// A transaction takes no further command after this long: other processes want to write too.
const LONGEST: Millis = Millis::new(20);
/// The most commands in one transaction.
const LARGEST: usize = 1024;
/// How often a COMMIT that finds the file locked is tried again (each try waits as long as any statement).
const COMMIT_TRIES: u32 = 3;

/// What the thread is asked to do.
pub(in crate::store::sqlite) enum Message {
    Write(Box<dyn Command>),
    /// Check whether another connection has committed, and wake workers if so.
    Look,
}

/// Work to do in one transaction; a caller waits for its answer.
pub(in crate::store::sqlite) trait Command: Send {
    /// Does the work. If it does not succeed, its writes are undone.
    fn run(&mut self, tx: &mut Tx<'_>) -> CommandEnd;
    /// Sends the answer: the work's own result if the transaction committed, its error otherwise.
    fn answer(self: Box<Self>, committed: Result<(), &StoreError>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::sqlite) enum CommandEnd {
    Done,
    Failed,
    /// Failed in a way that may have broken the connection.
    Broke,
}

pub(in crate::store::sqlite) struct Work<T, F> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Work<T, F> {
    pub(in crate::store::sqlite) fn new(work: F) -> (Box<Self>, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { work: Some(work), result: None, reply }), answer)
    }
}

impl<T: Send, F: FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send> Command for Work<T, F> {
    fn run(&mut self, tx: &mut Tx<'_>) -> CommandEnd {
        let Some(work) = self.work.take() else { return CommandEnd::Failed };
        let result = work(tx);
        let ran = match &result {
            Ok(_) => CommandEnd::Done,
            Err(error) if fault::spoils_connection(error) => CommandEnd::Broke,
            Err(_) => CommandEnd::Failed,
        };
        self.result = Some(result);
        ran
    }

    fn answer(self: Box<Self>, committed: Result<(), &StoreError>) {
        let answer = match (self.result, committed) {
            // A command that failed has its own error.
            (Some(Err(own)), _) => Err(own),
            (Some(own), Ok(())) => own,
            (_, Err(error)) => Err(fault::again(error)),
            (None, Ok(())) => Err(StoreError::unavailable("the command was not run")),
        };
        // The caller may be gone; the work is done anyway.
        let _ = self.reply.send(answer);
    }
}

pub(in crate::store::sqlite) struct Writer {
    pub path: PathBuf,
    /// `None` after an error that broke the connection; the next transaction opens it again.
    pub conn: Option<Connection>,
    /// Declared after the connection, so that it is dropped last and cleans up.
    pub checkpoints: Checkpoints,
    pub clock: Clock,
    pub random: Random,
    pub wake: Wake,
    pub commits: Arc<AtomicU64>,
    pub names: Names,
    pub retentions: Retentions,
    pub pace: Pace,
    pub time: FileTime,
    pub folding: Folding,
    /// Whether another process has committed since the file's time was read.
    pub has_news: bool,
}

impl Writer {
    /// Runs until every sender is dropped.
    pub(in crate::store::sqlite) fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        while let Some(message) = inbox.blocking_recv() {
            match message {
                Message::Look => self.look(),
                Message::Write(first) => {
                    self.transact(first, &mut inbox);
                    self.conn.iter().for_each(|conn| self.checkpoints.maintain(conn));
                    self.pace.rest(inbox.is_empty());
                }
            }
        }
    }

    fn look(&mut self) {
        let seen = self.conn.as_ref().and_then(|conn| data_version(conn).ok());
        if seen.is_some_and(|version| self.pace.notice(version)) {
            self.has_news = true;
            self.wake.ring();
        }
        if self.time.is_off() {
            self.follow_clock();
        }
    }

    /// The machine's clock was set: the file follows at once, not with the next command.
    fn follow_clock(&mut self) {
        // A file that cannot be written now follows with its next transaction.
        if self.begin().is_ok() {
            let _ = self.finish(&Group::default());
        }
    }

    fn transact(&mut self, first: Box<dyn Command>, inbox: &mut mpsc::Receiver<Message>) {
        if let Err(error) = self.begin() {
            refuse_all(first, inbox, &error);
            return;
        }
        let mut group = Group::default();
        self.run_command(first, &mut group, Guard::Transaction);
        while !group.is_over() && self.pace.in_transaction() < LONGEST && group.done.len() < LARGEST {
            match inbox.try_recv() {
                Ok(Message::Write(next)) => self.run_command(next, &mut group, Guard::Savepoint),
                Ok(Message::Look) => {}
                Err(_) => break,
            }
        }
        let committed = self.finish(&group);
        if committed.is_ok() && group.rings {
            self.wake.ring();
        }
        for command in group.done {
            command.answer(committed.as_ref().copied());
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        if self.conn.is_none() {
            self.names.forget();
            self.conn = Some(self.checkpoints.of(connect::writer(&self.path)?)?);
        }
        self.retentions.refresh();
        let conn = self.conn.as_ref().expect("the connection was just opened");
        let began = conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
        match began {
            Ok(_) => {
                if let Ok(version) = data_version(conn)
                    && self.pace.notice(version)
                {
                    self.has_news = true;
                    self.wake.ring();
                }
                self.pace.begin();
                if let Err(error) = self.time.agree(conn, std::mem::take(&mut self.has_news)) {
                    self.time.rolled_back();
                    self.conn = None;
                    return Err(error);
                }
                Ok(())
            }
            Err(error) => {
                let is_busy = fault::is_busy(&error);
                let error = StoreError::from(error);
                if !is_busy && fault::spoils_connection(&error) {
                    self.conn = None;
                }
                Err(error)
            }
        }
    }

    fn run_command(&mut self, mut command: Box<dyn Command>, group: &mut Group, guard: Guard) {
        let conn = self.conn.as_ref().expect("a transaction is open on the connection");
        if guard == Guard::Savepoint
            && let Err(error) = execute(conn, "SAVEPOINT windlass_command")
        {
            command.answer(Err(&error));
            return;
        }
        let mut tx = Tx::new(conn, &mut self.names, &mut self.retentions, &self.random, &self.clock);
        let ran = command.run(&mut tx);
        let (counts, rings) = (tx.take_counts(), tx.rings);
        if ran == CommandEnd::Done {
            group.absorb(command, &counts, rings);
            if guard == Guard::Savepoint {
                group.note(execute(conn, "RELEASE windlass_command"));
            }
            return;
        }
        self.names.forget();
        self.retentions.forget();
        self.time.rolled_back();
        group.is_broken |= ran == CommandEnd::Broke;
        let undone = match guard {
            _ if conn.is_autocommit() => Err(StoreError::unavailable("SQLite rolled the transaction back")),
            Guard::Transaction => execute(conn, "ROLLBACK").and(Err(StoreError::unavailable("rolled back"))),
            Guard::Savepoint => {
                execute(conn, "ROLLBACK TO windlass_command").and_then(|()| execute(conn, "RELEASE windlass_command"))
            }
        };
        group.note(undone);
        command.answer(Ok(()));
    }

    /// Commits the group, or rolls it back.
    fn finish(&mut self, group: &Group) -> Result<(), StoreError> {
        let conn = self.conn.as_ref().expect("a transaction is open on the connection");
        let written = match &group.trouble {
            Some(error) => Err(fault::again(error)),
            None => (group.counts.write(conn, self.clock.now()))
                .and_then(|()| self.folding.wrote(conn, group.counts.tallies.iter().count())),
        };
        let committed = written.and_then(|()| commit(conn));
        if let Err(error) = &committed {
            self.names.forget();
            self.retentions.forget();
            self.time.rolled_back();
            let is_clean = conn.is_autocommit() || execute(conn, "ROLLBACK").is_ok();
            let is_doubtful = matches!(error, StoreError::Unknown(_));
            if is_doubtful || !is_clean || !group.done.is_empty() && fault::spoils_connection(error) {
                // After a failed sync the handle cannot be trusted to sync again: open the file again.
                self.conn = None;
            }
        } else {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
        if group.is_broken {
            self.conn = None;
        }
        committed
    }
}

/// How a command's writes are undone if it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// It is the first: the whole transaction is rolled back.
    Transaction,
    /// Others came before it: only its own writes are rolled back.
    Savepoint,
}

/// The commands of one transaction.
#[derive(Default)]
struct Group {
    done: Vec<Box<dyn Command>>,
    counts: Counts,
    rings: bool,
    /// Set when the whole transaction has failed, or nothing is left in it.
    trouble: Option<StoreError>,
    /// Whether the connection should be opened again after this transaction.
    is_broken: bool,
}

impl Group {
    fn absorb(&mut self, command: Box<dyn Command>, counts: &Counts, rings: bool) {
        self.done.push(command);
        self.rings |= rings;
        self.counts.absorb(counts);
    }

    fn note(&mut self, step: Result<(), StoreError>) {
        self.trouble = self.trouble.take().or(step.err());
    }

    fn is_over(&self) -> bool {
        self.trouble.is_some()
    }
}

/// Refuses a command and those that arrived while it waited, so that they do not wait as long again. All are taken out
/// of the queue before the first is answered, because a caller that has its answer may fix the cause and send another
/// command at once.
fn refuse_all(first: Box<dyn Command>, inbox: &mut mpsc::Receiver<Message>, error: &StoreError) {
    let mut refused = vec![first];
    while let Ok(message) = inbox.try_recv() {
        if let Message::Write(command) = message {
            refused.push(command);
        }
    }
    for command in refused {
        command.answer(Err(error));
    }
}

fn commit(conn: &Connection) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        let error = match conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        tries += 1;
        if fault::leaves_doubt(&error) {
            return Err(StoreError::unknown(format!("COMMIT failed ({error})")));
        }
        if !fault::is_busy(&error) || tries == COMMIT_TRIES {
            return Err(error.into());
        }
    }
}

fn execute(conn: &Connection, statement: &str) -> Result<(), StoreError> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Changes when another connection, of this process or another, commits.
fn data_version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("PRAGMA data_version")?.query_row([], rows::only)
}

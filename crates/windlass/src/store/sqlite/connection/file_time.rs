//! The file's time: the processes that share a file agree on the time through it. The file holds how far its time is
//! ahead of the time since the machine started, which is the same in every process.
//!
//! The first process to open the file writes its own time of day. Whoever comes later uses what the file says, even if
//! its own clock shows something else. When the clock of a process that agreed with the file is set, the file follows.

use crate::clock::Clock;
use crate::store::StoreError;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::users::User;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use windlass_core::timekeeping::DRIFT;

#[derive(Debug)]
pub(in crate::store::sqlite) struct FileTime {
    clock: Clock,
    /// What the file says.
    ahead: i64,
    /// What this process has written into the open transaction.
    written: Option<i64>,
    /// Whether the file must be read again.
    is_stale: bool,
    /// Whether this process's own clock showed the file's time when both were last compared.
    agrees: bool,
    /// Held as long as the store is open: see `users`.
    _user: Option<User>,
}

impl FileTime {
    /// Joins the users of the file. The tables must exist.
    pub(in crate::store::sqlite) fn open(path: &Path, conn: &Connection, clock: &Clock) -> Result<Self, StoreError> {
        // A file that cannot be locked only costs the knowledge of being alone.
        let (user, is_alone) = User::enter(path).unzip();
        let (ahead, agrees) = Self::join(conn, clock, is_alone.unwrap_or_default())?;
        let user = user.and_then(User::share);
        Ok(Self { clock: clock.clone(), ahead, written: None, is_stale: true, agrees, _user: user })
    }

    fn join(conn: &Connection, clock: &Clock, is_alone: bool) -> Result<(i64, bool), StoreError> {
        let (own, boot_id) = (clock.look(), clock.boot_id());
        let read = |conn: &Connection| {
            let mut select = conn.prepare_cached(sql!("clock.sql", "clock"))?;
            select.query_row([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).optional()
        };
        let is_this_boot = |id: &str| id == boot_id && !id.is_empty();
        match read(conn)? {
            Some((id, ahead)) if is_this_boot(&id) && (!is_alone || is_near(own, ahead)) => {
                clock.start_ahead(ahead);
                if !is_near(own, ahead) {
                    let off = own - ahead;
                    tracing::warn!(
                        off_ms = off,
                        "this process's clock is {off} ms off the time of the file, which is used"
                    );
                }
                Ok((ahead, is_near(own, ahead)))
            }
            found => {
                clock.start_ahead(own);
                conn.execute_batch("BEGIN IMMEDIATE")?;
                let boot = clock.boot();
                let written = (conn.prepare_cached(sql!("clock.sql", "clock_start"))?.execute(params![boot_id, own]))
                    .and_then(|_| match &found {
                        Some((id, _)) if is_this_boot(id) => Ok(0),
                        // Whatever was leased before the machine started gets its whole length again.
                        _ => conn.prepare_cached(sql!("clock.sql", "leases_restart"))?.execute([boot]),
                    });
                conn.execute_batch(if written.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
                written?;
                Ok((own, true))
            }
        }
    }

    /// Brings this process and the file to the same time, at the beginning of a transaction.
    pub(in crate::store::sqlite) fn agree(&mut self, conn: &Connection, has_changed: bool) -> Result<(), StoreError> {
        let own = self.clock.look();
        self.ahead = self.written.take().unwrap_or(self.ahead);
        if has_changed || self.is_stale {
            let ahead: i64 = conn.prepare_cached(sql!("clock.sql", "clock"))?.query_row([], |row| row.get(1))?;
            // Another process has set it: this one follows.
            self.agrees &= self.ahead == ahead || is_near(own, ahead);
            (self.ahead, self.is_stale) = (ahead, false);
        }
        self.agrees |= is_near(own, self.ahead);
        if self.agrees && !is_near(own, self.ahead) {
            conn.prepare_cached(sql!("clock.sql", "clock_set"))?.execute([own])?;
            self.written = Some(own);
        }
        self.clock.set_ahead(self.written.unwrap_or(self.ahead));
        Ok(())
    }

    /// Whether this process's clock was set since the last transaction.
    pub(in crate::store::sqlite) fn is_off(&self) -> bool {
        let own = self.clock.look();
        self.agrees && !is_near(own, self.written.unwrap_or(self.ahead))
    }

    /// A transaction was rolled back: the file may say something else.
    pub(in crate::store::sqlite) fn rolled_back(&mut self) {
        (self.written, self.is_stale) = (None, true);
    }
}

fn is_near(a: i64, b: i64) -> bool {
    a.saturating_sub(b).abs() <= DRIFT
}

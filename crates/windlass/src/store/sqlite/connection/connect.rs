//! Connections: how the file is opened, and with which settings.

use crate::store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

/// Prepared statements kept per connection: enough for all of them.
const STATEMENTS: usize = 160;
/// How often a locked database is tried again, a millisecond apart, before the caller gets an error. Tests wait less.
const BUSY_TRIES: i32 = if cfg!(test) { 1_500 } else { 5_000 };
/// How long to wait between two tries. Shorter than SQLite's own steps: a busy process releases the lock only briefly.
const BUSY_STEP: Duration = Duration::from_millis(1);
/// The size of the page cache in KiB. The operating system caches the file too. A commit after page splits checks every
/// cached page, so a larger cache costs more than it saves.
const CACHE_KIB: i32 = 8 * 1024;

/// The connection that writes.
pub(in crate::store::sqlite) fn writer(path: &Path) -> Result<Connection, StoreError> {
    create(path)?;
    let mut conn =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    prepare(&mut conn)?;
    use_log(&conn)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    Ok(conn)
}

/// Switches the file to a write-ahead log. Two processes that switch a new file at once would wait for each other
/// without end, so SQLite refuses one of them and does not ask the busy handler: it tries again here.
fn use_log(conn: &Connection) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait(tries) => tries += 1,
            switched => return Ok(switched?),
        }
    }
}

/// Waits for a lock, and says whether to try again.
fn wait(tries: i32) -> bool {
    std::thread::sleep(BUSY_STEP);
    tries < BUSY_TRIES
}

/// A read-only connection.
pub(in crate::store::sqlite) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let mut conn =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    prepare(&mut conn)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// A connection to a new file, for a backup.
pub(in crate::store::sqlite) fn backup(path: &Path) -> Result<Connection, StoreError> {
    create(path)?;
    Ok(Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

fn prepare(conn: &mut Connection) -> Result<(), StoreError> {
    conn.busy_handler(Some(wait))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Plans must not depend on bound values. Otherwise some statements would be planned again every time they run.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Creates the file if it does not exist. Only its owner can read it, because payloads are private.
fn create(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::unavailable(format!("cannot create {}: {error}", path.display()))),
    }
}

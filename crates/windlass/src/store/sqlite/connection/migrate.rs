//! Migrations: numbered, checksummed, forward only. A file that a newer Windlass has changed so that this one would misread it
//! says so, and is refused.

use crate::store::StoreError;
use crate::store::sqlite::connection::sql::sql;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use windlass_core::Timestamp;

struct Migration {
    number: u32,
    name: &'static str,
    text: &'static str,
    /// The oldest schema number whose code can work with the tables after this migration.
    min_reader: u32,
}

const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "tables", text: include_str!("../sql/migrations/0001_tables.sql"), min_reader: 1 },
    Migration { number: 2, name: "views", text: include_str!("../sql/migrations/0002_views.sql"), min_reader: 1 },
    Migration {
        number: 3,
        name: "plain_successes",
        text: include_str!("../sql/migrations/0003_plain_successes.sql"),
        // Older code would not find the attempts.
        min_reader: 3,
    },
    Migration {
        number: 4,
        name: "running",
        text: include_str!("../sql/migrations/0004_running.sql"),
        // Older code would take running jobs for waiting ones.
        min_reader: 4,
    },
];

/// The schema this code is made for.
pub(in crate::store::sqlite) const SCHEMA: u32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

struct Applied {
    number: u32,
    checksum: String,
    min_reader: u32,
}

/// Brings the tables up to date, in one transaction. Repeating it changes nothing.
pub(in crate::store::sqlite) fn migrate(conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
    migrate_to(conn, now, SCHEMA)
}

pub(in crate::store::sqlite) fn migrate_to(conn: &Connection, now: Timestamp, last: u32) -> Result<(), StoreError> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let done = steps(conn, now, last);
    match done {
        Ok(()) => Ok(conn.execute_batch("COMMIT")?),
        Err(error) => {
            if !conn.is_autocommit() {
                conn.execute_batch("ROLLBACK")?;
            }
            Err(error)
        }
    }
}

fn steps(conn: &Connection, now: Timestamp, last: u32) -> Result<(), StoreError> {
    conn.execute_batch(sql!("migrations_table"))?;
    let applied = check(&applied(conn)?)?;
    for step in MIGRATIONS.iter().filter(|step| step.number > applied && step.number <= last) {
        conn.execute_batch(step.text)?;
        conn.execute(
            sql!("migration_record"),
            params![step.number, step.name, checksum(step.text), step.min_reader, now.as_millis()],
        )?;
    }
    Ok(())
}

/// Refuses a schema that this code cannot work with, older or newer.
pub(in crate::store::sqlite) fn verify(conn: &Connection) -> Result<(), StoreError> {
    let is_there = conn.query_row(sql!("migrations_exist"), [], |_| Ok(())).optional()?.is_some();
    let number = if is_there { check(&applied(conn)?)? } else { 0 };
    if number < SCHEMA {
        return Err(StoreError::Schema(format!(
            "the database has schema {number}, this Windlass needs {SCHEMA}: run `windlass migrate`"
        )));
    }
    Ok(())
}

/// The number of the last applied migration, if all of them are ones we can live with.
fn check(applied: &[Applied]) -> Result<u32, StoreError> {
    for done in applied {
        if done.min_reader > SCHEMA {
            return Err(StoreError::Schema(format!(
                "the database has schema {}, which needs a Windlass of schema {} or newer; this one has {SCHEMA}: upgrade it",
                done.number, done.min_reader
            )));
        }
        let ours = MIGRATIONS.iter().find(|step| step.number == done.number);
        if ours.is_some_and(|step| checksum(step.text) != done.checksum) {
            return Err(StoreError::Schema(format!(
                "migration {} was applied with another text than this Windlass knows: the database was not made by a release",
                done.number
            )));
        }
    }
    Ok(applied.last().map_or(0, |done| done.number))
}

fn applied(conn: &Connection) -> Result<Vec<Applied>, StoreError> {
    let mut select = conn.prepare(sql!("migrations_applied"))?;
    crate::store::sqlite::reads::rows::all(select.query([])?, |row| {
        Ok(Applied { number: row.get(0)?, checksum: row.get(2)?, min_reader: row.get(3)? })
    })
}

fn checksum(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

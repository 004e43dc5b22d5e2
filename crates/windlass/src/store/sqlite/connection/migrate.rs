//! Migrations: numbered, checksummed, forward only. A file that a newer Windlass changed in an incompatible way is
//! marked as such and refused.

use crate::store::StoreError;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::columns::migration;
use crate::store::sqlite::reads::rows;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use windlass_core::Timestamp;

pub(in crate::store::sqlite) struct Migration {
    pub number: u32,
    pub name: &'static str,
    pub text: &'static str,
    /// The oldest schema number whose code can work with the tables after this migration.
    pub min_reader: u32,
}

/// The schema that a list of migrations creates.
pub(in crate::store::sqlite) struct Schema(pub &'static [Migration]);

/// The schema this code is written for.
pub(in crate::store::sqlite) const SCHEMA: Schema = Schema(&[Migration {
    number: 1,
    name: "tables",
    text: concat!(
        include_str!("../sql/migrations/0001_tables.sql"),
        "\n",
        include_str!("../sql/migrations/0001_views.sql")
    ),
    min_reader: 1,
}]);

struct Applied {
    number: u32,
    checksum: String,
    min_reader: u32,
}

impl Schema {
    pub(in crate::store::sqlite) const fn number(&self) -> u32 {
        self.0[self.0.len() - 1].number
    }

    /// Brings the tables up to date, in one transaction. Repeating it changes nothing.
    pub(in crate::store::sqlite) fn migrate(&self, conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
        conn.execute_batch("BEGIN IMMEDIATE")?;
        match self.apply(conn, now) {
            Ok(()) => Ok(conn.execute_batch("COMMIT")?),
            Err(error) => {
                if !conn.is_autocommit() {
                    conn.execute_batch("ROLLBACK")?;
                }
                Err(error)
            }
        }
    }

    fn apply(&self, conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
        conn.execute_batch(sql!("schema.sql", "migrations_table"))?;
        let last = self.check(&applied(conn)?)?;
        for step in self.0.iter().filter(|step| step.number > last) {
            conn.execute_batch(step.text)?;
            conn.execute(
                sql!("schema.sql", "migration_add"),
                params![step.number, step.name, checksum(step.text), step.min_reader, now.as_millis()],
            )?;
        }
        Ok(())
    }

    /// Refuses tables that this code cannot work with, older or newer.
    pub(in crate::store::sqlite) fn verify(&self, conn: &Connection) -> Result<(), StoreError> {
        let exists = conn.query_row(sql!("schema.sql", "migrations_exist"), [], |_| Ok(())).optional()?.is_some();
        let last = if exists { self.check(&applied(conn)?)? } else { 0 };
        let needed = self.number();
        if last < needed {
            return Err(StoreError::Schema(format!(
                "the database has schema {last}, this Windlass needs {needed}: run `windlass migrate`"
            )));
        }
        Ok(())
    }

    /// The number of the last applied migration, if this code can work with all of them.
    fn check(&self, applied: &[Applied]) -> Result<u32, StoreError> {
        let ours = self.number();
        for done in applied {
            let step = self.0.iter().find(|step| step.number == done.number);
            if step.is_some_and(|step| checksum(step.text) != done.checksum) {
                return Err(StoreError::Schema(format!(
                    "the database was made by an unreleased build of Windlass (its migration {} differs from the released \
                     one) and cannot be upgraded: use a new file, or the build that made it",
                    done.number
                )));
            }
            if done.min_reader > ours {
                return Err(StoreError::Schema(format!(
                    "the database has schema {}, which needs a Windlass of schema {} or newer; this one has {ours}: upgrade it",
                    done.number, done.min_reader
                )));
            }
        }
        Ok(applied.last().map_or(0, |done| done.number))
    }
}

fn applied(conn: &Connection) -> Result<Vec<Applied>, StoreError> {
    let mut select = conn.prepare(sql!("schema.sql", "migrations"))?;
    rows::all(select.query([])?, |row| {
        Ok(Applied {
            number: row.get(migration::number)?,
            checksum: row.get(migration::checksum)?,
            min_reader: row.get(migration::min_reader)?,
        })
    })
}

fn checksum(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

//! Migrations: numbered, checksummed, forward only, one node at a time.

use crate::store::StoreError;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::{Lent, On};
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::texts::{Texts, fill};
use crate::store::postgres::statements::{Script, Sql};
use futures_util::join;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// One step of the schema.
struct Migration {
    number: i32,
    name: &'static str,
    text: &'static str,
    /// The oldest schema number whose programs can still work with this one.
    min_reader: i32,
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    name: "initial",
    text: concat!(
        include_str!("../sql/migrations/0001_tables.sql"),
        include_str!("../sql/migrations/0001_views.sql"),
        include_str!("../sql/migrations/0001_enqueue.sql"),
    ),
    min_reader: 1,
}];

/// The first migration of builds before the first release. Their schemas were numbered otherwise and cannot be
/// upgraded.
const UNRELEASED: &str = "tables";

/// The schema this program was written for.
pub(in crate::store::postgres) const SCHEMA: i32 = latest(MIGRATIONS);

const fn latest(migrations: &[Migration]) -> i32 {
    migrations[migrations.len() - 1].number
}

/// Migrates the schema to the current version.
pub(in crate::store::postgres) async fn migrate(store: &Inner) -> Result<(), StoreError> {
    let lent = store.pool.get().await?;
    let (begun, done) = join!(lent.begin(), run(&lent, store.pool.texts(), MIGRATIONS));
    lent.conclude(begun, done).await
}

/// Refuses a schema this program cannot work with.
pub(in crate::store::postgres) async fn check_schema(store: &Inner) -> Result<(), StoreError> {
    let lent = store.pool.get().await?;
    let texts = store.pool.texts();
    let rows = match lent.query(Sql::Migrations, &[]).await {
        // The table is missing.
        Err(StoreError::Schema(_)) => Vec::new(),
        rows => rows?,
    };
    let applied = applied(&rows)?;
    check(&applied, texts.schema(), MIGRATIONS)?;
    let at = applied.iter().map(|row| row.number).max().unwrap_or(0);
    if at < SCHEMA {
        return Err(StoreError::Schema(format!(
            "the schema is at {at}, this program needs {SCHEMA}: run `windlass migrate`"
        )));
    }
    Ok(())
}

struct Applied {
    number: i32,
    name: String,
    checksum: String,
    min_reader: i32,
}

fn applied(rows: &[Row]) -> Result<Vec<Applied>, StoreError> {
    let read = |row| {
        let c = Columns::new(row);
        Ok(Applied {
            number: c.get("number")?,
            name: c.get("name")?,
            checksum: c.get("checksum")?,
            min_reader: c.get("min_reader")?,
        })
    };
    rows.iter().map(read).collect()
}

async fn run(lent: &Lent, texts: &Texts, migrations: &[Migration]) -> Result<(), StoreError> {
    let on = On::Own(lent);
    on.run("SET LOCAL lock_timeout = 30000; SET LOCAL statement_timeout = 0").await?;
    on.run(texts.script(Script::MigrationsTable)).await?;
    let known = applied(&on.query(Sql::Migrations, &[]).await?)?;
    check(&known, texts.schema(), migrations)?;
    for migration in pending(&known, migrations) {
        on.run(&fill(migration.text, texts.schema())).await?;
        let (sum, note) = (checksum(migration.text), Sql::MigrationAdd);
        on.query(note, &[&migration.number, &migration.name, &sum, &migration.min_reader]).await?;
    }
    Ok(())
}

/// The migrations that have not been applied, in order.
fn pending<'m>(applied: &[Applied], migrations: &'m [Migration]) -> impl Iterator<Item = &'m Migration> {
    migrations.iter().filter(|migration| !applied.iter().any(|row| row.number == migration.number))
}

/// Whether a program with these migrations can work with a schema, or upgrade it.
fn check(applied: &[Applied], schema: &str, migrations: &[Migration]) -> Result<(), StoreError> {
    if applied.iter().any(|row| row.number == 1 && row.name == UNRELEASED) {
        return Err(StoreError::Schema(format!(
            "schema `{schema}` was made by an unreleased build of Windlass and cannot be upgraded: drop the schema"
        )));
    }
    let latest = latest(migrations);
    if let Some(newer) = applied.iter().find(|row| row.min_reader > latest) {
        return Err(StoreError::Schema(format!(
            "schema `{schema}` is at {} and needs a program that knows {}; this one knows {latest}: upgrade it",
            newer.number, newer.min_reader
        )));
    }
    for migration in migrations {
        let changed = |row: &&Applied| row.number == migration.number && row.checksum != checksum(migration.text);
        if let Some(row) = applied.iter().find(changed) {
            return Err(StoreError::Schema(format!(
                "migration {} `{}` of schema `{schema}` is not the one this program knows",
                row.number, row.name
            )));
        }
    }
    Ok(())
}

fn checksum(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;

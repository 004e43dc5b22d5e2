//! Migrations: numbered, checksummed, forward only, one node at a time.

use crate::store::StoreError;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::before;
use crate::store::postgres::connection::pool::{Lent, On, Params};
use crate::store::postgres::connection::sql::{Sql, fill, types};
use crate::store::postgres::reads::rows::Columns;
use futures_util::join;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use tokio_postgres::error::SqlState;

/// One step of the schema.
struct Migration {
    number: i32,
    name: &'static str,
    text: &'static str,
    /// The oldest schema number whose programs can still work with this one.
    min_reader: i32,
}

const MIGRATIONS: [Migration; 6] = [
    Migration { number: 1, name: "tables", text: include_str!("../sql/migrations/0001_tables.sql"), min_reader: 1 },
    Migration { number: 2, name: "views", text: include_str!("../sql/migrations/0002_views.sql"), min_reader: 1 },
    Migration {
        number: 3,
        name: "enqueue_function",
        text: include_str!("../sql/migrations/0003_enqueue_function.sql"),
        min_reader: 1,
    },
    Migration {
        number: 4,
        name: "plain_successes",
        text: include_str!("../sql/migrations/0004_plain_successes.sql"),
        // Older programs would not find the attempts.
        min_reader: 4,
    },
    Migration {
        number: 5,
        name: "queues_at_commit",
        text: include_str!("../sql/migrations/0005_queues_at_commit.sql"),
        min_reader: 4,
    },
    Migration { number: 6, name: "balances", text: include_str!("../sql/migrations/0006_balances.sql"), min_reader: 4 },
];

/// The schema this program was written for.
pub(in crate::store::postgres) const SCHEMA: i32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

const BOOKKEEPING: &str = include_str!("../sql/migrations/0000_migrations.sql");

impl Inner {
    /// Brings the schema up to date.
    pub(in crate::store::postgres) async fn migrate(&self) -> Result<(), StoreError> {
        let lent = self.pool.get().await?;
        let schema = self.pool.texts().schema();
        let (begun, done) = join!(lent.begin(), run(&lent, schema));
        lent.conclude(begun, done).await
    }

    /// Refuses a schema this program cannot work with.
    pub(in crate::store::postgres) async fn check_schema(&self) -> Result<(), StoreError> {
        let lent = self.pool.get().await?;
        let rows = match lent.client().query_typed(self.pool.texts().get(Sql::Migrations), &[]).await {
            Ok(rows) => rows,
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Vec::new(),
            Err(error) => return Err(before(error)),
        };
        let applied = applied(&rows)?;
        let latest = applied.iter().map(|row| row.number).max().unwrap_or(0);
        if latest < SCHEMA {
            return Err(StoreError::Schema(format!(
                "the schema is at {latest}, this program needs {SCHEMA}: run `windlass migrate`"
            )));
        }
        check(&applied, self.pool.texts().schema())
    }
}

struct Applied {
    number: i32,
    name: String,
    checksum: String,
    min_reader: i32,
}

fn applied(rows: &[tokio_postgres::Row]) -> Result<Vec<Applied>, StoreError> {
    let read = |row| {
        let mut c = Columns::new(row);
        Ok(Applied { number: c.next()?, name: c.next()?, checksum: c.next()?, min_reader: c.next()? })
    };
    rows.iter().map(read).collect()
}

async fn run(lent: &Lent, schema: &str) -> Result<(), StoreError> {
    let on = On::Own(lent);
    on.run("SET LOCAL lock_timeout = 30000; SET LOCAL statement_timeout = 0").await?;
    on.run(&fill(BOOKKEEPING, schema)).await?;
    let list = fill(include_str!("../sql/migrations.sql"), schema);
    let rows = lent.client().query_typed(&list, &[]).await.map_err(before)?;
    let known = applied(&rows)?;
    check(&known, schema)?;
    for migration in &MIGRATIONS {
        if known.iter().any(|row| row.number == migration.number) {
            continue;
        }
        on.run(&fill(migration.text, schema)).await?;
        let note = fill(include_str!("../sql/migrations/note.sql"), schema);
        let sum = checksum(migration.text);
        let params: Params<'_> = &[&migration.number, &migration.name, &sum, &migration.min_reader];
        let typed: Vec<_> = params.iter().copied().zip(types(&note)).collect();
        lent.client().execute_typed(&note, &typed).await.map_err(before)?;
    }
    Ok(())
}

fn check(applied: &[Applied], schema: &str) -> Result<(), StoreError> {
    if let Some(newer) = applied.iter().find(|row| row.min_reader > SCHEMA) {
        return Err(StoreError::Schema(format!(
            "schema `{schema}` is at {} and needs a program that knows {}; this one knows {SCHEMA}: upgrade it",
            newer.number, newer.min_reader
        )));
    }
    for migration in &MIGRATIONS {
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

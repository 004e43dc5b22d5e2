//! Health: whether the file can be written, and what an operator should know about it. Backup.

use crate::clock::Clock;
use crate::store::sqlite::connection::connect;
use crate::store::sqlite::connection::migrate;
use crate::store::sqlite::connection::readers::Readers;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::verify::verify;
use crate::store::{Health, StoreError};
use rusqlite::backup::{Backup, StepResult};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_core::Millis;

/// A lease that ran out this long ago should have been reaped.
const STRAY_AFTER: Millis = Millis::from_secs(3600);
/// `PRAGMA synchronous` as a number: FULL.
const FULL: i64 = 2;
/// The first SQLite without the bug that may corrupt a log which is reset while another connection writes: 3.51.3.
const SOUND: i32 = 3_051_003;
/// A clock that is off by more than this is worth a warning.
const CLOCK_OFF: i64 = 1_000;
/// Pages copied at a time.
const BACKUP_PAGES: i32 = 1_000;
/// How long to wait when the file is locked.
const BACKUP_PAUSE: Duration = Duration::from_millis(10);

pub(in crate::store::sqlite) fn health(tx: &Tx<'_>, clock: &Clock) -> Result<Health, StoreError> {
    tx.conn.prepare_cached(sql!("schema.sql", "pulse"))?.execute([tx.now.as_millis()])?;
    let mut warnings = Vec::new();
    let synchronous: i64 = tx.conn.pragma_query_value(None, "synchronous", rows::only)?;
    if synchronous < FULL {
        warnings.push("synchronous is not FULL: a power cut may lose acknowledged jobs".into());
    }
    let journal: String = tx.conn.pragma_query_value(None, "journal_mode", rows::only)?;
    if journal != "wal" {
        warnings.push(format!("journal_mode is {journal}, not wal: readers and the writer wait for each other"));
    }
    let off = clock.look().saturating_sub(tx.now.as_millis() - tx.boot);
    if off.abs() > CLOCK_OFF {
        warnings.push(format!("this process's clock is {off} ms off the time of the file, which is used"));
    }
    warnings.extend(age_warning(rusqlite::version_number(), rusqlite::version()));
    let long_ago = tx.boot - millis(STRAY_AFTER);
    let strays: i64 = tx.conn.prepare_cached(sql!("leases.sql", "leases_stray"))?.query_row([long_ago], rows::only)?;
    if strays > 0 {
        let (s, were) = if strays == 1 { ("", "was") } else { ("s", "were") };
        warnings
            .push(format!("{strays} lease{s} ran out over an hour ago and {were} not reaped: is a worker running?"));
    }
    Ok(Health { engine: format!("sqlite {}", rusqlite::version()), schema: migrate::SCHEMA.number(), warnings })
}

/// Applications may link an older SQLite than the one we ship.
fn age_warning(number: i32, version: &str) -> Option<String> {
    (number < SOUND).then(|| {
        format!(
            "SQLite {version} is older than 3.51.3, which fixed a rare corruption of files with several connections"
        )
    })
}

impl Readers {
    pub(in crate::store::sqlite) async fn backup(self: &Arc<Self>, to: PathBuf) -> Result<(), StoreError> {
        if to.exists() {
            return Err(StoreError::Invalid(format!("there is a file at {} already", to.display())));
        }
        self.read(move |reader| {
            let mut copy = connect::backup(&to)?;
            let backup = Backup::new(&reader.conn, &mut copy)?;
            loop {
                match backup.step(BACKUP_PAGES)? {
                    StepResult::Done => break,
                    StepResult::More => {}
                    StepResult::Busy | StepResult::Locked | _ => std::thread::sleep(BACKUP_PAUSE),
                }
            }
            drop(backup);
            // A damaged copy must not take the place of an older, sound one.
            match verify(&copy).into_iter().next() {
                None => Ok(()),
                Some(damage) => Err(StoreError::corrupt("the copy, and so the store", damage)),
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::age_warning;

    #[test]
    fn an_old_sqlite_is_warned_about_and_ours_is_not() {
        assert!(age_warning(3_046_000, "3.46.0").unwrap().contains("SQLite 3.46.0 is older"));
        assert!(age_warning(3_051_002, "3.51.2").is_some());
        assert_eq!(age_warning(3_051_003, "3.51.3"), None);
        assert_eq!(age_warning(rusqlite::version_number(), rusqlite::version()), None);
    }
}

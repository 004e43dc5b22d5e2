//! Verify: reads the whole file and says what is damaged. SQLite checks pages, indexes and constraints; the rest is
//! that the tables fit each other. A changed bit inside a value is not seen here.

use crate::store::StoreError;
use crate::store::sqlite::connection::readers::Readers;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::rows;
use rusqlite::Connection;
use std::sync::Arc;

/// The most problems that are listed.
const MOST: u32 = 20;

/// Counts rows that another table lacks, each with what that means.
const LOST: [(&str, &str); 5] = [
    ("live jobs have lost their description", sql!("upkeep.sql", "verify_live")),
    ("finished jobs have lost their description", sql!("upkeep.sql", "verify_finished")),
    ("jobs are neither live nor finished", sql!("upkeep.sql", "verify_jobs")),
    ("entries of waiting jobs have lost their job", sql!("upkeep.sql", "verify_waiting")),
    ("counts of waiting jobs are wrong", sql!("upkeep.sql", "verify_lanes")),
];

/// What is damaged; nothing if the file is sound.
pub(in crate::store::sqlite) fn verify(conn: &Connection) -> Vec<String> {
    // Damage may also stop a check.
    let mut found = pages(conn).unwrap_or_else(|error| vec![error.to_string()]);
    for (what, count) in LOST {
        match conn.prepare(count).and_then(|mut count| count.query_row([], rows::only::<i64>)) {
            Ok(0) => {}
            Ok(lost) => found.push(format!("{lost} {what}")),
            Err(error) => found.push(error.to_string()),
        }
    }
    found.dedup();
    found
}

fn pages(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = conn.prepare(&format!("PRAGMA integrity_check({MOST})"))?;
    let lines = check.query_map([], rows::only::<String>)?;
    Ok(lines.map(|line| line.unwrap_or_else(|error| error.to_string())).filter(|line| line != "ok").collect())
}

impl Readers {
    pub(in crate::store::sqlite) async fn verify(self: &Arc<Self>) -> Result<Vec<String>, StoreError> {
        self.read(|reader| Ok(verify(&reader.conn))).await
    }
}

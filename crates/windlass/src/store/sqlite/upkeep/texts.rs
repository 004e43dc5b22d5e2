//! Texts as they are stored, walked and replaced for sealing them with another key.

use crate::store::contract::texts::columns_of;
use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::reads::rows;
use crate::store::{StoreError, StoredText, TextChange, TextPlace};
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, StoreError>;

/// A table, its columns, and how it is read and changed.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
    read: &'static str,
    put: &'static str,
}

const TABLES: [Table; 5] = [
    Table {
        name: "jobs",
        columns: &["payload", "http", "webhook"],
        read: sql!("texts.sql", "texts_jobs"),
        put: sql!("texts.sql", "text_jobs_put"),
    },
    Table {
        name: "live",
        columns: &["error"],
        read: sql!("texts.sql", "texts_live"),
        put: sql!("texts.sql", "text_live_put"),
    },
    Table {
        name: "outcomes",
        columns: &["error", "result"],
        read: sql!("texts.sql", "texts_outcomes"),
        put: sql!("texts.sql", "text_outcomes_put"),
    },
    Table {
        name: "attempts",
        columns: &["error", "note", "trace"],
        read: sql!("texts.sql", "texts_attempts"),
        put: sql!("texts.sql", "text_attempts_put"),
    },
    Table {
        name: "schedules",
        columns: &["template"],
        read: sql!("texts.sql", "texts_schedules"),
        put: sql!("texts.sql", "text_schedules_put"),
    },
];

/// Comes after the tables.
const SETTINGS: usize = TABLES.len() + 1;

impl Reader {
    pub(in crate::store::sqlite) fn texts(&mut self, after: Option<&TextPlace>, limit: u32) -> Result<Vec<StoredText>> {
        let (first, mut key) = after.map_or((0, (0, 0)), |place| (place.table, place.key));
        for (number, table) in TABLES.iter().enumerate().skip(first) {
            let mut select = self.conn.prepare_cached(table.read)?;
            let mut rows = select.query((key.0, key.1, i64::from(limit)))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let columns: String = row.get(4)?;
                found.push(StoredText {
                    place: TextPlace { table: number, key: (row.get(0)?, row.get(1)?), name: Vec::new() },
                    table: table.name,
                    tenant: row.get(2)?,
                    kind: row.get(3)?,
                    columns: columns_of(&columns),
                });
            }
            if !found.is_empty() {
                return Ok(found);
            }
            key = (0, 0);
        }
        if first > TABLES.len() { Ok(Vec::new()) } else { self.setting_texts() }
    }

    /// There are few, so they are read at once, as the last table.
    fn setting_texts(&self) -> Result<Vec<StoredText>> {
        let mut select = self.conn.prepare_cached(sql!("texts.sql", "texts_settings"))?;
        rows::all(select.query([])?, |row| {
            let name = vec![row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            Ok(StoredText {
                place: TextPlace { table: SETTINGS, key: (0, 0), name },
                table: "settings",
                tenant: String::new(),
                kind: String::new(),
                columns: BTreeMap::from([("value".to_owned(), row.get(4)?)]),
            })
        })
    }
}

pub(in crate::store::sqlite) fn replace(tx: &mut Tx<'_>, changes: &[TextChange]) -> Result<u64> {
    let mut replaced = 0;
    for change in changes {
        let place = &change.before.place;
        let Some(table) = TABLES.get(place.table) else {
            let (before, after) = change.column("value");
            let mut put = tx.conn.prepare_cached(sql!("texts.sql", "text_settings_put"))?;
            let key = place.name.iter().map(String::as_str).map(Some);
            replaced += put.execute(params_from_iter(key.chain([before, after])))? as u64;
            continue;
        };
        let mut values = vec![Value::Integer(place.key.0), Value::Integer(place.key.1)];
        for column in table.columns {
            let (before, after) = change.column(column);
            values.extend([before, after].map(|text| text.map_or(Value::Null, |text| Value::Text(text.to_owned()))));
        }
        replaced += tx.conn.prepare_cached(table.put)?.execute(params_from_iter(values))? as u64;
    }
    Ok(replaced)
}

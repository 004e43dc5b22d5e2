//! Texts as they are stored, walked and replaced for sealing them with another key.

use crate::store::contract::texts::columns_of;
use crate::store::postgres::Inner;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::{StoreError, StoredText, TextChange, TextPlace};
use std::collections::BTreeMap;
use tokio_postgres::types::ToSql;

/// A table, its columns, and how it is read and changed.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
    read: Sql,
    put: Sql,
}

const TABLES: [Table; 3] = [
    Table { name: "jobs", columns: &["payload", "http", "webhook"], read: Sql::TextsJobs, put: Sql::PutJobs },
    Table {
        name: "attempts",
        columns: &["error", "note", "trace", "result", "message"],
        read: Sql::TextsAttempts,
        put: Sql::PutAttempts,
    },
    Table { name: "schedules", columns: &["template"], read: Sql::TextsSchedules, put: Sql::PutSchedules },
];

/// Comes after the tables.
const SETTINGS: usize = TABLES.len() + 1;

pub(in crate::store::postgres) async fn texts(
    store: &Inner,
    after: Option<&TextPlace>,
    limit: u32,
) -> Result<Vec<StoredText>, StoreError> {
    let (first, mut key) = after.map_or((0, (0, 0)), |place| (place.table, place.key));
    for (number, table) in TABLES.iter().enumerate().skip(first) {
        let rows = store.read(table.read, &[&key.0, &key.1, &i64::from(limit)]).await?;
        if !rows.is_empty() {
            let text = |row| {
                let c = Columns::new(row);
                Ok(StoredText {
                    place: TextPlace { table: number, key: (c.get("key_a")?, c.get("key_b")?), name: Vec::new() },
                    table: table.name,
                    tenant: c.get("tenant")?,
                    kind: c.get("kind")?,
                    columns: columns_of(c.text("columns")?),
                })
            };
            return rows.iter().map(text).collect();
        }
        key = (0, 0);
    }
    if first > TABLES.len() { Ok(Vec::new()) } else { setting_texts(store).await }
}

/// There are few, so they are read at once, as the last table.
async fn setting_texts(store: &Inner) -> Result<Vec<StoredText>, StoreError> {
    let text = |row| {
        let c = Columns::new(row);
        let name = vec![c.get("scope")?, c.get("tenant")?, c.get("name")?, c.get("node")?];
        Ok(StoredText {
            place: TextPlace { table: SETTINGS, key: (0, 0), name },
            table: "settings",
            tenant: String::new(),
            kind: String::new(),
            columns: BTreeMap::from([("value".to_owned(), c.get("value")?)]),
        })
    };
    store.read(Sql::TextsSettings, &[]).await?.iter().map(text).collect()
}

pub(in crate::store::postgres) async fn replace(store: &Inner, changes: &[TextChange]) -> Result<u64, StoreError> {
    let mut replaced = 0;
    for change in changes {
        let place = &change.before.place;
        let Some(table) = TABLES.get(place.table) else {
            let (before, after) = change.column("value");
            let mut params: Vec<&(dyn ToSql + Sync)> = Vec::new();
            params.extend(place.name.iter().map(|part| part as &(dyn ToSql + Sync)));
            params.extend([&before as &(dyn ToSql + Sync), &after]);
            replaced += store.write(Sql::PutSettings, &params).await?.len() as u64;
            continue;
        };
        let texts: Vec<Option<&str>> = table
            .columns
            .iter()
            .flat_map(|column| {
                let (before, after) = change.column(column);
                [before, after]
            })
            .collect();
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&place.key.0, &place.key.1];
        params.extend(texts.iter().map(|text| text as &(dyn ToSql + Sync)));
        replaced += store.write(table.put, &params).await?.len() as u64;
    }
    Ok(replaced)
}

//! The stored data, read through the database's views without Windlass.

use crate::setup::place::Place;
use serde_json::Value;
use std::collections::HashMap;

/// Everything that is stored.
#[derive(Debug, Default)]
pub struct Stored {
    pub jobs: HashMap<i64, Row>,
    /// The attempts of each job, in order.
    pub ledger: HashMap<i64, Vec<Line>>,
}

#[derive(Debug, Clone)]
pub struct Row {
    pub id: i64,
    pub kind: String,
    pub state: String,
    pub reason: Option<String>,
    pub attempt: u32,
    pub failures: u32,
    pub replays: u32,
    pub key: Option<String>,
    /// For a delivery: the job it reports on.
    pub parent: Option<i64>,
    /// The producer's number of the job, if a producer sent it.
    pub tag: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub attempt: u32,
    pub status: String,
    pub class: Option<String>,
}

const JOBS: &str =
    "SELECT id, kind, state, reason, attempt, failures, replays, idempotency_key, parent_id, payload FROM ";
const ATTEMPTS: &str = "SELECT job_id, attempt, status, error_class FROM ";

impl Stored {
    pub fn read(place: &Place) -> Self {
        let mut stored = if place.is_postgres() { postgres(place) } else { sqlite(place) };
        stored.ledger.values_mut().for_each(|lines| lines.sort_by_key(|line| line.attempt));
        stored
    }

    fn add_job(&mut self, mut row: Row, payload: &str) {
        let payload: Value = serde_json::from_str(payload).unwrap_or_default();
        row.tag = payload["tag"].as_u64().filter(|_| row.kind == "torture");
        let before = self.jobs.insert(row.id, row);
        assert!(before.is_none(), "two rows with one id: {before:?}");
    }
}

fn sqlite(place: &Place) -> Stored {
    let file = rusqlite::Connection::open(place.file()).unwrap();
    let mut stored = Stored::default();
    let mut jobs = file.prepare(&format!("{JOBS} windlass_all_jobs")).unwrap();
    let mut rows = jobs.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let job = Row {
            id: row.get(0).unwrap(),
            kind: row.get(1).unwrap(),
            state: row.get(2).unwrap(),
            reason: row.get(3).unwrap(),
            attempt: row.get(4).unwrap(),
            failures: row.get(5).unwrap(),
            replays: row.get(6).unwrap(),
            key: row.get(7).unwrap(),
            parent: row.get(8).unwrap(),
            tag: None,
        };
        stored.add_job(job, &row.get::<_, String>(9).unwrap());
    }
    let mut attempts = file.prepare(&format!("{ATTEMPTS} windlass_all_attempts")).unwrap();
    let mut rows = attempts.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let line = Line { attempt: row.get(1).unwrap(), status: row.get(2).unwrap(), class: row.get(3).unwrap() };
        stored.ledger.entry(row.get(0).unwrap()).or_default().push(line);
    }
    stored
}

fn postgres(place: &Place) -> Stored {
    let mut stored = Stored::default();
    let jobs = format!(
        "SELECT id, kind, state, reason, attempt::bigint, failures::bigint, replays::bigint, idempotency_key, parent_id, \
         payload::text FROM {}.all_jobs",
        place.schema
    );
    for row in query(place, &jobs) {
        let number = |index: usize| row.get::<_, i64>(index) as u32;
        let job = Row {
            id: row.get(0),
            kind: row.get(1),
            state: row.get(2),
            reason: row.get(3),
            attempt: number(4),
            failures: number(5),
            replays: number(6),
            key: row.get(7),
            parent: row.get(8),
            tag: None,
        };
        stored.add_job(job, row.get(9));
    }
    let attempts = format!("SELECT job_id, attempt::bigint, status, error_class FROM {}.all_attempts", place.schema);
    for row in query(place, &attempts) {
        let line = Line { attempt: row.get::<_, i64>(1) as u32, status: row.get(2), class: row.get(3) };
        stored.ledger.entry(row.get(0)).or_default().push(line);
    }
    stored
}

/// The rows of a statement on a place's Postgres.
pub fn query(place: &Place, sql: &str) -> Vec<tokio_postgres::Row> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&place.direct, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let rows = client.query(sql, &[]).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        rows
    })
}

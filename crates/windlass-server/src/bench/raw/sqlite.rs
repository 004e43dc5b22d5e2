//! SQLite's ceilings: prepared row loops in transactions, WAL, synchronous=FULL.

use super::super::cost::Gauge;
use super::super::load::Load;
use super::super::report::Figure;
use super::{BATCH, INSERTS, Raw, Step, titled};
use anyhow::Result;
use rusqlite::Connection;
use windlass::low_level::clock::Stopwatch;

const SCHEMA: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue_id INTEGER, kind TEXT, payload TEXT, priority INTEGER, state TEXT,
    attempt INTEGER, created_at INTEGER, due_at INTEGER);
CREATE INDEX claim ON jobs (queue_id, priority DESC, due_at, id) WHERE state <> 'running'";

const INSERT: &str = "
INSERT INTO jobs (queue_id, kind, payload, priority, state, attempt, created_at, due_at)
VALUES (1, 'bench', ?1, 0, 'queued', 0, 1, 1)";

const SELECT: &str = "
SELECT id, payload FROM jobs WHERE queue_id = 1 AND priority = 0 AND due_at <= 2 AND state <> 'running'
ORDER BY due_at, id LIMIT ?1";

const TAKE: &str = "UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE id = ?1";

const DELETE: &str = "DELETE FROM jobs WHERE id = ?1 AND state = 'running'";

pub(super) fn statements() -> String {
    titled(&[
        ("table", SCHEMA),
        ("raw insert: one row per commit; raw bulk insert: 1000 rows per commit", INSERT),
        ("raw claim + delete: in one commit read 1000 …", SELECT),
        ("… and take each; …", TAKE),
        ("… in the next commit delete each", DELETE),
    ])
}

pub(super) async fn measure(path: &str, load: Load, gauge: &Gauge) -> Result<Raw> {
    let measured = run(path, load, gauge).await;
    for suffix in ["", "-wal", "-shm"] {
        // A missing file is fine.
        let _ = std::fs::remove_file(format!("{path}{suffix}"));
    }
    measured
}

async fn run(path: &str, load: Load, gauge: &Gauge) -> Result<Raw> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(SCHEMA)?;
    let (mut raw, payload) = (Raw::default(), load.text());
    let singles = load.jobs.min(INSERTS);
    let meter = gauge.start().await?;
    for _ in 0..singles {
        let watch = Stopwatch::start();
        insert(&mut connection, &payload, 1)?;
        raw.latencies.push(watch.elapsed().as_secs_f64() * 1000.0);
    }
    raw.add(Step::Insert, Figure::rate(String::new(), singles, meter.read().await?));
    connection.execute_batch("DELETE FROM jobs")?;
    let meter = gauge.start().await?;
    for start in (0..load.jobs).step_by(BATCH) {
        insert(&mut connection, &payload, BATCH.min(load.jobs - start))?;
    }
    raw.add(Step::Bulk, Figure::rate(String::new(), load.jobs, meter.read().await?));
    let meter = gauge.start().await?;
    let mut done = 0;
    while done < load.jobs {
        let claimed = claim(&mut connection)?;
        delete(&mut connection, &claimed)?;
        done += claimed.len();
    }
    raw.add(Step::Drain, Figure::rate(String::new(), load.jobs, meter.read().await?));
    Ok(raw)
}

fn insert(connection: &mut Connection, payload: &str, count: usize) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(INSERT)?;
        for _ in 0..count {
            statement.execute([payload])?;
        }
    }
    Ok(transaction.commit()?)
}

fn claim(connection: &mut Connection) -> Result<Vec<(i64, String)>> {
    let transaction = connection.transaction()?;
    let claimed;
    {
        let mut select = transaction.prepare_cached(SELECT)?;
        claimed = select
            .query_map([BATCH as i64], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<(i64, String)>, _>>()?;
        let mut take = transaction.prepare_cached(TAKE)?;
        for (id, _) in &claimed {
            take.execute([id])?;
        }
    }
    transaction.commit()?;
    Ok(claimed)
}

fn delete(connection: &mut Connection, claimed: &[(i64, String)]) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(DELETE)?;
        for (id, _) in claimed {
            statement.execute([id])?;
        }
    }
    Ok(transaction.commit()?)
}

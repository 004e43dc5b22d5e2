//! SQLite's ceiling: prepared row loops in transactions, WAL, synchronous=FULL.

use super::super::Load;
use super::Ceiling;
use anyhow::Result;
use rusqlite::{Connection, params};
use windlass::low_level::clock::Stopwatch;

const SCHEMA: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue_id INTEGER, kind TEXT, payload TEXT, priority INTEGER, state TEXT,
    policy_id INTEGER, attempt INTEGER, failures INTEGER, lease_id INTEGER, created_at INTEGER, due_at INTEGER,
    claimed_at INTEGER);
CREATE INDEX claim ON jobs (queue_id, priority DESC, due_at, id) WHERE state <> 'running';
CREATE TABLE archive (
    id INTEGER PRIMARY KEY, queue_id INTEGER, kind TEXT, payload TEXT, priority INTEGER, state TEXT, policy_id INTEGER,
    attempt INTEGER, failures INTEGER, created_at INTEGER, due_at INTEGER, finished_at INTEGER);
CREATE TABLE attempts (
    job_id INTEGER, number INTEGER, status TEXT, lease_id INTEGER, started_at INTEGER, finished_at INTEGER, worker TEXT,
    PRIMARY KEY (job_id, number)) WITHOUT ROWID;";

pub(crate) fn measure(path: &str, load: Load, batch: usize) -> Result<Ceiling> {
    let measured = run(path, load, batch);
    for suffix in ["", "-wal", "-shm"] {
        // A missing file is fine.
        let _ = std::fs::remove_file(format!("{path}{suffix}"));
    }
    measured
}

fn run(path: &str, load: Load, batch: usize) -> Result<Ceiling> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(SCHEMA)?;
    let payload = load.text();
    let watch = Stopwatch::start();
    for start in (0..load.jobs).step_by(batch) {
        insert(&mut connection, &payload, batch.min(load.jobs - start))?;
    }
    let insert = load.jobs as f64 / watch.elapsed().as_secs_f64();
    let watch = Stopwatch::start();
    let mut done = 0;
    while done < load.jobs {
        let claimed = claim(&mut connection, batch)?;
        finish(&mut connection, &claimed)?;
        done += claimed.len();
    }
    Ok(Ceiling { insert, drain: load.jobs as f64 / watch.elapsed().as_secs_f64() })
}

fn insert(connection: &mut Connection, payload: &str, count: usize) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO jobs (queue_id, kind, payload, priority, state, policy_id, attempt, failures, created_at, due_at)
             VALUES (1, 'bench', ?1, 0, 'queued', 1, 0, 0, 1, 1)",
        )?;
        for _ in 0..count {
            statement.execute([payload])?;
        }
    }
    Ok(transaction.commit()?)
}

fn claim(connection: &mut Connection, batch: usize) -> Result<Vec<(i64, String)>> {
    let transaction = connection.transaction()?;
    let claimed;
    {
        let mut select = transaction.prepare_cached(
            "SELECT id, payload FROM jobs WHERE queue_id = 1 AND priority = 0 AND due_at <= 2 AND state <> 'running'
             ORDER BY due_at, id LIMIT ?1",
        )?;
        claimed = select
            .query_map([batch as i64], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<(i64, String)>, _>>()?;
        let mut update = transaction.prepare_cached(
            "UPDATE jobs SET state = 'running', attempt = attempt + 1, lease_id = 7, claimed_at = 2 WHERE id = ?1",
        )?;
        for (id, _) in &claimed {
            update.execute([id])?;
        }
    }
    transaction.commit()?;
    Ok(claimed)
}

fn finish(connection: &mut Connection, claimed: &[(i64, String)]) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut archive = transaction.prepare_cached(
            "INSERT INTO archive SELECT id, queue_id, kind, payload, priority, 'succeeded', policy_id, attempt, failures,
             created_at, due_at, 3 FROM jobs WHERE id = ?1 AND attempt = 1 AND lease_id = 7 AND state = 'running'",
        )?;
        let mut delete = transaction.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
        let mut attempt =
            transaction.prepare_cached("INSERT INTO attempts VALUES (?1, 1, 'SUCCESS', 7, 2, 3, 'bench')")?;
        for (id, _) in claimed {
            archive.execute(params![id])?;
            delete.execute(params![id])?;
            attempt.execute(params![id])?;
        }
    }
    Ok(transaction.commit()?)
}

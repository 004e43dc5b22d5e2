//! Postgres's ceiling: set statements over arrays, claims as heap-only updates, on one connection.

use super::super::cost::Gauge;
use super::super::{Load, report::Figure};
use super::Ceiling;
use anyhow::Result;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use windlass::low_level::clock::Stopwatch;

const SCHEMA: &str = "
DROP SCHEMA IF EXISTS windlass_ceiling CASCADE;
CREATE SCHEMA windlass_ceiling;
SET search_path = windlass_ceiling;
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue_id bigint, kind text, payload text, priority smallint,
    state text, policy_id bigint, attempt int, failures int, lease_id bigint, created_at bigint, due_at bigint,
    claimed_at bigint) WITH (fillfactor = 50);
CREATE INDEX claim ON jobs (queue_id, priority DESC, due_at, id);
CREATE TABLE archive (
    id bigint PRIMARY KEY, queue_id bigint, kind text, payload text, priority smallint, state text, policy_id bigint,
    attempt int, failures int, created_at bigint, due_at bigint, finished_at bigint);
CREATE TABLE attempts (
    job_id bigint, number int, status text, lease_id bigint, started_at bigint, finished_at bigint, worker text,
    PRIMARY KEY (job_id, number));";

const INSERT: &str =
    "INSERT INTO windlass_ceiling.jobs (queue_id, kind, payload, priority, state, policy_id, attempt, failures, created_at, due_at)
     SELECT 1, 'bench', p, 0, 'queued', 1, 0, 0, 1, 1 FROM unnest($1::text[]) p";

pub(crate) async fn measure(url: &str, load: Load, batch: usize) -> Result<Ceiling> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(SCHEMA).await?;
    let measured = run(&client, load, batch).await;
    client.batch_execute("DROP SCHEMA windlass_ceiling CASCADE").await?;
    drop(client);
    connection.await??;
    measured
}

async fn run(client: &Client, load: Load, batch: usize) -> Result<Ceiling> {
    let insert = client.prepare(INSERT).await?;
    let claim = client
        .prepare(
            "WITH picked AS MATERIALIZED (
               SELECT id FROM jobs WHERE queue_id = 1 AND priority = 0 AND due_at <= 2 AND state <> 'running'
               ORDER BY due_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
             UPDATE jobs j SET state = 'running', attempt = attempt + 1, lease_id = 7, claimed_at = 2
             FROM picked WHERE j.id = picked.id RETURNING j.id, j.payload",
        )
        .await?;
    let finish = client
        .prepare(
            "WITH done AS (
               DELETE FROM jobs j USING unnest($1::bigint[]) AS d(id)
               WHERE j.id = d.id AND j.attempt = 1 AND j.lease_id = 7 AND j.state = 'running' RETURNING j.*),
             ledger AS (
               INSERT INTO attempts SELECT id, attempt, 'SUCCESS', lease_id, 2, 3, 'bench' FROM done)
             INSERT INTO archive SELECT id, queue_id, kind, payload, priority, 'succeeded', policy_id, attempt, failures,
               created_at, due_at, 3 FROM done",
        )
        .await?;
    let payload = load.text();
    let watch = Stopwatch::start();
    for start in (0..load.jobs).step_by(batch) {
        let payloads = vec![payload.as_str(); batch.min(load.jobs - start)];
        client.execute(&insert, &[&payloads]).await?;
    }
    let inserted = load.jobs as f64 / watch.elapsed().as_secs_f64();
    let watch = Stopwatch::start();
    let mut done = 0;
    while done < load.jobs {
        let rows = client.query(&claim, &[&(batch as i64)]).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        client.execute(&finish, &[&ids]).await?;
        done += ids.len();
    }
    Ok(Ceiling { insert: inserted, drain: load.jobs as f64 / watch.elapsed().as_secs_f64() })
}

/// Plain connections that insert one job after another, each by itself.
pub(crate) async fn singles(url: &str, load: Load, connections: usize, gauge: &Gauge) -> Result<Figure> {
    let (admin, connection) = tokio_postgres::connect(url, NoTls).await?;
    let admin_connection = tokio::spawn(connection);
    admin.batch_execute(SCHEMA).await?;
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // Ends when its client is dropped.
        tokio::spawn(async move { drop(connection.await) });
        let insert = client.prepare(INSERT).await?;
        clients.push((client, insert));
    }
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for (client, insert) in clients {
        let payload = load.text();
        tasks.spawn(async move {
            for _ in 0..load.jobs / connections {
                client.execute(&insert, &[&[payload.as_str()].as_slice()]).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let cost = meter.read().await?;
    admin.batch_execute("DROP SCHEMA windlass_ceiling CASCADE").await?;
    drop(admin);
    admin_connection.await??;
    let jobs = load.jobs / connections * connections;
    Ok(Figure::rate(format!("plain inserts one by one, connections: {connections}"), jobs, cost))
}

//! Postgres's ceilings: prepared statements on plain connections, autocommitted, with the server's own settings.

use super::super::cost::Gauge;
use super::super::load::Load;
use super::super::report::Figure;
use super::{BATCH, CONNECTIONS, INSERTS, Raw, Step, titled};
use anyhow::Result;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use windlass::low_level::clock::Stopwatch;

const SCHEMA: &str = "
DROP SCHEMA IF EXISTS windlass_raw CASCADE;
CREATE SCHEMA windlass_raw;
CREATE TABLE windlass_raw.jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue_id bigint NOT NULL, kind text NOT NULL,
    payload text NOT NULL, priority smallint NOT NULL, state text NOT NULL, attempt int NOT NULL,
    created_at bigint NOT NULL, due_at bigint NOT NULL) WITH (fillfactor = 50);
CREATE INDEX claim ON windlass_raw.jobs (queue_id, priority DESC, due_at, id)";

const INSERT: &str = "
INSERT INTO windlass_raw.jobs (queue_id, kind, payload, priority, state, attempt, created_at, due_at)
VALUES (1, 'bench', $1, 0, 'queued', 0, 1, 1)";

const BULK: &str = "
INSERT INTO windlass_raw.jobs (queue_id, kind, payload, priority, state, attempt, created_at, due_at)
SELECT 1, 'bench', p, 0, 'queued', 0, 1, 1 FROM unnest($1::text[]) p";

const CLAIM: &str = "
WITH picked AS MATERIALIZED (
    SELECT id FROM windlass_raw.jobs
    WHERE queue_id = 1 AND priority = 0 AND due_at <= 2 AND state <> 'running'
    ORDER BY due_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE windlass_raw.jobs j SET state = 'running', attempt = attempt + 1
FROM picked WHERE j.id = picked.id RETURNING j.id, j.payload";

const DELETE: &str = "DELETE FROM windlass_raw.jobs WHERE id = ANY ($1::bigint[]) AND state = 'running'";

pub(super) fn statements() -> String {
    titled(&[
        ("table", SCHEMA),
        ("raw insert: one row per commit, on 1 and on 16 connections", INSERT),
        ("raw bulk insert: 1000 payloads per commit", BULK),
        ("raw claim + delete: claim 1000 in one commit …", CLAIM),
        ("… and delete them in the next", DELETE),
    ])
}

pub(super) async fn measure(url: &str, load: Load, gauge: &Gauge) -> Result<Raw> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(SCHEMA).await?;
    let measured = run(url, &client, load, gauge).await;
    client.batch_execute("DROP SCHEMA windlass_raw CASCADE").await?;
    drop(client);
    connection.await??;
    measured
}

async fn run(url: &str, client: &Client, load: Load, gauge: &Gauge) -> Result<Raw> {
    let mut raw = Raw::default();
    for (step, connections) in [(Step::Insert, 1), (Step::Inserts, CONNECTIONS)] {
        let (figure, latencies) = singles(url, load, connections, gauge).await?;
        raw.add(step, figure);
        if step == Step::Insert {
            raw.latencies = latencies;
        }
    }
    client.batch_execute("TRUNCATE windlass_raw.jobs").await?;
    let bulk = client.prepare(BULK).await?;
    let payload = load.text();
    let meter = gauge.start().await?;
    for start in (0..load.jobs).step_by(BATCH) {
        let payloads = vec![payload.as_str(); BATCH.min(load.jobs - start)];
        client.execute(&bulk, &[&payloads]).await?;
    }
    raw.add(Step::Bulk, Figure::rate(String::new(), load.jobs, meter.read().await?));
    let (claim, delete) = (client.prepare(CLAIM).await?, client.prepare(DELETE).await?);
    let meter = gauge.start().await?;
    let mut done = 0;
    while done < load.jobs {
        let rows = client.query(&claim, &[&(BATCH as i64)]).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        client.execute(&delete, &[&ids]).await?;
        done += ids.len();
    }
    raw.add(Step::Drain, Figure::rate(String::new(), load.jobs, meter.read().await?));
    Ok(raw)
}

/// Connections that insert one row after another, each by itself. Also returns the time of each insert.
async fn singles(url: &str, load: Load, connections: usize, gauge: &Gauge) -> Result<(Figure, Vec<f64>)> {
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // Ends when its client is dropped.
        tokio::spawn(async move { drop(connection.await) });
        let insert = client.prepare(INSERT).await?;
        clients.push((client, insert));
    }
    let each = (load.jobs / connections).clamp(1, INSERTS);
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for (client, insert) in clients {
        let payload = load.text();
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(each);
            for _ in 0..each {
                let watch = Stopwatch::start();
                client.execute(&insert, &[&payload]).await?;
                latencies.push(watch.elapsed().as_secs_f64() * 1000.0);
            }
            // The client goes back with its processor time still to be read.
            anyhow::Ok((latencies, client))
        });
    }
    let (mut latencies, mut kept) = (Vec::new(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (waits, client) = done??;
        latencies.extend(waits);
        kept.push(client);
    }
    let cost = meter.read().await?;
    drop(kept);
    Ok((Figure::rate(String::new(), each * connections, cost), latencies))
}

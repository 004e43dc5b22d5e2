//! The cost of a run: time, processor time and bytes written, of this process and of the Postgres server, the syncs of
//! the server's log, and the peak memory of this process.

use super::pace::Pace;
use anyhow::Result;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use windlass::low_level::clock::Stopwatch;

/// Reads the meters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge {
    server: Option<Arc<Server>>,
    pub(crate) pace: Pace,
}

/// A Postgres server, queried on a separate connection.
#[derive(Debug)]
struct Server {
    client: Client,
    _connection: JoinHandle<()>,
}

/// A reading of the meters.
#[derive(Debug)]
pub(crate) struct Meter {
    watch: Stopwatch,
    gauge: Gauge,
    own: u64,
    written: u64,
    server: ServerReading,
}

/// Processor time of each of the server's processes, the position of its log, and how often it was synced.
#[derive(Debug, Default)]
struct ServerReading {
    processes: HashMap<i32, u64>,
    log: i64,
    syncs: i64,
}

/// The difference between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Processor time of this process.
    pub(crate) cpu_seconds: f64,
    /// Processor time of the server's processes, if they run on this machine.
    pub(crate) server_cpu_seconds: f64,
    /// Bytes this process sent to the disk, or the server to its write-ahead log.
    pub(crate) written: u64,
    /// How often the server synced its log.
    pub(crate) syncs: u64,
    /// The peak memory of this process.
    pub(crate) peak_bytes: u64,
}

impl Cost {
    pub(crate) fn add(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
        self.server_cpu_seconds += other.server_cpu_seconds;
        self.written += other.written;
        self.syncs += other.syncs;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

/// Linux counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// After a large load, SQLite copies its log into the file for a while.
const REST: Duration = Duration::from_secs(15);
/// The tables of stores that are measured.
const TABLES: &str =
    "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname LIKE 'windlass_bench_%'";

const PROCESSES: &str = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
const LOG: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
/// Until Postgres 17, and from 18 on.
const SYNCS: [&str; 2] = [
    "SELECT wal_sync::bigint FROM pg_stat_wal",
    "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'",
];

impl Gauge {
    /// A gauge that also reads the Postgres server at `url`.
    pub(crate) async fn of_server(url: &str, pace: Pace) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // Ends when the client is dropped.
        let connection = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { server: Some(Arc::new(Server { client, _connection: connection })), pace })
    }

    /// A gauge that reads this process only.
    pub(crate) fn own(pace: Pace) -> Self {
        Self { server: None, pace }
    }

    pub(crate) async fn start(&self) -> Result<Meter> {
        // Resets the peak memory, if the system allows it.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let server = self.read_server().await?;
        let (own, written) = (ticks("self"), written());
        Ok(Meter { watch: Stopwatch::start(), gauge: self.clone(), own, written, server })
    }

    /// Lets the database finish what a large load leaves to do, so that the next figure does not count it: Postgres
    /// removes dead rows and writes changed pages within minutes, here it does so now.
    pub(crate) async fn clean_up(&self) -> Result<()> {
        let Some(server) = &self.server else {
            tokio::time::sleep(REST).await;
            return Ok(());
        };
        for row in server.client.query(TABLES, &[]).await? {
            server.client.batch_execute(&format!("VACUUM (ANALYZE) {}", row.get::<_, &str>(0))).await?;
        }
        // Not every role may ask for it: then the server writes the pages when it wants to.
        let _ = server.client.batch_execute("CHECKPOINT").await;
        Ok(())
    }

    async fn read_server(&self) -> Result<ServerReading> {
        let Some(server) = &self.server else { return Ok(ServerReading::default()) };
        let processes = server.client.query(PROCESSES, &[]).await?;
        let pids = processes.iter().map(|row| row.get::<_, i32>(0)).filter(|pid| is_postgres(*pid));
        let processes = pids.map(|pid| (pid, ticks(&pid.to_string()))).collect();
        let log = server.client.query_one(LOG, &[]).await?.get(0);
        Ok(ServerReading { processes, log, syncs: server.syncs().await })
    }
}

impl Server {
    /// Zero if this server does not count them.
    async fn syncs(&self) -> i64 {
        for statement in SYNCS {
            if let Ok(row) = self.client.query_one(statement, &[]).await {
                return row.get(0);
            }
        }
        0
    }
}

impl Meter {
    pub(crate) async fn read(&self) -> Result<Cost> {
        let seconds = self.watch.elapsed().as_secs_f64();
        let own = ticks("self").saturating_sub(self.own);
        let server = self.gauge.read_server().await?;
        let before = |pid| self.server.processes.get(pid).copied().unwrap_or(0);
        let passed: u64 = server.processes.iter().map(|(pid, now)| now.saturating_sub(before(pid))).sum();
        let grown = |now: i64, before: i64| now.saturating_sub(before).max(0) as u64;
        Ok(Cost {
            seconds,
            cpu_seconds: own as f64 / TICKS_PER_SECOND,
            server_cpu_seconds: passed as f64 / TICKS_PER_SECOND,
            written: written().saturating_sub(self.written) + grown(server.log, self.server.log),
            syncs: grown(server.syncs, self.server.syncs),
            peak_bytes: peak(),
        })
    }
}

/// User and system time of a process; zero if the system does not report it.
fn ticks(process: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is the program's name in brackets and may contain blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum()
}

/// The server may run on another machine; there its process ids would mean other processes here.
fn is_postgres(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("postgres"))
}

fn written() -> u64 {
    field("/proc/self/io", "write_bytes:")
}

fn peak() -> u64 {
    field("/proc/self/status", "VmHWM:") * 1024
}

/// The number after a name; zero if the system does not report it.
fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

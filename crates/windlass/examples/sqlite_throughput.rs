//! How many jobs a second go through a SQLite file: insert, claim, finish with ledger and archive, every step durable.
//!
//! `cargo run --release -p windlass --example sqlite_throughput -- [jobs] [batch] [file]`

use std::error::Error;
use std::sync::Arc;
use windlass::clock::Clock;
use windlass::core::job::Kind;
use windlass::core::policy::Partial;
use windlass::core::{Millis, Outcome, Roll};
use windlass::dice::Dice;
use windlass::job::{LeaseId, NewJob};
use windlass::settle::{Trace, settle};
use windlass::store::sqlite::SqliteStore;
use windlass::store::{Atomicity, Claim, Leases, Options, Store, Turn, WorkerId};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let jobs: usize = args.next().map_or(Ok(200_000), |text| text.parse())?;
    let batch: usize = args.next().map_or(Ok(1000), |text| text.parse())?;
    let path = args.next().unwrap_or_else(|| "throughput.db".into());
    let store = SqliteStore::open(&path, Options::default()).await?;
    let watch = Clock::system();
    let rounds = jobs / batch;
    let rate = |since: Millis| (rounds * batch) as f64 / (watch.monotonic() - since).get().max(1) as f64 * 1000.0;

    let start = watch.monotonic();
    insert(&store, rounds, batch).await?;
    println!("insert           {:>9.0} jobs/s", rate(start));
    let drain_start = watch.monotonic();
    drain(&store, batch).await?;
    println!("claim and finish {:>9.0} jobs/s", rate(drain_start));
    println!(
        "whole cycle      {:>9.0} jobs/s  ({rounds} batches of {batch}, {} commits)",
        rate(start),
        store.commits()
    );
    Ok(())
}

async fn insert(store: &SqliteStore, rounds: usize, batch: usize) -> Result<(), Box<dyn Error>> {
    let policy = Arc::new(Partial::resolve(&[Partial::parse_line("exponential")?], &[])?);
    let payload: Arc<str> = format!(r#"{{"text":"{}"}}"#, "x".repeat(89)).into();
    let job = NewJob::new(Kind::new("bench")?, payload, policy);
    for _ in 0..rounds {
        store.enqueue(vec![job.clone(); batch], Atomicity::Each).await?;
    }
    Ok(())
}

/// As a worker does it: the next batch is claimed while the last one is committed.
async fn drain(store: &SqliteStore, batch: usize) -> Result<(), Box<dyn Error>> {
    let dice = Dice::system();
    let queue = store.queues().await?.first().ok_or("no queue")?.id;
    let slots = u32::try_from(batch)?;
    let claim = || Claim {
        worker: WorkerId::new("bench-1"),
        leases: Leases::Shared(LeaseId::draw(&dice)),
        lease_for: Millis::from_secs(30),
        turns: vec![Turn { queue, slots, ahead: 0 }],
        limit: slots,
        suspects: 1,
    };
    let mut claimed = store.claim(claim()).await?;
    while !claimed.jobs.is_empty() {
        let ended = claimed.jobs.first().and_then(|job| job.lease).into_iter().collect();
        let now = store.clock().now();
        let trace = || Trace { started_at: now, finished_at: now, worker: "bench-1".into(), note: None, result: None };
        let commits = claimed.jobs.iter().map(|job| settle(job, &Outcome::Succeeded, trace(), Roll(0))).collect();
        let (committed, next) = tokio::join!(store.commit(commits, ended), store.claim(claim()));
        committed?;
        claimed = next?;
    }
    Ok(())
}

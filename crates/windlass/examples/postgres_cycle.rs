//! Measures the whole cycle on Postgres (insert, claim, commit with ledger and archive) at a batch size and with some
//! concurrent callers, each on its own queue: `WINDLASS_TEST_POSTGRES=… cargo run --release --features postgres
//! --example postgres_cycle -- [batch] [callers] [jobs]`.

use std::sync::Arc;
use windlass::clock::Clock;
use windlass::core::job::{Kind, QueueName};
use windlass::core::policy::Role;
use windlass::core::{Executor, Millis, Outcome, Policy, Roll, policy::Partial};
use windlass::dice::Dice;
use windlass::job::{Job, LeaseId, NewJob};
use windlass::settle::{Trace, settle};
use windlass::store::postgres::PostgresStore;
use windlass::store::{Atomicity, Claim, Leases, Options, Store, Turn, WorkerId};

#[derive(Default, Clone, Copy)]
struct Spent {
    insert: u64,
    claim: u64,
    commit: u64,
}

#[tokio::main]
async fn main() {
    let number = |n, default| std::env::args().nth(n).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (batch, callers, jobs): (usize, usize, usize) = (number(1, 1000), number(2, 1), number(3, 200_000));
    let url = std::env::var("WINDLASS_TEST_POSTGRES").expect("WINDLASS_TEST_POSTGRES names a database to use");
    let schema = format!("bench_{:016x}", Dice::system().number());
    let options = Options { schema: schema.clone(), ..Options::default() };
    let store = PostgresStore::open(&url, options).await.expect("the store opens");
    let rounds = jobs / batch / callers;
    // Warm up: connections, statements, partitions.
    for caller in 0..callers {
        cycle(store.clone(), caller, batch, 2).await;
    }
    let clock = Clock::system();
    let started = clock.monotonic();
    let tasks = (0..callers).map(|caller| tokio::spawn(cycle(store.clone(), caller, batch, rounds)));
    let mut spent = Spent::default();
    for task in tasks.collect::<Vec<_>>() {
        let one = task.await.expect("no caller panics");
        spent.insert += one.insert;
        spent.claim += one.claim;
        spent.commit += one.commit;
    }
    let took = (clock.monotonic() - started).get().max(1);
    let done = rounds * batch * callers;
    println!(
        "batch {batch}, {callers} callers: {done} jobs in {took} ms = {} jobs/s; per batch: insert {:.2} ms, claim {:.2} ms, commit {:.2} ms",
        done as u64 * 1000 / took,
        spent.insert as f64 / (rounds * callers) as f64,
        spent.claim as f64 / (rounds * callers) as f64,
        spent.commit as f64 / (rounds * callers) as f64,
    );
    drop(store);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it connects");
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.expect("the schema goes");
    drop(client);
    let _ = connection.await;
}

/// Inserts everything first, then drains it: claims look at a full table.
async fn cycle(store: Arc<PostgresStore>, caller: usize, batch: usize, rounds: usize) -> Spent {
    let clock = Clock::system();
    let mut spent = Spent::default();
    let new = new_job(caller);
    let queue = store.register_queue(&new.tenant, &new.queue, Executor::Worker).await.expect("the queue is there");
    let worker = WorkerId::new(&format!("bench-{caller}"));
    let mut lap = clock.monotonic();
    let mut take = |spent: &mut u64| {
        let now = clock.monotonic();
        *spent += (now - lap).get();
        lap = now;
    };
    for _ in 0..rounds {
        store.enqueue(vec![new.clone(); batch], Atomicity::Each).await.expect("jobs are stored");
        take(&mut spent.insert);
    }
    for _ in 0..rounds {
        let lease = LeaseId::draw(&Dice::system());
        let claim = Claim {
            worker: worker.clone(),
            leases: Leases::Shared(lease),
            lease_for: Millis::from_secs(30),
            turns: vec![Turn { queue: queue.id, slots: batch as u32, ahead: 0 }],
            limit: batch as u32,
            suspects: 1,
        };
        let claimed = store.claim(claim).await.expect("jobs are claimed").jobs;
        assert_eq!(claimed.len(), batch, "every batch is full");
        take(&mut spent.claim);
        let commits = claimed.iter().map(|job| succeeded(job, &store)).collect();
        store.commit(commits, vec![lease]).await.expect("jobs are committed");
        take(&mut spent.commit);
    }
    spent
}

fn new_job(caller: usize) -> NewJob {
    let policy: Policy = Partial::resolve(&[Role::Handler.default_policy()], &[]).expect("the default is a policy");
    let payload = format!(r#"{{"text":"{}"}}"#, "x".repeat(89));
    NewJob {
        queue: QueueName::new(&format!("bench{caller}")).expect("a name"),
        ..NewJob::new(Kind::new("bench").expect("a name"), payload, Arc::new(policy))
    }
}

fn succeeded(job: &Job, store: &PostgresStore) -> windlass::store::Commit {
    let now = store.clock().now();
    let trace = Trace { started_at: now, finished_at: now, worker: "bench".into(), note: None, result: None };
    settle(job, &Outcome::Succeeded, trace, Roll(0))
}

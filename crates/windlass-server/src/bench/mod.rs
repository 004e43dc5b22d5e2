//! Benchmarks: what this build does on this machine, next to what the same database does without us. Every figure has
//! the raw ceiling of the same run beside it, because machines differ and are noisy.

mod api;
mod ceiling;
mod ceiling_postgres;
mod ceiling_sqlite;
mod cost;
mod cycle;
mod http;
mod report;
mod target;
mod work;

pub(crate) use report::Report;
pub(crate) use target::Target;

use anyhow::Result;
use report::Figure;
use std::sync::Arc;
use windlass::core::Millis;
use windlass::store::Store;

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) jobs: usize,
    /// Bytes of payload per job.
    pub(crate) payload: usize,
}

impl Load {
    /// A JSON text of about the wanted size.
    pub(crate) fn text(self) -> String {
        format!("{{\"p\":\"{}\"}}", "x".repeat(self.payload.saturating_sub(8)))
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) load: Load,
    /// Handlers at once.
    pub(crate) concurrency: u32,
    pub(crate) scenarios: Vec<Scenario>,
    /// Jobs waiting for tomorrow, or in the backlog, in the scenarios about those.
    pub(crate) deep: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// The store by itself, in batches of 1, 10, 100 and 1000 by 1, 2 and 4 callers.
    Store,
    /// One job per call by 1, 16 and 64 callers, and in bulk.
    Enqueue,
    /// A backlog worked off by no-op handlers.
    Drain,
    /// Producers and workers together.
    Sustained,
    /// How soon a single job on an idle queue starts.
    Pickup,
    /// Every job fails once and is retried at once.
    Storm,
    /// Drain with many jobs waiting for tomorrow.
    Future,
    /// Drain a backlog of `--deep` jobs.
    Backlog,
    /// Jobs that call a URL.
    Http,
    /// The API on loopback: single enqueues, batches, a remote worker.
    Api,
    /// Processor time of a worker on 100 idle queues.
    Idle,
}

/// Batches of the ceiling.
const CEILING_BATCH: usize = 1000;
const IDLE_FOR: Millis = Millis::from_secs(10);

/// Runs the plan, telling `begin` what comes next.
pub(crate) async fn run(target: &Target, plan: &Plan, force: bool, begin: impl Fn(&str)) -> Result<Report> {
    let store = target.open().await?;
    if !force {
        target::refuse_used(&*store).await?;
    }
    begin("raw ceiling of the database");
    let ceiling = ceiling::ceiling(target, plan.load, CEILING_BATCH).await?;
    let mut figures = Vec::new();
    for scenario in &plan.scenarios {
        begin(&format!("{scenario:?}").to_lowercase());
        figures.extend(measure(&store, plan, *scenario).await?);
    }
    let health = store.health().await?;
    let durability = if health.warnings.is_empty() { "fsync on".into() } else { health.warnings.join("; ") };
    drop(store);
    target.clear().await?;
    Ok(Report {
        store: format!("{} on {}", target.name(), health.engine),
        durability,
        payload: plan.load.payload,
        ceiling,
        figures,
    })
}

async fn measure(store: &Arc<dyn Store>, plan: &Plan, scenario: Scenario) -> Result<Vec<Figure>> {
    let (load, concurrency) = (plan.load, plan.concurrency);
    Ok(match scenario {
        Scenario::Store => {
            let mut figures = Vec::new();
            for (batch, callers) in [(1, 1), (1, 4), (10, 1), (100, 1), (1000, 1), (1000, 2), (1000, 4)] {
                // Small batches are all fsync: fewer jobs say as much.
                let jobs = load.jobs.min(batch * 500);
                figures.extend(cycle::cycle(store, Load { jobs, ..load }, batch, callers).await?);
            }
            figures
        }
        Scenario::Enqueue => {
            let mut figures = Vec::new();
            for callers in [1, 16, 64] {
                let jobs = load.jobs.min(callers * 300);
                figures.push(cycle::enqueue_singly(store, Load { jobs, ..load }, callers).await?);
                cycle::empty(store, jobs).await?;
            }
            figures
        }
        Scenario::Drain => work::drain(store, load, concurrency).await?.to_vec(),
        Scenario::Sustained => vec![work::sustained(store, load, concurrency).await?],
        Scenario::Pickup => vec![work::pickup(store, load).await?],
        Scenario::Storm => vec![work::storm(store, load, concurrency).await?],
        Scenario::Future => {
            let deep = Load { jobs: plan.deep, ..load };
            let waiting = cycle::future_load(store, deep).await?;
            let [_, drained] = work::drain(store, load, concurrency).await?;
            let what = format!("drain beside {} jobs for tomorrow", plan.deep);
            vec![waiting, Figure { what, ..drained }]
        }
        Scenario::Backlog => {
            let deep = Load { jobs: plan.deep, ..load };
            let [_, drained] = work::drain(store, deep, concurrency).await?;
            vec![Figure { what: format!("backlog of {} jobs", plan.deep), ..drained }]
        }
        Scenario::Http => vec![http::calls(store, Load { jobs: load.jobs.min(20_000), ..load }).await?],
        Scenario::Api => api::api(store, load).await?,
        Scenario::Idle => vec![work::idle(store, IDLE_FOR).await?],
    })
}

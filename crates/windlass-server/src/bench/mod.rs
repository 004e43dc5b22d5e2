//! Benchmarks: this build on this machine, next to the same database without Windlass. Every figure is shown with
//! the raw ceiling of the same run, because machines differ and are noisy.

mod api;
mod ceiling;
mod cost;
mod cycle;
mod horizon;
mod http;
mod pace;
mod plot;
mod report;
mod target;
mod work;

pub(crate) use pace::Pace;
pub(crate) use report::Report;
pub(crate) use target::Target;

use anyhow::{Result, bail};
use ceiling::Ceiling;
use cost::Gauge;
use report::Figure;
use std::sync::Arc;
use windlass::core::Millis;
use windlass::low_level::stores::Store;

/// How many jobs, and how large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) jobs: usize,
    /// Bytes of payload per job.
    pub(crate) payload: usize,
}

impl Load {
    /// A JSON text of about the requested size.
    pub(crate) fn text(self) -> String {
        format!("{{\"p\":\"{}\"}}", "x".repeat(self.payload.saturating_sub(8)))
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) load: Load,
    /// How many handlers run at once.
    pub(crate) concurrency: u32,
    pub(crate) scenarios: Vec<Scenario>,
    /// Jobs waiting for tomorrow, archived, or in the backlog, in the scenarios about those.
    pub(crate) deep: usize,
    /// How long the scenario `horizon` lasts.
    pub(crate) horizon_for: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// The store by itself, in batches of 1, 10, 100 and 1000 by 1, 2 and 4 callers.
    Store,
    /// One job per call by 1, 16 and 64 callers, and in bulk.
    Enqueue,
    /// No-op handlers drain a backlog.
    Drain,
    /// Producers and workers at the same time.
    Sustained,
    /// How soon a single job on an idle queue starts.
    Pickup,
    /// Every job fails once and is retried at once.
    Storm,
    /// Drain, then again with `--deep` jobs waiting for tomorrow.
    Future,
    /// Drain, then again with `--deep` jobs in the archive.
    Archived,
    /// Drain a backlog of 10,000 jobs, and one of `--deep`.
    Backlog,
    /// Jobs that call a URL.
    Http,
    /// The API on loopback: single enqueues, batches, a remote worker.
    Api,
    /// Processor time of a worker on 100 idle queues.
    Idle,
    /// Postgres: claims at 2,000 jobs/s while an open transaction keeps the server from cleaning up.
    Horizon,
}

/// Batches of the ceiling.
const CEILING_BATCH: usize = 1000;
const IDLE_FOR: Millis = Millis::from_secs(10);
/// The size of a small backlog.
const SHALLOW: usize = 10_000;
/// Callers, or plain connections, that enqueue one job at a time.
const SINGLE_CALLERS: [usize; 3] = [1, 16, 64];

/// Runs the plan. Calls `begin` with the name of the next scenario, and counts jobs in `pace`. The ceiling is measured
/// before and after, because the speed of a machine may change during the run.
pub(crate) async fn run(target: &Target, plan: &Plan, force: bool, pace: Pace, begin: impl Fn(&str)) -> Result<Report> {
    if plan.scenarios.contains(&Scenario::Horizon) && target.url().is_none() {
        bail!("the scenario `horizon` is about Postgres: give --store postgres://…");
    }
    let store = target.open().await?;
    if !force {
        target::refuse_used(&*store).await?;
    }
    let gauge = match target.url() {
        Some(url) => Gauge::of_server(url, pace).await?,
        None => Gauge::own(pace),
    };
    begin("raw ceiling of the database");
    let before = ceiling::ceiling(target, plan.load, CEILING_BATCH).await?;
    let mut figures = Vec::new();
    for scenario in &plan.scenarios {
        begin(&format!("{scenario:?}").to_lowercase());
        let run = Run { target, store: &store, plan, gauge: &gauge };
        figures.extend(run.measure(*scenario).await?);
    }
    begin("raw ceiling again");
    let after = ceiling::ceiling(target, plan.load, CEILING_BATCH).await?;
    let health = store.health().await?;
    let durability = if health.warnings.is_empty() { "fsync on".into() } else { health.warnings.join("; ") };
    drop(store);
    target.clear().await?;
    Ok(Report {
        store: format!("{} on {}", target.name(), health.engine),
        durability,
        payload: plan.load.payload,
        ceiling: Ceiling::between(before, after),
        figures,
    })
}

/// What a scenario needs.
struct Run<'a> {
    target: &'a Target,
    store: &'a Arc<dyn Store>,
    plan: &'a Plan,
    gauge: &'a Gauge,
}

impl Run<'_> {
    async fn measure(&self, scenario: Scenario) -> Result<Vec<Figure>> {
        let (store, gauge) = (self.store, self.gauge);
        let (load, concurrency) = (self.plan.load, self.plan.concurrency);
        Ok(match scenario {
            Scenario::Store => self.store().await?,
            Scenario::Enqueue => self.enqueue().await?,
            Scenario::Drain => work::drain(store, load, concurrency, gauge).await?.to_vec(),
            Scenario::Sustained => vec![work::sustained(store, load, concurrency, gauge).await?],
            Scenario::Pickup => vec![work::pickup(store, load, gauge).await?],
            Scenario::Storm => vec![work::storm(store, load, concurrency, gauge).await?],
            Scenario::Future => {
                let before = self.drain(load, "drain before the future load").await?;
                let waiting = cycle::future_load(store, self.deep(), gauge).await?;
                let title = format!("drain with {} jobs for tomorrow", self.plan.deep);
                vec![before, waiting, self.drain(load, &title).await?]
            }
            Scenario::Archived => {
                let before = self.drain(load, "drain before the archive is filled").await?;
                let filling = format!("drain of {} jobs that fill the archive", self.plan.deep);
                let filled = self.drain(self.deep(), &filling).await?;
                let title = format!("drain with {} archived jobs", self.plan.deep);
                vec![before, filled, self.drain(load, &title).await?]
            }
            Scenario::Backlog => {
                let mut figures = Vec::new();
                for jobs in [SHALLOW, self.plan.deep] {
                    figures.push(self.drain(Load { jobs, ..load }, &format!("backlog of {jobs} jobs")).await?);
                }
                figures
            }
            Scenario::Http => vec![http::calls(store, Load { jobs: load.jobs.min(20_000), ..load }, gauge).await?],
            Scenario::Api => api::api(store, load, gauge).await?,
            Scenario::Idle => vec![work::idle(store, IDLE_FOR, gauge).await?],
            Scenario::Horizon => {
                let url = self.target.url().unwrap_or_default();
                horizon::claims(store, url, load, self.plan.horizon_for, gauge).await?
            }
        })
    }

    fn deep(&self) -> Load {
        Load { jobs: self.plan.deep, ..self.plan.load }
    }

    async fn drain(&self, load: Load, what: &str) -> Result<Figure> {
        let [_, drained] = work::drain(self.store, load, self.plan.concurrency, self.gauge).await?;
        Ok(Figure { what: what.to_owned(), ..drained })
    }

    async fn store(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for batch in [1, 10, 100, 1000] {
            for callers in [1, 2, 4] {
                // Small batches spend their time in fsync, so fewer jobs are enough.
                let jobs = self.plan.load.jobs.min(batch * 500);
                let load = Load { jobs, ..self.plan.load };
                figures.extend(cycle::cycle(self.store, load, batch, callers, self.gauge).await?);
            }
        }
        Ok(figures)
    }

    async fn enqueue(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for callers in SINGLE_CALLERS {
            let load = Load { jobs: self.plan.load.jobs.min(callers * 300), ..self.plan.load };
            figures.push(cycle::enqueue_singly(self.store, load, callers, self.gauge).await?);
            cycle::empty(self.store, load.jobs, self.gauge).await?;
            if let Some(url) = self.target.url() {
                figures.push(ceiling::postgres::singles(url, load, callers, self.gauge).await?);
            }
        }
        Ok(figures)
    }
}

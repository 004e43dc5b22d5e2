//! Benchmarks: this build on this machine, next to the same database without Windlass. Every figure is shown with
//! the raw ceiling of the same run, because machines differ and are noisy.

mod cost;
mod load;
mod pace;
mod plot;
mod raw;
mod report;
mod scenarios;
mod server;
mod summary;
mod target;

pub(crate) use load::Load;
pub(crate) use pace::Pace;
pub(crate) use raw::statements;
pub(crate) use report::Report;
pub(crate) use summary::summary;
pub(crate) use target::Target;
pub(crate) use windlass::low_level::worker::DEFAULT_CONCURRENCY;

use anyhow::{Result, bail};
use cost::Gauge;
use raw::Raw;
use report::Figure;
use scenarios::work::Bed;
use scenarios::{calls, cycle, enqueue, growth, horizon, http, limits, pages, pickup, queues, work};
use std::sync::Arc;
use windlass::Windlass;
use windlass::core::Millis;
use windlass::low_level::stores::Store;

/// What to measure.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) load: Load,
    /// How many handlers run at once.
    pub(crate) concurrency: u32,
    pub(crate) scenarios: Vec<Scenario>,
    /// Jobs waiting for tomorrow, archived, or in the backlog, in the scenarios about those.
    pub(crate) deep: usize,
    /// The backlog of the scenario `growth`.
    pub(crate) growth: usize,
    /// How long the scenario `horizon` lasts.
    pub(crate) horizon_for: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// Only the bare database: inserts on 1 and 16 connections, bulk insert, claim + delete.
    Raw,
    /// One job per call by 1, 16 and 64 callers.
    Enqueue,
    /// 1000 jobs per call, then no-op handlers drain them.
    Drain,
    /// Every job fails once and is retried at once.
    #[value(alias = "storm")]
    Retries,
    /// How soon a single job on an idle queue starts.
    Pickup,
    /// A drain of 1, 10 and 100 queues.
    Queues,
    /// How evenly 100 queues are served.
    Fairness,
    /// Limits per key next to none: 1000 keys, few and many keys, `--deep` parked jobs, a rate.
    Limits,
    /// Payloads of 4 KB next to those of `--payload`.
    Payload,
    /// Producers and workers at the same time.
    Sustained,
    /// The HTTP API on loopback: single enqueues, batches, remote workers.
    #[value(alias = "api")]
    Http,
    /// Jobs that call a URL.
    Calls,
    /// Processor time of a worker on 100 idle queues.
    Idle,
    /// The first jobs of a backlog of `--growth`.
    Growth,
    /// The store by itself, in batches of 1, 10, 100 and 1000 by 1, 2 and 4 callers.
    Store,
    /// Drain, then again with `--deep` jobs waiting for tomorrow.
    Future,
    /// Drain, then again with `--deep` jobs in the archive.
    Archived,
    /// Drain a backlog of 10,000 jobs, and one of `--deep`.
    Backlog,
    /// The dashboard with `--deep` waiting and as many archived jobs and 10,000 dead letters: first bytes, and the cost
    /// of 200 open pages.
    Pages,
    /// Postgres: claims at 2,000 jobs/s while an open transaction keeps the server from cleaning up.
    Horizon,
}

const IDLE_FOR: Millis = Millis::from_secs(10);
/// The size of a small backlog.
const SHALLOW: usize = 10_000;

/// Runs the plan. Calls `begin` with the name of the next scenario, and counts jobs in `pace`. The ceilings are
/// measured before and after, because the speed of a machine may change during the run.
pub(crate) async fn run(target: &Target, plan: &Plan, force: bool, pace: Pace, begin: impl Fn(&str)) -> Result<Report> {
    if plan.scenarios.contains(&Scenario::Horizon) && target.url().is_none() {
        bail!("the scenario `horizon` is about Postgres: give --store postgres://…");
    }
    let windlass = target.open().await?;
    let store = windlass::low_level::store(&windlass);
    if !force {
        target::refuse_used(&*store).await?;
    }
    let gauge = match target.url() {
        Some(url) => Gauge::of_server(url, pace).await?,
        None => Gauge::own(pace),
    };
    begin("raw ceilings of the database");
    let before = raw::measure(target, plan.load, &gauge).await?;
    let mut figures = Vec::new();
    for scenario in &plan.scenarios {
        begin(&format!("{scenario:?}").to_lowercase());
        let run = Run { target, windlass: &windlass, store: &store, plan, gauge: &gauge };
        figures.extend(run.measure(*scenario).await?);
    }
    begin("raw ceilings again");
    let raw: Raw = before.and(raw::measure(target, plan.load, &gauge).await?);
    let health = store.health().await?;
    let durability = if health.warnings.is_empty() { "fsync on".into() } else { health.warnings.join("; ") };
    drop((windlass, store));
    target.clear().await?;
    let store = format!("{} on {}", target.name(), health.engine);
    Ok(Report { store, durability, payload: plan.load.payload, raw, figures })
}

/// What a scenario needs.
struct Run<'a> {
    target: &'a Target,
    windlass: &'a Windlass,
    store: &'a Arc<dyn Store>,
    plan: &'a Plan,
    gauge: &'a Gauge,
}

impl Run<'_> {
    async fn measure(&self, scenario: Scenario) -> Result<Vec<Figure>> {
        let (store, gauge, load) = (self.store, self.gauge, self.plan.load);
        let bed = self.bed(load);
        Ok(match scenario {
            Scenario::Raw => Vec::new(),
            Scenario::Enqueue => self.enqueue().await?,
            Scenario::Drain => work::drain(bed).await?.to_vec(),
            Scenario::Retries => work::retries(bed).await?,
            Scenario::Pickup => vec![pickup::pickup(bed).await?],
            Scenario::Queues => queues::queues(bed).await?,
            Scenario::Fairness => vec![queues::fairness(bed).await?],
            Scenario::Limits => limits::limits(store, bed, self.plan.deep).await?,
            Scenario::Payload => work::payload(bed).await?,
            Scenario::Sustained => vec![work::sustained(bed).await?],
            Scenario::Http => self.http().await?,
            Scenario::Calls => {
                vec![calls::calls(store, Load { jobs: load.jobs.min(20_000), ..load }, gauge).await?]
            }
            Scenario::Idle => vec![work::idle(bed, IDLE_FOR).await?],
            Scenario::Growth => self.growth().await?,
            Scenario::Store => self.store().await?,
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
            Scenario::Pages => pages::pages(store, self.bed(self.deep())).await?,
            Scenario::Horizon => {
                let url = self.target.url().unwrap_or_default();
                horizon::claims(store, url, load, self.plan.horizon_for, gauge).await?
            }
        })
    }

    fn bed(&self, load: Load) -> Bed<'_> {
        Bed { windlass: self.windlass, load, concurrency: self.plan.concurrency, gauge: self.gauge }
    }

    fn deep(&self) -> Load {
        Load { jobs: self.plan.deep, ..self.plan.load }
    }

    async fn drain(&self, load: Load, what: &str) -> Result<Figure> {
        let [_, drained] = work::drain(self.bed(load)).await?;
        Ok(Figure { what: what.to_owned(), ..drained })
    }

    /// In a store of its own, because most of the backlog is left over.
    async fn growth(&self) -> Result<Vec<Figure>> {
        let target = self.target.another();
        let windlass = target.open().await?;
        let figures = growth::growth(Bed { windlass: &windlass, ..self.bed(self.plan.load) }, self.plan.growth).await;
        drop(windlass);
        target.clear().await?;
        figures
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
        for callers in enqueue::CALLERS {
            figures.push(enqueue::singly(self.windlass, self.plan.load, callers, self.gauge).await?);
        }
        self.empty(figures.iter().map(|figure| figure.jobs).sum()).await?;
        Ok(figures)
    }

    async fn http(&self) -> Result<Vec<Figure>> {
        let figures = http::api(self.windlass, self.plan.load, self.gauge).await?;
        // The library's own enqueues, which the figures are compared to.
        self.empty(enqueue::CALLERS.iter().map(|callers| enqueue::jobs(self.plan.load, *callers)).sum()).await?;
        Ok(figures)
    }

    /// Runs the jobs that a scenario left waiting: the next one must not.
    async fn empty(&self, jobs: usize) -> Result<()> {
        self.bed(self.plan.load).run(String::new(), jobs).await.map(|_| ())
    }
}

//! Limits: what they cost per job, next to the same jobs without any.

use super::growth::SMALL;
use super::work::{Bed, POLICY};
use crate::bench::load::Bench;
use crate::bench::raw::Step;
use crate::bench::report::Figure;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::core::gate::{Hold, HoldOrigin};
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::policy::Partial;
use windlass::core::{Failure, Millis};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{Atomicity, GateName, SettingKey, Store};
use windlass::{Attempt, JobKind};

/// Keys of the first comparison, and of the one between few and many.
const KEYS: usize = 1000;
const FEW: usize = 100;
const MANY: usize = 100_000;
/// Jobs stored per call.
const BATCH: usize = 1000;
const PER_KEY: &str = r#"{"limits":{"perKey":{"concurrency":10}}}"#;
/// The rate that is checked, and for how long.
const RATE: usize = 1000;
const RATE_FOR: Millis = Millis::from_secs(60);

pub(in crate::bench) async fn limits(store: &Arc<dyn Store>, bed: Bed<'_>, parked: usize) -> Result<Vec<Figure>> {
    let jobs = bed.load.jobs;
    let scene = Scene { store, bed };
    scene.fill("unlimited", jobs, KEYS).await?;
    let unlimited = bed.run(format!("drain, {KEYS} keys, no limits"), jobs).await?;
    let mut figures = vec![unlimited];
    for (queue, keys) in [("limited", KEYS), ("few-keys", FEW), ("many-keys", MANY)] {
        scene.set(queue, PER_KEY).await?;
        // Every key is used, unless the load is small.
        let jobs = keys.clamp(jobs, 10 * jobs);
        scene.fill(queue, jobs, keys).await?;
        let figure = bed.run(format!("drain, {keys} keys, 10 of each at once"), jobs).await?;
        figures.push(figure.of(&figures[0]));
    }
    for workers in [2, 4] {
        figures.push(scene.fleet(workers).await?.of(&figures[1]));
    }
    figures.push(scene.beside_parked(parked).await?.of(&figures[1]));
    figures.push(scene.rate().await?);
    Ok(figures)
}

struct Scene<'a> {
    store: &'a Arc<dyn Store>,
    bed: Bed<'a>,
}

impl Scene<'_> {
    async fn set(&self, queue: &str, settings: &str) -> Result<()> {
        let key = SettingKey::Queue { tenant: None, name: queue.into() };
        Ok(self.store.put_setting(&key, Some(settings)).await?)
    }

    /// Stores jobs with each key in rotation.
    async fn fill(&self, queue: &str, jobs: usize, keys: usize) -> Result<()> {
        self.fill_with(queue, jobs, |nth| format!("key-{}", nth % keys)).await
    }

    async fn fill_with(&self, queue: &str, jobs: usize, key: impl Fn(usize) -> String) -> Result<()> {
        let policy = Arc::new(Partial::resolve(&[Partial::parse_line(POLICY)?], &[])?);
        let payload: Arc<str> = self.bed.load.text().into();
        let (queue, kind) = (QueueName::new(queue)?, Kind::new(Bench::KIND)?);
        let job = |nth| NewJob {
            queue: queue.clone(),
            limit_key: Some(key(nth).into()),
            ..NewJob::new(kind.clone(), payload.clone(), policy.clone())
        };
        for first in (0..jobs).step_by(BATCH) {
            let batch = (first..jobs.min(first + BATCH)).map(&job).collect();
            self.store.enqueue(batch, Atomicity::Each).await?;
        }
        Ok(())
    }

    /// Jobs of a held key wait in front of as many others as the load has. They are parked, and the database has
    /// cleaned up, before the others come.
    async fn beside_parked(&self, parked: usize) -> Result<Figure> {
        let (queue, jobs) = ("beside-parked", self.bed.load.jobs);
        self.set(queue, PER_KEY).await?;
        let now = self.bed.windlass.clock().now();
        let until = now + Millis::from_secs(86_400);
        let hold = Hold { since: now, until, origin: HoldOrigin::Operator("bench".into()), reason: String::new() };
        let name =
            GateName { tenant: Some(Tenant::default()), queue: QueueName::new(queue)?, key: Some("held".into()) };
        self.store.put_hold(&name, Some(&hold)).await?;
        self.fill_with(queue, parked, |_| "held".into()).await?;
        // This job is the last in line: when it has run, all jobs before it are parked.
        self.fill(queue, 1, KEYS).await?;
        self.bed.run(String::new(), 1).await?;
        if parked >= SMALL {
            self.bed.gauge.clean_up().await?;
        }
        self.fill(queue, jobs, KEYS).await?;
        self.bed.run(format!("the same beside {parked} jobs of a held key"), jobs).await
    }

    /// Several workers on one queue with limits. On Postgres their claims ask the gates one at a time.
    async fn fleet(&self, workers: usize) -> Result<Figure> {
        let (queue, jobs) = (format!("fleet-{workers}"), self.bed.load.jobs);
        self.set(&queue, PER_KEY).await?;
        self.fill(&queue, jobs, KEYS).await?;
        let left = Arc::new(AtomicUsize::new(jobs));
        let (over, is_over) = tokio::sync::watch::channel(false);
        let over = Arc::new(over);
        let meter = self.bed.gauge.start().await?;
        let run = |number: usize| {
            let (left, over, mut is_over) = (left.clone(), over.clone(), is_over.clone());
            let handler = move |_: Bench, _: Attempt| {
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    over.send_replace(true);
                }
                std::future::ready(Ok::<(), Failure>(()))
            };
            let worker = self.bed.worker().id(format!("bench-{number}")).handle(handler);
            worker.run(async move { drop(is_over.wait_for(|over| *over).await) })
        };
        futures_util::future::try_join_all((0..workers).map(run)).await?;
        let cost = meter.read().await?;
        Ok(Figure::rate(format!("the same by {workers} workers"), jobs, cost).of_step(Step::Drain))
    }

    /// How many jobs start under a rate.
    async fn rate(&self) -> Result<Figure> {
        let queue = "rate";
        self.set(queue, &format!(r#"{{"limits":{{"rate":"{RATE}/1s","burst":{RATE}}}}}"#)).await?;
        let seconds = (RATE_FOR.get() / 1000) as usize;
        self.fill(queue, RATE * (seconds + 2), KEYS).await?;
        let started = Arc::new(AtomicUsize::new(0));
        let count = started.clone();
        let handler = move |_: Bench, _: Attempt| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<(), Failure>(()))
        };
        let meter = self.bed.gauge.start().await?;
        self.bed.worker().handle(handler).run(tokio::time::sleep(RATE_FOR.to_std())).await?;
        let cost = meter.read().await?;
        let started = started.load(Ordering::Relaxed);
        // The burst comes first.
        let per_second = started.saturating_sub(RATE) as f64 / cost.seconds;
        Ok(Figure::rate(format!("a rate of {RATE}/s: {per_second:.0}/s after a burst of {RATE}"), started, cost))
    }
}

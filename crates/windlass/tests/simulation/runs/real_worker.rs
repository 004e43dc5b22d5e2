//! The real worker, upkeep included, under the same watch: killed, drained, cut off and restarted in virtual time. The
//! runtime's own choices cannot be seeded, so a seed does not replay exactly. The promises are the same.

use crate::model::handler::{self, End, Play};
use crate::model::sim::{Sim, Tracing};
use crate::model::swarm::{Spice, Swarm};
use crate::runs::seeds::{number, options};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::Random;
use windlass::core::failure::PANIC;
use windlass::core::{Executor, Failure, Millis, Outcome};
use windlass::low_level::stores::memory::MemoryStore;
use windlass::testing::{FaultPlan, FaultyStore};
use windlass::{Attempt, Execute, Executed, HandlerError, JobKind, Windlass, Worker, WorkerError, cancel, snooze};

/// Seeds of an ordinary run.
const SEEDS: u64 = 40;
/// Yields of the runtime after which everything that can happen now has happened.
const YIELDS: usize = 40;
/// How long everything may take to finish once nothing goes wrong any more.
const CALM_LIMIT: Millis = Millis::from_secs(2 * 3600);

#[derive(serde::Serialize, serde::Deserialize)]
struct Do(serde_json::Value);

impl JobKind for Do {
    const KIND: &'static str = "do";
}

/// What handlers and receivers share.
#[derive(Clone)]
struct Stage {
    store: Arc<crate::watch::store::Watched>,
    swarm: Arc<Swarm>,
    random: Random,
}

impl Stage {
    async fn perform(&self, attempt: &Attempt) -> Outcome {
        {
            let mut record = self.store.record();
            record.started(attempt.job());
            if attempt.job().executor == Executor::Http {
                record.received(attempt.job());
            }
        }
        let mut pick = |n: u64| self.random.number() % n.max(1);
        let Play { takes, end } = handler::play(&self.swarm, attempt.job(), &mut pick);
        let is_deaf = pick(4) == 0;
        tokio::select! {
            () = attempt.sleep(takes) => {}
            () = attempt.cancelled(), if !is_deaf => return handler::stopped(&mut pick),
        }
        match end {
            End::Outcome(outcome) => outcome,
            End::Crash => Outcome::Failed(Failure::new("poison")),
        }
    }
}

impl Execute for Stage {
    fn execute<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Executed> {
        Box::pin(async move { Executed::new(self.perform(attempt).await) })
    }
}

async fn act(_: Do, attempt: Attempt) -> Result<(), HandlerError> {
    match attempt.state::<Stage>().perform(&attempt).await {
        Outcome::Succeeded => Ok(()),
        // A panic without its hook: thousands of backtraces take longer than everything else.
        Outcome::Failed(failure) if failure.class == PANIC => std::panic::resume_unwind(Box::new(failure.message)),
        Outcome::Failed(failure) => Err(failure.into()),
        Outcome::Snoozed(span) => Err(snooze(span)),
        Outcome::Cancelled | Outcome::Released(_) | Outcome::Lost => Err(cancel()),
    }
}

type Task = JoinHandle<Result<(), WorkerError>>;

struct Node {
    name: String,
    plan: Arc<FaultPlan>,
    store: Arc<FaultyStore>,
    running: Option<(oneshot::Sender<()>, Task)>,
    stopping: Option<Task>,
    restart_at: Millis,
}

struct Fleet {
    /// Producers, operators and the record are the step model's.
    sim: Sim,
    stage: Stage,
    nodes: Vec<Node>,
    outage_until: Option<Millis>,
}

impl Fleet {
    fn new(seed: u64) -> Self {
        let swarm = Swarm::new(seed);
        let sim = Sim::new(swarm.clone(), MemoryStore::new(options(seed)), Tracing::Off);
        // A worker that stops while the store is unavailable cannot wait for ever: its leases run out.
        sim.store.record().none_may_be_lost &= !swarm.has(Spice::Drains);
        let stage = Stage { store: sim.store.clone(), swarm: Arc::new(swarm), random: Random::seeded(seed ^ 1) };
        let node = |index: usize| {
            let plan = FaultPlan::new(Random::seeded(seed + index as u64), sim.swarm.rates);
            let store = plan.over(sim.store.clone());
            Node { name: format!("node-{index}"), plan, store, running: None, stopping: None, restart_at: Millis::ZERO }
        };
        let nodes = (0..sim.swarm.nodes).map(node).collect();
        Self { sim, stage, nodes, outage_until: None }
    }

    fn start_nodes(&mut self) {
        let now = self.sim.now();
        for node in &mut self.nodes {
            if node.stopping.as_ref().is_some_and(JoinHandle::is_finished) {
                node.stopping = None;
            }
            // If the store is unavailable at the start, the worker ends and its supervisor tries again.
            if node.running.as_ref().is_some_and(|(_, task)| task.is_finished()) {
                (node.running, node.restart_at) = (None, now + Millis::from_secs(1));
            }
            if node.running.is_none() && node.stopping.is_none() && node.restart_at <= now {
                node.running = Some(launch(&self.stage, node));
            }
        }
    }

    /// Now and then a node dies or stops gracefully, or the store becomes unavailable.
    fn strike(&mut self) {
        let now = self.sim.now();
        for index in 0..self.nodes.len() {
            let pause = now + Millis::new(self.sim.pick(20_000));
            if self.sim.strikes(Spice::Crashes, 150) {
                let node = &mut self.nodes[index];
                for task in node.running.take().map(|(_, task)| task).into_iter().chain(node.stopping.take()) {
                    task.abort();
                    self.sim.crashes += 1;
                }
                self.nodes[index].restart_at = pause;
            }
            if self.sim.strikes(Spice::Drains, 150) && self.nodes[index].stopping.is_none() {
                let node = &mut self.nodes[index];
                node.stopping = node.running.take().map(|(_, task)| task);
                node.restart_at = pause;
            }
        }
        if self.outage_until.is_some_and(|until| until <= now) {
            self.outage_until = None;
            self.nodes.iter().for_each(|node| node.plan.end_outage());
        } else if self.outage_until.is_none() && self.sim.strikes(Spice::Outages, 200) {
            self.outage_until = Some(now + Millis::new(self.sim.pick(4 * self.sim.swarm.lease.get())));
            self.nodes.iter().for_each(|node| node.plan.begin_outage());
        }
    }

    /// Lets everything happen that can happen now, then a little time pass.
    async fn pass(&mut self) {
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        let span = Millis::new(50 + self.sim.pick(500));
        self.sim.ticks.advance(span);
        self.sim.clock.advance(span);
    }

    async fn run(mut self) -> crate::model::sim::Report {
        self.sim.begin().await;
        let every = self.sim.swarm.enqueue_every / 300;
        while self.sim.broken().is_none() && self.sim.now() < self.sim.swarm.storm {
            self.start_nodes();
            self.strike();
            if self.sim.pick(every) == 0 {
                self.sim.produce().await;
            }
            if self.sim.pick(10) == 0 {
                self.sim.operator().await;
            }
            self.pass().await;
        }
        self.sim.calm_down().await;
        for node in &mut self.nodes {
            node.plan.calm();
            node.restart_at = Millis::ZERO;
        }
        let limit = self.sim.now() + CALM_LIMIT;
        while self.sim.broken().is_none() && self.sim.store.record().live() > 0 {
            self.start_nodes();
            self.pass().await;
            if self.sim.now() > limit {
                let live = self.sim.unfinished();
                self.sim.store.record().breaks(format!("not finished after {CALM_LIMIT} of calm: {live}"));
            }
        }
        // All nodes stop before the totals are compared.
        for (_, task) in self.nodes.iter_mut().filter_map(|node| node.running.take()) {
            task.abort();
        }
        self.pass().await;
        self.sim.close().await
    }
}

fn launch(stage: &Stage, node: &Node) -> (oneshot::Sender<()>, Task) {
    let windlass = Windlass::with_random(node.store.clone(), Random::seeded(stage.random.number()));
    let swarm = &stage.swarm;
    let worker = Worker::new(&windlass).handle(act).http(stage.clone()).state(stage.clone()).lease(swarm.lease);
    let worker = worker.grace(Millis::from_secs(3)).all_queues(Executor::Worker, swarm.slots);
    let worker = worker.all_queues(Executor::Http, swarm.slots);
    let worker = if swarm.has(Spice::SameName) { worker.id(node.name.clone()) } else { worker };
    let (stop, stopped) = oneshot::channel::<()>();
    (stop, tokio::spawn(worker.run(async { drop(stopped.await) })))
}

#[test]
fn the_real_worker_keeps_the_promises_too() {
    let seeds = number("WINDLASS_WORKER_SEEDS").unwrap_or(SEEDS);
    let first = number("WINDLASS_SEED").or(number("WINDLASS_FIRST_SEED")).unwrap_or(0);
    let mut starts = 0;
    for seed in first..first + seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let report = runtime.block_on(Fleet::new(seed).run());
        starts += report.counts.starts;
        if let Some(broken) = report.broken {
            panic!("the real worker breaks a promise at seed {seed}: {broken}\n{:#?}", Swarm::new(seed));
        }
    }
    println!("{seeds} seeds of the real worker, {starts} starts");
}

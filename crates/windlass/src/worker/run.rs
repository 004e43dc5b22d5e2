//! A worker's life: starts its tasks, waits for the shutdown, and drains the tasks in reverse order.

use super::commit::{Committer, Writer};
use super::dispatch::{DispatchContext, Group};
use super::fetch::Fetch;
use super::identity::Identity;
use super::renew::Renewer;
use super::subscription::{Queues, Subscription};
use super::{DEFAULT_CONCURRENCY, Upkeep, Worker, WorkerError, panic};
use crate::attempt::Shared;
use crate::client::windlass::Windlass;
use crate::event::Reporter;
use crate::executor::Execute;
use crate::leases::claim::Claimer;
use crate::leases::fair_share::FairShare;
use crate::leases::held_leases::HeldLeases;
use crate::leases::reconnect::until_answered;
use crate::store::Kinds;
use crate::upkeep::Keeper;
use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Millis};

/// How long handlers get to react once they were asked to stop, before they are dropped.
const LAST_CALL: Millis = Millis::from_secs(1);
/// How long a stopping worker waits for an unreachable store.
const LAST_COMMIT: Millis = Millis::from_secs(10);

/// The tasks of a running worker.
struct Running {
    windlass: Windlass,
    grace: Millis,
    held_leases: Arc<HeldLeases>,
    groups: Vec<Arc<Group>>,
    slot_tasks: TaskTracker,
    abort: CancellationToken,
    stop_fetch: CancellationToken,
    stop_others: CancellationToken,
    fetch: JoinSet<()>,
    commit: JoinSet<()>,
    others: JoinSet<()>,
    identity: Identity,
}

pub(super) async fn run(worker: Worker, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
    let mut shutdown = std::pin::pin!(shutdown);
    // Starting may take as long as the store is unreachable. A start that is dropped has claimed nothing yet.
    let running = tokio::select! {
        biased;
        running = start(worker) => running?,
        () = &mut shutdown => return Ok(()),
    };
    // If the caller drops this future, the handlers are dropped too.
    let _abort = running.abort.clone().drop_guard();
    shutdown.await;
    running.drain().await
}

async fn start(mut worker: Worker) -> Result<Running, WorkerError> {
    if let Some(error) = worker.wrong_name.take() {
        return Err(error.into());
    }
    panic::watch();
    if worker.subscriptions.is_empty() {
        worker.subscription(Queues::Named(QueueName::default()), Executor::Worker, DEFAULT_CONCURRENCY);
    }
    let windlass = worker.windlass.clone();
    let identity = Identity::take(&windlass, worker.id.as_deref()).await?;
    for subscription in &worker.subscriptions {
        // Registers the queues, so that the first job of a queue wakes a worker that knows it.
        if let Queues::Named(name) = &subscription.queues {
            let (store, tenant) = (windlass.store(), Tenant::default());
            let register = || store.register_queue(&tenant, name, subscription.executor);
            until_answered(&windlass, register).await?;
        }
    }
    let reporter = Reporter { attempts: worker.attempt_log, ..windlass.inner().reporter(identity.id.0.clone()) };
    let held_leases = Arc::new(HeldLeases::default());
    windlass.inner().register_held_leases(&held_leases);
    let (abort, slot_tasks) = (CancellationToken::new(), TaskTracker::new());
    let context = DispatchContext {
        reporter: reporter.clone(),
        held_leases: held_leases.clone(),
        abort: abort.clone(),
        tracker: slot_tasks.clone(),
        clock: windlass.clock().clone(),
    };
    let kinds = worker.handlers.kinds();
    let groups =
        groups(&worker.subscriptions, std::mem::take(&mut worker.handlers), worker.http.as_ref(), &Arc::new(context))?;
    let mut running = Running {
        grace: worker.grace,
        held_leases,
        groups,
        slot_tasks,
        abort,
        stop_fetch: CancellationToken::new(),
        stop_others: CancellationToken::new(),
        fetch: JoinSet::new(),
        commit: JoinSet::new(),
        others: JoinSet::new(),
        identity,
        windlass,
    };
    running.spawn(worker, kinds, &reporter);
    Ok(running)
}

fn groups(
    subscriptions: &[Subscription],
    handlers: super::Handlers,
    http: Option<&Arc<dyn Execute>>,
    context: &Arc<DispatchContext>,
) -> Result<Vec<Arc<Group>>, WorkerError> {
    let handlers: Arc<dyn Execute> = Arc::new(handlers);
    let group = |subscription: &Subscription| {
        let run = match subscription.executor {
            Executor::Worker => handlers.clone(),
            Executor::Http => http.cloned().ok_or(WorkerError::NoHttp)?,
        };
        Ok(Group::new(run, subscription.concurrency, context.clone()))
    };
    subscriptions.iter().map(group).collect()
}

impl Running {
    fn spawn(&mut self, worker: Worker, kinds: Kinds, reporter: &Reporter) {
        let (windlass, id) = (self.windlass.clone(), self.identity.id.clone());
        let (done, outcomes) = mpsc::unbounded_channel();
        let shared = Shared {
            windlass: windlass.clone(),
            worker: id.0.clone(),
            installation: self.identity.installation.clone(),
            state: worker.state,
        };
        let known = kinds.clone();
        let fetch = Fetch {
            claimer: Claimer { windlass: windlass.clone(), worker: id.clone(), lease_for: worker.lease, kinds: None },
            poll: worker.poll,
            subscriptions: worker.subscriptions.clone(),
            groups: self.groups.clone(),
            held_leases: self.held_leases.clone(),
            shared: Arc::new(shared),
            done,
            fair_share: FairShare::default(),
            waker: windlass.store().wake().subscribe(),
            claim_took: Millis::ZERO,
            doubts: Vec::new(),
            kinds,
            unknown: HashSet::new(),
            stop: self.stop_fetch.clone(),
        };
        let (held_leases, reporter) = (self.held_leases.clone(), reporter.clone());
        let writer = Writer { windlass: windlass.clone(), held_leases, reporter: reporter.clone() };
        let committer = Committer { writer, done: outcomes };
        let renewer = Renewer {
            windlass: windlass.clone(),
            held_leases: self.held_leases.clone(),
            worker: id,
            lease_for: worker.lease,
            queues: worker
                .subscriptions
                .iter()
                .map(|subscription| (subscription.name(), subscription.concurrency))
                .collect(),
            kinds: known,
            groups: self.groups.clone(),
            host: self.identity.host.clone(),
            started_at: windlass.clock().now(),
        };
        self.fetch.spawn(fetch.run());
        self.commit.spawn(committer.run());
        self.others.spawn(renewer.run(self.stop_others.clone()));
        if worker.upkeep == Upkeep::Here {
            self.others.spawn(Keeper::new(windlass, reporter).alerts(worker.alerts).run(self.stop_others.clone()));
        }
    }

    /// Stops claiming, lets attempts finish within the grace time, drops the rest, commits everything.
    async fn drain(mut self) -> Result<(), WorkerError> {
        let clock = self.windlass.clock().clone();
        self.stop_fetch.cancel();
        self.slot_tasks.close();
        for group in &self.groups {
            group.release_waiting();
        }
        let finish = async {
            // Waits for a claim that is under way, because its jobs must be released.
            while self.fetch.join_next().await.is_some() {}
            self.slot_tasks.wait().await;
        };
        let late = tokio::select! { () = finish => false, () = clock.sleep(self.grace) => true };
        if late {
            self.held_leases.stop_all();
            tokio::select! { () = self.slot_tasks.wait() => {}, () = clock.sleep(LAST_CALL) => {} }
            self.abort.cancel();
            self.fetch.abort_all();
            while self.fetch.join_next().await.is_some() {}
            self.slot_tasks.wait().await;
        }
        // All guards are gone, so the committer ends when the last outcome is stored.
        let commit = async { while self.commit.join_next().await.is_some() {} };
        tokio::select! { () = commit => {}, () = clock.sleep(LAST_COMMIT) => {} }
        self.stop_others.cancel();
        while self.others.join_next().await.is_some() {}
        match self.held_leases.open() {
            0 => Ok(()),
            left => Err(WorkerError::Uncommitted(left)),
        }
    }
}

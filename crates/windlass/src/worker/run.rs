//! A worker's life: start its tasks, wait for the shutdown, drain in reverse.

use super::book::Book;
use super::commit::{Committer, Writer};
use super::fetch::Fetch;
use super::identity::Identity;
use super::lanes::{Group, LaneContext};
use super::patience::until_answered;
use super::renew::Renewer;
use super::turns::Turns;
use super::wish::{Queues, Wish};
use super::{DEFAULT_CONCURRENCY, Upkeep, Worker, WorkerError, panic};
use crate::attempt::Shared;
use crate::event::Reporter;
use crate::executor::Run;
use crate::upkeep::Keeper;
use crate::windlass::Windlass;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Millis};

/// How long handlers get to react once they were told to stop, before they are dropped.
const LAST_CALL: Millis = Millis::from_secs(1);
/// How long a stopping worker waits for a store that is away.
const LAST_COMMIT: Millis = Millis::from_secs(10);

/// The tasks of a running worker.
struct Running {
    windlass: Windlass,
    grace: Millis,
    book: Arc<Book>,
    groups: Vec<Arc<Group>>,
    lanes: TaskTracker,
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
    // A start may take as long as the store is away; what is dropped then has claimed nothing yet.
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
    if worker.wishes.is_empty() {
        worker.wish(Queues::Named(QueueName::default()), Executor::Worker, DEFAULT_CONCURRENCY);
    }
    let windlass = worker.windlass.clone();
    let identity = Identity::take(&windlass, worker.id.as_deref()).await?;
    for wish in &worker.wishes {
        // So that the first job of a queue wakes a worker that knows it.
        if let Queues::Named(name) = &wish.queues {
            let (store, tenant) = (windlass.store(), Tenant::default());
            let register = || store.register_queue(&tenant, name, wish.executor);
            until_answered(&windlass, register).await?;
        }
    }
    let reporter = Reporter { attempts: worker.attempt_log, ..windlass.reporter(identity.id.0.clone()) };
    let book = Arc::new(Book::default());
    windlass.know_book(&book);
    let (abort, lanes) = (CancellationToken::new(), TaskTracker::new());
    let context =
        LaneContext { reporter: reporter.clone(), book: book.clone(), abort: abort.clone(), tracker: lanes.clone() };
    let groups =
        groups(&worker.wishes, std::mem::take(&mut worker.handlers), worker.http.as_ref(), &Arc::new(context))?;
    let mut running = Running {
        grace: worker.grace,
        book,
        groups,
        lanes,
        abort,
        stop_fetch: CancellationToken::new(),
        stop_others: CancellationToken::new(),
        fetch: JoinSet::new(),
        commit: JoinSet::new(),
        others: JoinSet::new(),
        identity,
        windlass,
    };
    running.spawn(worker, &reporter);
    Ok(running)
}

fn groups(
    wishes: &[Wish],
    handlers: super::Handlers,
    http: Option<&Arc<dyn Run>>,
    context: &Arc<LaneContext>,
) -> Result<Vec<Arc<Group>>, WorkerError> {
    let handlers: Arc<dyn Run> = Arc::new(handlers);
    let group = |wish: &Wish| {
        let run = match wish.executor {
            Executor::Worker => handlers.clone(),
            Executor::Http => http.cloned().ok_or(WorkerError::NoHttp)?,
        };
        Ok(Group::new(run, wish.concurrency, context.clone()))
    };
    wishes.iter().map(group).collect()
}

impl Running {
    fn spawn(&mut self, worker: Worker, reporter: &Reporter) {
        let (windlass, id) = (self.windlass.clone(), self.identity.id.clone());
        let (done, outcomes) = mpsc::unbounded_channel();
        let shared = Shared { windlass: windlass.clone(), worker: id.0.clone(), state: worker.state };
        let fetch = Fetch {
            windlass: windlass.clone(),
            worker: id.clone(),
            lease_for: worker.lease,
            poll: worker.poll,
            wishes: worker.wishes.clone(),
            groups: self.groups.clone(),
            book: self.book.clone(),
            shared: Arc::new(shared),
            done,
            turns: Turns::default(),
            waker: windlass.store().wake().subscribe(),
            doubts: Vec::new(),
            stop: self.stop_fetch.clone(),
        };
        let (book, reporter) = (self.book.clone(), reporter.clone());
        let writer = Writer { windlass: windlass.clone(), book, reporter: reporter.clone() };
        let committer = Committer { writer, done: outcomes };
        let renewer = Renewer {
            windlass: windlass.clone(),
            book: self.book.clone(),
            worker: id,
            lease_for: worker.lease,
            queues: worker.wishes.iter().map(|wish| (wish.name(), wish.concurrency)).collect(),
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
        self.lanes.close();
        for group in &self.groups {
            group.release_waiting();
        }
        let finish = async {
            // A claim under way is awaited: what it brings is ours to give back.
            while self.fetch.join_next().await.is_some() {}
            self.lanes.wait().await;
        };
        let late = tokio::select! { () = finish => false, () = clock.sleep(self.grace) => true };
        if late {
            self.book.stop_all();
            tokio::select! { () = self.lanes.wait() => {}, () = clock.sleep(LAST_CALL) => {} }
            self.abort.cancel();
            self.fetch.abort_all();
            while self.fetch.join_next().await.is_some() {}
            self.lanes.wait().await;
        }
        // All guards are gone, so the committer ends when the last outcome is stored.
        let commit = async { while self.commit.join_next().await.is_some() {} };
        tokio::select! { () = commit => {}, () = clock.sleep(LAST_COMMIT) => {} }
        self.stop_others.cancel();
        while self.others.join_next().await.is_some() {}
        match self.book.open() {
            0 => Ok(()),
            left => Err(WorkerError::Uncommitted(left)),
        }
    }
}

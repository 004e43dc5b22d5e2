//! Claims for remote workers: never lost between the store and a client that hung up.

use super::read::Wish;
use crate::http::app::App;
use crate::http::problem::Problem;
use tokio::sync::oneshot;
use windlass::job::{Job, LeaseId};
use windlass::settle::{Trace, settle};
use windlass::store::{Claim, Claimed, Commit, Leases, Queue, StoreError, Turn, WorkerId};
use windlass_core::{Executor, Millis, Outcome, Progress};

/// At most this many jobs of one claim have lost a worker before.
const SUSPECTS: u32 = 1;
/// How soon a store that is away is asked again.
const AGAIN: Millis = Millis::new(200);

/// The queues a worker asked for, in turn.
pub(super) fn queues_of(wish: &Wish, all: Vec<Queue>, app: &App) -> Vec<Queue> {
    let is_wished = |queue: &Queue| {
        queue.executor == Executor::Worker && (wish.queues.is_empty() || wish.queues.contains(&queue.name))
    };
    let mut queues: Vec<Queue> = all.into_iter().filter(is_wished).collect();
    if !queues.is_empty() {
        let turn = app.leased().next_turn(queues.len());
        queues.rotate_left(turn);
    }
    queues
}

/// Takes up to `max` jobs: an equal share from each queue first, then what is left from any.
pub(super) async fn claim(app: &App, wish: &Wish, queues: &[Queue]) -> Result<Claimed, Problem> {
    let share = wish.max.div_ceil(queues.len().max(1) as u32);
    let mut claimed = claim_once(app, wish, queues, share, wish.max).await?;
    let left = wish.max - claimed.jobs.len() as u32;
    if left > 0 && share < wish.max && !claimed.jobs.is_empty() {
        let more = claim_once(app, wish, queues, left, left).await?;
        claimed.jobs.extend(more.jobs);
    }
    app.leased().keep(&claimed.jobs);
    app.windlass().remote_started(&wish.worker.0, &claimed.jobs);
    Ok(claimed)
}

async fn claim_once(app: &App, wish: &Wish, queues: &[Queue], slots: u32, limit: u32) -> Result<Claimed, Problem> {
    let leases: Vec<LeaseId> = (0..limit).map(|_| LeaseId::draw(app.dice())).collect();
    let turns = queues.iter().map(|queue| Turn { queue: queue.id, slots, ahead: 0 }).collect();
    let (worker, lease_for) = (wish.worker.clone(), wish.lease_for);
    let claim = Claim {
        worker: worker.clone(),
        leases: Leases::Each(leases.clone()),
        lease_for,
        turns,
        limit,
        suspects: SUSPECTS,
    };
    let finder = Finder { app: app.clone(), worker, lease_for, leases };
    let (told, heard) = oneshot::channel();
    // The request may be dropped at any moment, its client gone; the claim must not be dropped with it, or its jobs would
    // wait for their leases to run out.
    app.tasks().spawn(async move {
        let claimed = finder.app.store().claim(claim).await;
        finder.app.windlass().heard(&claimed);
        let is_unknown = matches!(claimed, Err(StoreError::Unknown(_)));
        match told.send(claimed) {
            Err(Ok(unheard)) => finder.give_back(unheard.jobs).await,
            // The client was told that nobody knows, and takes nothing for its own.
            Ok(()) | Err(Err(_)) if is_unknown => finder.find_and_give_back().await,
            Ok(()) | Err(Err(_)) => {}
        }
    });
    match heard.await {
        Ok(claimed) => Ok(claimed?),
        Err(_) => Err(StoreError::unavailable("the server is stopping").into()),
    }
}

/// Finds what a claim brought that nobody will run, and gives it back, however long the store is away: an outage must cost no job
/// an attempt.
struct Finder {
    app: App,
    worker: WorkerId,
    lease_for: Millis,
    leases: Vec<LeaseId>,
}

impl Finder {
    /// A database may finish a claim after its connection was lost, and after it was asked: whoever finds nothing asks again for
    /// the length of the lease.
    async fn find_and_give_back(&self) {
        let mut until = None;
        while let Some(jobs) = self.until_answered(|| self.find()).await {
            let now = self.app.now();
            if !jobs.is_empty() || now >= *until.get_or_insert(now + self.lease_for) {
                return self.give_back(jobs).await;
            }
            if self.app.draining().is_cancelled() {
                return;
            }
            self.pause().await;
        }
    }

    /// The jobs under the claim's leases. Renewing tells which of them there are, and keeps others from reaping them meanwhile.
    async fn find(&self) -> Result<Vec<Job>, StoreError> {
        let store = self.app.store();
        let renewed = store.renew(&self.worker, self.leases.clone(), self.lease_for).await?;
        let mut jobs = Vec::new();
        for lease in self.leases.iter().filter(|lease| !renewed.lost.contains(lease)) {
            jobs.extend(store.held(*lease).await?);
        }
        Ok(jobs)
    }

    /// Gives jobs back that nobody will run.
    async fn give_back(&self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let (store, now) = (self.app.store(), self.app.now());
        let released = |job: &Job| {
            let started_at = job.claimed_at.unwrap_or(now);
            let trace = Trace { started_at, finished_at: now, worker: "windlass".into(), ..Trace::default() };
            settle(job, &Outcome::Released(Progress::NotStarted), trace, self.app.dice().roll())
        };
        let leases: Vec<LeaseId> = jobs.iter().filter_map(|job| job.lease).collect();
        let commits: Vec<Commit> = jobs.iter().map(released).collect();
        self.until_answered(|| store.commit(commits.clone(), leases.clone())).await;
    }

    /// Asks until the store answers. Nothing if it never will, or the server stops: then leases run out.
    async fn until_answered<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        loop {
            let answer = ask().await;
            self.app.windlass().heard(&answer);
            let error = match answer {
                Ok(answer) => return Some(answer),
                Err(error) => error,
            };
            tracing::warn!(%error, worker = %self.worker, "jobs that nobody took cannot be given back yet");
            let is_passing = matches!(error, StoreError::Unavailable(_) | StoreError::Unknown(_));
            if !is_passing || self.app.draining().is_cancelled() {
                return None;
            }
            self.pause().await;
        }
    }

    /// Waits a little, or until the server stops.
    async fn pause(&self) {
        tokio::select! {
            () = self.app.store().clock().sleep(AGAIN) => {}
            () = self.app.draining().cancelled() => {}
        }
    }
}

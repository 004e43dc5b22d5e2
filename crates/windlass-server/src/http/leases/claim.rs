//! Claims for remote workers: never lost between the store and a client that hung up.

use super::read::Subscription;
use crate::http::app::App;
use crate::http::output::problem::Problem;
use tokio::sync::oneshot;
use windlass::job::{ClaimedJob, LeaseId, QueueId};
use windlass::leases::transition::{Trace, commit_of};
use windlass::store::{Claim, Claimed, Commit, Leases, Queue, Share, StoreError, WorkerId};
use windlass_core::{Executor, Millis, Outcome, Progress};

/// At most this many jobs of one claim have lost a worker before.
const SUSPECTS: u32 = 1;
/// How soon a store that is away is asked again.
const AGAIN: Millis = Millis::new(200);

/// The queues a worker asked for, in turn.
pub(super) fn queues_of(subscription: &Subscription, all: Vec<Queue>, app: &App) -> Vec<Queue> {
    let is_subscribed = |queue: &Queue| {
        queue.executor == Executor::Worker
            && (subscription.queues.is_empty() || subscription.queues.contains(&queue.name))
    };
    let mut queues: Vec<Queue> = all.into_iter().filter(is_subscribed).collect();
    if !queues.is_empty() {
        let share = app.leased().next_offset(queues.len());
        queues.rotate_left(share);
    }
    queues
}

/// Takes up to `max` jobs for a worker.
pub(super) async fn claim(app: &App, subscription: &Subscription, queues: &[Queue]) -> Result<Claimed, Problem> {
    let taker = Taker { app: app.clone(), worker: subscription.worker.clone(), lease_for: subscription.lease_for };
    let (max, queues) = (subscription.max, queues.iter().map(|queue| queue.id).collect::<Vec<_>>());
    let (reported, record_contact) = oneshot::channel();
    // The request may be dropped at any moment, its client gone; what it took must not be dropped with it, or those jobs would
    // wait for their leases to run out.
    app.tasks().spawn(async move {
        let claimed = taker.take(&queues, max).await;
        if let Err(Ok(undelivered)) = reported.send(claimed) {
            taker.give_back(undelivered.jobs).await;
        }
    });
    let Ok(claimed) = record_contact.await else {
        return Err(StoreError::unavailable("the server is stopping").into());
    };
    let claimed = claimed?;
    app.leased().keep(&claimed.jobs);
    app.windlass().remote_started(&subscription.worker.0, &claimed.jobs);
    Ok(claimed)
}

/// Takes jobs, and gives back those that nobody will run, however long the store is away: an outage must cost no job an attempt.
#[derive(Clone)]
struct Taker {
    app: App,
    worker: WorkerId,
    lease_for: Millis,
}

impl Taker {
    /// An equal share from each queue first, then what is left from any.
    async fn take(&self, queues: &[QueueId], max: u32) -> Result<Claimed, StoreError> {
        let share = max.div_ceil(queues.len().max(1) as u32);
        let mut claimed = self.take_once(queues, share, max).await?;
        let left = max - claimed.jobs.len() as u32;
        if left > 0 && share < max && !claimed.jobs.is_empty() {
            match self.take_once(queues, left, left).await {
                Ok(more) => claimed.jobs.extend(more.jobs),
                // The worker gets what is in hand: nobody else would know of it.
                Err(error) => tracing::warn!(%error, worker = %self.worker, "no more jobs could be taken"),
            }
        }
        Ok(claimed)
    }

    async fn take_once(&self, queues: &[QueueId], slots: u32, limit: u32) -> Result<Claimed, StoreError> {
        let leases: Vec<LeaseId> = (0..limit).map(|_| LeaseId::draw(self.app.random())).collect();
        let claim = Claim {
            worker: self.worker.clone(),
            leases: Leases::Each(leases.clone()),
            lease_for: self.lease_for,
            shares: queues.iter().map(|queue| Share { queue: *queue, slots, ahead: 0 }).collect(),
            limit,
            suspects: SUSPECTS,
        };
        let claimed = self.app.store().claim(claim).await;
        self.app.windlass().record_contact(&claimed);
        if matches!(claimed, Err(StoreError::Unknown(_))) {
            // The worker hears that nobody knows, and takes nothing for its own.
            let finder = self.clone();
            self.app.tasks().spawn(async move { finder.find_and_give_back(leases).await });
        }
        claimed
    }

    /// A database may finish a claim after its connection was lost, and after it was asked: whoever finds nothing asks again for
    /// the length of the lease.
    async fn find_and_give_back(&self, leases: Vec<LeaseId>) {
        let mut until = None;
        while let Some(jobs) = self.until_answered(|| self.find(&leases)).await {
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

    /// The jobs under these leases. Renewing keeps others from reaping them meanwhile.
    async fn find(&self, leases: &[LeaseId]) -> Result<Vec<ClaimedJob>, StoreError> {
        let store = self.app.store();
        store.renew(&self.worker, leases.to_vec(), self.lease_for).await?;
        store.held(leases.to_vec()).await
    }

    /// Gives jobs back that nobody will run.
    async fn give_back(&self, jobs: Vec<ClaimedJob>) {
        if jobs.is_empty() {
            return;
        }
        let (store, now) = (self.app.store(), self.app.now());
        let released = |job: &ClaimedJob| {
            let started_at = job.claimed_at.unwrap_or(now);
            let trace = Trace { started_at, finished_at: now, worker: "windlass".into(), ..Trace::default() };
            commit_of(job, &Outcome::Released(Progress::NotStarted), trace, self.app.random().roll())
        };
        let leases: Vec<LeaseId> = jobs.iter().map(|job| job.lease).collect();
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
            self.app.windlass().record_contact(&answer);
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

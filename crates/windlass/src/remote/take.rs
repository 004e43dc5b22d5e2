//! Take: claims jobs for a remote worker, and waits if there are none.

use super::scope::RemoteWorker;
use super::undelivered::Undelivered;
use super::{MAX_ITEMS, MAX_LEASE, MAX_WAIT, MIN_LEASE, Remote};
use crate::job::{ClaimedJob, LeaseId, QueueId};
use crate::leases::claim::{ClaimFailure, Claimer};
use crate::leases::fair_share::FairShare;
use crate::leases::limits::MAX_SUSPECTS;
use crate::leases::outage::store_failed;
use crate::store::{Claimed, Leases, Queue, Share, StoreError, WorkerReport};
use crate::worker::DEFAULT_POLL;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use windlass_core::job::{Kind, QueueName};
use windlass_core::{Executor, Millis};

/// A remote worker's request for jobs.
#[derive(Debug, Clone)]
pub struct TakeRequest {
    /// Who takes them.
    pub worker: RemoteWorker,
    /// The queues to take from; all within the worker's scope if empty.
    pub queues: Vec<QueueName>,
    /// The kinds to take; all if absent. Jobs of other kinds stay as they are, for workers that know them.
    pub kinds: Option<Vec<Kind>>,
    /// At most this many jobs, and [`MAX_ITEMS`].
    pub max: u32,
    /// How long to wait for the first job; [`MAX_WAIT`] at most.
    pub wait: Millis,
    /// How long the leases last unless they are extended: [`MIN_LEASE`] to [`MAX_LEASE`].
    pub lease_for: Millis,
}

impl TakeRequest {
    fn bounded(mut self) -> Self {
        self.max = self.max.clamp(1, MAX_ITEMS as u32);
        self.wait = self.wait.min(MAX_WAIT);
        self.lease_for = self.lease_for.max(MIN_LEASE).min(MAX_LEASE);
        self
    }

    fn covers(&self, queue: &Queue) -> bool {
        let is_asked = self.queues.is_empty() || self.queues.contains(&queue.name);
        queue.executor == Executor::Worker && is_asked && self.worker.scope.covers_queue(queue)
    }
}

impl Remote {
    /// Takes due jobs, each under its own lease. Waits for the first as long as the request says. Returns none when the
    /// time is up or this process stops. Jobs that were claimed for a caller who is gone are given back.
    ///
    /// # Errors
    /// The store cannot be used. After [`StoreError::Unknown`] the caller holds nothing, and claimed jobs are given
    /// back.
    pub async fn take(&self, request: TakeRequest) -> Result<Vec<ClaimedJob>, StoreError> {
        let request = request.bounded();
        let (windlass, stopping) = (&self.0.windlass, self.0.background.stopping());
        let deadline = windlass.clock().monotonic() + request.wait;
        // Reported before the wait, because a worker that waits for work is alive.
        self.report(&request).await?;
        let mut waker = windlass.store().wake().subscribe();
        loop {
            if stopping.is_cancelled() {
                return Ok(Vec::new());
            }
            let claimed = self.claim(&request).await?;
            if !claimed.jobs.is_empty() {
                return Ok(claimed.jobs);
            }
            let left = deadline - windlass.clock().monotonic();
            if left.is_zero() {
                return Ok(Vec::new());
            }
            // A wake-up may get lost, so the store is polled at least this often.
            let due = windlass.clock().due(claimed.next_due);
            // All of them only mean that it is time to look again.
            tokio::select! {
                () = waker.rung() => {}
                () = due => {}
                () = windlass.clock().sleep(DEFAULT_POLL.min(left)) => {}
                () = stopping.cancelled() => {}
            }
        }
    }

    /// Claims once. The caller may be dropped at any moment because its client is gone. Claimed jobs must not be
    /// dropped with it, or they would wait for their leases to run out.
    async fn claim(&self, request: &TakeRequest) -> Result<Claimed, StoreError> {
        let windlass = &self.0.windlass;
        let queues = windlass.store().queues().await?;
        let queues: Vec<QueueId> = queues.iter().filter(|queue| request.covers(queue)).map(|queue| queue.id).collect();
        if queues.is_empty() {
            return Ok(Claimed::default());
        }
        let first = self.0.next_queue.fetch_add(1, Ordering::Relaxed);
        let shares = FairShare::starting_at(first, queues.into_iter());
        let claimer = Claimer {
            windlass: windlass.clone(),
            worker: request.worker.id(),
            lease_for: request.lease_for,
            kinds: request.kinds.as_ref().map(|kinds| kinds.iter().cloned().collect()),
        };
        let (remote, max) = (self.clone(), request.max);
        let (sender, receiver) = oneshot::channel();
        self.0.background.spawn(async move {
            let claimed = remote.claim_shares(&claimer, shares, max).await;
            // If the receiver is gone, now or later, the jobs are dropped and so given back.
            drop(sender.send(claimed.map(|claimed| Undelivered::new(claimed, &remote))));
        })?;
        let claimed = receiver.await.unwrap_or_else(|_| Err(StoreError::unavailable("the claim was abandoned")))?;
        let claimed = claimed.open();
        self.0.handed_out.keep(&claimed.jobs);
        let reporter = windlass.inner().reporter(request.worker.id().0);
        let now = windlass.clock().now();
        claimed.jobs.iter().for_each(|job| reporter.started(job, now));
        Ok(claimed)
    }

    /// Takes an equal share from each queue first, then the rest from the queues that have more.
    async fn claim_shares(&self, claimer: &Claimer, mut shares: FairShare, max: u32) -> Result<Claimed, StoreError> {
        let plan = shares.plan_within(max);
        let mut claimed = self.claim_plan(claimer, plan.clone(), max).await?;
        shares.learn(&plan, max, &claimed);
        let left = max - claimed.jobs.len() as u32;
        let plan = shares.plan_within(left);
        if left > 0 && !claimed.jobs.is_empty() && !plan.is_empty() {
            match self.claim_plan(claimer, plan, left).await {
                Ok(more) => {
                    claimed.jobs.extend(more.jobs);
                    claimed.parked.extend(more.parked);
                }
                // The worker gets the jobs claimed so far. Otherwise nobody would hold them.
                Err(error) => store_failed!(error, worker = %claimer.worker, "no more jobs could be taken"),
            }
        }
        Ok(claimed)
    }

    async fn claim_plan(&self, claimer: &Claimer, plan: Vec<Share>, limit: u32) -> Result<Claimed, StoreError> {
        let leases = (0..limit).map(|_| LeaseId::draw(self.0.windlass.random())).collect();
        match claimer.claim(Leases::Each(leases), plan, limit, MAX_SUSPECTS).await {
            Ok(claimed) => Ok(claimed),
            Err(ClaimFailure::Refused(error)) => Err(error),
            Err(ClaimFailure::Unknown(doubt, error)) => {
                // The worker learns that the outcome is unknown, and holds nothing.
                self.0.background.resolve(self.0.windlass.clone(), doubt);
                Err(error)
            }
        }
    }

    async fn report(&self, request: &TakeRequest) -> Result<(), StoreError> {
        let (worker, now) = (request.worker.id(), self.0.windlass.clock().now());
        if !self.0.handed_out.is_report_due(&worker, self.0.windlass.clock().monotonic()) {
            return Ok(());
        }
        let report = WorkerReport {
            worker,
            host: "remote".into(),
            version: String::new(),
            queues: request.queues.iter().map(|name| (name.to_string(), request.max)).collect(),
            kinds: request.kinds.as_ref().map(|kinds| kinds.iter().map(ToString::to_string).collect()),
            // The leases of remote workers are not counted here.
            running: 0,
            started_at: now,
            seen_at: now,
        };
        self.0.windlass.store().report_worker(&report).await
    }
}

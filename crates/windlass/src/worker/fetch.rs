//! Fetch: waits for work, claims up to the free slots (and a little ahead under load), and passes the jobs to the
//! slots.

use super::alternate::alternate;
use super::dispatch::Group;
use super::pace::MAX_AHEAD;
use super::subscription::Subscription;
use crate::attempt::Shared;
use crate::client::windlass::Windlass;
use crate::job::{ClaimedJob, LeaseId};
use crate::leases::claim::{ClaimFailure, Claimer};
use crate::leases::doubt::{Doubt, Found};
use crate::leases::fair_share::{FairShare, GroupRoom};
use crate::leases::held::{DoneSender, hold};
use crate::leases::held_leases::HeldLeases;
use crate::leases::limits::{MAX_CLAIM, MAX_SUSPECTS};
use crate::leases::outage::store_failed;
use crate::leases::reconnect::Reconnect;
use crate::store::{Claimed, Kinds, Leases, Share, StoreError};
use crate::wake::Waker;
use std::collections::HashSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_core::job::Kind;
use windlass_core::{Executor, Millis};

/// The most unknown kinds that are remembered, and logged.
const MAX_UNKNOWN: usize = 1000;
/// The most jobs held beyond the slots: those that wait for a slot or for the commit of their outcomes.
const MAX_UNCOMMITTED: usize = 4 * MAX_AHEAD as usize;

/// How long a claim of few jobs waits for more free slots. Quick handlers free them sooner than that.
const GATHER: Millis = Millis::new(5);

pub(crate) struct Fetch {
    pub claimer: Claimer,
    pub poll: Millis,
    pub subscriptions: Vec<Subscription>,
    pub groups: Vec<Arc<Group>>,
    pub held_leases: Arc<HeldLeases>,
    pub shared: Arc<Shared>,
    pub done: DoneSender,
    pub fair_share: FairShare,
    pub waker: Waker,
    /// How long the last claim took.
    pub claim_took: Millis,
    /// Claims of unknown outcome for which the store has found no jobs so far.
    pub doubts: Vec<Doubt>,
    /// The kinds of the handlers.
    pub kinds: Kinds,
    /// Kinds that were found in the queues and that no handler knows. From the first one on, claims leave them out:
    /// before that, looking at kinds would only slow claims down.
    pub unknown: HashSet<Kind>,
    pub stop: CancellationToken,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Stopped,
    /// A slot is free, or outcomes were committed.
    Room,
    /// A wake-up: there may be work, possibly in new queues.
    Rung,
    /// The next due time has come.
    Due,
    Polled,
}

impl Fetch {
    /// Claims until `stop` fires. Jobs claimed after that are released.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        let mut reconnect = Reconnect::default();
        let mut next_poll = self.windlass().clock().monotonic();
        let mut look = true;
        let mut had_suspect = false;
        while !stop.is_cancelled() {
            let has_suspect = self.held_leases.suspects() >= MAX_SUSPECTS as usize;
            if had_suspect && !has_suspect {
                // Suspects that were skipped can be claimed now.
                self.fair_share.refresh();
            }
            had_suspect = has_suspect;
            if let Some(due) = self.held_leases.take_due() {
                self.fair_share.expect(due, self.windlass().clock().now());
            }
            let claimed = self.claim_once(has_suspect).await;
            // The list of queues is read after the claim, so that a job in a known queue does not wait for it.
            if std::mem::take(&mut look) {
                self.ask_again().await;
                if self.find_queues().await {
                    self.fair_share.refresh();
                    continue;
                }
            }
            match claimed {
                Ok(Some(_)) => {
                    reconnect.reset();
                    continue;
                }
                Ok(None) => reconnect.reset(),
                Err(error) => {
                    store_failed!(error, worker = %self.claimer.worker, "jobs could not be claimed");
                    let pause = reconnect.next(self.windlass().random());
                    tokio::select! { () = stop.cancelled() => return, () = self.windlass().clock().sleep(pause) => continue }
                }
            }
            let now = self.windlass().clock().monotonic();
            if now >= next_poll {
                next_poll = now + self.poll;
            }
            match self.wait(&stop, next_poll).await {
                Woken::Stopped => return,
                Woken::Room => {}
                Woken::Due => self.fair_share.refresh(),
                Woken::Rung | Woken::Polled => {
                    self.fair_share.refresh();
                    look = true;
                }
            }
        }
    }

    async fn wait(&mut self, stop: &CancellationToken, next_poll: Millis) -> Woken {
        let clock = self.windlass().clock().clone();
        let left = next_poll - clock.monotonic();
        tokio::select! {
            () = stop.cancelled() => Woken::Stopped,
            () = self.waker.rung() => Woken::Rung,
            () = self.held_leases.room.notified() => Woken::Room,
            () = clock.sleep(left) => Woken::Polled,
            () = clock.due(self.fair_share.next_due) => Woken::Due,
        }
    }

    /// Reads the list of queues. Returns whether any is new.
    async fn find_queues(&mut self) -> bool {
        let result = self.windlass().store().queues().await;
        self.windlass().inner().record_contact(&result);
        let queues = match result {
            Ok(queues) => queues,
            Err(error) => {
                store_failed!(error, "the list of queues could not be read");
                return false;
            }
        };
        self.read_quotas().await;
        let wanted: Vec<_> = queues
            .iter()
            .filter_map(|queue| Some((queue.id, &queue.tenant, Subscription::find(&self.subscriptions, queue)?)))
            .collect();
        self.fair_share.set(&wanted)
    }

    /// Reads the tenants' quotas of calls, if this worker makes calls.
    async fn read_quotas(&self) {
        for group in self.groups.iter().filter(|group| group.is_shared()) {
            match self.windlass().catalogue().await {
                Ok(catalogue) => group.set_quotas(catalogue.http_quotas()),
                Err(error) => store_failed!(error, "the quotas of tenants could not be read"),
            }
        }
    }

    /// Claims once, if there is room and a queue may have work. Returns `None` when it can only wait.
    async fn claim_once(&mut self, has_suspect: bool) -> Result<Option<usize>, StoreError> {
        let slots: u32 = self.subscriptions.iter().map(|subscription| subscription.concurrency).sum();
        if self.held_leases.open() > slots as usize + MAX_UNCOMMITTED {
            return Ok(None);
        }
        let mut shares = self.plan();
        if self.may_grow(&shares) {
            self.gather(&shares).await;
            shares = self.plan();
        }
        if shares.is_empty() {
            return Ok(None);
        }
        let limit = shares.iter().map(|share| share.slots + share.ahead).sum::<u32>().min(MAX_CLAIM);
        let suspects = if has_suspect { 0 } else { MAX_SUSPECTS };
        let began = self.windlass().clock().monotonic();
        let claimed = self.claim_known(&shares, limit, suspects).await?;
        self.claim_took = self.windlass().clock().monotonic() - began;
        self.fair_share.learn(&shares, limit, &claimed);
        let count = claimed.jobs.len();
        self.deliver(claimed.jobs);
        Ok(Some(count))
    }

    fn plan(&mut self) -> Vec<Share> {
        let rooms: Vec<GroupRoom> = self.groups.iter().map(|group| group.room(self.claim_took)).collect();
        self.fair_share.plan(rooms)
    }

    /// Whether a claim that takes nothing ahead of slots would take more in a moment.
    fn may_grow(&self, shares: &[Share]) -> bool {
        let grows = |share: &Share| {
            let group = self.fair_share.group_of(share.queue);
            share.ahead == 0 && group.is_some_and(|group| self.groups[group].is_about_to_have_room())
        };
        !shares.is_empty() && shares.iter().all(grows)
    }

    /// Waits until more slots are free. Jobs that may not be claimed ahead of slots (behind limits, at most once) would
    /// otherwise be claimed a few at a time, each time with a commit.
    async fn gather(&self, shares: &[Share]) {
        let clock = self.windlass().clock();
        let until = clock.monotonic() + GATHER;
        while self.may_grow(shares) {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.held_leases.room.notified() => {}
                () = clock.sleep(until - clock.monotonic()) => return,
            }
        }
    }

    /// Claims jobs of every kind, until one was found that no handler knows.
    async fn claim_known(&mut self, shares: &[Share], limit: u32, suspects: u32) -> Result<Claimed, StoreError> {
        if self.unknown.is_empty() {
            return self.claim(shares.to_vec(), limit, suspects).await;
        }
        let is_handled = |share: &Share| {
            let group = self.fair_share.group_of(share.queue);
            group.is_some_and(|group| self.subscriptions[group].executor == Executor::Worker)
        };
        let (handled, others): (Vec<Share>, Vec<Share>) = shares.iter().partition(|share| is_handled(share));
        let size = |shares: &[Share]| shares.iter().map(|share| share.slots + share.ahead).sum::<u32>().min(limit);
        let mut claimed = Claimed::default();
        if !others.is_empty() {
            let most = size(&others);
            claimed = self.claim(others, most, suspects).await?;
        }
        let left = limit - claimed.jobs.len() as u32;
        if !handled.is_empty() && left > 0 {
            let suspects = suspects.saturating_sub(claimed.jobs.iter().filter(|job| job.crashes > 0).count() as u32);
            let most = size(&handled).min(left);
            self.claimer.kinds = Some(self.kinds.clone());
            let more = self.claim(handled, most, suspects).await;
            self.claimer.kinds = None;
            match more {
                Ok(more) => {
                    claimed.next_due = [claimed.next_due, more.next_due].into_iter().flatten().min();
                    claimed.jobs.extend(more.jobs);
                    claimed.parked.extend(more.parked);
                }
                Err(error) if claimed.jobs.is_empty() => return Err(error),
                // The jobs claimed so far must run: nobody else holds them.
                Err(error) => store_failed!(error, worker = %self.claimer.worker, "no more jobs could be claimed"),
            }
        }
        Ok(claimed)
    }

    async fn claim(&mut self, shares: Vec<Share>, limit: u32, suspects: u32) -> Result<Claimed, StoreError> {
        let lease = LeaseId::draw(self.windlass().random());
        match self.claimer.claim(Leases::Shared(lease), shares, limit, suspects).await {
            Ok(claimed) => Ok(claimed),
            Err(ClaimFailure::Refused(error)) => Err(error),
            Err(ClaimFailure::Unknown(doubt, _)) => {
                Ok(Claimed { jobs: self.resolve(doubt).await, ..Claimed::default() })
            }
        }
    }

    /// Returns the jobs of a claim of unknown outcome. Asks until the store answers.
    async fn resolve(&mut self, mut doubt: Doubt) -> Vec<ClaimedJob> {
        let mut reconnect = Reconnect::default();
        loop {
            match doubt.ask(self.windlass()).await {
                Ok(Found::Jobs(jobs)) => return jobs,
                Ok(Found::Nothing) => return Vec::new(),
                Ok(Found::NotYet) => {
                    self.doubts.push(doubt);
                    return Vec::new();
                }
                Err(error) => {
                    store_failed!(error, worker = %self.claimer.worker, "the jobs of a claim could not be read");
                }
            }
            reconnect.wait(self.windlass().clock(), self.windlass().random()).await;
        }
    }

    /// Asks once more which jobs the claims in doubt have taken.
    async fn ask_again(&mut self) {
        let now = self.windlass().clock().monotonic();
        let mut doubts = std::mem::take(&mut self.doubts);
        doubts.retain(|doubt| !doubt.is_over(now));
        for mut doubt in doubts {
            match doubt.ask(self.windlass()).await {
                Ok(Found::Jobs(jobs)) => self.deliver(jobs),
                Ok(Found::Nothing) => {}
                Ok(Found::NotYet) | Err(_) => self.doubts.push(doubt),
            }
        }
    }

    fn windlass(&self) -> &Windlass {
        &self.claimer.windlass
    }

    fn meet_unknown(&mut self, kind: &Kind) {
        if self.unknown.len() < MAX_UNKNOWN && self.unknown.insert(kind.clone()) {
            let worker = &self.claimer.worker;
            tracing::warn!(%kind, %worker, "no handler of this worker knows the kind {kind}; its jobs wait for one that does");
        }
    }

    fn deliver(&mut self, jobs: Vec<ClaimedJob>) {
        let held = hold(jobs, &self.shared, &self.done);
        self.held_leases.enter(&held);
        if self.stop.is_cancelled() {
            // The worker is stopping: dropping the guards releases the jobs.
            return;
        }
        let mut by_group: Vec<Vec<_>> = self.groups.iter().map(|_| Vec::new()).collect();
        for held in held {
            let job = &held.ticket().job;
            match self.fair_share.group_of(job.queue_id) {
                Some(group) if self.groups[group].knows(job.kind.as_str()) => by_group[group].push(held),
                // Dropping the guard releases the job, for a worker that knows its kind.
                Some(_) => self.meet_unknown(&job.kind.clone()),
                // The queue is no longer served: dropping the guard releases the job.
                None => {}
            }
        }
        for (group, held) in self.groups.iter().zip(by_group) {
            if !held.is_empty() {
                group.deliver(alternate(held, |held| held.ticket().job.queue_id));
            }
        }
    }
}

//! What operators do: cancel, replay, discard, amend; tokens and alerts.

use super::super::{
    AlertChange, Amend, Amended, Audit, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope,
};
use super::state::State;
use crate::job::Job;
use crate::store::replay::ACTION;
use crate::tally::Tally;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::verdict::{self, Allowance, AmendVerdict, CancelVerdict, DiscardVerdict, ReplayVerdict};
use windlass_core::{JobId, Next, State as JobState, Timestamp};

impl State {
    pub(super) fn cancel(&mut self, scope: &Scope, ids: &[JobId], now: Timestamp) -> Vec<Cancelled> {
        ids.iter().map(|id| self.cancel_one(scope, *id, now)).collect()
    }

    fn cancel_one(&mut self, scope: &Scope, id: JobId, now: Timestamp) -> Cancelled {
        let Some(state) = self.find(scope, id).map(|job| job.state) else { return Cancelled::NotFound };
        match verdict::cancel(state) {
            CancelVerdict::EndNow => {
                self.end_waiting(id, Next::Cancelled, now);
                Cancelled::Now
            }
            CancelVerdict::AskToStop => {
                self.live.get_mut(&id).expect("a running job is live").cancel_requested = true;
                Cancelled::Requested
            }
            CancelVerdict::Finished(state) => Cancelled::Finished(state),
        }
    }

    pub(super) fn replay(&mut self, scope: &Scope, replay: &Replay, now: Timestamp) -> Vec<Replayed> {
        let mut count = 0;
        let mut replayed = Vec::with_capacity(replay.ids.len());
        for id in &replay.ids {
            let result = self.replay_one(scope, *id, replay.only, replay.due_at(count, now), now);
            count += u64::from(result == Replayed::Queued);
            replayed.push(result);
        }
        self.note(now, &replay.by, ACTION, count, &replay.detail(count, now));
        replayed
    }

    fn replay_one(
        &mut self,
        scope: &Scope,
        id: JobId,
        only: ReplayOnly,
        due_at: Timestamp,
        now: Timestamp,
    ) -> Replayed {
        let Some(mut job) = self.find(scope, id).cloned() else { return Replayed::NotFound };
        match verdict::replay(&job.standing(), only, due_at, now) {
            ReplayVerdict::Running => Replayed::Running,
            ReplayVerdict::NotDead => Replayed::NotDead,
            ReplayVerdict::LeaveWaiting => Replayed::AlreadyLive,
            ReplayVerdict::RunNow(due_at) => {
                job.due_at = due_at;
                self.put(job);
                Replayed::AlreadyLive
            }
            ReplayVerdict::Requeue(allowance) => {
                self.requeue(job, allowance, now);
                Replayed::Queued
            }
        }
    }

    fn requeue(&mut self, mut job: Job, allowance: Allowance, now: Timestamp) {
        self.archive.remove(&job.id);
        job.state = JobState::Queued;
        job.due_at = allowance.due_at;
        job.replays += 1;
        (job.failures, job.crashes, job.previous_delay) =
            (allowance.failures, allowance.crashes, allowance.previous_delay);
        job.start_by = allowance.start_by;
        (job.reason, job.first_attempt_at, job.finished_at, job.result) = (None, None, None, None);
        (job.discarded_at, job.discard_reason, job.cancel_requested) = (None, None, false);
        self.count(now, job.queue_id, &job.kind.clone(), Tally { replayed: 1, ..Tally::default() });
        self.put(job);
    }

    pub(super) fn discard(&mut self, scope: &Scope, discard: &Discard, now: Timestamp) -> Vec<Discarded> {
        let mut count = 0;
        let mut discarded = Vec::with_capacity(discard.ids.len());
        for id in &discard.ids {
            let standing = self.find(scope, *id).map(Job::standing);
            let result = match standing.map(|job| verdict::discard(job.state, job.is_discarded)) {
                None => Discarded::NotFound,
                Some(DiscardVerdict::NotDead) => Discarded::NotDead,
                Some(DiscardVerdict::AlreadyDiscarded) => Discarded::Done,
                Some(DiscardVerdict::Discard) => {
                    let job = self.archive.get_mut(id).expect("a failed job is archived");
                    job.discarded_at = Some(now);
                    job.discard_reason = Some(discard.reason.clone());
                    count += 1;
                    Discarded::Done
                }
            };
            discarded.push(result);
        }
        self.note(now, &discard.by, "discard", count, &discard.reason);
        discarded
    }

    pub(super) fn amend(&mut self, scope: &Scope, id: JobId, change: Amend) -> Amended {
        let Some(mut job) = self.find(scope, id).cloned() else { return Amended::NotFound };
        match verdict::amend(&job.standing(), change) {
            AmendVerdict::NotWaiting(state) => Amended::NotWaiting(state),
            AmendVerdict::Change { priority, due_at } => {
                (job.priority, job.due_at) = (priority, due_at);
                self.put(job);
                Amended::Done
            }
        }
    }

    pub(super) fn pause(&mut self, tenant: &Tenant, name: &QueueName, paused: bool) -> u64 {
        let mut count = 0;
        for queue in self.queues.iter_mut().filter(|q| q.tenant == *tenant && q.name == *name) {
            queue.paused = paused;
            count += 1;
        }
        count
    }

    pub(super) fn revoke_token(&mut self, id: &str, now: Timestamp) -> bool {
        let token = self.tokens.iter_mut().find(|t| t.id == id && t.revoked_at.is_none());
        token.map(|t| t.revoked_at = Some(now)).is_some()
    }

    pub(super) fn change_alert(&mut self, change: &AlertChange, now: Timestamp) -> bool {
        let key = (change.after.rule.clone(), change.after.subject.clone());
        if self.alerts.get(&key).map(|alert| (alert.status, alert.incident)) != change.before {
            return false;
        }
        self.alerts.insert(key, change.after.clone());
        for notice in &change.notices {
            self.store(notice, now);
        }
        true
    }

    /// Adds an audit entry, unless nothing was done.
    fn note(&mut self, at: Timestamp, by: &str, action: &str, count: u64, detail: &str) {
        if count > 0 {
            self.audits.push(Audit { at, by: by.into(), action: action.into(), count, detail: detail.into() });
        }
    }
}

//! What operators do: cancel, replay, discard, amend; tokens and alerts.

use super::super::{
    AlertChange, Amend, Amended, Audit, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope, Spacing,
    Token,
};
use super::state::State;
use super::{commit, enqueue};
use crate::job::{Job, QueueId};
use crate::store::replay::{ACTION, Paced, respaced};
use crate::tally::Tally;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::verdict::{self, Allowance, AmendVerdict, CancelVerdict, DiscardVerdict, ReplayVerdict};
use windlass_core::{JobId, Next, State as JobState, Timestamp};

pub(super) fn cancel(state: &mut State, scope: &Scope, ids: &[JobId], now: Timestamp) -> Vec<Cancelled> {
    ids.iter().map(|id| cancel_one(state, scope, *id, now)).collect()
}

fn cancel_one(state: &mut State, scope: &Scope, id: JobId, now: Timestamp) -> Cancelled {
    let Some(current) = state.find(scope, id).map(|job| job.state) else { return Cancelled::NotFound };
    match verdict::cancel(current) {
        CancelVerdict::EndNow => {
            commit::end_waiting(state, id, Next::Cancelled, now);
            Cancelled::Now
        }
        CancelVerdict::AskToStop => {
            state.live.get_mut(&id).expect("a running job is live").cancel_requested = true;
            Cancelled::Requested
        }
        CancelVerdict::Finished(finished) => Cancelled::Finished(finished),
    }
}

pub(super) fn replay(state: &mut State, scope: &Scope, replay: &Replay, now: Timestamp) -> Vec<Replayed> {
    let mut count = 0;
    let gate = replay.gate_key();
    let mut replayed = Vec::with_capacity(replay.ids.len());
    for id in &replay.ids {
        let result = replay_one(state, scope, *id, replay.only, replay.due_at(count, now), now);
        count += u64::from(result == Replayed::Queued);
        replayed.push(result);
        if result == Replayed::Queued {
            state.gates.replayed(*id, gate.as_ref());
        }
        if result == Replayed::Queued
            && replay.spacing != Spacing::NONE
            && let Some((queue, due_at)) = state.live.get(id).map(|job| (job.queue_id, job.due_at))
        {
            let until = state.paced_until.entry(queue).or_insert(due_at);
            *until = due_at.max(*until);
        }
    }
    note(state, now, &replay.by, ACTION, count, &replay.detail(count, now));
    replayed
}

fn replay_one(
    state: &mut State,
    scope: &Scope,
    id: JobId,
    only: ReplayOnly,
    due_at: Timestamp,
    now: Timestamp,
) -> Replayed {
    let Some(mut job) = state.find(scope, id).cloned() else { return Replayed::NotFound };
    match verdict::replay(&job.standing(), only, due_at, now) {
        ReplayVerdict::Running => Replayed::Running,
        ReplayVerdict::NotDead => Replayed::NotDead,
        ReplayVerdict::LeaveWaiting => Replayed::AlreadyLive,
        ReplayVerdict::RunNow(due_at) => {
            job.due_at = due_at;
            state.put(job);
            Replayed::AlreadyLive
        }
        ReplayVerdict::Requeue(allowance) => {
            requeue(state, job, allowance, now);
            Replayed::Queued
        }
    }
}

fn requeue(state: &mut State, mut job: Job, allowance: Allowance, now: Timestamp) {
    state.archive.remove(&job.id);
    job.state = JobState::Queued;
    job.due_at = allowance.due_at;
    job.replays += 1;
    (job.failures, job.crashes, job.previous_delay) = (allowance.failures, allowance.crashes, allowance.previous_delay);
    job.start_by = allowance.start_by;
    (job.reason, job.first_attempt_at, job.finished_at, job.result) = (None, None, None, None);
    (job.discarded_at, job.discard_reason, job.cancel_requested) = (None, None, false);
    state.count(now, job.queue_id, &job.kind.clone(), Tally { replayed: 1, ..Tally::default() });
    state.put(job);
}

pub(super) fn discard(state: &mut State, scope: &Scope, discard: &Discard, now: Timestamp) -> Vec<Discarded> {
    let mut count = 0;
    let mut discarded = Vec::with_capacity(discard.ids.len());
    for id in &discard.ids {
        let standing = state.find(scope, *id).map(Job::standing);
        let result = match standing.map(|job| verdict::discard(job.state, job.is_discarded)) {
            None => Discarded::NotFound,
            Some(DiscardVerdict::NotDead) => Discarded::NotDead,
            Some(DiscardVerdict::AlreadyDiscarded) => Discarded::Done,
            Some(DiscardVerdict::Discard) => {
                let job = state.archive.get_mut(id).expect("a failed job is archived");
                job.discarded_at = Some(now);
                job.discard_reason = Some(discard.reason.clone());
                count += 1;
                Discarded::Done
            }
        };
        discarded.push(result);
    }
    note(state, now, &discard.by, "discard", count, &discard.detail());
    discarded
}

pub(super) fn amend(state: &mut State, scope: &Scope, id: JobId, change: Amend) -> Amended {
    let Some(mut job) = state.find(scope, id).cloned() else { return Amended::NotFound };
    match verdict::amend(&job.standing(), change) {
        AmendVerdict::NotWaiting(state) => Amended::NotWaiting(state),
        AmendVerdict::Change { priority, due_at } => {
            (job.priority, job.due_at) = (priority, due_at);
            state.put(job);
            Amended::Done
        }
    }
}

pub(super) fn pause(state: &mut State, tenant: &Tenant, name: &QueueName, paused: bool, now: Timestamp) -> u64 {
    let mut ids = Vec::new();
    for queue in state.queues.iter_mut().filter(|q| q.tenant == *tenant && q.name == *name) {
        queue.paused = paused;
        ids.push(queue.id);
    }
    for id in &ids {
        if paused {
            state.paused_at.entry(*id).or_insert(now);
        } else if let Some(since) = state.paused_at.remove(id)
            && state.paced_until.get(id).is_some_and(|until| *until >= since)
        {
            respace(state, *id, since, now);
        }
    }
    ids.len() as u64
}

/// Moves the replays that waited in a paused queue.
fn respace(state: &mut State, queue: QueueId, since: Timestamp, now: Timestamp) {
    let is_meant = |job: &&Job| job.queue_id == queue && job.state == JobState::Queued && job.replays > 0;
    let paced = |job: &Job| Paced { queue, id: job.id, due_at: job.due_at };
    let waiting: Vec<Paced> =
        state.live.values().filter(is_meant).map(paced).filter(|job| job.due_at >= since).collect();
    for (id, due_at) in respaced(&waiting, now) {
        let job = state.live.get(&id).expect("a waiting job is live").clone();
        state.put(Job { due_at, ..job });
    }
}

pub(super) fn put_token(state: &mut State, token: &Token) {
    match state.tokens.iter_mut().find(|known| known.id == token.id) {
        Some(known) => *known = token.clone(),
        None => state.tokens.push(token.clone()),
    }
}

pub(super) fn revoke_token(state: &mut State, id: &str, now: Timestamp) -> bool {
    let token = state.tokens.iter_mut().find(|t| t.id == id && t.revoked_at.is_none());
    token.map(|t| t.revoked_at = Some(now)).is_some()
}

pub(super) fn change_alert(state: &mut State, change: &AlertChange, now: Timestamp) -> bool {
    let key = (change.after.rule.clone(), change.after.subject.clone());
    if state.alerts.get(&key).map(|alert| (alert.status, alert.incident, alert.notified_at)) != change.before {
        return false;
    }
    state.alerts.insert(key, change.after.clone());
    for notice in &change.notices {
        enqueue::store(state, notice, now);
    }
    true
}

/// Adds an audit entry, unless nothing was done.
fn note(state: &mut State, at: Timestamp, by: &str, action: &str, count: u64, detail: &str) {
    if count > 0 {
        state.audits.push(Audit { at, by: by.into(), action: action.into(), count, detail: detail.into() });
    }
}

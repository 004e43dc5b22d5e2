//! Claim, renew and what a lease holds.

use super::super::{Claim, Claimed, Kinds, Leases, Renewed};
use super::gates;
use super::state::{Lease, State};
use crate::job::{ClaimedJob, Job, LeaseId, QueueId};
use std::cmp::Reverse;
use windlass_core::pick::{Candidate, Pick, Picker};
use windlass_core::{JobId, Millis, Priority, State as JobState, Timestamp, verdict};

pub(super) fn claim(state: &mut State, claim: &Claim, now: Timestamp) -> Claimed {
    let mut claimed = Claimed::default();
    let mut picker = Picker::new(claim.limit, claim.suspects);
    for share in &claim.shares {
        let Some(queue) = state.queues.iter().find(|q| q.id == share.queue && !q.paused).cloned() else { continue };
        let kinds = claim.kinds.as_ref();
        let (ids, next) = match gates::flow_of(state, &queue) {
            Some(flow) => {
                let (ids, next, parked) = gates::pick(state, (share, &queue, &flow), kinds, &mut picker, now);
                claimed.parked.extend(parked);
                (ids, next)
            }
            None => {
                picker.next_queue(share.slots, share.ahead);
                (pick(state, share.queue, kinds, &mut picker, now), next_due(state, share.queue, now))
            }
        };
        for id in ids {
            let lease = lease_for(claim, claimed.jobs.len());
            claimed.jobs.push(take(state, id, lease, now));
        }
        if !picker.is_filled() {
            claimed.next_due = [claimed.next_due, next].into_iter().flatten().min();
        }
    }
    grant(state, claim, &claimed.jobs, now);
    claimed
}

fn pick(state: &State, queue: QueueId, kinds: Option<&Kinds>, picker: &mut Picker, now: Timestamp) -> Vec<JobId> {
    let mut taken = Vec::new();
    for id in due_jobs(state, queue, now) {
        let job = &state.live[&id];
        if !is_asked(job, kinds) || late(job, now) {
            continue;
        }
        match picker.pick(Candidate { delivery: job.delivery, is_suspect: job.crashes > 0 }) {
            Pick::Take => taken.push(id),
            Pick::PassOver => {}
            Pick::Full => break,
        }
    }
    taken
}

/// The due jobs of a queue that are not parked, in order.
pub(super) fn due_jobs(state: &State, queue: QueueId, now: Timestamp) -> impl Iterator<Item = JobId> {
    let start = (queue, Reverse(Priority::Highest), Timestamp::EPOCH, JobId(0));
    let due = state.waiting.range(start..).take_while(move |(of, ..)| *of == queue);
    due.filter(move |(_, _, due_at, _)| *due_at <= now).map(|(_, _, _, id)| *id)
}

/// Whether a claim of these kinds takes such a job.
pub(super) fn is_asked(job: &Job, kinds: Option<&Kinds>) -> bool {
    kinds.is_none_or(|kinds| kinds.contains(job.kind.as_str()))
}

/// Whether it is too late for its first attempt.
pub(super) fn late(job: &Job, now: Timestamp) -> bool {
    verdict::is_late(job.start_by, job.first_attempt_at.is_some(), now)
}

fn take(state: &mut State, id: JobId, lease: LeaseId, now: Timestamp) -> ClaimedJob {
    let mut job = state.live[&id].clone();
    job.state = JobState::Running;
    job.attempt += 1;
    job.claimed_at = Some(now);
    job.first_attempt_at = job.first_attempt_at.or(Some(now));
    state.put(job.clone());
    state.running.insert(id, lease);
    ClaimedJob { job, lease, is_probe: state.gates.is_probe(id) }
}

fn lease_for(claim: &Claim, position: usize) -> LeaseId {
    match &claim.leases {
        Leases::Shared(lease) => *lease,
        Leases::Each(leases) => leases[position],
    }
}

fn grant(state: &mut State, claim: &Claim, jobs: &[ClaimedJob], now: Timestamp) {
    for job in jobs {
        let lease = state.leases.entry(job.lease).or_insert_with(|| Lease {
            worker: claim.worker.clone(),
            expires_at: now + claim.lease_for,
            length: claim.lease_for,
            jobs: Vec::new(),
        });
        lease.jobs.push(job.id);
    }
}

pub(super) fn next_due(state: &State, queue: QueueId, now: Timestamp) -> Option<Timestamp> {
    let soonest = |priority| {
        let start = (queue, Reverse(priority), now, JobId(i64::MAX));
        let next = state.waiting.range(start..).next();
        next.filter(|(q, p, ..)| (*q, *p) == (queue, Reverse(priority))).map(|(_, _, due_at, _)| *due_at)
    };
    Priority::HIGHEST_FIRST.into_iter().filter_map(soonest).min()
}

pub(super) fn held(state: &State, lease: LeaseId) -> Vec<ClaimedJob> {
    let Some(row) = state.leases.get(&lease) else { return Vec::new() };
    let held = row.jobs.iter().filter(|id| is_held(state, **id, lease)).filter_map(|id| state.live.get(id));
    held.map(|job| ClaimedJob { job: job.clone(), lease, is_probe: state.gates.is_probe(job.id) }).collect()
}

/// Whether the job runs under this lease.
pub(super) fn is_held(state: &State, id: JobId, lease: LeaseId) -> bool {
    state.running.get(&id) == Some(&lease)
}

pub(super) fn cancel_requests(state: &State, leases: &[LeaseId]) -> Vec<JobId> {
    let mut requested = Vec::new();
    for id in leases {
        let Some(lease) = state.leases.get(id) else { continue };
        let is_asked =
            |job: &&JobId| is_held(state, **job, *id) && state.live.get(job).is_some_and(|live| live.cancel_requested);
        requested.extend(lease.jobs.iter().filter(is_asked));
    }
    requested
}

pub(super) fn renew(state: &mut State, leases: &[LeaseId], lease_for: Millis, now: Timestamp) -> Renewed {
    let mut renewed = Renewed::default();
    for id in leases {
        let Some(lease) = state.leases.get_mut(id) else {
            renewed.lost.push(*id);
            continue;
        };
        lease.expires_at = now + lease_for;
        lease.length = lease_for;
    }
    renewed.cancel_requested = cancel_requests(state, leases);
    renewed
}

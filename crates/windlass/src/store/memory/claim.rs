//! Claim, renew and what a lease holds.

use super::super::{Claim, Claimed, Leases, Renewed};
use super::state::{Lease, State};
use crate::job::{ClaimedJob, LeaseId, QueueId};
use std::cmp::Reverse;
use windlass_core::pick::{Candidate, Pick, Picker};
use windlass_core::{JobId, Millis, Priority, State as JobState, Timestamp, verdict};

impl State {
    pub(super) fn claim(&mut self, claim: &Claim, now: Timestamp) -> Claimed {
        let mut claimed = Claimed::default();
        let mut picker = Picker::new(claim.limit, claim.suspects);
        for share in &claim.shares {
            if self.is_paused(share.queue) {
                continue;
            }
            picker.next_queue(share.slots, share.ahead);
            for id in self.pick(share.queue, &mut picker, now) {
                let lease = self.lease_for(claim, claimed.jobs.len());
                claimed.jobs.push(self.take(id, lease, now));
            }
            if !picker.is_filled() {
                claimed.next_due = [claimed.next_due, self.next_due(share.queue, now)].into_iter().flatten().min();
            }
        }
        self.grant(claim, &claimed.jobs, now);
        claimed
    }

    fn pick(&self, queue: QueueId, picker: &mut Picker, now: Timestamp) -> Vec<JobId> {
        let mut taken = Vec::new();
        let start = (queue, Reverse(Priority::Highest), Timestamp::EPOCH, JobId(0));
        let due = self.waiting.range(start..).take_while(|(of, ..)| *of == queue);
        for (_, _, _, id) in due.filter(|(_, _, due_at, _)| *due_at <= now) {
            let job = &self.live[id];
            if verdict::is_late(job.start_by, job.first_attempt_at.is_some(), now) {
                continue;
            }
            match picker.pick(Candidate { delivery: job.delivery, is_suspect: job.crashes > 0 }) {
                Pick::Take => taken.push(*id),
                Pick::PassOver => {}
                Pick::Full => break,
            }
        }
        taken
    }

    fn take(&mut self, id: JobId, lease: LeaseId, now: Timestamp) -> ClaimedJob {
        let mut job = self.live[&id].clone();
        job.state = JobState::Running;
        job.attempt += 1;
        job.claimed_at = Some(now);
        job.first_attempt_at = job.first_attempt_at.or(Some(now));
        self.put(job.clone());
        self.running.insert(id, lease);
        ClaimedJob { job, lease }
    }

    fn lease_for(&self, claim: &Claim, position: usize) -> LeaseId {
        match &claim.leases {
            Leases::Shared(lease) => *lease,
            Leases::Each(leases) => leases[position],
        }
    }

    fn grant(&mut self, claim: &Claim, jobs: &[ClaimedJob], now: Timestamp) {
        for job in jobs {
            let lease = self.leases.entry(job.lease).or_insert_with(|| Lease {
                worker: claim.worker.clone(),
                expires_at: now + claim.lease_for,
                length: claim.lease_for,
                jobs: Vec::new(),
            });
            lease.jobs.push(job.id);
        }
    }

    fn next_due(&self, queue: QueueId, now: Timestamp) -> Option<Timestamp> {
        let soonest = |priority| {
            let start = (queue, Reverse(priority), now, JobId(i64::MAX));
            let next = self.waiting.range(start..).next();
            next.filter(|(q, p, ..)| (*q, *p) == (queue, Reverse(priority))).map(|(_, _, due_at, _)| *due_at)
        };
        Priority::HIGHEST_FIRST.into_iter().filter_map(soonest).min()
    }

    pub(super) fn held(&self, lease: LeaseId) -> Vec<ClaimedJob> {
        let Some(row) = self.leases.get(&lease) else { return Vec::new() };
        let held = row.jobs.iter().filter(|id| self.is_held(**id, lease)).filter_map(|id| self.live.get(id));
        held.map(|job| ClaimedJob { job: job.clone(), lease }).collect()
    }

    /// Whether the job runs under this lease.
    pub(super) fn is_held(&self, id: JobId, lease: LeaseId) -> bool {
        self.running.get(&id) == Some(&lease)
    }

    pub(super) fn renew(&mut self, leases: &[LeaseId], lease_for: Millis, now: Timestamp) -> Renewed {
        let mut renewed = Renewed::default();
        for id in leases {
            let Some(lease) = self.leases.get_mut(id) else {
                renewed.lost.push(*id);
                continue;
            };
            lease.expires_at = now + lease_for;
            lease.length = lease_for;
            let (live, running) = (&self.live, &self.running);
            let asked =
                |job: &&JobId| running.get(job) == Some(id) && live.get(job).is_some_and(|j| j.cancel_requested);
            renewed.cancel_requested.extend(lease.jobs.iter().filter(asked));
        }
        renewed
    }
}

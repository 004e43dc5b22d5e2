//! Claim, renew and what a lease holds.

use super::super::{Claim, Claimed, Leases, Renewed, Share};
use super::state::{Lease, State};
use crate::job::{Job, LeaseId, QueueId};
use std::cmp::Reverse;
use windlass_core::{Delivery, JobId, Millis, Priority, State as JobState, Timestamp};

impl State {
    pub(super) fn claim(&mut self, claim: &Claim, now: Timestamp) -> Claimed {
        let mut claimed = Claimed::default();
        let mut suspects = claim.suspects;
        let mut room = claim.limit;
        for share in &claim.shares {
            if self.is_paused(share.queue) {
                continue;
            }
            let taken = self.pick(*share, room, &mut suspects, now);
            let filled = taken.len() as u32 == (share.slots + share.ahead);
            room -= taken.len() as u32;
            for id in taken {
                let lease = self.lease_for(claim, claimed.jobs.len());
                claimed.jobs.push(self.take(id, lease, now));
            }
            if !filled {
                claimed.next_due = [claimed.next_due, self.next_due(share.queue, now)].into_iter().flatten().min();
            }
        }
        self.grant(claim, &claimed.jobs, now);
        claimed
    }

    fn pick(&self, share: Share, room: u32, suspects: &mut u32, now: Timestamp) -> Vec<JobId> {
        let want = (share.slots + share.ahead).min(room) as usize;
        let mut taken = Vec::new();
        let start = (share.queue, Reverse(Priority::Highest), Timestamp::EPOCH, JobId(0));
        let due = self.waiting.range(start..).take_while(|(queue, ..)| *queue == share.queue);
        for (_, _, _, id) in due.filter(|(_, _, due_at, _)| *due_at <= now) {
            if taken.len() == want {
                break;
            }
            let job = &self.live[id];
            let is_late = job.first_attempt_at.is_none() && job.start_by.is_some_and(|by| by <= now);
            let is_once_without_slot = job.delivery == Delivery::AtMostOnce && taken.len() >= share.slots as usize;
            let is_suspect = job.crashes > 0;
            if is_late || is_once_without_slot || (is_suspect && *suspects == 0) {
                continue;
            }
            *suspects -= u32::from(is_suspect);
            taken.push(*id);
        }
        taken
    }

    fn take(&mut self, id: JobId, lease: LeaseId, now: Timestamp) -> Job {
        let mut job = self.live[&id].clone();
        job.state = JobState::Running;
        job.attempt += 1;
        job.lease = Some(lease);
        job.claimed_at = Some(now);
        job.first_attempt_at = job.first_attempt_at.or(Some(now));
        self.put(job.clone());
        job
    }

    fn lease_for(&self, claim: &Claim, position: usize) -> LeaseId {
        match &claim.leases {
            Leases::Shared(lease) => *lease,
            Leases::Each(leases) => leases[position],
        }
    }

    fn grant(&mut self, claim: &Claim, jobs: &[Job], now: Timestamp) {
        for job in jobs {
            let id = job.lease.expect("a claimed job has a lease");
            let lease = self.leases.entry(id).or_insert_with(|| Lease {
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

    pub(super) fn held(&self, lease: LeaseId) -> Vec<Job> {
        let Some(row) = self.leases.get(&lease) else { return Vec::new() };
        row.jobs.iter().filter_map(|id| self.live.get(id)).filter(|job| is_held(job, lease)).cloned().collect()
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
            let asked = |job: &&JobId| self.live.get(job).is_some_and(|j| is_held(j, *id) && j.cancel_requested);
            renewed.cancel_requested.extend(lease.jobs.iter().filter(asked));
        }
        renewed
    }
}

pub(super) fn is_held(job: &Job, lease: LeaseId) -> bool {
    job.state == JobState::Running && job.lease == Some(lease)
}

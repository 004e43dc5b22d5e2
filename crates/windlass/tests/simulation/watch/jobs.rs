//! Watching the life of a job: enqueue, claim, held, commit.

use crate::watch::record::{Lease, Record};
use crate::watch::rules::Close;
use crate::watch::store::{Result, Watched};
use std::collections::BTreeMap;
use windlass::core::{JobId, State, Timestamp};
use windlass::low_level::job::{ClaimedJob, Job, KeyWindow, LeaseId, NewJob};
use windlass::low_level::stores::{Atomicity, Claim, Claimed, Commit, Committed, Enqueued, Leases};

impl Watched {
    pub async fn watch_enqueue(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>> {
        let answers = self.inner.enqueue(jobs.clone(), atomicity).await?;
        let now = self.now();
        let mut made = Vec::new();
        {
            let mut record = self.record();
            record.counts.calls += 1;
            record.demand(answers.len() == jobs.len(), || "enqueue did not answer for every job".into());
            for (new, answer) in jobs.iter().zip(&answers) {
                record.enqueued(new, answer, now);
                made.extend(answer.id());
            }
        }
        self.look_at(&made).await;
        Ok(answers)
    }

    pub async fn watch_claim(&self, claim: Claim) -> Result<Claimed> {
        let claimed = self.inner.claim(claim.clone()).await?;
        let now = self.now();
        let mut record = self.record();
        record.counts.calls += 1;
        let suspects = claimed.jobs.iter().filter(|job| job.crashes > 0).count();
        record.demand(suspects <= claim.suspects as usize, || format!("{suspects} suspects in one claim"));
        record.demand(claimed.jobs.len() <= claim.limit as usize, || "more jobs claimed than asked for".into());
        for (position, job) in claimed.jobs.iter().enumerate() {
            let lease = match &claim.leases {
                Leases::Shared(lease) => *lease,
                Leases::Each(leases) => leases[position],
            };
            record.claimed(job, lease, now);
            let (worker, length) = (claim.worker.clone(), claim.lease_for);
            let row = Lease { worker, length, expires_at: now + length };
            record.leases.insert(lease, row);
        }
        record.check_limits();
        Ok(claimed)
    }

    pub async fn watch_held(&self, leases: Vec<LeaseId>) -> Result<Vec<ClaimedJob>> {
        let held = self.inner.held(leases.clone()).await?;
        let mut record = self.record();
        record.counts.calls += 1;
        let is_held = |known: &&crate::watch::record::Known| known.open.is_some_and(|lease| leases.contains(&lease));
        let expected: Vec<JobId> = record.jobs.values().filter(is_held).map(|known| known.id).collect();
        let mut said: Vec<JobId> = held.iter().map(|job| job.id).collect();
        said.sort();
        record.demand(said == expected, || format!("{leases:?} hold {expected:?}, but the store says {said:?}"));
        Ok(held)
    }

    pub async fn watch_commit(&self, commits: Vec<Commit>, ended: Vec<LeaseId>) -> Result<Vec<Committed>> {
        let ids: Vec<JobId> = commits.iter().map(|commit| commit.job).collect();
        let before = self.snapshots(&ids).await;
        let answers = self.inner.commit(commits.clone(), ended.clone()).await?;
        let after = self.snapshots(&ids).await;
        let now = self.now();
        {
            let mut record = self.record();
            record.counts.calls += 1;
            record.demand(answers.len() == commits.len(), || "commit did not answer for every item".into());
            for (index, (commit, answer)) in commits.iter().zip(&answers).enumerate() {
                record.committed(commit, answer, now);
                // Another attempt of the same job may be in the batch.
                let is_alone = ids.iter().filter(|id| **id == commit.job).count() == 1;
                let may_change = matches!(answer, Committed::Applied(_)) || !is_alone;
                let same = || format!("{:?}", before[index]) == format!("{:?}", after[index]);
                record.demand(may_change || same(), || {
                    format!("job {}: a commit answered {answer:?} changed it", commit.job)
                });
            }
            for lease in ended {
                record.leases.remove(&lease);
                let left = record.jobs.values().find(|known| known.open == Some(lease)).map(|known| known.id);
                record.demand(left.is_none(), || format!("lease {lease} was ended while it held job {left:?}"));
            }
        }
        self.look_at(&ids).await;
        Ok(answers)
    }
}

impl Record {
    fn enqueued(&mut self, new: &NewJob, answer: &Enqueued, now: Timestamp) {
        match answer {
            Enqueued::Created { id, due_at, .. } => {
                let standing = self.standing_key(new, now);
                self.demand(standing.is_none(), || format!("job {id} repeats the key of job {standing:?}"));
                self.demand(*due_at == new.run_at.moment(now), || format!("job {id} is due at {due_at}"));
                self.stored(*id, new, now);
            }
            Enqueued::Existing(id) => {
                // The payload of a job that is no longer kept is unknown, but its key is still valid.
                let is_it =
                    self.has_key_of(*id, new) && (self.jobs[id].new.payload == new.payload || self.jobs[id].pruned);
                self.demand(is_it, || format!("a key was answered with job {id}, which is another"));
            }
            Enqueued::KeyConflict(id) => {
                let is_it = self.has_key_of(*id, new) && self.jobs[id].new.payload != new.payload;
                self.demand(is_it, || format!("a key conflicts with job {id}, which does not have it"));
            }
            Enqueued::Refused(why) => self.breaks(format!("a sound job was refused: {why}")),
            Enqueued::OverQuota(_) | Enqueued::NotStored => {}
        }
    }

    fn has_key_of(&self, id: JobId, new: &NewJob) -> bool {
        let key = |job: &NewJob| job.idempotency.as_ref().map(|i| i.key.clone());
        self.jobs.get(&id).is_some_and(|k| k.new.tenant == new.tenant && key(&k.new) == key(new))
    }

    /// The job that the new job's key already belongs to.
    fn standing_key(&self, new: &NewJob, now: Timestamp) -> Option<JobId> {
        new.idempotency.as_ref()?;
        let stands = self.jobs.values().filter(|known| self.has_key_of(known.id, new)).find(|known| {
            match known.new.idempotency.as_ref().map(|i| i.window) {
                Some(KeyWindow::For(span)) => known.created_at + span > now,
                // A job that was replayed is live again, but its key may have been forgotten meanwhile.
                Some(KeyWindow::Live) => known.state.is_live() && known.replays == 0,
                None => false,
            }
        });
        stands.map(|known| known.id)
    }

    fn claimed(&mut self, job: &Job, lease: LeaseId, now: Timestamp) {
        let id = job.id;
        let is_paused = self.paused.contains(&(job.tenant.clone(), job.queue.clone()));
        self.demand(!is_paused, || format!("job {id} was claimed from a paused queue"));
        let Some(known) = self.jobs.get_mut(&id) else { return self.breaks(format!("phantom job {id} claimed")) };
        let (due_at, was, is_late) = (known.due_at, known.state, known.is_late(now));
        let was_open = known.open;
        known.attempt += 1;
        known.state = State::Running;
        known.open = Some(lease);
        known.first_attempt_at = known.first_attempt_at.or(Some(now));
        let difference = known.differs(job);
        self.demand(was_open.is_none(), || format!("job {id} was claimed while {was_open:?} holds it"));
        self.demand(was != State::Running && was.is_live(), || format!("job {id} was claimed while {was}"));
        self.demand(due_at <= now, || format!("job {id} was claimed before its time, {due_at}"));
        self.demand(!is_late, || format!("job {id} was claimed after its startBy"));
        self.demand(difference.is_none(), || format!("claimed {}", difference.unwrap_or_default()));
    }

    /// No more attempts hold a lease than the limits of their queue and key allow.
    fn check_limits(&mut self) {
        let Some(limits) = self.limits else { return };
        let mut queues: BTreeMap<_, usize> = BTreeMap::new();
        let mut keys: BTreeMap<_, usize> = BTreeMap::new();
        for known in self.jobs.values().filter(|known| known.open.is_some()) {
            let queue = (known.new.tenant.clone(), known.new.queue.clone());
            if let Some(key) = known.new.limit_key.clone() {
                *keys.entry((queue.clone(), key)).or_default() += 1;
            }
            *queues.entry(queue).or_default() += 1;
        }
        let most = (queues.into_values().max(), keys.into_values().max());
        let holds = most.0.is_none_or(|n| n <= limits.queue) && most.1.is_none_or(|n| n <= limits.key);
        self.demand(holds, || format!("more attempts at once than {limits:?} allow: {most:?}"));
    }

    fn committed(&mut self, commit: &Commit, answer: &Committed, now: Timestamp) {
        let id = commit.job;
        let Some(known) = self.jobs.get_mut(&id) else { return self.breaks(format!("phantom job {id} committed")) };
        let is_held = known.open == Some(commit.lease) && known.attempt == commit.attempt;
        let is_refused = known.cancel_requested && !commit.stands_despite_cancel();
        let status = commit.transition.status;
        let is_repeat = known.lines.iter().any(|line| line.number == commit.attempt && line.status == status);
        match answer {
            Committed::Applied(follow_ups) => {
                self.demand(is_held, || format!("job {id}: attempt {} was not held, yet applied", commit.attempt));
                self.demand(!is_refused, || format!("job {id}: a cancel was lost in a race"));
                self.applied(commit, follow_ups, now);
            }
            Committed::Repeated => {
                self.counts.repeated += 1;
                self.demand(!is_held && is_repeat, || format!("job {id}: nothing was repeated, yet it says so"));
            }
            Committed::Stale => {
                self.counts.stale += 1;
                self.demand(!is_held, || format!("job {id}: attempt {} was held, yet stale", commit.attempt));
            }
            Committed::CancelRequested => {
                self.demand(is_held && is_refused, || format!("job {id}: no cancel stood in the way"));
            }
        }
    }

    fn applied(&mut self, commit: &Commit, follow_ups: &[JobId], now: Timestamp) {
        let close = Close { transition: commit.transition, is_lost: false, decided_at: commit.finished_at };
        let known = self.jobs.get_mut(&commit.job).expect("the caller found the job");
        let reported = known.close(close, now).unwrap_or_else(|rule| {
            self.breaks(rule);
            false
        });
        let count = follow_ups.len();
        let id = commit.job;
        self.demand(count == usize::from(reported), || {
            format!("job {id} finished with {count} deliveries, expected: {reported}")
        });
        for (new, id) in commit.follow_ups.iter().zip(follow_ups) {
            self.stored(*id, new, now);
        }
    }
}

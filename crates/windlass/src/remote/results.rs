//! Results: a remote worker extends its leases and reports how attempts ended. Each item gets its own answer. An item
//! outside the worker's scope is answered like a stale one.

use super::Remote;
use super::scope::RemoteWorker;
use crate::event::Ended;
use crate::job::{ClaimedJob, Job, LeaseId, Payload};
use crate::leases::commit::{Cancel, commit, decide, ending, report, rules_for, rules_of};
use crate::leases::renew::renew;
use crate::leases::transition::Trace;
use crate::store::{Commit, Committed, Scope, StoreError};
use std::collections::HashMap;
use windlass_core::{JobId, LiveRules, Millis, Outcome, Progress, Roll};

/// An attempt that a remote worker claims to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldAttempt {
    /// The job.
    pub job: JobId,
    /// The attempt's number. With the lease, it is the fence.
    pub attempt: u32,
    /// The lease that the job was handed out under.
    pub lease: LeaseId,
}

impl HeldAttempt {
    fn is_of(&self, job: &Job) -> bool {
        job.id == self.job && job.attempt == self.attempt
    }
}

/// How an attempt of a remote worker ended.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// Which attempt.
    pub held: HeldAttempt,
    /// How it ended.
    pub outcome: Outcome,
    /// A text to store with the attempt.
    pub note: Option<String>,
    /// JSON to store with the job, if the attempt succeeded.
    pub result: Option<Payload>,
}

/// The answer to one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was accepted, now or earlier.
    Ok,
    /// The worker does not hold the attempt, or no longer does: nothing changed.
    Stale,
    /// An operator requested a cancel: stop working on the job.
    Cancel,
}

/// A result whose job was found.
struct Pending {
    index: usize,
    job: ClaimedJob,
    /// How many jobs ran under the lease when it was read; none if the attempt had ended.
    under_lease: usize,
    cancel: Cancel,
    /// Drawn once: deciding again must choose the same delay.
    roll: Roll,
}

impl Remote {
    /// Extends leases to `lease_for` from now, even if their time has run out, unless they were reaped.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn extend(
        &self,
        worker: &RemoteWorker,
        held: &[HeldAttempt],
        lease_for: Millis,
    ) -> Result<Vec<Answer>, StoreError> {
        let leases = self.own_leases(worker, held).await?;
        if leases.is_empty() {
            return Ok(vec![Answer::Stale; held.len()]);
        }
        let renewed = renew(&self.0.windlass, &worker.id(), leases.clone(), lease_for).await?;
        let answer = |item: &HeldAttempt| {
            if !leases.contains(&item.lease) || renewed.lost.contains(&item.lease) {
                Answer::Stale
            } else if renewed.cancel_requested.contains(&item.job) {
                Answer::Cancel
            } else {
                Answer::Ok
            }
        };
        Ok(held.iter().map(answer).collect())
    }

    /// The leases that cover nothing outside the worker's scope.
    async fn own_leases(&self, worker: &RemoteWorker, held: &[HeldAttempt]) -> Result<Vec<LeaseId>, StoreError> {
        let mut leases: Vec<LeaseId> = held.iter().map(|item| item.lease).collect();
        leases.sort_unstable();
        leases.dedup();
        if worker.scope.is_all() {
            return Ok(leases);
        }
        let running = self.running(&leases).await?;
        let is_own = |jobs: &Vec<ClaimedJob>| jobs.iter().all(|job| worker.scope.covers(job));
        leases.retain(|lease| running.get(lease).is_some_and(is_own));
        Ok(leases)
    }

    /// The jobs under leases, from this process's copies or from the store.
    pub(super) async fn running(&self, leases: &[LeaseId]) -> Result<HashMap<LeaseId, Vec<ClaimedJob>>, StoreError> {
        let mut running: HashMap<LeaseId, Vec<ClaimedJob>> = HashMap::new();
        let mut unknown = Vec::new();
        for lease in leases {
            match self.0.handed_out.find(*lease) {
                Some(job) => drop(running.insert(*lease, vec![job])),
                None => unknown.push(*lease),
            }
        }
        if !unknown.is_empty() {
            for job in self.0.windlass.store().held(unknown).await? {
                running.entry(job.lease).or_default().push(job);
            }
        }
        Ok(running)
    }

    /// Commits how attempts ended. Repeating a result is harmless.
    ///
    /// # Errors
    /// The store cannot be used: send the results again.
    pub async fn finish(&self, worker: &RemoteWorker, results: &[AttemptResult]) -> Result<Vec<Answer>, StoreError> {
        let mut answers = vec![Answer::Stale; results.len()];
        let mut left = self.find(worker, results).await?;
        let mut over = Vec::new();
        while !left.is_empty() {
            let outcomes = left.iter().map(|pending| &results[pending.index].outcome);
            let catalogue = rules_for(&self.0.windlass, outcomes).await;
            let decided = |pending: &Pending| {
                let rules = rules_of(catalogue.as_ref(), &pending.job);
                self.decide(worker, &results[pending.index], pending, rules)
            };
            let commits: Vec<Commit> = left.iter().map(decided).collect();
            let under: HashMap<LeaseId, usize> = left.iter().map(|p| (p.job.lease, p.under_lease)).collect();
            let ended = ending(&commits, |lease, count| under.get(&lease) == Some(&count));
            let committed = commit(&self.0.windlass, commits.clone(), ended.clone()).await?;
            let mut again = Vec::new();
            for ((pending, commit), committed) in left.into_iter().zip(&commits).zip(committed) {
                let is_applied = matches!(committed, Committed::Applied(_));
                match committed {
                    Committed::Applied(_) | Committed::Repeated => {
                        answers[pending.index] = Answer::Ok;
                        if pending.under_lease == 1 && !ended.contains(&commit.lease) {
                            over.push(commit.lease);
                        }
                    }
                    Committed::Stale => {}
                    // A cancel was requested meanwhile: decide again with it. The new commit is not refused for that
                    // reason.
                    Committed::CancelRequested if pending.cancel == Cancel::NotRequested => {
                        again.push(Pending { cancel: Cancel::Requested, ..pending });
                        continue;
                    }
                    Committed::CancelRequested => {}
                }
                if is_applied {
                    self.report_ended(worker, &pending.job, &results[pending.index].outcome, commit).await;
                }
            }
            left = again;
        }
        results.iter().for_each(|result| self.0.handed_out.forget(result.held.lease));
        if !over.is_empty() {
            // Rows that are left are reaped. The reaper finds no job under them.
            commit(&self.0.windlass, Vec::new(), over).await?;
        }
        Ok(answers)
    }

    /// The jobs of results, within the worker's scope: running under their leases, or as they ended earlier.
    async fn find(&self, worker: &RemoteWorker, results: &[AttemptResult]) -> Result<Vec<Pending>, StoreError> {
        let leases: Vec<LeaseId> = results.iter().map(|result| result.held.lease).collect();
        let running = self.running(&leases).await?;
        let scope = worker.scope.tenant.clone().map_or(Scope::All, Scope::Tenant);
        let mut found = Vec::with_capacity(results.len());
        for (index, AttemptResult { held, .. }) in results.iter().enumerate() {
            let under = running.get(&held.lease).map_or(&[][..], Vec::as_slice);
            let (job, under_lease) = match under.iter().find(|job| held.is_of(job)) {
                Some(job) => (Some(job.clone()), under.len()),
                None => {
                    let job = self.0.windlass.store().job(&scope, held.job).await?;
                    let claimed = |job| ClaimedJob {
                        job: Job { attempt: held.attempt, ..job },
                        lease: held.lease,
                        is_probe: false,
                    };
                    (job.map(claimed), 0)
                }
            };
            if let Some(job) = job.filter(|job| worker.scope.covers(job)) {
                let roll = self.0.windlass.random().roll();
                found.push(Pending { index, job, under_lease, cancel: Cancel::NotRequested, roll });
            }
        }
        Ok(found)
    }

    fn decide(&self, worker: &RemoteWorker, result: &AttemptResult, pending: &Pending, rules: LiveRules<'_>) -> Commit {
        let now = self.0.windlass.clock().now();
        let trace = Trace {
            started_at: pending.job.claimed_at.unwrap_or(now),
            finished_at: now,
            worker: worker.id().to_string(),
            note: result.note.clone(),
            result: result.result.clone(),
        };
        decide(&pending.job, pending.cancel, &result.outcome, rules, trace, pending.roll)
    }

    async fn report_ended(&self, worker: &RemoteWorker, job: &ClaimedJob, outcome: &Outcome, commit: &Commit) {
        let has_started = !matches!(outcome, Outcome::Released(Progress::NotStarted));
        let ended = Ended {
            job,
            transition: commit.transition,
            error_class: commit.error_class.as_deref(),
            error: commit.error.as_deref(),
            started_at: commit.started_at,
            finished_at: commit.finished_at,
            next_firing: None,
            lease: has_started.then_some(commit.lease),
        };
        report(&self.0.windlass, &self.0.windlass.inner().reporter(worker.id().0), ended).await;
    }
}

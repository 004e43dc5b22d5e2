//! Commit: how every holder of leases writes outcomes and deletes lease rows.

use super::transition::{Trace, commit_by, commit_of};
use crate::client::policies::catalogue::Catalogue;
use crate::client::windlass::Windlass;
use crate::event::{Ended, Reporter};
use crate::job::{ClaimedJob, Job, LeaseId};
use crate::store::{Commit, Committed, Scope, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::{JobId, LiveRules, Next, Outcome, Progress, Roll, Timestamp};

/// Whether an operator has requested a cancel since the job was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    NotRequested,
    Requested,
}

/// The commit of an outcome, including a requested cancel. Deciding again with the same roll gives the same delay.
pub(crate) fn decide(
    job: &ClaimedJob,
    cancel: Cancel,
    outcome: &Outcome,
    rules: LiveRules<'_>,
    trace: Trace,
    roll: Roll,
) -> Commit {
    match cancel {
        Cancel::Requested if !job.cancel_requested => {
            commit_by(&job.with_cancel_requested(), outcome, rules, trace, roll)
        }
        Cancel::Requested | Cancel::NotRequested => commit_by(job, outcome, rules, trace, roll),
    }
}

/// The settings with the error rules that the outcomes may match. Only failures match any, so nothing is read without
/// one. If they cannot be read, no commit can be written either, and the outcomes are decided again.
pub(crate) async fn rules_for<'a>(
    windlass: &Windlass,
    mut outcomes: impl Iterator<Item = &'a Outcome>,
) -> Option<Arc<Catalogue>> {
    if !outcomes.any(|outcome| matches!(outcome, Outcome::Failed(_))) {
        return None;
    }
    windlass.catalogue().await.ok()
}

/// The rules of a job's kind and queue.
pub(crate) fn rules_of<'a>(catalogue: Option<&'a Arc<Catalogue>>, job: &Job) -> LiveRules<'a> {
    catalogue.map_or_else(LiveRules::default, |catalogue| catalogue.rules_of(&job.tenant, &job.queue, &job.kind))
}

/// The commit of a job that was not started and will not run in this process.
pub(crate) fn release(windlass: &Windlass, worker: &str, job: &ClaimedJob) -> Commit {
    let now = windlass.clock().now();
    let started_at = job.claimed_at.unwrap_or(now);
    let trace = Trace { started_at, finished_at: now, worker: worker.to_owned(), ..Trace::default() };
    commit_of(job, &Outcome::Released(Progress::NotStarted), trace, windlass.random().roll())
}

/// Leases that end with these commits. `is_last` says whether a number of jobs is all that is left of a lease. If a job
/// may have to be decided again because of a late cancel, a later commit ends its lease, because the lease row must
/// outlive its jobs.
pub(crate) fn ending(commits: &[Commit], is_last: impl Fn(LeaseId, usize) -> bool) -> Vec<LeaseId> {
    let mut counts: HashMap<LeaseId, (usize, bool)> = HashMap::new();
    for commit in commits {
        let (count, is_sure) = counts.entry(commit.lease).or_insert((0, true));
        *count += 1;
        *is_sure &= commit.stands_despite_cancel();
    }
    let ends = counts.into_iter().filter(|(lease, (count, is_sure))| *is_sure && is_last(*lease, *count));
    ends.map(|(lease, _)| lease).collect()
}

/// Writes outcomes, and deletes the rows of ended leases.
pub(crate) async fn commit(
    windlass: &Windlass,
    commits: Vec<Commit>,
    ended: Vec<LeaseId>,
) -> Result<Vec<Committed>, StoreError> {
    windlass.inner().write(windlass.store().commit(commits, ended)).await
}

/// Reports to logs and subscribers how an attempt ended. For a failed run of a schedule, includes the next firing.
pub(crate) async fn report(windlass: &Windlass, reporter: &Reporter, ended: Ended<'_>) {
    let next_firing = match (ended.transition.next, ended.job.schedule) {
        (Next::Failed(_), Some(schedule)) => next_firing(windlass, schedule).await,
        (Next::Failed(_) | Next::Succeeded | Next::Cancelled | Next::Wait { .. }, _) => None,
    };
    reporter.ended(&Ended { next_firing, ..ended });
}

/// When a schedule fires next, for the log. Unknown if the store does not answer.
pub(crate) async fn next_firing(windlass: &Windlass, schedule: JobId) -> Option<Timestamp> {
    let schedule = windlass.store().schedule(&Scope::All, schedule).await;
    schedule.ok().flatten().and_then(|schedule| schedule.next_at)
}

//! Commit, reap and expire: transitions, the ledger and follow-up jobs.

use super::super::{Commit, Committed, Reap, Transitioned};
use super::state::{Line, State};
use super::{claim, enqueue, gates};
use crate::job::{Job, LeaseId};
use crate::leases::transition;
use crate::store::DISCARDED_BY_RULE;
use crate::tally::Tally;
use windlass_core::{Attempt, JobId, Next, Timestamp, verdict};

pub(super) fn commit(state: &mut State, commits: Vec<Commit>, ended: &[LeaseId], now: Timestamp) -> Vec<Committed> {
    let mut kept = Vec::new();
    let mut committed = Vec::with_capacity(commits.len());
    for commit in commits {
        let lease = commit.lease;
        let result = commit_one(state, commit, now);
        if result == Committed::CancelRequested {
            // The job still runs under its lease. Without the lease, a worker that dies now would go unnoticed.
            kept.push(lease);
        }
        committed.push(result);
    }
    for lease in ended.iter().filter(|lease| !kept.contains(lease)) {
        state.leases.remove(lease);
    }
    committed
}

fn commit_one(state: &mut State, commit: Commit, now: Timestamp) -> Committed {
    let holds = |job: &&Job| claim::is_held(state, job.id, commit.lease) && job.attempt == commit.attempt;
    let held = state.live.get(&commit.job).filter(holds);
    let Some(job) = held.cloned() else { return unheld(state, &commit) };
    if job.cancel_requested && !commit.stands_despite_cancel() {
        return Committed::CancelRequested;
    }
    state.ledger.entry(job.id).or_default().push(line(&commit));
    state.count(now, commit.queue, &commit.kind, Tally::of(&commit));
    let follow_ups = commit.follow_ups.iter().filter_map(|new| enqueue::store(state, new, now).id()).collect();
    gates::end(state, &job, &commit, now);
    apply(state, job, commit, now);
    Committed::Applied(follow_ups)
}

fn apply(state: &mut State, mut job: Job, commit: Commit, now: Timestamp) {
    transition::apply(&mut job, &commit.transition, now);
    state.running.remove(&job.id);
    if commit.is_discarded() {
        (job.discarded_at, job.discard_reason) = (Some(now), Some(DISCARDED_BY_RULE.into()));
    }
    if commit.error_class.is_some() {
        job.error_class = commit.error_class;
        job.error = commit.error;
    }
    job.result = commit.result;
    if job.state.is_live() { state.put(job) } else { state.finish(job) }
}

/// The attempt is not running under this lease. Checks whether the same result ended it before.
fn unheld(state: &State, commit: &Commit) -> Committed {
    let lines = state.ledger.get(&commit.job).map_or(&[][..], Vec::as_slice);
    let same = |line: &&Line| {
        line.attempt.number == commit.attempt
            && line.lease == commit.lease
            && line.attempt.status == commit.transition.status
    };
    if lines.iter().any(|line| same(&line)) { Committed::Repeated } else { Committed::Stale }
}

pub(super) fn reap(state: &mut State, reap: &Reap, limit: u32, now: Timestamp) -> Vec<Transitioned> {
    let over = state.leases.iter().filter(|(_, lease)| match reap {
        Reap::Expired { spared } => lease.expires_at <= now && !spared.holds(lease.length),
        Reap::Of(worker) => lease.worker == *worker,
    });
    let over: Vec<LeaseId> = over.map(|(id, _)| *id).take(limit as usize).collect();
    let mut transitioned = Vec::new();
    for id in over {
        let jobs = claim::held(state, id);
        let lease = state.leases.remove(&id).expect("the lease was just listed");
        for job in jobs {
            let commit = transition::lost(&job, &lease.worker.0, now, state.random.roll());
            transitioned.push(Transitioned::new(job.job, &commit));
            commit_one(state, commit, now);
        }
    }
    transitioned
}

pub(super) fn expire(state: &mut State, limit: u32, now: Timestamp) -> Vec<Transitioned> {
    let late = |job: &&Job| verdict::expires(&job.standing(), now);
    let late: Vec<JobId> = state.live.values().filter(late).map(|job| job.id).take(limit as usize).collect();
    late.into_iter().map(|id| end_waiting(state, id, transition::EXPIRED, now)).collect()
}

/// Ends a waiting job without an attempt.
pub(super) fn end_waiting(state: &mut State, id: JobId, next: Next, now: Timestamp) -> Transitioned {
    let before = state.live[&id].clone();
    let (transition, delivery) = transition::ended_waiting(&before, next, now);
    let mut job = before.clone();
    transition::apply(&mut job, &transition, now);
    let delta = match next {
        Next::Failed(_) => Tally { failed: 1, ..Tally::default() },
        Next::Succeeded | Next::Cancelled | Next::Wait { .. } => Tally { cancelled: 1, ..Tally::default() },
    };
    state.count(now, job.queue_id, &job.kind.clone(), delta);
    if let Some(new) = delivery {
        enqueue::store(state, &new, now);
    }
    state.finish(job);
    Transitioned { job: before, transition, error_class: None, lease: None }
}

fn line(commit: &Commit) -> Line {
    let wait = commit.transition.next.wait();
    Line {
        lease: commit.lease,
        attempt: Attempt {
            number: commit.attempt,
            retry: commit.retry,
            status: commit.transition.status,
            started_at: commit.started_at,
            finished_at: commit.finished_at,
            error_class: commit.error_class.clone(),
            error: commit.error.clone(),
            note: commit.note.clone(),
            trace: commit.trace.clone(),
            replay: commit.replay,
            worker: commit.worker.clone(),
            next_run_at: wait.map(|(due_at, _)| due_at),
            delay: wait.map(|(_, delay)| delay),
            why: commit.transition.why.to_string(),
        },
    }
}

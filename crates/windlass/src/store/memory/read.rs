//! Reads: jobs, attempts, groups, depths, tallies.

use super::super::{DeadCount, DeadGroup, Depth, Holder, JobFilter, KeyedJob, Order, Page, Queue, Scope, Steps};
use super::state::State;
use crate::fingerprint::{Left, fingerprint, normalise};
use crate::job::Job;
use crate::tally::{Tally, window_start};
use std::collections::BTreeMap;
use windlass_core::job::{Kind, Tenant};
use windlass_core::{Attempt, JobId, Reason, State as JobState, Timestamp};

pub(super) fn jobs(state: &State, scope: &Scope, filter: &JobFilter, page: Page) -> Vec<Job> {
    let mut found: Vec<&Job> = state.live.values().chain(state.archive.values()).collect();
    found.retain(|job| scope.covers(&job.tenant) && matches(state, job, filter));
    found.sort_by_key(|job| job.id);
    if page.order == Order::NewestFirst {
        found.reverse();
    }
    let beyond = |job: &&Job| is_beyond(job.id, page);
    found.into_iter().filter(beyond).take(page.limit as usize).cloned().collect()
}

pub(super) fn keyed(state: &State, tenant: &Tenant, key: &str) -> Option<KeyedJob> {
    let held = state.keys.get(&(tenant.clone(), key.into()))?;
    let lease = state.running.get(&held.job).copied();
    state.live.contains_key(&held.job).then_some(KeyedJob { job: held.job, lease })
}

pub(super) fn attempts(state: &State, scope: &Scope, id: JobId, limit: u32) -> Vec<Attempt> {
    let Some(lines) = state.find(scope, id).and_then(|job| state.ledger.get(&job.id)) else { return Vec::new() };
    let skip = lines.len().saturating_sub(limit as usize);
    lines.iter().skip(skip).map(|line| line.attempt.clone()).collect()
}

pub(super) fn schedule_attempts(state: &State, scope: &Scope, schedule: JobId, limit: u32) -> Vec<(JobId, Attempt)> {
    let runs = state.live.values().chain(state.archive.values());
    let runs = runs.filter(|job| job.schedule == Some(schedule) && scope.covers(&job.tenant));
    let lines =
        runs.flat_map(|job| state.ledger.get(&job.id).into_iter().flatten().map(|line| (job.id, &line.attempt)));
    let mut all: Vec<(JobId, Attempt)> = lines.map(|(id, attempt)| (id, attempt.clone())).collect();
    all.sort_by_key(|(id, attempt)| (attempt.finished_at, *id, attempt.number));
    all.split_off(all.len().saturating_sub(limit as usize))
}

pub(super) fn dead_groups(state: &State, scope: &Scope, filter: &JobFilter, limit: u32) -> Vec<DeadGroup> {
    let dead = JobFilter { dead_letters: true, ..filter.clone() };
    let mut groups: BTreeMap<(String, String), DeadGroup> = BTreeMap::new();
    for job in state.archive.values().filter(|job| scope.covers(&job.tenant) && matches(state, job, &dead)) {
        let at = job.finished_at.unwrap_or(job.created_at);
        let key = (job_fingerprint(state, job), job.tenant.to_string());
        let group = groups.entry(key.clone()).or_insert_with(|| DeadGroup {
            fingerprint: key.0,
            tenant: job.tenant.clone(),
            queue: job.queue.clone(),
            kind: job.kind.clone(),
            error_class: job.error_class.clone().unwrap_or_default(),
            message: normalise(job.error.as_deref().unwrap_or_default()),
            count: 0,
            first_seen: at,
            last_seen: at,
            example: job.id,
        });
        group.count += 1;
        group.first_seen = group.first_seen.min(at);
        group.last_seen = group.last_seen.max(at);
        group.example = group.example.max(job.id);
    }
    let mut groups: Vec<DeadGroup> = groups.into_values().collect();
    groups.sort_by(|a, b| (b.count, &a.fingerprint).cmp(&(a.count, &b.fingerprint)));
    groups.truncate(limit as usize);
    groups
}

pub(super) fn dead_series(state: &State, scope: &Scope, filter: &JobFilter, steps: Steps) -> Vec<DeadCount> {
    let dead = JobFilter { dead_letters: true, ..filter.clone() };
    let mut counts: BTreeMap<(String, &str, usize), DeadCount> = BTreeMap::new();
    for job in state.archive.values().filter(|job| scope.covers(&job.tenant) && matches(state, job, &dead)) {
        let Some(step) = steps.index_of(job.finished_at.unwrap_or(job.created_at)) else { continue };
        let fingerprint = job_fingerprint(state, job);
        let count = counts.entry((fingerprint.clone(), job.tenant.as_str(), step));
        count.or_insert_with(|| DeadCount { fingerprint, tenant: job.tenant.clone(), step, count: 0 }).count += 1;
    }
    counts.into_values().collect()
}

pub(super) fn series(state: &State, scope: &Scope, steps: Steps) -> Vec<(usize, Queue, Tally)> {
    let mut sums: BTreeMap<(usize, i64), Tally> = BTreeMap::new();
    for (at, queue, _, delta) in &state.counts {
        if let Some(step) = steps.index_of(*at) {
            *sums.entry((step, queue.0)).or_default() += *delta;
        }
    }
    let named = sums.into_iter().filter_map(|((step, id), tally)| {
        let queue = state.queues.iter().find(|q| q.id.0 == id && scope.covers(&q.tenant))?;
        Some((step, queue.clone(), tally))
    });
    named.collect()
}

pub(super) fn depths(state: &State, scope: &Scope, now: Timestamp) -> Vec<Depth> {
    state.queues.iter().filter(|q| scope.covers(&q.tenant)).map(|q| depth(state, q, now)).collect()
}

fn depth(state: &State, queue: &Queue, now: Timestamp) -> Depth {
    let mut depth = Depth { queue: queue.id, due: 0, later: 0, running: 0, dead: 0, oldest_due: None };
    for job in state.live.values().filter(|job| job.queue_id == queue.id) {
        if job.state == JobState::Running {
            depth.running += 1;
        } else if job.due_at > now {
            depth.later += 1;
        } else {
            depth.due += 1;
            // What a gate keeps back says nothing about the workers.
            let due_at = Some(job.due_at).filter(|_| !state.gates.is_parked(job.id));
            depth.oldest_due = [depth.oldest_due, due_at].into_iter().flatten().min();
        }
    }
    let is_dead = |job: &&Job| job.queue_id == queue.id && is_dead_letter(job);
    depth.dead = state.archive.values().filter(is_dead).count() as u64;
    depth
}

pub(super) fn tallies(state: &State, scope: &Scope, since: Option<Timestamp>) -> Vec<(Queue, Kind, Tally)> {
    let since = since.map(window_start);
    let mut sums: BTreeMap<(i64, Kind), Tally> = BTreeMap::new();
    for (at, queue, kind, delta) in &state.counts {
        if since.is_none_or(|since| *at >= since) {
            *sums.entry((queue.0, kind.clone())).or_default() += *delta;
        }
    }
    let named = sums.into_iter().filter_map(|((id, kind), tally)| {
        let queue = state.queues.iter().find(|q| q.id.0 == id && scope.covers(&q.tenant))?;
        Some((queue.clone(), kind, tally))
    });
    named.collect()
}

pub(super) fn is_beyond(id: JobId, page: Page) -> bool {
    page.after.is_none_or(|after| match page.order {
        Order::NewestFirst => id < after,
        Order::OldestFirst => id > after,
    })
}

fn is_dead_letter(job: &Job) -> bool {
    job.state == JobState::Failed && job.discarded_at.is_none()
}

fn job_fingerprint(state: &State, job: &Job) -> String {
    // The trace of the attempt that ended it; without one that failed, there is none.
    let last = state.ledger.get(&job.id).and_then(|lines| lines.last()).map(|line| &line.attempt);
    let trace = last.filter(|_| job.reason != Some(Reason::Expired)).and_then(|attempt| attempt.trace.as_deref());
    let left = Left {
        class: job.error_class.as_deref().unwrap_or_default(),
        message: job.error.as_deref().unwrap_or_default(),
        trace,
    };
    fingerprint(left, &job.kind, &job.queue)
}

fn matches(state: &State, job: &Job, filter: &JobFilter) -> bool {
    let seen_at = job.finished_at.unwrap_or(job.created_at);
    (filter.states.is_empty() || filter.states.contains(&job.state))
        && filter.queue.as_ref().is_none_or(|name| *name == job.queue)
        && filter.tenant.as_ref().is_none_or(|tenant| *tenant == job.tenant)
        && filter.kind.as_ref().is_none_or(|kind| *kind == job.kind)
        && filter.error_class.as_ref().is_none_or(|class| job.error_class.as_ref() == Some(class))
        && filter.since.is_none_or(|since| seen_at >= since)
        && filter.schedule.is_none_or(|schedule| job.schedule == Some(schedule))
        && filter.parent.is_none_or(|parent| job.parent == Some(parent))
        && filter.executor.is_none_or(|executor| job.executor == executor)
        && (!filter.dead_letters || is_dead_letter(job))
        && filter.fingerprint.as_ref().is_none_or(|print| job_fingerprint(state, job) == *print)
}

pub(super) fn holders(state: &State, ids: &[JobId]) -> Vec<Holder> {
    let holder = |id: &JobId| {
        let lease = state.leases.get(state.running.get(id)?)?;
        let started_at = state.live.get(id)?.claimed_at?;
        Some(Holder { job: *id, worker: lease.worker.0.to_string(), started_at, lease_until: lease.expires_at })
    };
    ids.iter().filter_map(holder).collect()
}

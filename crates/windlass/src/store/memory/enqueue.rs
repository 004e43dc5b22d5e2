//! Enqueue: new jobs and their idempotency keys.

use super::super::{Atomicity, Enqueued};
use super::state::{Key, State};
use crate::job::{KeyWindow, NewJob};
use crate::tally::Tally;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::Timestamp;
use windlass_core::job::Tenant;
use windlass_core::key::{KeyHolder, KeyVerdict, Request};

pub(super) fn enqueue(state: &mut State, jobs: &[NewJob], atomicity: Atomicity, now: Timestamp) -> Vec<Enqueued> {
    if atomicity == Atomicity::All && would_refuse(state, jobs, now) {
        return jobs.iter().map(|job| known(state, job, now).unwrap_or(Enqueued::NotStored)).collect();
    }
    jobs.iter().map(|job| known(state, job, now).unwrap_or_else(|| store(state, job, now))).collect()
}

/// Stores a job without checks: its key, if any, is free.
pub(super) fn store(state: &mut State, new: &NewJob, now: Timestamp) -> Enqueued {
    let id = state.draw_id();
    let due_at = new.run_at.moment(now);
    let queue_id = state.queue(&new.tenant, &new.queue, new.executor, now).id;
    if let Some(idempotency) = &new.idempotency {
        let until = match idempotency.window {
            KeyWindow::For(span) => Some(now + span),
            KeyWindow::Live => None,
        };
        state.keys.insert((new.tenant.clone(), idempotency.key.clone()), Key { job: id, until });
    }
    state.put(new.clone().stored(id, queue_id, now, due_at));
    state.count(now, queue_id, &new.kind, Tally { enqueued: 1, ..Tally::default() });
    Enqueued::Created { id, created_at: now, due_at }
}

/// The job that already has this idempotency key, if any.
fn known(state: &State, new: &NewJob, now: Timestamp) -> Option<Enqueued> {
    let key = &new.idempotency.as_ref()?.key;
    let held = state.keys.get(&(new.tenant.clone(), key.clone()))?;
    let holder = KeyHolder { job: held.job, until: held.until, is_live: state.live.contains_key(&held.job) };
    let first = state.live.get(&held.job).or_else(|| state.archive.get(&held.job));
    let first = first.map(|job| Request::new(&job.kind, &job.payload));
    holder.verdict(first, Request::new(&new.kind, &new.payload), now).map(|verdict| match verdict {
        KeyVerdict::Existing(id) => Enqueued::Existing(id),
        KeyVerdict::Conflict(id) => Enqueued::KeyConflict(id),
    })
}

fn would_refuse(state: &State, jobs: &[NewJob], now: Timestamp) -> bool {
    let mut in_batch: HashMap<(Tenant, Arc<str>), &NewJob> = HashMap::new();
    jobs.iter().any(|job| {
        if let Some(known) = known(state, job, now) {
            return matches!(known, Enqueued::KeyConflict(_));
        }
        let Some(idempotency) = &job.idempotency else { return false };
        let first = in_batch.entry((job.tenant.clone(), idempotency.key.clone())).or_insert(job);
        !Request::new(&first.kind, &first.payload).is_same(Request::new(&job.kind, &job.payload))
    })
}

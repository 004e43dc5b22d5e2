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

impl State {
    pub(super) fn enqueue(&mut self, jobs: &[NewJob], atomicity: Atomicity, now: Timestamp) -> Vec<Enqueued> {
        if atomicity == Atomicity::All && self.would_refuse(jobs, now) {
            return jobs.iter().map(|job| self.known(job, now).unwrap_or(Enqueued::NotStored)).collect();
        }
        jobs.iter().map(|job| self.known(job, now).unwrap_or_else(|| self.store(job, now))).collect()
    }

    /// Stores a job without checks: its key, if any, is free.
    pub(super) fn store(&mut self, new: &NewJob, now: Timestamp) -> Enqueued {
        let id = self.draw_id();
        let due_at = new.run_at.moment(now);
        let queue_id = self.queue(&new.tenant, &new.queue, new.executor, now).id;
        if let Some(idempotency) = &new.idempotency {
            let until = match idempotency.window {
                KeyWindow::For(span) => Some(now + span),
                KeyWindow::Live => None,
            };
            self.keys.insert((new.tenant.clone(), idempotency.key.clone()), Key { job: id, until });
        }
        self.put(new.clone().stored(id, queue_id, now, due_at));
        self.count(now, queue_id, &new.kind, Tally { enqueued: 1, ..Tally::default() });
        Enqueued::Created { id, created_at: now, due_at }
    }

    /// The job that already has this idempotency key, if any.
    fn known(&self, new: &NewJob, now: Timestamp) -> Option<Enqueued> {
        let key = &new.idempotency.as_ref()?.key;
        let held = self.keys.get(&(new.tenant.clone(), key.clone()))?;
        let holder = KeyHolder { job: held.job, until: held.until, is_live: self.live.contains_key(&held.job) };
        let first = self.live.get(&held.job).or_else(|| self.archive.get(&held.job));
        let first = first.map(|job| Request::new(&job.kind, &job.payload));
        holder.verdict(first, Request::new(&new.kind, &new.payload), now).map(|verdict| match verdict {
            KeyVerdict::Existing(id) => Enqueued::Existing(id),
            KeyVerdict::Conflict(id) => Enqueued::KeyConflict(id),
        })
    }

    fn would_refuse(&self, jobs: &[NewJob], now: Timestamp) -> bool {
        let mut in_batch: HashMap<(Tenant, Arc<str>), &NewJob> = HashMap::new();
        jobs.iter().any(|job| {
            if let Some(known) = self.known(job, now) {
                return matches!(known, Enqueued::KeyConflict(_));
            }
            let Some(idempotency) = &job.idempotency else { return false };
            let first = in_batch.entry((job.tenant.clone(), idempotency.key.clone())).or_insert(job);
            !Request::new(&first.kind, &first.payload).is_same(Request::new(&job.kind, &job.payload))
        })
    }
}

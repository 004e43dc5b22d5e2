//! Transfer: jobs read with their history, and stored as they were elsewhere.

use super::super::{IMPORT, Import, Imported, JobCopy, KeyHeld, SettingKey};
use super::settings;
use super::state::{Key, Line, State};
use crate::job::{Job, LeaseId};
use std::collections::btree_map::Entry;
use std::ops::Bound;
use windlass_core::{JobId, Timestamp};

pub(super) fn copies(state: &State, after: Option<JobId>, limit: u32, now: Timestamp) -> Vec<JobCopy> {
    let beyond = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
    let mut jobs: Vec<&Job> = state.live.range(beyond).map(|(_, job)| job).take(limit as usize).collect();
    jobs.extend(state.archive.range(beyond).map(|(_, job)| job).take(limit as usize));
    jobs.sort_by_key(|job| job.id);
    jobs.into_iter().take(limit as usize).map(|job| copy(state, job, now)).collect()
}

fn copy(state: &State, job: &Job, now: Timestamp) -> JobCopy {
    let lines = state.ledger.get(&job.id).map_or(&[][..], Vec::as_slice);
    let held = job.idempotency_key.as_ref().and_then(|key| state.keys.get(&(job.tenant.clone(), key.clone())));
    let refers = |key: &&Key| key.job == job.id && key.until.map_or(job.state.is_live(), |until| now < until);
    JobCopy {
        job: job.clone(),
        attempts: lines.iter().map(|line| line.attempt.clone()).collect(),
        key: held.filter(refers).map(|key| KeyHeld::from_until(key.until)),
    }
}

pub(super) fn import(state: &mut State, import: Import, now: Timestamp) -> Imported {
    let key = SettingKey::Server { name: IMPORT.into() };
    let mark = state.settings.get(&(key.clone(), String::new())).map(|named| named.setting.value.clone());
    if mark != import.before {
        return Imported::Overtaken;
    }
    if let Some(origin) = import.origin {
        if !(state.live.is_empty() && state.archive.is_empty() && state.schedules.is_empty()) {
            return Imported::NotEmpty;
        }
        state.installation = origin.installation;
        state.last_id = state.last_id.max(origin.last_id.0);
    }
    settings::put(state, &key, Some(&import.after), now);
    let mut existing = 0;
    for schedule in import.schedules {
        match state.schedules.entry(schedule.id) {
            Entry::Occupied(_) => existing += 1,
            Entry::Vacant(free) => _ = free.insert(schedule),
        }
    }
    for copy in import.jobs {
        if state.live.contains_key(&copy.job.id) || state.archive.contains_key(&copy.job.id) {
            existing += 1;
        } else {
            store(state, copy, now);
        }
    }
    Imported::Done { existing }
}

fn store(state: &mut State, copy: JobCopy, now: Timestamp) {
    let JobCopy { mut job, attempts, key } = copy;
    job.queue_id = state.queue(&job.tenant, &job.queue, job.executor, now).id;
    // Leases stay behind, so no lease is the one of an imported attempt.
    let line = |attempt| Line { attempt, lease: LeaseId(0) };
    state.ledger.insert(job.id, attempts.into_iter().map(line).collect());
    if let (Some(held), Some(key)) = (key, &job.idempotency_key) {
        let name = (job.tenant.clone(), key.clone());
        state.keys.entry(name).or_insert(Key { job: job.id, until: held.until() });
    }
    if job.state.is_live() {
        state.put(job);
    } else {
        state.archive.insert(job.id, job);
    }
}

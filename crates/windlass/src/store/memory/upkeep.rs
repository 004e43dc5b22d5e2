//! Prune: removes what is past its retention.

use super::state::State;
use crate::job::Job;
use crate::store::WORKERS_FOR;
use crate::tally::{DELTAS_FOR, HOUR, MINUTE, MINUTES_FOR, fold_before, start_of};
use windlass_core::{JobId, Timestamp};

pub(super) fn prune(state: &mut State, now: Timestamp) -> u64 {
    let is_past = |job: &&Job| job.finished_at.is_some_and(|at| state.keep(job).is_past(at, now));
    let past: Vec<JobId> = state.archive.values().filter(is_past).map(|job| job.id).collect();
    for id in &past {
        state.archive.remove(id);
        state.ledger.remove(id);
    }
    let (live, keys) = (&state.live, &mut state.keys);
    keys.retain(|_, key| key.until.map_or_else(|| live.contains_key(&key.job), |until| until > now));
    state.workers.retain(|_, worker| worker.seen_at >= now - WORKERS_FOR);
    state.gates.prune(now);
    fold(state, now);
    past.len() as u64
}

/// Folds old counts into minutes and then hours, as a database does.
fn fold(state: &mut State, now: Timestamp) {
    let minutes_before = fold_before(now, DELTAS_FOR, MINUTE);
    let hours_before = fold_before(now, MINUTES_FOR, HOUR);
    for (at, ..) in &mut state.counts {
        if *at < hours_before {
            *at = start_of(*at, HOUR);
        } else if *at < minutes_before {
            *at = start_of(*at, MINUTE);
        }
    }
}

//! The frontier: how far this store has drained each queue and priority. Claims start there, and do a full scan once a
//! second, so that neither running rows at the head nor dead rows slow them down. A full scan finds jobs whose
//! transaction committed late. While a long transaction keeps dead rows from being cleaned up, full scans take longer
//! and longer: then they are rarer.

use crate::clock::Clock;
use crate::job::ClaimedJob;
use crate::store::Share;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use windlass_core::{Millis, Priority};

/// How often a claim does a full scan.
const FULL_LOOK: Millis = Millis::from_secs(1);
/// Full scans may take at most one part in this many of the time.
const FULL_LOOK_SHARE: u64 = 100;
const RAREST_LOOK: Millis = Millis::from_secs(30);
/// The most places remembered; beyond it, all are forgotten.
const LIMIT: usize = 50_000;

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Frontier(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    places: HashMap<(i64, i16), (i64, i64)>,
    next_look: Millis,
}

/// Where a claim starts: due time and id, for each share and priority.
#[derive(Debug)]
pub(in crate::store::postgres) struct Start {
    /// A full scan, not from the frontier.
    pub(in crate::store::postgres) is_full: bool,
    pub(in crate::store::postgres) due_at: Vec<i64>,
    pub(in crate::store::postgres) id: Vec<i64>,
}

impl Start {
    /// Where a claim starts in each priority of its nth share.
    pub(in crate::store::postgres) fn of_share(&self, nth: usize) -> (Vec<i64>, Vec<i64>) {
        let levels = Priority::HIGHEST_FIRST.len();
        let part = |list: &[i64]| list.iter().skip(nth * levels).take(levels).copied().collect();
        (part(&self.due_at), part(&self.id))
    }
}

/// How far one priority of a queue was drained: due time and id of the last job that left it.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::postgres) struct Drained {
    pub(in crate::store::postgres) queue: i64,
    pub(in crate::store::postgres) priority: i16,
    pub(in crate::store::postgres) place: (i64, i64),
}

impl Drained {
    /// Everything up to a claimed job has been drained, unless the job lost a worker before: such jobs are read by
    /// another index, in an order of their own.
    pub(in crate::store::postgres) fn by(job: &ClaimedJob) -> Option<Self> {
        let place = (job.due_at.as_millis(), job.id.0);
        (job.crashes == 0).then_some(Self { queue: job.queue_id.0, priority: job.priority.rank(), place })
    }
}

impl Frontier {
    /// Where to start. With a test's clock every claim is a full scan: the frontier depends on real time.
    pub(in crate::store::postgres) fn start(&self, shares: &[Share], clock: &Clock) -> Start {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.monotonic();
        let is_full = clock.fixed().is_some() || now >= state.next_look;
        let count = shares.len() * Priority::HIGHEST_FIRST.len();
        if is_full {
            state.next_look = now + FULL_LOOK;
            state.places.clear();
            return Start { is_full, due_at: vec![0; count], id: vec![0; count] };
        }
        let mut start = Start { is_full, due_at: Vec::with_capacity(count), id: Vec::with_capacity(count) };
        for share in shares {
            for priority in Priority::HIGHEST_FIRST {
                let (due_at, id) = state.places.get(&(share.queue.0, priority.rank())).copied().unwrap_or_default();
                start.due_at.push(due_at);
                start.id.push(id);
            }
        }
        start
    }

    /// A full scan took this long.
    pub(in crate::store::postgres) fn looked(&self, took: Millis, now: Millis) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.next_look = now + pause_after(took);
    }

    /// Queues were drained so far.
    pub(in crate::store::postgres) fn advance(&self, drained: impl Iterator<Item = Drained>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.places.len() > LIMIT {
            state.places.clear();
        }
        for Drained { queue, priority, place } in drained {
            let known = state.places.entry((queue, priority)).or_default();
            *known = (*known).max(place);
        }
    }

    /// Work became due behind the frontier.
    pub(in crate::store::postgres) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }
}

/// How long to use the frontier after a full scan that took this long.
fn pause_after(took: Millis) -> Millis {
    Millis::new(took.get().saturating_mul(FULL_LOOK_SHARE)).clamp(FULL_LOOK, RAREST_LOOK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_scans_take_at_most_a_hundredth_of_the_time() {
        assert_eq!(pause_after(Millis::ZERO), FULL_LOOK);
        assert_eq!(pause_after(Millis::new(10)), FULL_LOOK);
        assert_eq!(pause_after(Millis::new(150)), Millis::from_secs(15));
        assert_eq!(pause_after(Millis::from_secs(10)), RAREST_LOOK);
    }
}

//! How many due jobs a claim of a gated queue looks at. It locks every job that it looks at, so it looks at as many as
//! it has slots; at more after a claim that could not fill them, and at fewer after one that gates stopped.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most due jobs of each priority of a queue that one claim looks at: as many as a worker takes ahead. A gate is
/// written once per claim, however many of its jobs start.
const MOST: u32 = 4000;
/// The fewest.
const FEWEST: u32 = 16;
/// The most due jobs for each free slot, while gates refuse many of them.
const MAX_WINDOW: u32 = 64;
/// The most queues remembered; beyond it, all are forgotten.
const LIMIT: usize = 10_000;

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct GateLooks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many due jobs for each free slot, less one.
    more: u32,
    /// Queues whose gates stop claims, and how many due jobs a claim looks at.
    stopped: HashMap<i64, u32>,
}

impl GateLooks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many due jobs of each priority a claim looks at that could take `most`.
    pub(in crate::store::postgres) fn look(&self, queue: i64, most: u32) -> u32 {
        let state = self.lock();
        let wanted = most.saturating_mul(state.more + 1);
        state.stopped.get(&queue).map_or(wanted, |look| wanted.min(*look)).clamp(FEWEST, MOST)
    }

    /// A claim has looked; if it was short, there may have been more to take.
    pub(in crate::store::postgres) fn looked(&self, is_short: bool) {
        let mut state = self.lock();
        let window = state.more + 1;
        state.more = if is_short { window.saturating_mul(4).min(MAX_WINDOW) } else { (window / 2).max(1) } - 1;
    }

    /// Gates stopped a claim after so many starts, or (`None`) the claim could have taken more than it looked at. The
    /// next claim looks at about twice as many; if that was too few, at more and more.
    pub(in crate::store::postgres) fn stopped(&self, queue: i64, started: Option<u32>) {
        let mut state = self.lock();
        let before = state.stopped.remove(&queue);
        let look = match started {
            Some(started) => Some(started.saturating_mul(2).max(before.unwrap_or_default() / 2).max(FEWEST)),
            None => before.map(|look| look.saturating_mul(4)).filter(|look| *look < MOST),
        };
        if state.stopped.len() > LIMIT {
            state.stopped.clear();
        }
        state.stopped.extend(look.map(|look| (queue, look)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_claim_looks_further_the_next_time() {
        let looks = GateLooks::default();
        assert_eq!(looks.look(1, 50), 50);
        looks.looked(true);
        assert_eq!(looks.look(1, 50), 200);
        looks.looked(false);
        assert_eq!(looks.look(1, 50), 100);
        (0..9).for_each(|_| looks.looked(true));
        assert_eq!((looks.look(1, 10), looks.look(1, 100)), (640, MOST));
    }

    #[test]
    fn a_stopped_queue_is_looked_at_for_about_twice_what_it_started() {
        let looks = GateLooks::default();
        looks.stopped(1, Some(20));
        assert_eq!((looks.look(1, 500), looks.look(2, 500)), (40, 500));
        looks.stopped(1, Some(0));
        assert_eq!(looks.look(1, 500), 20, "it takes several stops to look at much fewer");
        looks.stopped(1, None);
        assert_eq!(looks.look(1, 500), 80);
        looks.stopped(1, None);
        looks.stopped(1, None);
        assert_eq!(looks.look(1, 500), 500);
    }
}

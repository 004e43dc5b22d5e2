//! Pace: how fast a group's slots get through jobs, and how many jobs to hold ahead of them. Quick handlers are given
//! large claims however few slots they have; slow handlers are given what their slots can start at once. Pure.

use windlass_core::Millis;

/// The most jobs that one group holds ahead of its free slots: as many as no-op handlers finish in a few hundredths of
/// a second.
pub(crate) const MAX_AHEAD: u32 = 4000;
/// How much work to hold ahead: what the slots get through in this time, so that every round trip carries many jobs …
const WORK_AHEAD: Millis = Millis::new(20);
/// … or in twice the time of a claim, so that no slot is idle while one is under way, but never more than this.
const MOST_WORK_AHEAD: Millis = Millis::from_secs(1);
/// The number held ahead is at most this many times the jobs that were measured: a few quick jobs prove little.
const MAX_GROWTH: u64 = 4;
/// Held jobs that would wait longer than this for a slot are handed back, because another worker may be free. It
/// happens when slow jobs follow quick ones.
const LONGEST_WAIT: Millis = Millis::from_secs(5);
/// Attempts are counted in parts, so that old measurements fade away smoothly.
const PARTS: u64 = 1024;

/// Measures slot time: how long slots had a job, or waited for a thread to run it. A slot that waits for a claim is
/// idle and counts for nothing, so a slow store does not make handlers look slow.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// What was measured lately. Its parts count half as much with every period that passes.
    past: Measured,
    current: Measured,
    /// When the current period began, and until when its slot time is counted.
    began: Millis,
    counted_until: Millis,
    /// All attempts finished until the last measurement.
    finished: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    /// Attempts, in parts.
    finished: u64,
    /// In milliseconds.
    slot_time: u64,
}

/// How many jobs to hold beyond those that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    /// Claim this many ahead of free slots.
    pub ahead: u32,
    /// Hand back those beyond this many.
    pub most: u64,
}

impl Pace {
    /// `running` slots have been in use until now, and their number is about to change.
    pub(crate) fn count(&mut self, running: u32, now: Millis) {
        self.current.slot_time += u64::from(running) * (now - self.counted_until).get();
        self.counted_until = now;
    }

    /// Counts `finished`, all attempts so far, and until now. `running` slots are in use.
    pub(crate) fn measure(&mut self, running: u32, finished: u64, now: Millis) {
        self.count(running, now);
        self.current.finished += (finished - self.finished) * PARTS;
        self.finished = finished;
        if now - self.began >= WORK_AHEAD || self.current.finished > self.past.finished {
            self.past = Measured { finished: self.past.finished / 2, slot_time: self.past.slot_time / 2 };
            self.past = self.past.with(std::mem::take(&mut self.current));
            self.began = now;
        }
    }

    /// How many jobs to hold, by what `slots` get through and how long the last claim took.
    pub(crate) fn hold(&self, slots: u32, claim_took: Millis) -> Hold {
        let known = self.past.with(self.current);
        let span = Millis::new(claim_took.get() * 2).clamp(WORK_AHEAD, MOST_WORK_AHEAD);
        let work = known.within(span, slots).min(known.finished * MAX_GROWTH / PARTS);
        Hold { ahead: work.min(MAX_AHEAD.into()) as u32, most: known.within(LONGEST_WAIT, slots) }
    }
}

impl Measured {
    /// How many jobs `slots` get through in `span`.
    fn within(self, span: Millis, slots: u32) -> u64 {
        u64::from(slots) * self.finished * span.get() / (self.slot_time.max(1) * PARTS)
    }

    fn with(self, other: Self) -> Self {
        Self { finished: self.finished + other.finished, slot_time: self.slot_time + other.slot_time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: u32 = 50;
    const AT_ONCE: Millis = Millis::ZERO;

    fn at(ms: u64) -> Millis {
        Millis::new(ms)
    }

    fn ahead(pace: &Pace) -> u32 {
        pace.hold(SLOTS, AT_ONCE).ahead
    }

    /// Slots that are all in use, with handlers that take `each`; one measurement per round.
    fn steady(rounds: std::ops::Range<u64>, each: u64) -> Pace {
        let mut pace = Pace::default();
        for round in rounds {
            pace.measure(SLOTS, round * u64::from(SLOTS), at(round * each));
        }
        pace
    }

    #[test]
    fn handlers_that_take_no_time_are_given_as_much_as_a_group_may_hold() {
        let (mut pace, mut finished, mut held) = (Pace::default(), 0, 0);
        let mut rounds = Vec::new();
        for _ in 0..5 {
            finished += u64::from(SLOTS + held);
            pace.measure(0, finished, at(0));
            held = ahead(&pace);
            rounds.push(held);
        }
        assert_eq!(rounds, [200, 1100, MAX_AHEAD, MAX_AHEAD, MAX_AHEAD]);
    }

    #[test]
    fn a_few_quick_jobs_prove_little() {
        let mut pace = Pace::default();
        pace.measure(0, 1, at(0));
        assert_eq!(ahead(&pace), 4);
    }

    #[test]
    fn the_number_follows_the_time_that_handlers_take() {
        for (each, expected) in [(10, 100), (100, 10), (1000, 1), (10_000, 0)] {
            assert_eq!(ahead(&steady(1..12, each)), expected, "handlers of {each} ms");
        }
    }

    #[test]
    fn a_slow_claim_asks_for_more_within_bounds() {
        let pace = steady(1..12, 100);
        let held = |ms| pace.hold(SLOTS, at(ms)).ahead;
        assert_eq!([held(0), held(10), held(30), held(500), held(60_000)], [10, 10, 30, 399, 399]);
    }

    #[test]
    fn handlers_that_become_slow_are_given_less_and_the_rest_is_handed_back() {
        let mut pace = steady(1..12, 1);
        assert!(ahead(&pace) > 500);
        // Nothing finishes from now on, and every slot is in use.
        let holds: Vec<Hold> = (1..20)
            .map(|second| {
                pace.measure(SLOTS, 11 * u64::from(SLOTS), at(second * 1000));
                pace.hold(SLOTS, AT_ONCE)
            })
            .collect();
        assert!(holds[0].ahead < 5, "{holds:?}");
        assert!(holds.is_sorted_by(|a, b| a.ahead >= b.ahead && a.most >= b.most), "{holds:?}");
        assert_eq!(holds.last(), Some(&Hold { ahead: 0, most: 0 }), "{holds:?}");
    }

    #[test]
    fn waiting_for_a_claim_is_not_slot_time() {
        let mut pace = Pace::default();
        for round in 1..20 {
            // Fifty jobs of one millisecond, then nothing to do while a claim takes a second.
            let began = at(round * 1001);
            pace.count(0, began);
            pace.count(SLOTS, began + at(1));
            pace.measure(0, round * 50, began + at(1000));
        }
        assert!(ahead(&pace) > 300, "{}", ahead(&pace));
    }

    #[test]
    fn what_was_measured_long_ago_counts_no_more() {
        let mut pace = Pace::default();
        pace.measure(0, 1000, at(0));
        assert!(ahead(&pace) > 0);
        (1..13).for_each(|second| pace.measure(0, 1000, at(second * 1000)));
        assert_eq!(ahead(&pace), 0);
    }
}

//! Counts over a sliding window: one pair of numbers per slice of time.

use super::CLOCK_SET_BACK;
use crate::time::{Millis, Timestamp};

/// Slices of the window, and the one that has just begun.
pub(super) const SLICES: usize = 11;

/// Two counts per slice of time, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Buckets {
    /// The length of a slice; zero: nothing has been counted yet.
    pub slice: Millis,
    /// The number of the newest slice, counted from 1970.
    pub newest: u64,
    pub counts: [(u32, u32); SLICES],
}

impl Buckets {
    /// Counts in slices of this length from now on. Counts of another length are forgotten.
    pub(super) fn add(&mut self, slice: Millis, now: Timestamp, (a, b): (u32, u32)) {
        let slice = slice.max(Millis::new(1));
        if self.slice != slice || self.is_set_back(now) {
            *self = Self { slice, newest: number(slice, now), ..Self::default() };
        }
        let passed = number(slice, now).saturating_sub(self.newest);
        self.shift(passed);
        let newest = &mut self.counts[0];
        *newest = (newest.0.saturating_add(a), newest.1.saturating_add(b));
    }

    /// Both sums over the window.
    pub(super) fn sums(&self, now: Timestamp) -> (u32, u32) {
        self.live(now).fold((0_u32, 0_u32), |(a, b), (_, count)| (a.saturating_add(count.0), b.saturating_add(count.1)))
    }

    /// When the oldest slice that satisfies `is_counted` leaves the window.
    pub(super) fn oldest_leaves(&self, now: Timestamp, is_counted: impl Fn((u32, u32)) -> bool) -> Option<Timestamp> {
        let (number, _) = self.live(now).filter(|(_, count)| is_counted(*count)).last()?;
        let ends = (number + SLICES as u64).saturating_mul(self.slice.get());
        Some(Timestamp::from_millis(i64::try_from(ends).unwrap_or(i64::MAX)))
    }

    /// The slices still in the window with their numbers, newest first.
    fn live(&self, now: Timestamp) -> impl Iterator<Item = (u64, (u32, u32))> {
        let current = if self.slice.is_zero() { 0 } else { number(self.slice, now).max(self.newest) };
        let oldest = (current + 1).saturating_sub(SLICES as u64);
        let (newest, is_empty) = (self.newest, self.slice.is_zero() || self.is_set_back(now));
        let numbered = self.counts.iter().enumerate().map(move |(i, count)| (newest.checked_sub(i as u64), *count));
        let kept = numbered.filter_map(move |(number, count)| number.filter(|n| *n >= oldest).map(|n| (n, count)));
        kept.filter(move |_| !is_empty)
    }

    fn shift(&mut self, slices: u64) {
        let by = usize::try_from(slices).unwrap_or(usize::MAX).min(SLICES);
        self.counts.rotate_right(by % SLICES);
        self.counts[..by].fill((0, 0));
        self.newest += slices;
    }

    fn is_set_back(&self, now: Timestamp) -> bool {
        !self.slice.is_zero() && number(self.slice, now + CLOCK_SET_BACK) < self.newest
    }
}

fn number(slice: Millis, now: Timestamp) -> u64 {
    now.since(Timestamp::EPOCH).get() / slice.get()
}

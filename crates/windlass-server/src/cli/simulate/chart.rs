//! Shared parts of the plots: seconds grouped into columns, and a scale of powers of ten.

use super::Curve;
use std::ops::Range;
use windlass_core::Millis;
use windlass_core::simulate::Second;

const DAY: usize = 86_400;
/// Possible widths of columns in seconds; longer runs use whole days.
const WIDTHS: [usize; 28] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 60, 90, 120, 180, 240, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400,
    21_600, 43_200,
];
/// Possible distances of labels in seconds, as round numbers; longer runs use whole days.
const TICKS: [usize; 16] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200];

/// A column of a plot: several seconds, represented by the busiest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) calls: u64,
    pub(super) failed: u64,
    /// Calls in its busiest second.
    pub(super) peak: u32,
    /// Calls served in the second that served most.
    pub(super) served: u32,
}

/// The time axis, shared by all curves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    /// Seconds in a column.
    pub(super) step: usize,
    pub(super) columns: usize,
}

impl Time {
    /// The finest axis over all curves that has at most `most` columns.
    pub(super) fn fitting(curves: &[Curve], recovery: Millis, most: usize) -> Self {
        let last = curves.iter().map(|curve| curve.run.load.len()).max().unwrap_or(0);
        // The recovery is shown even if no call came after it.
        let seconds = last.max(recovery.get().div_ceil(1000) as usize + 1);
        let step = at_least(seconds.div_ceil(most.max(1)), &WIDTHS);
        Self { step, columns: seconds.div_ceil(step) }
    }

    pub(super) fn columns_of(self, load: &[Second]) -> Vec<Column> {
        let mut columns: Vec<Column> = load.chunks(self.step).map(column).collect();
        columns.resize(self.columns, Column::default());
        columns
    }

    /// Times to label, at least `gap` columns apart, with the column of each.
    pub(super) fn ticks(self, gap: usize) -> Vec<(usize, Millis)> {
        let distance = at_least(self.step * gap, &TICKS);
        let times = (0..self.columns * self.step).step_by(distance);
        times.map(|second| (second / self.step, Millis::from_secs(second as u64))).collect()
    }

    /// The columns that a span touches.
    pub(super) fn columns_between(self, from: Millis, to: Millis) -> Range<usize> {
        let step = self.step as u64 * 1000;
        (from.get() / step) as usize..to.get().div_ceil(step) as usize
    }
}

fn column(seconds: &[Second]) -> Column {
    seconds.iter().fold(Column::default(), |sum, second| Column {
        calls: sum.calls + u64::from(second.calls),
        failed: sum.failed + u64::from(second.failed),
        peak: sum.peak.max(second.calls),
        served: sum.served.max(second.calls - second.failed),
    })
}

fn at_least(seconds: usize, choices: &[usize]) -> usize {
    let in_days = || seconds.div_ceil(DAY) * DAY;
    choices.iter().copied().find(|choice| *choice >= seconds).unwrap_or_else(in_days)
}

/// How many powers of ten the busiest second of any curve needs; at least one.
pub(super) fn decades(curves: &[Curve]) -> usize {
    let busiest = curves.iter().map(|curve| curve.run.peak.calls).max().unwrap_or(0);
    (1..).find(|n| 10_u64.pow(*n) >= u64::from(busiest)).unwrap_or(1) as usize
}

/// `10`, `100`, `1k`, …
pub(super) fn power_of_ten(n: usize) -> String {
    let unit = ["", "k", "M", "G"].get(n / 3).copied().unwrap_or("T");
    format!("1{}{unit}", "0".repeat(n % 3))
}

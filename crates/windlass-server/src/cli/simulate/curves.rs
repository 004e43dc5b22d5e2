//! Load curves in the terminal: one curve for each policy, all on the same scales.

use super::Curve;
use super::chart::{Column, Time, decades, power_of_ten};
use super::table::{count, shortened};
use crate::cli::terminal::screen::{Ink, Screen, wrap};
use windlass_core::Millis;
use windlass_core::simulate::{Scenario, Target};

/// Width of `10k │`.
const MARGIN: usize = 6;
/// Wider plots are hard to read.
const MAX_PLOT: usize = 120;
const MIN_PLOT: usize = 20;
/// Columns between labels of the time axis.
const TICK_GAP: usize = 12;
/// A row is a power of ten, drawn in eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const CAPACITY: char = '┄';

pub(super) fn draw(scenario: &Scenario, curves: &[Curve], screen: &Screen) -> String {
    let target = &scenario.target;
    let width = screen.width.saturating_sub(MARGIN + 1).clamp(MIN_PLOT, MAX_PLOT);
    let time = Time::fitting(curves, target.recovers_at(), width);
    let rows = decades(curves);
    let mut text = format!("{}\n", wrap(&legend(target, time), screen.width));
    for curve in curves {
        text.push_str(&format!("\n{}\n", screen.ink.bold(&shortened(&curve.label, screen.width))));
        let columns = time.columns_of(&curve.run.load);
        for row in (0..rows).rev() {
            let label = format!("{:>4} │", power_of_ten(row + 1));
            let cells = cells(&columns, row, capacity_row(target.capacity));
            let line = format!("{}{}", screen.ink.dim(&label), painted(&cells, screen.ink));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str(&format!("{}\n", screen.ink.dim(&ground(target, time))));
    }
    text.push_str(&format!("{}\n", screen.ink.dim(&axis(time))));
    text
}

fn legend(target: &Target, time: Time) -> String {
    let step = Millis::from_secs(time.step as u64);
    let column = if time.step == 1 { "each second".to_owned() } else { format!("the busiest second of each {step}") };
    let capacity = count(u64::from(target.capacity));
    let down = if target.down_for.is_zero() { "" } else { ", ▒ down" };
    format!("Calls in {column}; a row is ten times the one below; {CAPACITY} capacity {capacity}/s{down}")
}

/// The row of the capacity line.
fn capacity_row(capacity: u32) -> usize {
    eighths(capacity).saturating_sub(1) / 8
}

/// Height on a scale of powers of ten; a single call is still visible.
fn eighths(calls: u32) -> usize {
    match calls {
        0 => 0,
        1 => 1,
        _ => (f64::from(calls).log10() * 8.0).round() as usize,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paint {
    /// Most calls were served.
    Served,
    /// Most calls failed.
    Failed,
    Line,
}

fn cells(columns: &[Column], row: usize, capacity_row: usize) -> Vec<(char, Paint)> {
    let cell = |column: &Column| {
        let level = eighths(column.peak).saturating_sub(row * 8).min(8);
        if level == 0 {
            let line = if row == capacity_row { CAPACITY } else { ' ' };
            return (line, Paint::Line);
        }
        (EIGHTHS[level], if column.failed * 2 > column.calls { Paint::Failed } else { Paint::Served })
    };
    columns.iter().map(cell).collect()
}

/// Neighbouring cells of one colour share an escape sequence; one for each cell would be most of the output.
fn painted(cells: &[(char, Paint)], ink: Ink) -> String {
    let runs = cells.chunk_by(|a, b| a.1 == b.1).map(|run| {
        let text: String = run.iter().map(|(c, _)| c).collect();
        match run[0].1 {
            Paint::Served => ink.cyan(&text),
            Paint::Failed => ink.red(&text),
            Paint::Line => ink.dim(&text),
        }
    });
    runs.collect()
}

/// The line under a curve, which shows when the target was down.
fn ground(target: &Target, time: Time) -> String {
    let down = time.columns_between(target.down_at, target.recovers_at());
    let ground = (0..time.columns).map(|i| if !target.down_for.is_zero() && down.contains(&i) { '▒' } else { '─' });
    format!("   1 └{}", ground.collect::<String>())
}

fn axis(time: Time) -> String {
    let mut line: Vec<char> = vec![' '; MARGIN];
    for (column, at) in time.ticks(TICK_GAP) {
        let label = at.to_string();
        // A label that would exceed the width is omitted.
        if column > 0 && column + label.len() > time.columns.max(TICK_GAP) {
            continue;
        }
        line.resize(MARGIN + column, ' ');
        line.extend(label.chars());
    }
    line.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_by_a_row_with_each_power_of_ten() {
        for (calls, height) in [(0, 0), (1, 1), (10, 8), (100, 16), (1000, 24), (1_000_000, 48)] {
            assert_eq!(eighths(calls), height, "{calls}");
        }
    }

    #[test]
    fn the_capacity_runs_through_the_row_it_lies_in() {
        for (capacity, row) in [(1, 0), (10, 0), (20, 1), (100, 1), (200, 2)] {
            assert_eq!(capacity_row(capacity), row, "{capacity}");
        }
    }

    #[test]
    fn columns_that_failed_and_columns_that_were_served_differ_in_colour() {
        let column = |failed| Column { calls: 10, failed, peak: 10, served: 0 };
        let cells = cells(&[column(10), column(9), column(0), Column::default()], 0, 0);
        assert_eq!(painted(&cells, Ink::Colour), "\x1b[31m██\x1b[0m\x1b[36m█\x1b[0m\x1b[2m┄\x1b[0m");
        assert_eq!(painted(&cells, Ink::Plain), "███┄");
    }
}

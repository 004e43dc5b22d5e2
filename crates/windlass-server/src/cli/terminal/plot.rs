//! A preview as a table with a plot of its windows next to the numbers.

use crate::cli::terminal::screen::{Ink, Screen};
use windlass_core::Millis;
use windlass_core::preview::{Delay, Preview};

/// Narrower plots are not readable; then only the numbers are shown.
const MIN_PLOT: usize = 16;
/// Wider ones are hard to read.
const MAX_PLOT: usize = 80;
const GAP: &str = "  ";

/// One line per retry: number, delay, window, total, and the window drawn to scale. Retries beyond `allowed`
/// are dimmed: the policy would have given up.
pub(crate) fn table(preview: &Preview, allowed: u32, screen: &Screen) -> String {
    let cells: Vec<[String; 5]> = preview.delays.iter().map(cells).collect();
    let titles = ["retry", "delay", "from", "to", "total"];
    let widths: Vec<usize> = (0..titles.len())
        .map(|i| cells.iter().map(|row| row[i].len()).chain([titles[i].len()]).max().unwrap_or(0))
        .collect();
    let aligned = |row: [&str; 5]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        padded.collect::<Vec<_>>().join(GAP)
    };
    let used = widths.iter().sum::<usize>() + GAP.len() * titles.len();
    let axis = Axis::fitting(preview, screen.width.saturating_sub(used + 1));

    let head = format!("{}{}", aligned(titles), axis.map_or(String::new(), |a| format!("{GAP}{}", a.title())));
    let mut lines = vec![screen.ink.bold(head.trim_end())];
    for (delay, row) in preview.delays.iter().zip(&cells) {
        let numbers = aligned(row.each_ref().map(String::as_str));
        let bar = axis.map_or(String::new(), |a| format!("{GAP}{}", a.bar(delay, screen.ink)));
        let line = if delay.retry > allowed { screen.ink.dim(&numbers) } else { numbers };
        lines.push(format!("{line}{bar}"));
    }
    lines.join("\n") + "\n"
}

fn cells(delay: &Delay) -> [String; 5] {
    let spans = [delay.delay, delay.window.min, delay.window.max, delay.total].map(|span| span.to_string());
    let [wait, min, max, total] = spans;
    [delay.retry.to_string(), wait, min, max, total]
}

/// A linear scale from zero to the longest delay.
#[derive(Debug, Clone, Copy)]
struct Axis {
    longest: Millis,
    width: usize,
}

impl Axis {
    fn fitting(preview: &Preview, room: usize) -> Option<Self> {
        let longest = preview.delays.iter().map(|d| d.window.max.max(d.delay)).max()?;
        (room >= MIN_PLOT && !longest.is_zero()).then(|| Self { longest, width: room.min(MAX_PLOT) })
    }

    fn title(self) -> String {
        let end = self.longest.to_string();
        format!("0{end:>width$}", width = self.width - 1)
    }

    fn column(self, span: Millis) -> usize {
        let last = (self.width - 1) as u128;
        (u128::from(span.get()) * last / u128::from(self.longest.get())) as usize
    }

    /// `·····━━━●━━━`: the wait, the window, and the delay before jitter in it.
    fn bar(self, delay: &Delay, ink: Ink) -> String {
        let (from, to) = (self.column(delay.window.min), self.column(delay.window.max));
        // A window that was shifted down to the cap may be below its delay.
        let mark = self.column(delay.delay).clamp(from, to);
        let window: String = (from..=to).map(|i| if i == mark { '●' } else { '━' }).collect();
        format!("{}{}", ink.dim(&"·".repeat(from)), ink.cyan(&window))
    }
}

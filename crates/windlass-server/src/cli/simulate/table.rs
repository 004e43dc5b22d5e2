//! The figures of a comparison: a table if it fits, else a list for each policy.

use super::Curve;
use crate::cli::terminal::screen::{Screen, wrap};
use windlass_core::Millis;

const GAP: &str = "  ";
/// Below this width policies cannot be distinguished; then the figures are listed.
const MIN_LABEL: usize = 14;
const TITLES: [&str; 8] = ["calls", "wasted", "peak/s", "after/s", "drain", "median", "p99", "given up"];

pub(super) fn figures(curves: &[Curve], screen: &Screen) -> String {
    let rows: Vec<[String; 8]> = curves.iter().map(cells).collect();
    let widths: Vec<usize> = (0..TITLES.len())
        .map(|i| rows.iter().map(|row| row[i].len()).chain([TITLES[i].len()]).max().unwrap_or(0))
        .collect();
    let used = widths.iter().map(|width| width + GAP.len()).sum::<usize>();
    let room = screen.width.saturating_sub(used);
    if room < MIN_LABEL {
        return listed(curves, &rows, screen);
    }
    let longest = curves.iter().map(|curve| curve.label.chars().count()).max().unwrap_or(0);
    let first = longest.max("policy".len()).min(room);
    let line = |label: &str, row: [&str; 8]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{GAP}{cell:>width$}"));
        format!("{:<first$}{}", shortened(label, first), cells.collect::<String>())
    };
    let mut text = format!("{}\n", screen.ink.bold(&line("policy", TITLES)));
    for (curve, row) in curves.iter().zip(&rows) {
        text.push_str(&line(&curve.label, row.each_ref().map(String::as_str)));
        text.push('\n');
    }
    text
}

fn listed(curves: &[Curve], rows: &[[String; 8]], screen: &Screen) -> String {
    let list = curves.iter().zip(rows).map(|(curve, row)| {
        let figures: Vec<String> = TITLES.iter().zip(row).map(|(title, cell)| format!("{title} {cell}")).collect();
        let label = screen.ink.bold(&shortened(&curve.label, screen.width));
        format!("{label}\n{}\n", wrap(&figures.join(", "), screen.width))
    });
    list.collect()
}

fn cells(curve: &Curve) -> [String; 8] {
    let run = &curve.run;
    let span = |span: Option<Millis>| span.map_or_else(|| "-".to_owned(), |span| rounded(span).to_string());
    [
        count(run.calls),
        count(run.wasted),
        count(u64::from(run.peak.calls)),
        count(u64::from(run.peak_after.calls)),
        span(run.drain),
        span(run.median),
        span(run.p99),
        count(u64::from(run.given_up())),
    ]
}

/// `10,000`
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rounded for reading: tenths below ten seconds, whole seconds above.
pub(super) fn rounded(span: Millis) -> Millis {
    let unit = match span.get() {
        0..1000 => 1,
        1000..10_000 => 100,
        _ => 1000,
    };
    Millis::new((span.get() + unit / 2) / unit * unit)
}

/// A label that is too long, cut at its end.
pub(super) fn shortened(label: &str, width: usize) -> String {
    if label.chars().count() <= width {
        return label.to_owned();
    }
    label.chars().take(width - 1).chain(['…']).collect()
}

//! Rates over time as steps under a line, with the scale of both axes.

use super::{Svg, round_up};
use crate::dashboard::show;
use std::fmt::Write as _;
use windlass_core::Millis;

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 96.0;
const LEFT: f64 = 40.0;
const TOP: f64 = 8.0;
const GROUND: f64 = HEIGHT - 16.0;

/// Counts of equal steps up to now, as jobs per second. `name` says what is counted, to screen readers.
pub(crate) fn bars(name: &str, class: &str, counts: &[i64], step: Millis) -> Svg {
    let seconds = step.get() as f64 / 1000.0;
    let rates: Vec<f64> = counts.iter().map(|count| (*count).max(0) as f64 / seconds).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let top = round_up(most);
    let total: i64 = counts.iter().sum();
    let span = show::span(Millis::new(step.get() * counts.len() as u64));
    let mut svg = format!(
        "<svg class=\"plot {class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{name}: {total} in the last {span}, at most {} a second\">",
        show::rate(most)
    );
    for (share, label) in [(1.0, show::rate(top)), (0.5, String::new()), (0.0, "0".into())] {
        let y = GROUND - share * (GROUND - TOP);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {y}H{WIDTH}\"/>");
        if !label.is_empty() {
            let _ = write!(svg, "<text x=\"{}\" y=\"{}\" class=\"end\">{label}</text>", LEFT - 5.0, y + 3.5);
        }
    }
    let width = (WIDTH - LEFT) / rates.len().max(1) as f64;
    let mut line = String::new();
    for (place, rate) in rates.iter().enumerate() {
        let (x, y) = (LEFT + place as f64 * width, GROUND - rate / top * (GROUND - TOP));
        let _ = write!(line, "{}{x:.1} {y:.1}H{:.1}", if place == 0 { 'M' } else { 'L' }, x + width);
    }
    if !rates.is_empty() {
        let _ = write!(svg, "<path class=\"area\" d=\"{line}V{GROUND}H{LEFT}Z\"/><path class=\"line\" d=\"{line}\"/>");
    }
    let foot = HEIGHT - 3.0;
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"{foot}\">{span} ago</text><text x=\"{WIDTH}\" y=\"{foot}\" class=\"end\">now</text></svg>"
    );
    Svg(svg)
}

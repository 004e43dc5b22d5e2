//! A sparkline: counts of equal steps as small bars, without axes.

use super::Svg;
use std::fmt::Write as _;

const HEIGHT: f64 = 20.0;
const BAR: f64 = 4.0;

/// `name` says what is counted, to screen readers.
pub(crate) fn spark(name: &str, counts: &[u64]) -> Svg {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = counts.len() as f64 * BAR;
    let total: u64 = counts.iter().sum();
    let mut svg = format!(
        "<svg class=\"spark\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" aria-label=\"{name}: {total}\" \
         preserveAspectRatio=\"none\"><path class=\"grid\" d=\"M0 {y}H{width}\"/><path class=\"bars\" d=\"",
        y = HEIGHT - 0.5
    );
    for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        // One is visible beside a thousand.
        let height = (*count as f64 / most * (HEIGHT - 2.0)).max(2.0);
        let x = place as f64 * BAR;
        let _ = write!(svg, "M{x} {HEIGHT}v-{height:.1}h{}v{height:.1}z", BAR - 1.0);
    }
    svg.push_str("\"/></svg>");
    Svg(svg)
}

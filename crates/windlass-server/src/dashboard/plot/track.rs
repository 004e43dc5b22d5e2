//! One row of a job's timeline: the attempt, the wait after it and the window in which that wait was chosen, to scale
//! on the time axis that all rows share.

use super::Svg;
use std::fmt::Write as _;
use windlass_core::{Millis, Timestamp};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 20.0;
/// An attempt of a millisecond is visible beside a wait of an hour.
const LEAST: f64 = 5.0;

/// The time axis of all rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// What a row shows.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    /// The class of the attempt's bar: how it ended.
    pub(crate) class: &'a str,
    pub(crate) ran: Option<(Timestamp, Timestamp)>,
    /// From the end of the attempt until the next is due.
    pub(crate) waits: Option<(Timestamp, Timestamp)>,
    /// The window in which the wait was chosen, from its start.
    pub(crate) window: Option<(Millis, Millis)>,
}

impl Axis {
    fn x(&self, at: Timestamp) -> f64 {
        let whole = (self.to.as_millis() - self.from.as_millis()).max(1) as f64;
        ((at.as_millis() - self.from.as_millis()) as f64 / whole * WIDTH).clamp(0.0, WIDTH)
    }
}

pub(crate) fn track(axis: Axis, row: &Row<'_>) -> Svg {
    let mut svg = format!(
        "<svg class=\"track\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
    );
    let middle = HEIGHT / 2.0;
    let _ = write!(svg, "<path class=\"axis\" d=\"M0 {middle}H{WIDTH}\"/>");
    if let (Some((from, _)), Some((least, most))) = (row.waits, row.window) {
        let (x, end) = (axis.x(from + least), axis.x(from + most));
        let _ = write!(
            svg,
            "<rect class=\"window\" x=\"{x:.1}\" y=\"3\" width=\"{:.1}\" height=\"14\"/>",
            (end - x).max(1.0)
        );
    }
    if let Some((from, to)) = row.waits {
        let (x, end) = (axis.x(from), axis.x(to));
        let _ = write!(
            svg,
            "<path class=\"wait\" d=\"M{x:.1} {middle}H{end:.1}\"/><path class=\"due\" d=\"M{end:.1} 3v14\"/>"
        );
    }
    if let Some((from, to)) = row.ran {
        let x = axis.x(from).min(WIDTH - LEAST);
        let width = (axis.x(to) - x).max(LEAST);
        let _ =
            write!(svg, "<rect class=\"ran {}\" x=\"{x:.1}\" y=\"5\" width=\"{width:.1}\" height=\"10\"/>", row.class);
    }
    svg.push_str("</svg>");
    Svg(svg)
}

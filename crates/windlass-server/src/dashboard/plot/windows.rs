//! A policy's retries: for each, the window in which its delay is chosen, on one scale.

use super::Svg;
use crate::dashboard::show;
use std::fmt::Write as _;
use windlass_core::Preview;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 30.0;
const RIGHT: f64 = 70.0;
const ROW: f64 = 16.0;
const FOOT: f64 = 18.0;

pub(crate) fn windows(preview: &Preview, allowed: u32) -> Svg {
    let longest = preview.delays.iter().map(|d| d.window.max.max(d.delay)).max().unwrap_or_default();
    let height = preview.delays.len() as f64 * ROW + FOOT + 4.0;
    let x = |ms: u64| LEFT + ms as f64 / longest.get().max(1) as f64 * (WIDTH - LEFT - RIGHT);
    let mut svg = format!(
        "<svg class=\"plot windows\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Delays of {} retries, the longest {}\">",
        preview.delays.len(),
        show::span(longest)
    );
    for (place, delay) in preview.delays.iter().enumerate() {
        let y = 4.0 + place as f64 * ROW;
        let class = if delay.retry > allowed { " beyond" } else { "" };
        let (from, to) = (x(delay.window.min.get()), x(delay.window.max.get()));
        let mark = x(delay.delay.get()).clamp(from, to.max(from));
        let _ = write!(
            svg,
            "<g class=\"row{class}\"><text class=\"end\" x=\"{}\" y=\"{}\">{}</text>\
             <path class=\"wait\" d=\"M{LEFT} {m}H{from:.1}\"/>\
             <rect class=\"window\" x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"10\" rx=\"2\"/>\
             <circle cx=\"{mark:.1}\" cy=\"{m}\" r=\"3\"/><text x=\"{:.1}\" y=\"{}\">{}</text></g>",
            LEFT - 8.0,
            y + 11.0,
            delay.retry,
            y + 2.0,
            (to - from).max(2.0),
            to + 8.0,
            y + 11.0,
            show::span(delay.delay),
            m = y + 7.0,
        );
    }
    let foot = height - 4.0;
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"{foot}\">0</text><text class=\"end\" x=\"{:.1}\" y=\"{foot}\">{}</text></svg>",
        x(longest.get()),
        show::span(longest)
    );
    Svg(svg)
}

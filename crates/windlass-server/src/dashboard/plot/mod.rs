//! Plots as inline SVG. Colours and widths come from the stylesheet by class, because pages allow no inline styles.

mod bars;
mod spark;
mod track;
mod windows;

pub(super) use bars::bars;
pub(super) use spark::spark;
pub(super) use track::{Axis, Row, track};
pub(super) use windows::windows;

use askama::filters::HtmlSafe;
use std::fmt;

/// A plot. It is built from numbers and escaped text only, so templates show it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Svg(String);

impl Svg {
    /// A plot of the command line, which escapes its texts.
    pub(crate) fn from_command_line(svg: String) -> Self {
        Self(svg)
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Svg {}

/// The next round number at or above `value`: 1, 2, 5, 10, 20, ….
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|round| *round >= value * 0.999_999)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn axes_end_at_round_numbers() {
        let ends = [0.0, 0.03, 1.0, 1.1, 7.0, 99.0, 100.0].map(round_up);
        for (end, expected) in ends.into_iter().zip([1.0, 0.05, 1.0, 2.0, 10.0, 100.0, 100.0]) {
            assert!((end - expected).abs() < 1e-9, "{end} {expected}");
        }
    }
}

//! Load curves as SVG: one panel for each policy, all on the same scales, readable without colour.

use super::Curve;
use super::chart::{Column, Time, decades, power_of_ten};
use super::table::{count, rounded, shortened};
use crate::cli::terminal::screen::wrap;
use std::fmt::Write as _;
use windlass_core::simulate::Scenario;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
/// Height of a line of the title.
const LINE: f64 = 20.0;
/// Between the title and the first panel: legend and panel title.
const TOP: f64 = 56.0;
/// Characters that fit between the margins.
const TITLE_CHARS: usize = 105;
/// Characters that leave space for a panel's figures.
const LABEL_CHARS: usize = 32;
const PANEL: f64 = 120.0;
/// Between panels: space for a panel's title.
const GAP: f64 = 44.0;
const BOTTOM: f64 = 40.0;
/// Columns narrower than a pixel are not visible.
const MAX_COLUMNS: usize = 880;
/// Labels on the time axis are at least a tenth of its width apart.
const MOST_TICKS: usize = 10;
/// Keeps a single call visible on a scale of powers of ten.
const LIFT: f64 = 0.25;

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #1f2933 }
.title { font-weight: 600; font-size: 14px } .name { font-weight: 600 } .small { fill: #616e7c }
.grid { stroke: #e4e7eb } .down { fill: #f3d9b1; fill-opacity: .6 } .failed { fill: #d64545 } .served { fill: #2b6cb0 }
.capacity { stroke: #1f2933; stroke-dasharray: 5 4 } .frame { fill: none; stroke: #9aa5b1 }
";

/// A whole SVG document.
pub(super) fn draw(title: &str, scenario: &Scenario, curves: &[Curve]) -> String {
    let wrapped = wrap(title, TITLE_CHARS);
    let head = TOP + LINE * wrapped.lines().count() as f64;
    let height = height(head, curves);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escaped(title),
    );
    for (i, line) in wrapped.lines().enumerate() {
        let y = LINE * (i + 1) as f64;
        push(&mut svg, format_args!("<text x=\"{LEFT}\" y=\"{y}\" class=\"title\">{}</text>", escaped(line)));
    }
    svg.push_str(&legend(scenario, head - TOP / 2.0 - 6.0));
    panels(&mut svg, scenario, curves, head);
    svg.push_str("</svg>\n");
    svg
}

/// The same for a page that has its own styles, title and legend.
pub(super) fn inline(scenario: &Scenario, curves: &[Curve]) -> String {
    let height = height(GAP, curves);
    let label =
        curves.iter().map(|curve| format!("{}: {}", curve.label, figures(curve))).collect::<Vec<_>>().join("; ");
    let mut svg = format!(
        "<svg class=\"plot load\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(&label)
    );
    panels(&mut svg, scenario, curves, GAP);
    svg.push_str("</svg>\n");
    svg
}

fn height(head: f64, curves: &[Curve]) -> f64 {
    head + curves.len() as f64 * (PANEL + GAP) - GAP + BOTTOM
}

/// One panel for each curve, and the time axis below.
fn panels(svg: &mut String, scenario: &Scenario, curves: &[Curve], head: f64) {
    let scales = Scales::of(scenario, curves);
    for (i, curve) in curves.iter().enumerate() {
        panel(svg, scenario, curve, &scales, head + i as f64 * (PANEL + GAP));
    }
    let foot = height(head, curves) - BOTTOM + 16.0;
    for (x, label) in scales.ticks() {
        push(svg, format_args!("<text x=\"{x:.1}\" y=\"{foot:.1}\" text-anchor=\"middle\">{label}</text>"));
    }
}

/// Both scales, shared by all panels.
struct Scales {
    time: Time,
    decades: usize,
}

impl Scales {
    fn of(scenario: &Scenario, curves: &[Curve]) -> Self {
        let time = Time::fitting(curves, scenario.target.recovers_at(), MAX_COLUMNS);
        Self { time, decades: decades(curves) }
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / (self.time.columns * self.time.step) as f64 * (WIDTH - LEFT - RIGHT)
    }

    /// Height above the bottom of a panel.
    fn height(&self, calls: f64) -> f64 {
        if calls <= 0.0 { 0.0 } else { (calls.log10() + LIFT) / (self.decades as f64 + LIFT) * PANEL }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let ticks = self.time.ticks(self.time.columns.div_ceil(MOST_TICKS));
        ticks.into_iter().map(|(_, at)| (self.x(at.get() as f64 / 1000.0), at.to_string())).collect()
    }
}

fn legend(scenario: &Scenario, y: f64) -> String {
    let capacity = count(u64::from(scenario.target.capacity));
    let mut x = LEFT;
    let mut svg = String::new();
    for (mark, label) in [
        ("<rect class=\"served\" width=\"14\" height=\"10\"/>", "calls/s answered".to_owned()),
        ("<rect class=\"failed\" width=\"14\" height=\"10\"/>", "calls/s made, where more than answered".to_owned()),
        ("<line class=\"capacity\" y1=\"5\" x2=\"14\" y2=\"5\"/>", format!("capacity {capacity}/s")),
        ("<rect class=\"down\" width=\"14\" height=\"10\"/>", "target down".to_owned()),
    ] {
        let text = format!("<text x=\"20\" y=\"10\">{label}</text>");
        push(&mut svg, format_args!("<g transform=\"translate({x:.0} {:.0})\">{mark}{text}</g>", y - 10.0));
        x += 50.0 + label.len() as f64 * 6.6;
    }
    svg
}

fn panel(svg: &mut String, scenario: &Scenario, curve: &Curve, scales: &Scales, top: f64) {
    let (ground, right) = (top + PANEL, WIDTH - RIGHT);
    let target = &scenario.target;
    let [from, to] = [target.down_at, target.recovers_at()].map(|at| scales.x(at.get() as f64 / 1000.0));
    let name = format!(
        "<text class=\"name\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
        top - 8.0,
        escaped(&shortened(&curve.label, LABEL_CHARS))
    );
    push(svg, format_args!("{name}"));
    push(
        svg,
        format_args!(
            "<text class=\"small\" x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            top - 8.0,
            figures(curve)
        ),
    );
    let band = to - from;
    push(
        svg,
        format_args!("<rect class=\"down\" x=\"{from:.1}\" y=\"{top}\" width=\"{band:.1}\" height=\"{PANEL}\"/>"),
    );
    for power in 0..=scales.decades {
        let y = ground - scales.height(10_f64.powi(power as i32));
        push(svg, format_args!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"));
        let (x, y, label) = (LEFT - 6.0, y + 4.0, power_of_ten(power));
        push(svg, format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"));
    }
    let columns = scales.time.columns_of(&curve.run.load);
    for (class, of) in [("failed", (|c| c.peak) as fn(&Column) -> u32), ("served", |c| c.served)] {
        let outline = outline(&columns, of, scales, ground);
        push(svg, format_args!("<path class=\"{class}\" d=\"{outline}\"/>"));
    }
    let y = ground - scales.height(f64::from(target.capacity));
    if y >= top {
        push(svg, format_args!("<line class=\"capacity\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"));
    }
    let width = right - LEFT;
    push(svg, format_args!("<rect class=\"frame\" x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{PANEL}\"/>"));
}

fn figures(curve: &Curve) -> String {
    let run = &curve.run;
    let drain = run.drain.map_or(String::new(), |span| format!(" · drained {} after recovery", rounded(span)));
    let [calls, wasted] = [run.calls, run.wasted].map(count);
    let [after, given_up] = [run.peak_after.calls, run.given_up()].map(|n| count(u64::from(n)));
    format!("{calls} calls, {wasted} wasted · peak after recovery {after}/s{drain} · {given_up} given up")
}

/// Steps along the columns, as one closed path; a flat part is one segment.
fn outline(columns: &[Column], of: fn(&Column) -> u32, scales: &Scales, ground: f64) -> String {
    let step = scales.time.step;
    let mut path = format!("M{LEFT:.1} {ground:.1}");
    let mut start = 0;
    for stretch in columns.chunk_by(|a, b| of(a) == of(b)) {
        let y = ground - scales.height(f64::from(of(&stretch[0])));
        start += stretch.len();
        let _ = write!(path, "V{y:.1}H{:.1}", scales.x((start * step) as f64));
    }
    let _ = write!(path, "V{ground:.1}Z");
    path
}

fn push(svg: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(svg, "{line}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_policys_line_cannot_break_the_document() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}

//! The rates of a run and the raw ceilings as bars, in an SVG.

use super::report::{Figure, Ratio, Report};
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
/// Where bars begin; names are to the left of it.
const LEFT: f64 = 400.0;
/// Space for the figure after the longest bar.
const RIGHT: f64 = 130.0;
const ROW: f64 = 24.0;
const TOP: f64 = 64.0;

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #1f2933 } .title { font-weight: 600; font-size: 14px } .name { text-anchor: end }
.bar { fill: #2b6cb0 } .ceiling { fill: #9aa5b1 } .small { fill: #616e7c }
";

/// A whole SVG document. Latencies have no bar: they are not rates.
pub(super) fn draw(report: &Report) -> String {
    let rates = report.all().filter(|figure| figure.latency.is_none() && figure.jobs > 0);
    let bars: Vec<(&Figure, Option<Ratio>)> = rates.map(|figure| (figure, report.ratio(figure))).collect();
    let longest = bars.iter().map(|(figure, _)| figure.per_second()).fold(1.0, f64::max);
    let height = TOP + ROW * bars.len() as f64 + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\">\n<title>Windlass bench</title>\n<style>\n{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let about = format!("{} ({}), {} bytes of payload", report.store, report.durability, report.payload);
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "<text x=\"12\" y=\"24\" class=\"title\">Jobs per second</text>");
    let _ = writeln!(svg, "<text x=\"12\" y=\"44\" class=\"small\">{}</text>", escaped(&about));
    for (row, (figure, ratio)) in bars.iter().enumerate() {
        let (name, rate) = (&figure.what, figure.per_second());
        let class = if ratio.is_some() { "bar" } else { "ceiling" };
        let ratio = ratio.as_ref().map_or_else(String::new, |ratio| format!(" ({:.2})", ratio.ratio));
        let y = TOP + ROW * row as f64;
        let width = rate / longest * (WIDTH - LEFT - RIGHT);
        let (middle, end) = (y + 14.0, LEFT + width + 6.0);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" class=\"name\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" class=\"{class}\"/>\
             <text x=\"{end:.1}\" y=\"{middle}\">{rate:.0}{ratio}</text>",
            LEFT - 8.0,
            escaped(name),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! Progress of long operations: a bar with rate and remaining time on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;

/// What a bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Jobs,
    Bytes,
}

/// A bar on standard error, so that output can be piped; hidden if that is not a terminal.
pub(crate) fn bar(total: u64, what: &'static str, unit: Unit) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let template = match unit {
        Unit::Jobs => "{msg} {wide_bar:.cyan/blue} {human_pos}/{human_len}  {rate}  {eta} left",
        Unit::Bytes => "{msg} {wide_bar:.cyan/blue} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
    };
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // If a bar cannot be drawn, the work continues.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    });
    let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style).with_message(what);
    // Drawn at once: otherwise a short operation would never show it.
    bar.tick();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

//! `windlass bench`: measures this build on this machine.

use crate::bench::{self, DEFAULT_CONCURRENCY, Load, Pace, Plan, Scenario, Target};
use crate::cli::Error;
use crate::cli::terminal::words::grouped;
use clap::ValueEnum as _;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass::core::Millis;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  windlass bench                                     a temporary SQLite file in this directory
  windlass bench --store postgres://localhost/test   in its own schema, dropped afterwards
  windlass bench --scenario drain --scenario retries --jobs 200000 --json
  windlass bench --show-sql                          the statements of the raw ceilings
  windlass bench --summary run1.json run2.json       medians of several runs, as Markdown

Every figure stands next to a raw ceiling of the same run: the same database with a plain driver and without \
Windlass. The settings are the library's defaults. Machines are noisy: compare ratios, not runs. \
With a key ring (WINDLASS_KEY_RING_FILE) values are sealed.

Exit codes: 0 done, 1 failed, 2 bad input.")]
pub(crate) struct Args {
    /// sqlite: (a temporary file here), sqlite:PATH, or postgres://…
    #[arg(long, value_name = "STORE", default_value = "sqlite:")]
    store: String,
    /// Jobs per scenario.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    jobs: u32,
    /// Bytes of payload per job.
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = clap::value_parser!(u32).range(0..=262_144))]
    payload: u32,
    /// How many handlers run at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONCURRENCY, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: u32,
    /// Waiting or archived jobs in the scenarios `future`, `archived`, `backlog` and `pages`.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    deep: u32,
    /// The backlog of the scenario `growth`.
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    growth: u32,
    /// How long the scenario `horizon` lasts.
    #[arg(long, value_name = "SECONDS", default_value = "180", value_parser = clap::value_parser!(u32).range(30..=3_600))]
    horizon_for: u32,
    /// What to measure; may be repeated [default: all but the long ones: `growth`, `store`, `future`, `archived`,
    /// `backlog`, `pages`, `horizon`].
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<Scenario>,
    /// Measure in a store that already holds jobs.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the statements of the raw ceilings and measure nothing.
    #[arg(long)]
    show_sql: bool,
    /// A name for this build in the JSON and in summaries.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Print the medians of reports that `--json` printed, and measure nothing.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["json", "svg", "show_sql"])]
    summary: Vec<PathBuf>,
    /// Also write the rates to a file as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<String, Error> {
    if !args.summary.is_empty() {
        return bench::summary(&args.summary).map_err(|error| Error::BadInput(format!("{error:#}")));
    }
    let target = Target::parse(&args.store).map_err(|error| Error::BadInput(error.to_string()))?;
    if args.show_sql {
        return Ok(bench::statements(&target));
    }
    let plan = Plan {
        load: Load { jobs: args.jobs as usize, payload: args.payload as usize },
        concurrency: args.concurrency,
        scenarios: args.chosen(),
        deep: args.deep as usize,
        growth: args.growth as usize,
        horizon_for: Millis::from_secs(args.horizon_for.into()),
    };
    let pace = Pace::default();
    let bar = progress(plan.scenarios.len() as u64 + 2, &pace);
    let begun = Cell::new(0);
    let begin = |what: &str| {
        // A scenario that has begun is not done yet; the remaining time is estimated from those that are done.
        bar.set_position(begun.replace(begun.get() + 1));
        bar.set_message(what.to_owned());
    };
    let runtime = tokio::runtime::Runtime::new().map_err(anyhow::Error::from)?;
    let report = runtime.block_on(bench::run(&target, &plan, args.force, pace, begin));
    bar.finish_and_clear();
    let report = report?;
    if let Some(path) = &args.svg {
        let written = std::fs::write(path, report.svg());
        written.map_err(|error| anyhow::anyhow!("--svg: cannot write {}: {error}", path.display()))?;
    }
    Ok(if args.json { format!("{:#}\n", report.json(args.label.as_deref())) } else { report.table() })
}

impl Args {
    fn chosen(&self) -> Vec<Scenario> {
        if !self.scenarios.is_empty() {
            return self.scenarios.clone();
        }
        let long = [
            Scenario::Raw,
            Scenario::Growth,
            Scenario::Store,
            Scenario::Future,
            Scenario::Archived,
            Scenario::Backlog,
            Scenario::Pages,
            Scenario::Horizon,
        ];
        Scenario::value_variants().iter().copied().filter(|s| !long.contains(s)).collect()
    }
}

fn progress(steps: u64, pace: &Pace) -> ProgressBar {
    let template = "{bar:24.cyan/blue} {pos}/{len} {msg}{rate} ({elapsed} elapsed, about {eta} left)";
    let watch = Arc::new(pace.watch());
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    let style = style.with_key("rate", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let rate = watch.rate();
        if rate > 0.0 {
            // If a bar cannot be drawn, the work continues.
            let _ = write!(out, " at {} jobs/s", grouped(rate as u64));
        }
    });
    let bar = ProgressBar::new(steps).with_style(style);
    // Drawn at once: otherwise a short operation would never show it.
    bar.tick();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

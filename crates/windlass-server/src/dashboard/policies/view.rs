//! What the playground shows.

use crate::cli;
use crate::dashboard::plot::{self, Svg};
use crate::dashboard::show;
use crate::http::Query;
use windlass::Random;
use windlass::client::NamedPolicy;
use windlass_core::simulate::{Run, Scenario, Target, simulate};
use windlass_core::{Millis, Policy};

/// The most retries in the plot.
const SHOWN: u32 = 20;
/// The same chance for every line, so that only the line makes a difference.
const SEED: u64 = 1;

/// The outage of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    pub(super) jobs: u32,
    pub(super) capacity: u32,
    pub(super) down_for: Millis,
}

/// A policy at play.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) words: String,
    pub(super) line: String,
    pub(super) windows: Svg,
    pub(super) delays: Vec<DelayRow>,
    pub(super) is_cut: bool,
    pub(super) load: Svg,
    pub(super) figures: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(super) struct DelayRow {
    pub(super) retry: u32,
    pub(super) delay: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) total: String,
}

/// A policy with a name.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) purpose: String,
    pub(super) line: String,
    pub(super) is_here: bool,
}

impl Outage {
    pub(super) fn read(query: &Query) -> Self {
        let whole = |name: &str, default: u32, most: u32| {
            query.text(name).and_then(|text| text.parse().ok()).unwrap_or(default).clamp(1, most)
        };
        let down_for = query.text("outage").and_then(|text| Millis::parse(text).ok()).unwrap_or(Millis::from_secs(120));
        let down_for = down_for.min(Millis::from_secs(6 * 3600));
        Self { jobs: whole("jobs", 1000, 5000), capacity: whole("capacity", 50, 10_000), down_for }
    }

    fn scenario(self) -> Scenario {
        let target = Target {
            capacity: self.capacity,
            latency: Millis::ZERO,
            down_at: Millis::ZERO,
            down_for: self.down_for,
            retry_after: None,
        };
        Scenario { jobs: self.jobs, arrival: Millis::ZERO, target }
    }
}

impl Played {
    /// Simulates on a thread of its own: it may take longer than other requests should wait.
    pub(super) async fn new(label: String, policy: Policy, outage: Outage) -> Self {
        let work = move || Self::compute(&label, policy, outage);
        match tokio::task::spawn_blocking(work).await {
            Ok(played) => played,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn compute(label: &str, policy: Policy, outage: Outage) -> Self {
        let preview = windlass_core::preview(&policy, policy.max_retries.min(SHOWN));
        let scenario = outage.scenario();
        let random = Random::seeded(SEED);
        let run = simulate(&scenario, &policy, || random.roll());
        let row = |delay: &windlass_core::preview::Delay| DelayRow {
            retry: delay.retry,
            delay: show::span(delay.delay),
            from: show::span(delay.window.min),
            to: show::span(delay.window.max),
            total: show::span(delay.total),
        };
        Self {
            words: windlass_core::explain(&policy),
            line: policy.to_string(),
            windows: plot::windows(&preview, policy.max_retries),
            delays: preview.delays.iter().map(row).collect(),
            is_cut: policy.max_retries > SHOWN,
            figures: figures(&run),
            load: Svg::from_command_line(cli::outage_plot(label, &scenario, policy, run)),
        }
    }
}

fn figures(run: &Run) -> Vec<(&'static str, String)> {
    vec![
        ("calls", show::number(run.calls)),
        ("wasted", show::number(run.wasted)),
        ("busiest second", show::number(run.peak.calls.into())),
        ("busiest after recovery", show::number(run.peak_after.calls.into())),
        ("drained after", run.drain.map_or_else(|| "never".into(), show::span)),
        ("given up", show::number(run.given_up().into())),
    ]
}

impl Named {
    pub(super) fn new(policy: &NamedPolicy, here: &str) -> Self {
        Self {
            name: policy.name.clone(),
            purpose: policy.purpose.unwrap_or("your own").to_owned(),
            line: policy.policy.to_string(),
            is_here: policy.name == here,
        }
    }
}

//! `windlass simulate`: what retry policies do to a service that is down for a while, compared side by side.

mod chart;
mod curves;
mod flow;
mod input;
mod json;
mod svg;
mod table;

use super::policy;
use super::terminal::screen::{Screen, wrap};
use super::{Error, policy::pretty};
use input::{Arrival, Subject};
use std::path::PathBuf;
use windlass::Random;
use windlass_core::gate::{BreakerRule, BudgetRule};
use windlass_core::simulate::{MAX_JOBS, Run, Scenario, Target, simulate, simulate_gated};
use windlass_core::{Flow, Millis, Policy};

/// More policies than this are hard to compare by eye.
const MAX_POLICIES: usize = 8;
const DEFAULT_POLICIES: [&str; 3] = ["stepped", "full-jitter", "exponential"];

const EXAMPLES: &str = "\
Examples:
  windlass simulate
  windlass simulate --policy full-jitter --policy stepped --jobs 10000 --capacity 200 --outage 2m
  windlass simulate --arrival 100/s --outage 1m@30s --policy exponential --policy http
  windlass simulate --policy herd=fixed:base=30s,jitter=none,retries=9 \\
                    --policy spread=fixed:base=30s,jitter=full,retries=9 --svg herd.svg
  windlass simulate --policy exponential --limit 10 --breaker on --latency 100ms

The target answers the first CAPACITY calls of each second and refuses the rest (429); while it is \
down it answers none. Every due job calls at once, as if there were enough workers, and a refusal \
costs the target nothing: real services slow down under overload, so a herd does more harm than is \
shown. Retries are the engine's own decisions; the same seed gives the same run.

wasted: calls that failed. peak/s: calls in the busiest second; after/s: in the busiest second after \
the recovery. With --limit, --breaker, --budget or --hold each policy is shown twice, plain and behind \
them; all calls have one key. drain: from the recovery until the last job that had failed was finished. median, p99: \
from arrival to success. At most 1,000,000 jobs, 7 days and 50,000,000 calls are simulated.

Exit codes: 0 done, 1 the SVG could not be written, 2 bad input.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A policy to compare: a preset's name or a line, optionally with a name for it
    /// [default: stepped, full-jitter, exponential].
    #[arg(long = "policy", value_name = "[NAME=]POLICY", value_parser = input::subject)]
    policies: Vec<Subject>,
    /// How many jobs there are, 1 to 1000000.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_JOBS)))]
    jobs: u32,
    /// Over how long they arrive (0s: all at once), or at what rate: 100/s, 6000/m, 50/h.
    #[arg(long, value_name = "SPAN|RATE", default_value = "0s", value_parser = input::arrival)]
    arrival: Arrival,
    /// Calls the target answers each second, 1 to 10000000.
    #[arg(long, value_name = "CALLS", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    capacity: u32,
    /// How long the target is down, and from when: 2m (from the start) or 2m@30s.
    #[arg(long, value_name = "SPAN[@START]", default_value = "2m", value_parser = input::outage)]
    outage: input::Outage,
    /// How long a call takes, with any answer: at most 1h.
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = input::latency)]
    latency: Millis,
    /// The Retry-After of the target's refusals.
    #[arg(long, value_name = "SPAN", value_parser = input::span)]
    retry_after: Option<Millis>,
    /// Also show each policy behind this limit: at most N calls at once, or a rate such as 100/s; may be repeated.
    #[arg(long = "limit", value_name = "N|RATE", value_parser = flow::limit)]
    limits: Vec<flow::Limit>,
    /// Also show each policy behind a circuit breaker: on, or
    /// window=1m,minimum=10,ratio=50%,openFor=30s,maxOpenFor=10m.
    #[arg(long, value_name = "on|FIELDS", value_parser = flow::breaker)]
    breaker: Option<BreakerRule>,
    /// Also show each policy with a retry budget: retries are at most this share of first attempts.
    #[arg(long, value_name = "PERCENT", value_parser = flow::budget)]
    budget: Option<BudgetRule>,
    /// Also show each policy with everyone waiting when a refusal asks to (needs --retry-after).
    #[arg(long, requires = "retry_after")]
    hold: bool,
    /// The seed of the jitter's random numbers.
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Write the load curves to a file as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One policy and its run.
struct Curve {
    label: String,
    policy: Policy,
    run: Run,
}

pub(crate) fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let scenario = args.scenario()?;
    let curves = args.curves(&scenario, screen)?;
    if let Some(path) = &args.svg {
        let written = std::fs::write(path, svg::draw(&args.title(&scenario), &scenario, &curves));
        written.map_err(|error| anyhow::anyhow!("--svg: cannot write {}: {error}", path.display()))?;
    }
    if args.json {
        return Ok(pretty(&json::report(args.seed, &scenario, &curves)));
    }
    let mut text = format!("{}\n\n", wrap(&args.title(&scenario), screen.width));
    text.push_str(&table::figures(&curves, screen));
    text.push('\n');
    text.push_str(&curves::draw(&scenario, &curves, screen));
    for note in notes(args, &curves) {
        text.push_str(&format!("\n{}\n", wrap(&note, screen.width)));
    }
    Ok(text)
}

/// The load curve of one policy, for a page.
pub(crate) fn outage_plot(label: &str, scenario: &Scenario, policy: Policy, run: Run) -> String {
    svg::inline(scenario, &[Curve { label: label.to_owned(), policy, run }])
}

impl Args {
    fn scenario(&self) -> Result<Scenario, Error> {
        let target = Target {
            capacity: self.capacity,
            latency: self.latency,
            down_at: self.outage.at,
            down_for: self.outage.lasts,
            retry_after: self.retry_after,
        };
        let arrival = self.arrival.span(self.jobs).map_err(Error::BadInput)?;
        Ok(Scenario { jobs: self.jobs, arrival, target })
    }

    fn curves(&self, scenario: &Scenario, screen: &Screen) -> Result<Vec<Curve>, Error> {
        let defaults = || DEFAULT_POLICIES.iter().map(|name| Subject::plain(name)).collect();
        let subjects: Vec<Subject> = if self.policies.is_empty() { defaults() } else { self.policies.clone() };
        if subjects.len() > MAX_POLICIES {
            let given = subjects.len();
            return Err(Error::BadInput(format!(
                "--policy: {given} policies are too many; give at most {MAX_POLICIES}"
            )));
        }
        let read = subjects.into_iter().map(|Subject { label, line }| {
            let policy = policy::read(&line, policy::usual_role(&line), screen);
            policy.map(|policy| (label, policy)).map_err(naming_the_flag)
        });
        let policies = read.collect::<Result<Vec<_>, _>>()?;
        let flow = flow::read(self)?;
        let curve = |(label, policy): (String, Policy), flow: Option<&Flow>| {
            // Each policy starts again from the seed, so the other policies do not change its figures.
            let random = Random::seeded(self.seed);
            let run = match flow {
                None => simulate(scenario, &policy, || random.roll()),
                Some(flow) => simulate_gated(scenario, &policy, flow, || random.roll(), |_| {}),
            };
            Curve { label, policy, run }
        };
        let both = policies.into_iter().flat_map(|(label, policy)| {
            let gated =
                flow.as_ref().map(|(name, flow)| curve((format!("{label} + {name}"), policy.clone()), Some(flow)));
            [Some(curve((label, policy), None)), gated]
        });
        Ok(both.flatten().collect())
    }

    /// The scenario in a sentence.
    fn title(&self, scenario: &Scenario) -> String {
        let jobs = table::count(u64::from(scenario.jobs));
        let jobs = if scenario.jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
        let target = &scenario.target;
        let capacity = table::count(u64::from(target.capacity));
        let takes = if target.latency.is_zero() { String::new() } else { format!(" of {} each", target.latency) };
        let outage = if target.down_for.is_zero() {
            "stays up".to_owned()
        } else {
            format!("is down from {} to {}", target.down_at, target.recovers_at())
        };
        let asks = target.retry_after.map_or(String::new(), |span| format!("; refusals ask to wait {span}"));
        let arrival = self.arrival;
        format!(
            "{jobs}, {arrival}; the target answers {capacity} calls/s{takes} and {outage}{asks} (seed {})",
            self.seed
        )
    }
}

fn naming_the_flag(error: Error) -> Error {
    match error {
        Error::BadInput(message) => Error::BadInput(format!("--policy: {message}")),
        other @ (Error::Reported(_)
        | Error::Failed(_)
        | Error::NotFound(_)
        | Error::Conflict(_)
        | Error::Unavailable(_)) => other,
    }
}

fn notes(args: &Args, curves: &[Curve]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for curve in curves.iter().filter(|curve| curve.run.unfinished > 0) {
        notes.push(format!(
            "{}: {} jobs were still live when the simulation reached its limits (7 days, 50,000,000 calls).",
            curve.label,
            table::count(u64::from(curve.run.unfinished))
        ));
    }
    if let Some(path) = &args.svg {
        notes.push(format!("Wrote {}.", path.display()));
    }
    notes
}

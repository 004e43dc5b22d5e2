//! Simulation: what a policy does to a service that is down for a while and then has a limited capacity.
//! Pure: the same scenario, policy and rolls give the same run. Every retry is the engine's own decision.
//!
//! The model is small on purpose. A target answers up to `capacity` calls in each whole second and refuses the
//! rest; while it is down it answers none. Every due job calls at once, as if there were enough workers, and a
//! refused call costs the target nothing. Real services get slower under overload, so a herd does more harm than
//! is shown here.

mod agenda;
mod gated;
mod run;

pub use gated::simulate_gated;
pub use run::{Peak, Run, Second};

use crate::decide::{Next, Outcome, Running, decide};
use crate::failure::{Advice, Failure};
use crate::jitter::Roll;
use crate::job::Delivery;
use crate::policy::Policy;
use crate::time::{Millis, Timestamp};
use agenda::Agenda;
use run::Tally;

/// The most jobs in a scenario: their agenda and states take some fifty megabytes.
pub const MAX_JOBS: u32 = 1_000_000;
/// The longest simulated time; jobs that are still live then are reported as unfinished.
pub const MAX_SPAN: Millis = Millis::from_secs(7 * 86_400);
/// The most calls in one run, some seconds of computing; jobs that are still live then are reported as unfinished.
pub const MAX_CALLS: u64 = 50_000_000;

/// The scenario, the same for every policy that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// How many jobs there are, at most [`MAX_JOBS`].
    pub jobs: u32,
    /// The jobs arrive evenly over this span; with zero, all at once.
    pub arrival: Millis,
    pub target: Target,
}

/// The service that the jobs call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Calls answered in each whole second; the rest are refused.
    pub capacity: u32,
    /// How long a call takes, with any answer.
    pub latency: Millis,
    /// When it goes down, counted from the first arrival.
    pub down_at: Millis,
    /// How long it stays down.
    pub down_for: Millis,
    /// The Retry-After of a refusal because of capacity.
    pub retry_after: Option<Millis>,
}

/// One call to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub job: u32,
    /// When it was made, counted from the first arrival.
    pub at: Millis,
    /// 0 is the job's first call.
    pub retry: u32,
    pub answer: Answer,
}

/// The target's answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Served,
    Down,
    /// Up, but the capacity of this second is used up.
    Refused,
}

impl Scenario {
    /// When a job arrives.
    #[must_use]
    pub fn arrives(&self, job: u32) -> Millis {
        let ms = u128::from(self.arrival.get()) * u128::from(job) / u128::from(self.jobs.max(1));
        Millis::new(ms as u64)
    }
}

impl Target {
    /// When the target is up again.
    #[must_use]
    pub fn recovers_at(&self) -> Millis {
        self.down_at + self.down_for
    }

    fn is_down(&self, at: Millis) -> bool {
        at >= self.down_at && at < self.recovers_at()
    }
}

/// Runs a scenario under one policy. `rolls` are drawn outside, one for each failed call.
///
/// ```
/// use windlass_core::simulate::{Scenario, Target, simulate};
/// use windlass_core::{Millis, Policy, Roll};
///
/// let target = Target {
///     capacity: 10,
///     latency: Millis::ZERO,
///     down_at: Millis::ZERO,
///     down_for: Millis::from_secs(5),
///     retry_after: None,
/// };
/// let scenario = Scenario { jobs: 30, arrival: Millis::ZERO, target };
/// let policy = Policy::parse_canonical("fixed:base=4s,retries=3,jitter=none")?;
/// let run = simulate(&scenario, &policy, || Roll(0));
/// // All fail at 0 s and 4 s; of each later herd of 30, 20 and 10, ten are served.
/// assert_eq!((run.succeeded, run.given_up(), run.wasted), (20, 10, 90));
/// # Ok::<(), windlass_core::PolicyError>(())
/// ```
#[must_use]
pub fn simulate(scenario: &Scenario, policy: &Policy, rolls: impl FnMut() -> Roll) -> Run {
    simulate_watched(scenario, policy, rolls, |_| {})
}

/// The same, and passes each call to `watch` as it is made.
pub fn simulate_watched(
    scenario: &Scenario,
    policy: &Policy,
    mut rolls: impl FnMut() -> Roll,
    mut watch: impl FnMut(&Call),
) -> Run {
    let target = &scenario.target;
    let answers = Answers::of(target);
    let mut jobs = vec![Progress::default(); scenario.jobs as usize];
    let mut agenda = Agenda::default();
    (0..scenario.jobs).for_each(|job| agenda.add(scenario.arrives(job), job));
    let mut tally = Tally::new(scenario);
    while let Some((at, job)) = agenda.next() {
        if at > MAX_SPAN || tally.calls() >= MAX_CALLS {
            tally.unfinished(agenda.len() as u32 + 1);
            break;
        }
        let answer = answer(target, at, tally.served_in_second_of(at));
        let progress = &mut jobs[job as usize];
        watch(&Call { job, at, retry: progress.failures, answer });
        tally.call(at, answer);

        let ended_at = at + target.latency;
        let arrived = scenario.arrives(job);
        let running = Running {
            failures: progress.failures,
            crashes: 0,
            first_attempt_at: Timestamp::EPOCH + arrived,
            previous_delay: progress.delay,
            delivery: Delivery::AtLeastOnce,
            cancel_requested: false,
            is_probe: false,
            policy,
            rules: crate::LiveRules::default(),
        };
        let roll = if answer == Answer::Served { Roll(0) } else { rolls() };
        let transition = decide(&running, answers.outcome(answer), Timestamp::EPOCH + ended_at, roll);
        *progress = Progress { failures: transition.failures, ..Progress::default() };
        match transition.next {
            Next::Succeeded => tally.succeeded(ended_at, ended_at - arrived, transition.failures),
            Next::Failed(reason) => tally.gave_up(ended_at, reason),
            Next::Wait { delay, .. } => {
                progress.delay = delay;
                agenda.add(ended_at + delay, job);
            }
            Next::Cancelled => unreachable!("no cancel was requested"),
        }
    }
    tally.finish(target)
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    failures: u32,
    delay: Millis,
    first_call: Option<Millis>,
}

fn answer(target: &Target, at: Millis, served: u32) -> Answer {
    if target.is_down(at) {
        Answer::Down
    } else if served < target.capacity {
        Answer::Served
    } else {
        Answer::Refused
    }
}

/// The outcomes of calls, created once and shared by millions of calls.
struct Answers {
    down: Outcome,
    refused: Outcome,
}

impl Answers {
    fn of(target: &Target) -> Self {
        let down = Failure::new("the target is down").class("ConnectError");
        let advice = target.retry_after.map_or(Advice::None, Advice::RetryAfter);
        let busy = Failure::new("the target is busy").class("RateLimited");
        Self { down: Outcome::Failed(down), refused: Outcome::Failed(Failure { status: Some(429), advice, ..busy }) }
    }

    fn outcome(&self, answer: Answer) -> &Outcome {
        match answer {
            Answer::Served => &Outcome::Succeeded,
            Answer::Down => &self.down,
            Answer::Refused => &self.refused,
        }
    }
}

//! The same outage with flow control: every call passes the gates of its queue and key first. All jobs have one key,
//! because there is one target. These are the engine's own gates; only the waiting line is simpler than a store's.

use super::run::Tally;
use super::{Answers, Call, MAX_CALLS, MAX_SPAN, Progress, Run, Scenario, answer};
use crate::decide::{Effect, Next, Running, decide};
use crate::gate::{Ended, Flow, Gate, Hold, HoldOrigin, Pass, Refusal, Start, WaitingFor};
use crate::jitter::Roll;
use crate::job::{Delivery, Executor};
use crate::policy::Policy;
use crate::rules::LiveRules;
use crate::time::{Millis, Timestamp};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What happens next. Ends come before arrivals of the same time, because they make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ends {
        job: u32,
        call: usize,
    },
    Due(u32),
    /// A gate may have opened.
    Opens,
}

/// A call under way.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    passes: Passes,
    answer: super::Answer,
}

#[derive(Debug, Clone, Copy)]
struct Passes {
    queue: Pass,
    key: Pass,
}

struct Gated<'a, R, W> {
    scenario: &'a Scenario,
    policy: &'a Policy,
    flow: &'a Flow,
    answers: Answers,
    rolls: R,
    watch: W,
    queue: Gate,
    key: Gate,
    events: BinaryHeap<Reverse<(Millis, Event)>>,
    /// Waiting behind a gate, in their order; retries without a budget wait apart and delay nobody.
    parked: VecDeque<u32>,
    over_budget: VecDeque<u32>,
    opens_at: Option<Millis>,
    jobs: Vec<Progress>,
    under_way: Vec<UnderWay>,
    tally: Tally,
}

/// Runs a scenario under one policy and the flow settings of a queue, and passes each call to `watch`.
pub fn simulate_gated(
    scenario: &Scenario,
    policy: &Policy,
    flow: &Flow,
    rolls: impl FnMut() -> Roll,
    watch: impl FnMut(&Call),
) -> Run {
    let arrivals = (0..scenario.jobs).map(|job| Reverse((scenario.arrives(job), Event::Due(job))));
    let mut run = Gated {
        scenario,
        policy,
        flow,
        answers: Answers::of(&scenario.target),
        rolls,
        watch,
        queue: Gate::default(),
        key: Gate::default(),
        events: arrivals.collect(),
        parked: VecDeque::new(),
        over_budget: VecDeque::new(),
        opens_at: None,
        jobs: vec![Progress::default(); scenario.jobs as usize],
        under_way: Vec::new(),
        tally: Tally::new(scenario),
    };
    let mut live = scenario.jobs;
    while let Some(Reverse((at, event))) = run.events.pop() {
        if at > MAX_SPAN || run.tally.calls() >= MAX_CALLS {
            break;
        }
        match event {
            Event::Due(job) => run.parked.push_back(job),
            Event::Ends { job, call } => live -= u32::from(run.ends(job, call, at)),
            Event::Opens => run.opens_at = None,
        }
        run.let_go(at);
    }
    run.tally.unfinished(live);
    run.tally.finish(&scenario.target)
}

fn moment(at: Millis) -> Timestamp {
    Timestamp::EPOCH + at
}

impl<R: FnMut() -> Roll, W: FnMut(&Call)> Gated<'_, R, W> {
    /// Starts what may start now, in order.
    fn let_go(&mut self, now: Millis) {
        while let Some(job) = self.over_budget.front().copied() {
            match self.check(job, now) {
                Ok(passes) => {
                    self.over_budget.pop_front();
                    self.starts(job, passes, now);
                }
                Err(refusal) => {
                    self.wait_for(refusal);
                    break;
                }
            }
        }
        while let Some(job) = self.parked.front().copied() {
            match self.check(job, now) {
                Ok(passes) => {
                    self.parked.pop_front();
                    self.starts(job, passes, now);
                }
                Err(refusal) if refusal.waiting_for == WaitingFor::Budget => {
                    self.parked.pop_front();
                    self.over_budget.push_back(job);
                    self.wait_for(refusal);
                }
                Err(refusal) => {
                    self.wait_for(refusal);
                    break;
                }
            }
        }
    }

    fn check(&self, job: u32, now: Millis) -> Result<Passes, Refusal> {
        let start = self.start_of(job);
        let queue = self.queue.check(&self.flow.queue, start, moment(now))?;
        let key = self.key.check(&self.flow.per_key, start, moment(now))?;
        Ok(Passes { queue, key })
    }

    fn start_of(&self, job: u32) -> Start {
        Start { is_retry: self.jobs[job as usize].failures > 0, ..Start::FIRST }
    }

    fn wait_for(&mut self, refusal: Refusal) {
        let Some(until) = refusal.until else { return };
        let at = until.since(Timestamp::EPOCH);
        if self.opens_at.is_none_or(|known| at < known) {
            self.opens_at = Some(at);
            self.events.push(Reverse((at, Event::Opens)));
        }
    }

    fn starts(&mut self, job: u32, passes: Passes, at: Millis) {
        let start = self.start_of(job);
        self.queue.start(&self.flow.queue, start, passes.queue, moment(at));
        self.key.start(&self.flow.per_key, start, passes.key, moment(at));
        let target = &self.scenario.target;
        let answer = answer(target, at, self.tally.served_in_second_of(at));
        (self.watch)(&Call { job, at, retry: self.jobs[job as usize].failures, answer });
        self.tally.call(at, answer);
        self.jobs[job as usize].first_call.get_or_insert(at);
        self.events.push(Reverse((at + target.latency, Event::Ends { job, call: self.under_way.len() })));
        self.under_way.push(UnderWay { passes, answer });
    }

    /// Whether the job is finished.
    fn ends(&mut self, job: u32, call: usize, now: Millis) -> bool {
        let UnderWay { passes, answer } = self.under_way[call];
        let progress = self.jobs[job as usize];
        let outcome = self.answers.outcome(answer);
        let running = Running {
            failures: progress.failures,
            crashes: 0,
            first_attempt_at: moment(progress.first_call.unwrap_or(now)),
            previous_delay: progress.delay,
            delivery: Delivery::AtLeastOnce,
            cancel_requested: false,
            is_probe: passes.queue.is_probe || passes.key.is_probe,
            policy: self.policy,
            rules: LiveRules { kind: &[], queue: &self.flow.rules },
        };
        let roll = if answer == super::Answer::Served { Roll(0) } else { (self.rolls)() };
        let transition = decide(&running, outcome, moment(now), roll);
        let ended = Ended::of(outcome, self.policy);
        self.queue.end(&self.flow.queue, passes.queue, ended, moment(now));
        self.key.end(&self.flow.per_key, passes.key, ended, moment(now));
        let held = match transition.effect {
            Effect::HoldKey(span) => Some((span.min(self.flow.max_hold), HoldOrigin::Rule)),
            Effect::None | Effect::Discard => {
                self.flow.hold_after(Executor::Http, outcome).map(|span| (span, HoldOrigin::RetryAfter))
            }
        };
        if let Some((span, origin)) = held {
            let (since, until) = (moment(now), moment(now + span));
            self.key.hold(Hold { since, until, origin, reason: String::new() });
        }
        let arrived = self.scenario.arrives(job);
        let delay = transition.next.remembered_delay().unwrap_or(progress.delay);
        self.jobs[job as usize] = Progress { failures: transition.failures, delay, ..progress };
        match transition.next {
            Next::Succeeded => self.tally.succeeded(now, now - arrived, transition.failures),
            Next::Failed(reason) => self.tally.gave_up(now, reason),
            Next::Wait { delay, .. } => self.events.push(Reverse((now + delay, Event::Due(job)))),
            Next::Cancelled => unreachable!("no cancel was requested"),
        }
        transition.next.wait().is_none()
    }
}

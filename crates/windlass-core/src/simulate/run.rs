//! The result of a simulated run: counted call by call, then summed up.

use super::{Answer, Scenario, Target};
use crate::job::Reason;
use crate::time::Millis;

/// What a policy did to the target and to its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The load curve: one entry for each second from the first arrival to the last call.
    pub load: Vec<Second>,
    /// The busiest second.
    pub peak: Peak,
    /// The busiest second after the target recovered.
    pub peak_after: Peak,
    pub calls: u64,
    /// Calls that failed.
    pub wasted: u64,
    pub succeeded: u32,
    /// Jobs given up, by reason; reasons without jobs are omitted.
    pub reasons: Vec<(Reason, u32)>,
    /// Jobs that were still live when the simulation reached one of its limits.
    pub unfinished: u32,
    /// How long after the recovery the last job that had failed was finished. `None` if no such job was live then,
    /// or if one was never finished.
    pub drain: Option<Millis>,
    /// Median time from arrival to success of the jobs that succeeded.
    pub median: Option<Millis>,
    /// The same, 99th percentile.
    pub p99: Option<Millis>,
}

impl Run {
    /// Jobs given up, for any reason.
    #[must_use]
    pub fn given_up(&self) -> u32 {
        self.reasons.iter().map(|(_, jobs)| jobs).sum()
    }
}

/// The calls of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Second {
    pub calls: u32,
    pub failed: u32,
}

/// The busiest second of some span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peak {
    pub calls: u32,
    /// When that second begins.
    pub at: Millis,
}

pub(super) struct Tally {
    recovers_at: Millis,
    load: Vec<Second>,
    /// Calls made before the recovery, in the second in which the target recovered.
    before_recovery: u32,
    calls: u64,
    reasons: [u32; Reason::ALL.len()],
    waits: Vec<Millis>,
    /// When the last job that had ever failed was finished.
    quiet_at: Millis,
    unfinished: u32,
}

impl Tally {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            recovers_at: scenario.target.recovers_at(),
            load: Vec::new(),
            before_recovery: 0,
            calls: 0,
            reasons: [0; Reason::ALL.len()],
            waits: Vec::new(),
            quiet_at: Millis::ZERO,
            unfinished: 0,
        }
    }

    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    /// Calls already served in the second that `at` lies in.
    pub(super) fn served_in_second_of(&self, at: Millis) -> u32 {
        self.load.get(second_of(at)).map_or(0, |s| s.calls - s.failed)
    }

    pub(super) fn call(&mut self, at: Millis, answer: Answer) {
        let second = second_of(at);
        if self.load.len() <= second {
            self.load.resize(second + 1, Second::default());
        }
        self.calls += 1;
        self.load[second].calls += 1;
        self.load[second].failed += u32::from(answer != Answer::Served);
        if at < self.recovers_at && second == second_of(self.recovers_at) {
            self.before_recovery += 1;
        }
    }

    pub(super) fn succeeded(&mut self, at: Millis, waited: Millis, failures: u32) {
        self.waits.push(waited);
        if failures > 0 {
            self.quiet_at = self.quiet_at.max(at);
        }
    }

    pub(super) fn gave_up(&mut self, at: Millis, reason: Reason) {
        let index = Reason::ALL.iter().position(|r| *r == reason).expect("ALL holds every reason");
        self.reasons[index] += 1;
        self.quiet_at = self.quiet_at.max(at);
    }

    pub(super) fn unfinished(&mut self, jobs: u32) {
        self.unfinished = jobs;
    }

    pub(super) fn finish(mut self, target: &Target) -> Run {
        self.waits.sort_unstable();
        let recovery = second_of(target.recovers_at());
        let after = self.load.iter().copied().enumerate().skip(recovery).map(|(i, second)| {
            let early = if i == recovery { self.before_recovery } else { 0 };
            (i, second.calls - early)
        });
        let drained = self.unfinished == 0 && self.quiet_at > self.recovers_at;
        Run {
            peak: peak(self.load.iter().map(|s| s.calls).enumerate()),
            peak_after: peak(after),
            calls: self.calls,
            wasted: self.load.iter().map(|s| u64::from(s.failed)).sum(),
            succeeded: self.waits.len() as u32,
            reasons: Reason::ALL.iter().copied().zip(self.reasons).filter(|(_, jobs)| *jobs > 0).collect(),
            unfinished: self.unfinished,
            drain: drained.then(|| self.quiet_at - self.recovers_at),
            median: quantile(&self.waits, 50),
            p99: quantile(&self.waits, 99),
            load: self.load,
        }
    }
}

fn second_of(at: Millis) -> usize {
    (at.get() / 1000) as usize
}

/// The first of the busiest seconds.
fn peak(seconds: impl Iterator<Item = (usize, u32)>) -> Peak {
    seconds.fold(Peak::default(), |best, (i, calls)| {
        if calls > best.calls { Peak { calls, at: Millis::from_secs(i as u64) } } else { best }
    })
}

/// The smallest value that at least `percent` of the sorted values do not exceed.
fn quantile(sorted: &[Millis], percent: usize) -> Option<Millis> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

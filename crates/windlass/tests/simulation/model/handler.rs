//! Handlers, as a seed plays them: quick, slow, hanging, panicking, deadly.

use crate::model::swarm::{Spice, Swarm};
use windlass::Job;
use windlass::core::failure::{PANIC, TIMEOUT};
use windlass::core::{Failure, Millis, Outcome};

/// What an attempt will do, unless it is asked to stop.
#[derive(Debug, Clone)]
pub struct Play {
    pub takes: Millis,
    pub end: End,
}

#[derive(Debug, Clone)]
pub enum End {
    Outcome(Outcome),
    /// The process dies.
    Crash,
}

/// Longer than any lease.
const HANG: Millis = Millis::from_secs(100);

pub fn play(swarm: &Swarm, job: &Job, pick: &mut impl FnMut(u64) -> u64) -> Play {
    let mut takes = Millis::new(pick(2000));
    if swarm.has(Spice::SlowHandlers) && pick(8) == 0 {
        takes = Millis::new(pick(3 * swarm.lease.get()));
    }
    if swarm.has(Spice::HangingHandlers) && pick(16) == 0 {
        takes = HANG;
    }
    if swarm.has(Spice::Poison) && job.payload.contains("poison") {
        return Play { takes, end: End::Crash };
    }
    if let Some(timeout) = job.timeout.filter(|timeout| *timeout < takes) {
        let failure = Failure::new("took too long").class(TIMEOUT);
        return Play { takes: timeout, end: End::Outcome(Outcome::Failed(failure)) };
    }
    if swarm.has(Spice::PanickingHandlers) && pick(6) == 0 {
        return Play { takes, end: End::Outcome(Outcome::Failed(Failure::new("boom").class(PANIC))) };
    }
    Play { takes, end: End::Outcome(outcome(pick)) }
}

fn outcome(pick: &mut impl FnMut(u64) -> u64) -> Outcome {
    let span = |ms: u64| Millis::new(ms);
    match pick(20) {
        0..=10 => Outcome::Succeeded,
        11..=14 => Outcome::Failed(Failure::new("not today")),
        15 => Outcome::Failed(Failure::permanent("never").class("Broken")),
        16 => Outcome::Failed(Failure::new("busy").retry_after(span(pick(120_000)))),
        17 => Outcome::Failed(Failure::new("busy").retry_in(span(pick(20_000)))),
        18 => Outcome::Snoozed(span(pick(10_000))),
        _ => Outcome::Cancelled,
    }
}

/// What a handler does when asked to stop.
pub fn stopped(pick: &mut impl FnMut(u64) -> u64) -> Outcome {
    match pick(4) {
        0 => Outcome::Succeeded,
        1 => Outcome::Snoozed(Millis::from_secs(1)),
        _ => Outcome::Failed(Failure::new("stopped")),
    }
}

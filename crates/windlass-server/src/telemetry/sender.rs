//! Sends one request after another, each until it is accepted, refused, or was tried often enough.

use super::collector::{Answer, Collector, Signal};
use crate::config::Protocol;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use windlass::{Clock, Random};
use windlass_core::Millis;

/// How long a request may take.
const REQUEST_LIMIT: Millis = Millis::from_secs(10);
/// How often a request is sent before it is dropped.
const TRIES: u32 = 5;
/// The pause after the first failure; it doubles with every further one.
const FIRST_PAUSE: Millis = Millis::from_secs(1);
/// The longest pause, whatever the collector asks for.
const MAX_PAUSE: Millis = Millis::from_secs(30);
/// The pause between tries while the process stops.
const LAST_PAUSE: Millis = Millis::new(200);

/// Sends requests to a collector.
#[derive(Debug)]
pub(super) struct Sender {
    collector: Collector,
    clock: Clock,
    random: Random,
    is_failing: bool,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Accepted, except for this many spans or points; the first one after failures, or not.
    Accepted { rejected: u64, is_recovery: bool },
    /// Refused, or tried too often.
    Dropped,
}

impl Sender {
    pub(super) const fn new(collector: Collector, clock: Clock, random: Random) -> Self {
        Self { collector, clock, random, is_failing: false }
    }

    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) const fn protocol(&self) -> Protocol {
        self.collector.protocol()
    }

    /// Whether the last try failed.
    pub(super) const fn is_failing(&self) -> bool {
        self.is_failing
    }

    pub(super) async fn send(&mut self, body: Bytes, stop: &CancellationToken) -> Sent {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            match self.try_once(body.clone()).await {
                Answer::Accepted { rejected } => {
                    let is_recovery = std::mem::take(&mut self.is_failing);
                    return Sent::Accepted { rejected, is_recovery };
                }
                Answer::Refused(why) => {
                    self.failed(&why);
                    break;
                }
                Answer::Later { why, after } => {
                    self.failed(&why);
                    if attempt < TRIES {
                        self.pause(after.unwrap_or_else(|| self.jittered(pause)).min(MAX_PAUSE), stop).await;
                        pause = Millis::new(pause.get() * 2);
                    }
                }
            }
        }
        Sent::Dropped
    }

    async fn try_once(&mut self, body: Bytes) -> Answer {
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            answer = self.collector.send(body) => answer,
            () = clock.sleep(REQUEST_LIMIT) => {
                Answer::Later { why: format!("it did not answer within {REQUEST_LIMIT}"), after: None }
            }
        }
    }

    async fn pause(&self, span: Millis, stop: &CancellationToken) {
        if stop.is_cancelled() {
            return self.clock.sleep(LAST_PAUSE.min(span)).await;
        }
        tokio::select! {
            () = self.clock.sleep(span) => {}
            () = stop.cancelled() => {}
        }
    }

    /// Between half and all of a pause, so that nodes do not send in step.
    fn jittered(&self, pause: Millis) -> Millis {
        let half = pause.get() / 2;
        Millis::new(half + self.random.number() % (half + 1))
    }

    /// One line when it begins to fail.
    fn failed(&mut self, why: &str) {
        let (what, effect) = match self.collector.signal() {
            Signal::Traces => ("traces", "and spans are dropped if this lasts"),
            Signal::Metrics => ("metrics", "and counters go on"),
        };
        if self.is_failing {
            tracing::debug!("{what} cannot be exported: {why}");
        } else {
            self.is_failing = true;
            tracing::warn!("{what} cannot be exported: {why}; jobs are not affected, {effect}");
        }
    }
}

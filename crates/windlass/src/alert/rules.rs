//! The rules and their input.

use super::{NOTICE_KIND, Operator};
use crate::store::{Alert, Depth, GateStatus, Queue};
use crate::tally::Tally;
use std::cmp::Reverse;
use windlass_core::gate::{BreakerState, Hold};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Executor, Millis, QuietHours, Timestamp};

/// The window of rates, unless a rule has another.
pub const WINDOW: Millis = Millis::from_secs(300);

/// What a rule measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Dead letters that await manual action.
    DeadLetters,
    /// Retries ÷ first attempts over the window, in percent.
    RetryRate,
    /// Jobs that used up their retries over the window.
    Exhausted,
    /// Mean backoff chosen over the window, in milliseconds.
    Backoff,
    /// Age of the job that has been due longest, in milliseconds.
    OldestDue,
    /// Circuit breakers that are not closed.
    OpenBreakers,
    /// Age of the oldest hold in force, in milliseconds.
    Holds,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::DeadLetters,
        Self::RetryRate,
        Self::Exhausted,
        Self::Backoff,
        Self::OldestDue,
        Self::OpenBreakers,
        Self::Holds,
    ];

    /// Whether its threshold is a time, in milliseconds.
    #[must_use]
    pub const fn is_span(self) -> bool {
        match self {
            Self::Backoff | Self::OldestDue | Self::Holds => true,
            Self::DeadLetters | Self::RetryRate | Self::Exhausted | Self::OpenBreakers => false,
        }
    }

    /// The name of the measure.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadLetters => "dead_letters",
            Self::RetryRate => "retry_rate",
            Self::Exhausted => "exhausted",
            Self::Backoff => "backoff",
            Self::OldestDue => "oldest_due",
            Self::OpenBreakers => "open_breakers",
            Self::Holds => "holds",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.as_str() == word)
    }
}

/// One rule: it holds while the measure is at or above (dead letters, open breakers) or above (the others) the
/// threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which its alerts and notices carry.
    pub name: String,
    /// What is measured.
    pub measure: Measure,
    /// The value from which the rule is broken.
    pub threshold: u64,
    /// How long it must hold before it fires.
    pub lasting: Millis,
    /// Rates over fewer attempts than this are ignored.
    pub min_count: u64,
    /// One queue, by name, in any tenant; `None` covers all queues together.
    pub queue: Option<String>,
    /// One tenant; `None` covers all of them.
    pub tenant: Option<String>,
    /// How far back rates and counts look.
    pub window: Millis,
    /// The names of the operators to notify; empty: all of them.
    pub notify: Vec<String>,
    /// How often operators are reminded while it fires; `None`: never.
    pub remind: Option<Millis>,
    /// When nobody is notified.
    pub quiet: Option<QuietHours>,
}

/// The rules with their defaults, over everything.
#[must_use]
pub fn default_rules() -> Vec<Rule> {
    let rule = |measure: Measure, threshold, lasting, min_count| Rule {
        name: measure.as_str().into(),
        measure,
        threshold,
        lasting: Millis::from_secs(lasting),
        min_count,
        queue: None,
        tenant: None,
        window: WINDOW,
        notify: Vec::new(),
        remind: None,
        quiet: None,
    };
    vec![
        rule(Measure::DeadLetters, 1, 300, 0),
        rule(Measure::RetryRate, 10, 0, 20),
        rule(Measure::Exhausted, 10, 0, 0),
        rule(Measure::Backoff, 1_800_000, 0, 20),
        rule(Measure::OldestDue, 300_000, 0, 0),
        rule(Measure::OpenBreakers, 1, 60, 0),
        rule(Measure::Holds, 3_600_000, 0, 0),
    ]
}

/// The result of one rule now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// A description, if the condition holds.
    pub holds: Option<String>,
    /// The queue that contributes most, with its tenant.
    pub worst: Option<(Tenant, QueueName)>,
}

/// The input of the rules.
#[derive(Debug, Default)]
pub struct Picture {
    pub queues: Vec<Queue>,
    pub depths: Vec<Depth>,
    /// Counts over the window of the rules that read them.
    pub recent: Vec<(Queue, Kind, Tally)>,
    /// Gates that are held or whose breaker is open.
    pub gates: Vec<GateStatus>,
}

impl Rule {
    /// The current measurement.
    #[must_use]
    pub fn read(&self, picture: &Picture, now: Timestamp) -> Reading {
        let holds = match self.measure {
            Measure::DeadLetters => self.dead_letters(picture),
            Measure::RetryRate => self.retry_rate(&self.recent(picture)),
            Measure::Exhausted => self.exhausted(&self.recent(picture)),
            Measure::Backoff => self.backoff(&self.recent(picture)),
            Measure::OldestDue => self.oldest_due(picture, now),
            Measure::OpenBreakers => self.open_breakers(picture, now),
            Measure::Holds => self.long_hold(picture, now),
        };
        let worst = holds.as_ref().and_then(|_| self.worst(picture, now));
        Reading { holds, worst }
    }

    /// The subject of its alerts: a queue, or empty for everything.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.queue.as_deref().unwrap_or_default()
    }

    /// Whether an alert belongs to this rule.
    #[must_use]
    pub fn is_about(&self, alert: &Alert) -> bool {
        alert.rule == self.name && alert.subject == self.subject()
    }

    fn covers(&self, queue: &Queue) -> bool {
        self.queue.as_deref().is_none_or(|name| name == queue.name.as_str())
            && self.tenant.as_deref().is_none_or(|tenant| tenant == queue.tenant.as_str())
    }

    /// Whether this operator is notified of its alerts.
    #[must_use]
    pub fn notifies(&self, operator: &Operator) -> bool {
        self.notify.is_empty() || self.notify.contains(&operator.name)
    }

    /// Depths of the queues this rule covers. The queue of notices is left out: failed notices must not trigger alerts.
    fn depths<'a>(&'a self, picture: &'a Picture) -> impl Iterator<Item = &'a Depth> {
        picture.depths.iter().filter(|depth| {
            let queue = picture.queues.iter().find(|q| q.id == depth.queue);
            queue.is_some_and(|q| self.covers(q) && !is_of_notices(q))
        })
    }

    fn recent(&self, picture: &Picture) -> Tally {
        let mut sum = Tally::default();
        for (queue, kind, tally) in &picture.recent {
            if self.covers(queue) && kind.as_str() != NOTICE_KIND {
                sum += *tally;
            }
        }
        sum
    }

    /// The queue that contributes most to what is measured, with its tenant.
    fn worst(&self, picture: &Picture, now: Timestamp) -> Option<(Tenant, QueueName)> {
        let of = |queue: &Queue| (queue.tenant.clone(), queue.name.clone());
        let by_depth =
            |depth: Option<&Depth>| picture.queues.iter().find(|q| Some(q.id) == depth.map(|d| d.queue)).map(of);
        let by_tally = |measured: fn(&Tally) -> i64| {
            let counted =
                picture.recent.iter().filter(|(queue, kind, _)| self.covers(queue) && kind.as_str() != NOTICE_KIND);
            let sum = |queue: &Queue| {
                let same = picture.recent.iter().filter(|(other, ..)| other.id == queue.id);
                same.map(|(_, _, tally)| measured(tally)).sum::<i64>()
            };
            counted.max_by_key(|(queue, ..)| (sum(queue), Reverse(queue.id))).map(|(queue, ..)| of(queue))
        };
        match self.measure {
            Measure::DeadLetters => {
                by_depth(self.depths(picture).max_by_key(|depth| (depth.dead, Reverse(depth.queue))))
            }
            Measure::RetryRate => by_tally(|tally| tally.retries),
            Measure::Exhausted => by_tally(|tally| tally.exhausted),
            Measure::Backoff => by_tally(|tally| tally.backoff_ms),
            Measure::OldestDue => {
                by_depth(self.working(picture).min_by_key(|depth| (depth.oldest_due.is_none(), depth.oldest_due)))
            }
            Measure::OpenBreakers => self.broken(picture, now).next().and_then(place),
            Measure::Holds => self.oldest_hold(picture, now).and_then(|(status, _)| place(status)),
        }
    }

    /// Gates of the queues this rule covers.
    fn gates<'a>(&'a self, picture: &'a Picture) -> impl Iterator<Item = &'a GateStatus> {
        let is_covered = |status: &&GateStatus| {
            let queue = status.name.queue.as_str();
            let is_owner = |own: &str| status.name.tenant.as_ref().is_none_or(|tenant| tenant.as_str() == own);
            !status.name.is_replay()
                && self.queue.as_deref().is_none_or(|own| own == queue)
                && self.tenant.as_deref().is_none_or(is_owner)
        };
        picture.gates.iter().filter(is_covered).filter(|status| status.name.queue.as_str() != super::NOTICE_QUEUE)
    }

    /// Gates whose circuit breaker is not closed.
    fn broken<'a>(&'a self, picture: &'a Picture, now: Timestamp) -> impl Iterator<Item = &'a GateStatus> {
        let is_broken = move |status: &&GateStatus| {
            status.rule.breaker.is_some() && status.gate.breaker(now) != BreakerState::Closed
        };
        self.gates(picture).filter(is_broken)
    }

    fn open_breakers(&self, picture: &Picture, now: Timestamp) -> Option<String> {
        let count = self.broken(picture, now).count() as u64;
        let first = self.broken(picture, now).next()?;
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let is = if count > 1 { "are" } else { "is" };
        (count >= self.threshold.max(1)).then(|| format!("the circuit breaker of {}{more} {is} open", named(first)))
    }

    fn oldest_hold<'a>(&'a self, picture: &'a Picture, now: Timestamp) -> Option<(&'a GateStatus, &'a Hold)> {
        let held = self.gates(picture).filter_map(|status| Some((status, status.gate.held(now)?)));
        held.min_by_key(|(_, hold)| hold.since)
    }

    fn long_hold(&self, picture: &Picture, now: Timestamp) -> Option<String> {
        let (status, hold) = self.oldest_hold(picture, now)?;
        let age = now.since(hold.since);
        let reason = if hold.reason.is_empty() { String::new() } else { format!(" ({})", hold.reason) };
        (age.get() > self.threshold).then(|| {
            let age = Millis::new(age.get() / 1000 * 1000);
            format!("{} has been held for {age} by {}{reason}, until {}", named(status), hold.origin, hold.until)
        })
    }

    /// Depths without those of paused queues: their jobs are not late, because an operator paused them.
    fn working<'a>(&'a self, picture: &'a Picture) -> impl Iterator<Item = &'a Depth> {
        let is_paused = |depth: &Depth| picture.queues.iter().any(|q| q.id == depth.queue && q.paused);
        self.depths(picture).filter(move |depth| !is_paused(depth))
    }

    fn dead_letters(&self, picture: &Picture) -> Option<String> {
        let count: u64 = self.depths(picture).map(|depth| depth.dead).sum();
        let (noun, action) = if count == 1 { ("dead letter", "awaits") } else { ("dead letters", "await") };
        (count >= self.threshold.max(1)).then(|| format!("{count} {noun} {action} manual action"))
    }

    fn retry_rate(&self, recent: &Tally) -> Option<String> {
        let (retries, firsts) = (recent.retries.max(0) as u64, recent.first_attempts.max(0) as u64);
        let enough = retries + firsts >= self.min_count;
        let above = retries * 100 > self.threshold * firsts;
        (enough && above && retries > 0)
            .then(|| format!("{retries} retries to {firsts} first attempts in {}", self.window))
    }

    fn exhausted(&self, recent: &Tally) -> Option<String> {
        let count = recent.exhausted.max(0) as u64;
        (count > self.threshold).then(|| format!("{count} jobs used up their retries in {}", self.window))
    }

    fn backoff(&self, recent: &Tally) -> Option<String> {
        let retried = recent.retried.max(0) as u64;
        let mean = (recent.backoff_ms.max(0) as u64).checked_div(retried)?;
        let holds = retried >= self.min_count && mean > self.threshold;
        holds.then(|| format!("retries wait {} on average", Millis::new(mean)))
    }

    fn oldest_due(&self, picture: &Picture, now: Timestamp) -> Option<String> {
        let oldest = self.working(picture).filter_map(|depth| depth.oldest_due).min()?;
        let age = now.since(oldest);
        (age.get() > self.threshold).then(|| format!("a job has been due for {}", Millis::new(age.get() / 1000 * 1000)))
    }
}

/// Which queue or key a gate is about.
fn named(status: &GateStatus) -> String {
    match status.name.key.as_deref() {
        Some(key) if !key.is_empty() => format!("key {key} of queue {}", status.name.queue),
        Some(_) | None => format!("queue {}", status.name.queue),
    }
}

fn place(status: &GateStatus) -> Option<(Tenant, QueueName)> {
    Some((status.name.tenant.clone()?, status.name.queue.clone()))
}

fn is_of_notices(queue: &Queue) -> bool {
    queue.executor == Executor::Http && queue.name.as_str() == super::NOTICE_QUEUE
}

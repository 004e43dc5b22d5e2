//! What the overview shows.

use crate::dashboard::plot::Svg;
use crate::dashboard::show::{self, Moment};
use windlass::client::{Alert, AlertStatus, QueueStatus, QueueWaiting, Tally, WorkerReport};
use windlass_core::gate::WaitingFor;
use windlass_core::{Millis, Timestamp};

/// The span of the plots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Minutes,
    Hour,
    Day,
}

/// A headline number.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// When the oldest due job was due.
    pub(super) since: Option<Moment>,
    /// Empty, or the class of its colour.
    pub(super) class: &'static str,
    pub(super) path: &'static str,
}

/// One plot.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) name: &'static str,
    pub(super) total: String,
    pub(super) plot: Svg,
}

/// Jobs that wait for the same.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) what: &'static str,
    pub(super) count: String,
    /// The queues they are in, or what to do about it.
    pub(super) note: String,
}

/// A queue in the table.
#[derive(Debug)]
pub(super) struct QueueRow {
    pub(super) tenant: String,
    pub(super) name: String,
    pub(super) paused: bool,
    pub(super) due: String,
    pub(super) running: String,
    pub(super) later: String,
    pub(super) dead: String,
    pub(super) has_dead: bool,
    pub(super) oldest: Option<Moment>,
    pub(super) succeeded: String,
}

/// An alert that fires.
#[derive(Debug)]
pub(super) struct Firing {
    pub(super) rule: String,
    pub(super) subject: String,
    pub(super) detail: String,
    pub(super) since: Moment,
}

impl Window {
    pub(super) const ALL: [Self; 3] = [Self::Minutes, Self::Hour, Self::Day];

    pub(super) fn parse(word: Option<&str>) -> Self {
        Self::ALL.into_iter().find(|window| Some(window.word()) == word).unwrap_or(Self::Hour)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Minutes => "5m",
            Self::Hour => "1h",
            Self::Day => "24h",
        }
    }

    /// The span and the length of a step. Counts older than minutes are kept by the minute, so steps are whole minutes.
    pub(super) const fn steps(self) -> (Millis, Millis) {
        match self {
            Self::Minutes => (Millis::from_secs(300), Millis::from_secs(5)),
            Self::Hour => (Millis::from_secs(3600), Millis::from_secs(60)),
            Self::Day => (Millis::from_secs(86_400), Millis::from_secs(900)),
        }
    }

    pub(super) fn all(self) -> [(&'static str, bool); 3] {
        Self::ALL.map(|window| (window.word(), window == self))
    }
}

pub(super) fn figures(
    queues: &[QueueStatus],
    recent: &Tally,
    workers: Option<&[WorkerReport]>,
    alerts: &[Alert],
    now: Timestamp,
) -> Vec<Figure> {
    let sum = |of: fn(&QueueStatus) -> u64| queues.iter().map(of).sum::<u64>();
    let figure = |name, value: String, class, path| Figure { name, value, since: None, class, path };
    let dead = sum(|queue| queue.dead);
    let oldest = queues.iter().filter(|queue| !queue.paused).filter_map(|queue| queue.oldest_due).min();
    let is_late = oldest.is_some_and(|due| now.since(due) > Millis::from_secs(60));
    let mut figures = vec![
        figure("due", show::number(sum(|queue| queue.due)), "", "queues"),
        figure("running", show::number(sum(|queue| queue.running)), "", "jobs?state=running"),
        figure("later", show::number(sum(|queue| queue.later)), "", "jobs?state=queued&state=retrying"),
        figure("dead letters", show::number(dead), if dead > 0 { "bad" } else { "" }, "dead-letters"),
        figure("retry rate, 5 min", show::percent(recent.retry_rate()), "", "policies"),
        Figure {
            since: Moment::some(oldest, now),
            ..figure("oldest due", "–".into(), if is_late { "warn" } else { "" }, "queues")
        },
    ];
    if let Some(workers) = workers {
        let firing = alerts.iter().filter(|alert| alert.status == AlertStatus::Firing).count();
        figures.push(figure("workers", show::number(workers.len() as u64), "", "workers"));
        figures.push(figure("alerts", show::number(firing as u64), if firing > 0 { "bad" } else { "" }, "alerts"));
    }
    figures
}

/// What waits, and for what.
pub(super) fn waits(waiting: &[QueueWaiting]) -> Vec<Wait> {
    let of = |what: &'static str, count: &dyn Fn(&QueueWaiting) -> u64| {
        let found: Vec<&QueueWaiting> = waiting.iter().filter(|queue| count(queue) > 0).collect();
        let total: u64 = found.iter().map(|queue| count(queue)).sum();
        let shown: Vec<&str> = found.iter().take(4).map(|queue| queue.queue.as_str()).collect();
        let note = shown.join(", ") + if found.len() > 4 { ", …" } else { "" };
        (total > 0).then(|| Wait { what, count: show::number(total), note })
    };
    let mut waits: Vec<Wait> = of("a free worker", &|queue| queue.counts.ready).into_iter().collect();
    for reason in WaitingFor::ALL {
        waits.extend(of(in_words(*reason), &|queue| queue.counts.behind.get(reason).copied().unwrap_or_default()));
    }
    waits.extend(of("their time, or their next retry", &|queue| queue.counts.later));
    waits
}

const fn in_words(reason: WaitingFor) -> &'static str {
    match reason {
        WaitingFor::RunAt => "their time",
        WaitingFor::Retry => "their next retry",
        WaitingFor::Concurrency => "a limit: too many run at once",
        WaitingFor::Rate => "a limit: too many started",
        WaitingFor::Hold => "a hold to end",
        WaitingFor::Breaker => "a circuit breaker to close",
        WaitingFor::Budget => "the retry budget",
        WaitingFor::Paused => "a queue that is paused",
        WaitingFor::Worker => "a worker: none reports these queues",
    }
}

impl QueueRow {
    pub(super) fn new(queue: &QueueStatus, now: Timestamp) -> Self {
        Self {
            tenant: queue.tenant.to_string(),
            name: queue.name.to_string(),
            paused: queue.paused,
            due: show::number(queue.due),
            running: show::number(queue.running),
            later: show::number(queue.later),
            dead: show::number(queue.dead),
            has_dead: queue.dead > 0,
            oldest: Moment::some(queue.oldest_due, now),
            succeeded: show::rate(queue.rates.succeeded),
        }
    }
}

impl Firing {
    pub(super) fn new(alert: &Alert, now: Timestamp) -> Self {
        let subject = if alert.subject.is_empty() { "everything" } else { &alert.subject };
        Self {
            rule: alert.rule.replace('_', " "),
            subject: subject.to_owned(),
            detail: alert.detail.clone(),
            since: Moment::new(alert.fired_at.unwrap_or(alert.since), now),
        }
    }
}

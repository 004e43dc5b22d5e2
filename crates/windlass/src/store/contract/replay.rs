//! Replay: jobs sent again, all at once or spaced in time.

use super::{Audit, ReplayOnly};
use crate::job::QueueId;
use std::collections::HashMap;
use windlass_core::{JobId, Millis, Timestamp};

/// The action's name in the audit.
pub(crate) const ACTION: &str = "replay";
/// The separator in the audit between the request and where a repetition continues.
const GOES_ON: &str = ", goes on at ";

/// Jobs to send again.
#[derive(Debug, Clone)]
pub struct Replay {
    /// In the order in which they become due.
    pub ids: Vec<JobId>,
    /// Which of the jobs are sent again.
    pub only: ReplayOnly,
    /// How far apart they become due.
    pub spacing: Spacing,
    /// When the first is due; now, if `None` or past.
    pub from: Option<Timestamp>,
    /// Who asked, for the audit.
    pub by: String,
    /// A description of the request, for the audit.
    pub what: String,
}

/// The result of replaying one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// Back in `queued` under its own id, with a fresh allowance.
    Queued,
    /// It was waiting. It is due now, or unchanged in a replay of dead letters only.
    AlreadyLive,
    /// It is running and unchanged.
    Running,
    /// In a replay of dead letters only: it has finished and is not, or no longer, a dead letter. Unchanged.
    NotDead,
    /// There is no such job.
    NotFound,
}

/// A replayed job that waits in a paused queue. It became due since the pause began, or is due later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paced {
    pub queue: QueueId,
    pub id: JobId,
    pub due_at: Timestamp,
}

/// New due times for replayed jobs that waited in paused queues, when these are resumed. All jobs of a queue move by
/// the same span, so that they stay as far apart as they were; otherwise a pause would let a replay with a rate start
/// all at once.
pub(crate) fn respaced(waiting: &[Paced], now: Timestamp) -> Vec<(JobId, Timestamp)> {
    let mut first: HashMap<QueueId, Timestamp> = HashMap::new();
    for job in waiting {
        let earliest = first.entry(job.queue).or_insert(job.due_at);
        *earliest = job.due_at.min(*earliest);
    }
    let late = waiting.iter().filter(|job| first[&job.queue] < now);
    late.map(|job| (job.id, job.due_at + now.since(first[&job.queue]))).collect()
}

/// How far apart replayed jobs become due. In microseconds, because whole milliseconds would turn 300 a second into
/// 333.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spacing(u64);

impl Replay {
    /// All at once, now.
    #[must_use]
    pub fn new(ids: Vec<JobId>, only: ReplayOnly, by: impl Into<String>) -> Self {
        Self { ids, only, spacing: Spacing::NONE, from: None, by: by.into(), what: String::new() }
    }

    /// When a job is due if `before` jobs were sent again ahead of it.
    #[must_use]
    pub fn due_at(&self, before: u64, now: Timestamp) -> Timestamp {
        self.from.map_or(now, |from| from.max(now)) + self.spacing.times(before)
    }

    /// The key of the gate that all jobs of a spaced replay pass.
    pub(crate) fn gate_key(&self) -> Option<std::sync::Arc<str>> {
        crate::store::gates::replay_key(self.spacing, &self.what)
    }

    /// The audit's detail of a replay that sent `count` jobs again; [`goes_on_at`] parses it.
    pub(crate) fn detail(&self, count: u64, now: Timestamp) -> String {
        match self.spacing {
            Spacing::NONE => self.what.clone(),
            Spacing(_) => format!("{}{GOES_ON}{}", self.what, self.due_at(count, now)),
        }
    }
}

/// Where a repetition of a spaced replay continues: after the last job of the latest such replay. The audit is written
/// in the commit that sends the jobs again, so this is correct after any interruption.
pub(crate) fn goes_on_at(what: &str, newest_first: &[Audit]) -> Option<Timestamp> {
    let mut replays = newest_first.iter().filter(|audit| audit.action == ACTION);
    replays.find_map(|audit| {
        let at = audit.detail.strip_prefix(what)?.strip_prefix(GOES_ON)?;
        Timestamp::parse(at)
    })
}

impl Spacing {
    /// All at once.
    pub const NONE: Self = Self(0);

    /// At most this many per second.
    #[must_use]
    pub const fn per_second(rate: std::num::NonZeroU32) -> Self {
        Self(1_000_000_u64.div_ceil(rate.get() as u64))
    }

    /// One job each `span`.
    #[must_use]
    pub const fn every(span: Millis) -> Self {
        Self(span.get().saturating_mul(1000))
    }

    /// In microseconds; 0 for all at once.
    pub(crate) const fn micros(self) -> u64 {
        self.0
    }

    /// The time between the first job and the `n`th one after it.
    #[must_use]
    pub const fn times(self, n: u64) -> Millis {
        Millis::new(self.0.saturating_mul(n).div_ceil(1000))
    }
}

/// `one every 20ms`
impl std::fmt::Display for Spacing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "one every {}", Millis::new(self.0 / 1000)),
            _ => write!(f, "one every {}µs", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    const NOW: Timestamp = Timestamp::from_millis(1_767_268_800_000);

    #[test]
    fn no_rate_is_exceeded_in_any_second() {
        for rate in (1..=1000).filter_map(NonZeroU32::new) {
            let spacing = Spacing::per_second(rate);
            let due: Vec<u64> = (0..5000).map(|n| spacing.times(n).get()).collect();
            let per_second = due[4999].saturating_sub(due[0]) as f64 / 4999.0;
            assert!(
                (per_second * f64::from(rate.get()) / 1000.0 - 1.0).abs() < 0.002,
                "{rate}: one every {per_second} ms"
            );
            let window = rate.get() as usize;
            assert!(due.windows(window + 1).all(|jobs| jobs[window] - jobs[0] >= 999), "{rate} a second");
        }
    }

    #[test]
    fn a_pause_moves_a_replay_as_a_whole() {
        let at = |seconds| NOW + Millis::from_secs(seconds);
        let paced = |queue, id, due_at| Paced { queue: QueueId(queue), id: JobId(id), due_at };
        let waiting = [paced(1, 1, at(10)), paced(1, 2, at(11)), paced(1, 3, at(40)), paced(2, 4, at(50))];
        assert_eq!(respaced(&waiting, at(30)), [(JobId(1), at(30)), (JobId(2), at(31)), (JobId(3), at(60))]);
        assert_eq!(respaced(&waiting, at(10)), [], "nothing is late");
        assert_eq!(respaced(&[], at(10)), []);
    }

    #[test]
    fn a_repetition_goes_on_where_the_latest_such_replay_ended() {
        let replay = |what: &str, spacing| Replay {
            spacing,
            what: what.into(),
            ..Replay::new(Vec::new(), ReplayOnly::DeadLetters, "ann")
        };
        let audit = |replay: &Replay, count| Audit {
            at: NOW,
            by: "ann".into(),
            action: ACTION.into(),
            count,
            detail: replay.detail(count, NOW),
        };
        let rated = replay("queue=a", Spacing::every(Millis::from_secs(1)));
        let later = Replay { from: Some(NOW + Millis::from_secs(10)), ..rated.clone() };
        let other = replay("queue=a kind=b", Spacing::every(Millis::from_secs(9)));
        let audits =
            [audit(&replay("queue=a", Spacing::NONE), 7), audit(&other, 5), audit(&later, 5), audit(&rated, 10)];
        assert_eq!(goes_on_at("queue=a", &audits), Some(NOW + Millis::from_secs(15)));
        assert_eq!(goes_on_at("queue=a kind=b", &audits), Some(NOW + Millis::from_secs(45)));
        assert_eq!(goes_on_at("queue=b", &audits), None);
    }
}

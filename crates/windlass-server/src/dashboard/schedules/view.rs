//! What the pages of schedules show.

use crate::dashboard::show::{self, Moment, StateView};
use windlass::client::{Missed, Overlap, Recurrence, Schedule};
use windlass_core::{Attempt, JobId, State, Status, Timestamp};

/// A schedule.
#[derive(Debug)]
pub(super) struct ScheduleRow {
    pub(super) id: i64,
    pub(super) cadence: String,
    pub(super) zone: String,
    pub(super) kind: String,
    pub(super) queue: String,
    pub(super) tenant: String,
    pub(super) paused: bool,
    pub(super) next: Option<Moment>,
    pub(super) last: Option<Moment>,
    pub(super) words: String,
    pub(super) dots: Vec<Dot>,
}

/// One attempt of a run, the oldest first.
#[derive(Debug)]
pub(super) struct Dot {
    pub(super) job: i64,
    pub(super) outcome: StateView,
    pub(super) title: String,
}

/// One attempt of a run, as a row.
#[derive(Debug)]
pub(super) struct RunRow {
    pub(super) job: i64,
    pub(super) label: String,
    pub(super) outcome: StateView,
    pub(super) at: Moment,
    pub(super) took: String,
    pub(super) error: String,
}

/// The next firings.
#[derive(Debug)]
pub(super) struct Firings {
    pub(super) times: Vec<(Moment, String)>,
    pub(super) zone: String,
}

impl ScheduleRow {
    pub(super) fn new(schedule: &Schedule, runs: &[(JobId, Attempt)], now: Timestamp) -> Self {
        let spec = &schedule.spec;
        Self {
            id: schedule.id.0,
            cadence: spec.cadence.clone(),
            zone: spec.zone.clone(),
            kind: spec.template.kind.to_string(),
            queue: spec.template.queue.to_string(),
            tenant: spec.tenant.to_string(),
            paused: schedule.paused,
            next: Moment::some(schedule.next_at.filter(|_| !schedule.paused), now),
            last: Moment::some(schedule.last_at, now),
            words: words(schedule),
            dots: runs.iter().map(|(job, attempt)| Dot::new(*job, attempt)).collect(),
        }
    }
}

fn words(schedule: &Schedule) -> String {
    let once = match schedule.spec.recurrence {
        Recurrence::Recurring => "Fires again and again.",
        Recurrence::OneShot => "Fires once; then it is removed, and its run stays.",
    };
    let overlap = match schedule.spec.overlap {
        Overlap::Skip => "A firing is skipped while the last run is live.",
        Overlap::Allow => "Runs may overlap.",
    };
    let missed = match schedule.spec.missed {
        Missed::One => "One run replaces all firings that were missed while no node ran.",
        Missed::Skip => "Firings that were missed while no node ran are skipped.",
    };
    format!("{once} {overlap} {missed}")
}

fn outcome(status: Status) -> StateView {
    match status {
        Status::Succeeded => show::state(State::Succeeded),
        Status::Failed => show::state(State::Failed),
        Status::Snoozed => StateView { word: "snoozed", shape: "◷" },
        Status::Released => StateView { word: "released", shape: "↩" },
    }
}

impl Dot {
    fn new(job: JobId, attempt: &Attempt) -> Self {
        let outcome = outcome(attempt.status);
        let title = format!("job {job}, {}: {} {}", attempt.label(), outcome.word, attempt.started_at);
        Self { job: job.0, outcome, title }
    }
}

impl RunRow {
    pub(super) fn new(job: JobId, attempt: &Attempt, now: Timestamp) -> Self {
        Self {
            job: job.0,
            label: attempt.label(),
            outcome: outcome(attempt.status),
            at: Moment::new(attempt.started_at, now),
            took: show::span(attempt.duration()),
            error: attempt.error.as_deref().map_or_else(String::new, |error| show::line(error, 140)),
        }
    }
}

impl Firings {
    pub(super) fn new(times: &[Timestamp], zone: &str, now: Timestamp) -> Self {
        let local = |at: &Timestamp| windlass_core::schedule::local_text(*at, zone).unwrap_or_else(|| at.to_string());
        Self { times: times.iter().map(|at| (Moment::new(*at, now), local(at))).collect(), zone: zone.to_owned() }
    }
}

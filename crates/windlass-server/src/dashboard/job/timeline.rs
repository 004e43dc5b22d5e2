//! The attempts of a job on one time axis: each attempt, the wait after it, the window that the wait was chosen from,
//! and why it was that long.

use crate::dashboard::plot::{Axis, Row, Svg, track};
use crate::dashboard::show::{self, Moment, StateView};
use windlass::Job;
use windlass_core::{Attempt, Jitter, Millis, State, Status, Timestamp, Window};

/// All rows, and the ends of their axis.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) rows: Vec<AttemptRow>,
    pub(super) from: Moment,
    pub(super) span: String,
    pub(super) hidden: u32,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct AttemptRow {
    pub(super) number: String,
    pub(super) label: String,
    pub(super) outcome: StateView,
    pub(super) started: Option<Moment>,
    pub(super) took: String,
    pub(super) worker: String,
    pub(super) class: String,
    pub(super) error: Option<String>,
    /// The first line of the error, and whether there is more.
    pub(super) summary: String,
    pub(super) note: Option<String>,
    /// How long the next attempt had to wait, and why.
    pub(super) wait: Option<String>,
    pub(super) why: String,
    pub(super) track: Svg,
}

impl Timeline {
    pub(super) fn new(job: &Job, attempts: &[Attempt], now: Timestamp) -> Self {
        let axis = axis(job, attempts, now);
        let mut previous = Millis::ZERO;
        let mut rows = Vec::new();
        for attempt in attempts {
            if attempt.retry == 0 {
                previous = Millis::ZERO;
            }
            rows.push(row(job, attempt, previous, axis, now));
            previous = attempt.delay.unwrap_or(previous);
        }
        if job.state == State::Running {
            rows.push(running(job, axis, now));
        }
        let hidden = attempts.first().map_or(0, |first| first.number.saturating_sub(1));
        let span = show::span(axis.to.since(axis.from));
        Self { rows, from: Moment::new(axis.from, now), span, hidden }
    }
}

/// From the first start that is shown to the end of the last wait.
fn axis(job: &Job, attempts: &[Attempt], now: Timestamp) -> Axis {
    let from = attempts.first().map(|first| first.started_at).or(job.claimed_at).unwrap_or(job.created_at);
    let ends = attempts.iter().flat_map(|attempt| [Some(attempt.finished_at), attempt.next_run_at]).flatten();
    let waits = matches!(job.state, State::Retrying).then_some(job.due_at);
    let runs = (job.state == State::Running).then_some(now);
    let to = ends.chain(waits).chain(runs).max().unwrap_or(from);
    Axis { from, to: to.max(from + Millis::new(1)) }
}

fn row(job: &Job, attempt: &Attempt, previous: Millis, axis: Axis, now: Timestamp) -> AttemptRow {
    let outcome = match attempt.status {
        Status::Succeeded => show::state(State::Succeeded),
        Status::Failed => show::state(State::Failed),
        Status::Snoozed => StateView { word: "snoozed", shape: "◷" },
        Status::Released => StateView { word: "released", shape: "↩" },
    };
    let window = window(job, attempt, previous);
    let plotted = Row {
        class: outcome.word,
        ran: Some((attempt.started_at, attempt.finished_at)),
        waits: attempt.next_run_at.map(|at| (attempt.finished_at, at)),
        window: window.map(|window| (window.min, window.max)),
    };
    AttemptRow {
        number: attempt.number.to_string(),
        label: attempt.label(),
        outcome,
        started: Some(Moment::new(attempt.started_at, now)),
        took: show::span(attempt.duration()),
        worker: attempt.worker.clone(),
        class: attempt.error_class.clone().unwrap_or_default(),
        summary: attempt.error.as_deref().map_or_else(String::new, |error| show::line(error, 200)),
        error: attempt.error.clone().filter(|error| error.chars().count() > 200 || error.contains('\n')),
        note: attempt.note.clone(),
        wait: attempt.delay.map(|delay| waited(job, delay, window)),
        why: attempt.why.clone(),
        track: track(axis, &plotted),
    }
}

/// The attempt that runs now.
fn running(job: &Job, axis: Axis, now: Timestamp) -> AttemptRow {
    let started = job.claimed_at.unwrap_or(now);
    let plotted = Row { class: "running", ran: Some((started, now)), waits: None, window: None };
    AttemptRow {
        number: job.attempt.to_string(),
        label: if job.failures == 0 { "Initial".into() } else { format!("Retry #{}", job.failures) },
        outcome: show::state(State::Running),
        started: Some(Moment::new(started, now)),
        took: String::new(),
        worker: String::new(),
        class: String::new(),
        error: None,
        summary: String::new(),
        note: None,
        wait: None,
        why: "runs now".into(),
        track: track(axis, &plotted),
    }
}

/// The window in which the policy chose the delay after an attempt. `None` if something else chose it: a Retry-After, a
/// snooze, or a failure that asked for an exact delay.
fn window(job: &Job, attempt: &Attempt, previous: Millis) -> Option<Window> {
    let delay = attempt.delay.filter(|_| attempt.status == Status::Failed)?;
    let window = job.policy.window(attempt.retry + 1, previous);
    (window.min <= delay && delay <= window.max && attempt.why.contains("backoff")).then_some(window)
}

fn waited(job: &Job, delay: Millis, window: Option<Window>) -> String {
    let delay = show::span(delay);
    match window {
        Some(window) if job.policy.jitter != Jitter::None && window.min < window.max => {
            format!("waits {delay}, chosen by chance between {} and {}", show::span(window.min), show::span(window.max))
        }
        Some(_) | None => format!("waits {delay}"),
    }
}

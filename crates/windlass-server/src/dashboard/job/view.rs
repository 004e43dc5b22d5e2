//! What the page of a job shows besides its timeline.

use crate::dashboard::show::{self, Moment, StateView};
use windlass::Job;
use windlass::http::mask_url;
use windlass_core::{State, Timestamp};

/// The head of the page.
#[derive(Debug)]
pub(super) struct JobView {
    pub(super) id: i64,
    pub(super) kind: String,
    pub(super) state: StateView,
    /// What comes next, or how it ended, in a sentence.
    pub(super) sentence: String,
    /// The moment that the sentence ends with.
    pub(super) at: Option<Moment>,
    pub(super) class: String,
    pub(super) error: Option<String>,
    pub(super) can_cancel: bool,
    pub(super) can_replay: bool,
    pub(super) replay_word: &'static str,
    pub(super) can_discard: bool,
    pub(super) can_move: bool,
}

/// A line of the table of facts.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) at: Option<Moment>,
    /// An address below the base path.
    pub(super) path: Option<String>,
}

/// Another job.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: i64,
    pub(super) state: StateView,
    pub(super) text: String,
    pub(super) at: Moment,
}

impl JobView {
    pub(super) fn new(job: &Job, now: Timestamp) -> Self {
        let (sentence, at) = sentence(job, now);
        let is_waiting = matches!(job.state, State::Queued | State::Retrying);
        Self {
            id: job.id.0,
            kind: job.kind.to_string(),
            state: show::state(job.state),
            sentence,
            at: Moment::some(at, now),
            class: job.error_class.clone().unwrap_or_default(),
            error: job.error.clone(),
            can_cancel: job.state.is_live() && !job.cancel_requested,
            can_replay: job.state != State::Running,
            replay_word: if is_waiting { "Run now" } else { "Replay" },
            can_discard: job.state == State::Failed && job.discarded_at.is_none(),
            can_move: is_waiting,
        }
    }
}

fn sentence(job: &Job, now: Timestamp) -> (String, Option<Timestamp>) {
    match job.state {
        State::Queued if job.due_at > now => ("Waits for its time,".into(), Some(job.due_at)),
        State::Queued => ("Is due and waits for a worker, since".into(), Some(job.due_at)),
        State::Running if job.cancel_requested => ("Runs, and was asked to stop. It started".into(), job.claimed_at),
        State::Running => (format!("Attempt {} runs. It started", job.attempt), job.claimed_at),
        State::Retrying => {
            let (retry, of) = (job.failures, job.policy.max_retries);
            let is = if job.due_at > now { "is" } else { "was" };
            (format!("Attempt {} failed. Retry {retry} of {of} {is} due", job.attempt), Some(job.due_at))
        }
        State::Succeeded => (format!("Succeeded with attempt {},", job.attempt), job.finished_at),
        State::Failed => {
            let why = job.reason.map_or("", show::reason);
            let dealt = if job.discarded_at.is_some() { ", and was discarded" } else { "" };
            (format!("Given up as {why}{dealt}. It ended"), job.finished_at)
        }
        State::Cancelled => ("Was cancelled".into(), job.finished_at),
    }
}

pub(super) fn facts(job: &Job, now: Timestamp) -> Vec<Fact> {
    let fact = |name, text: String| Fact { name, text, at: None, path: None };
    let moment =
        |name, at: Option<Timestamp>| at.map(|at| Fact { at: Some(Moment::new(at, now)), ..fact(name, String::new()) });
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let link = |name, text: String, path: String| Fact { path: Some(path), ..fact(name, text) };
    let queue = format!("/queues/{}/{}", encoded(job.tenant.as_str()), encoded(job.queue.as_str()));
    let mut facts = vec![
        link("queue", job.queue.to_string(), queue),
        link("kind", job.kind.to_string(), format!("/jobs?kind={}", encoded(job.kind.as_str()))),
        fact("tenant", job.tenant.to_string()),
        fact("priority", job.priority.as_str().to_owned()),
        fact("delivery", job.delivery.as_str().to_lowercase().replace('_', " ")),
        fact("failures", format!("{} of {} attempts", job.failures, job.max_attempts())),
    ];
    facts.extend(moment("created", Some(job.created_at)));
    facts.extend(moment("start by", job.start_by));
    facts.extend(job.timeout.map(|timeout| fact("timeout", show::span(timeout))));
    facts.extend(job.idempotency_key.as_deref().map(|key| fact("idempotency key", key.to_owned())));
    facts.extend(job.limit_key.as_deref().map(|key| fact("limit key", key.to_owned())));
    facts.extend((job.replays > 0).then(|| fact("replays", job.replays.to_string())));
    facts.extend(job.schedule.map(|id| link("schedule", id.to_string(), format!("/schedules/{id}"))));
    facts.extend(job.parent.map(|id| link("reports on job", id.to_string(), format!("/jobs/{id}"))));
    let called = job.http.as_ref().zip(job.shown_url());
    facts.extend(called.map(|(call, url)| fact("calls", format!("{} {url}", call.method))));
    facts.extend(job.webhook.as_ref().map(|webhook| fact("webhook", mask_url(&webhook.url))));
    facts.extend(job.discard_reason.as_ref().map(|reason| fact("discarded because", reason.clone())));
    facts.extend(job.traceparent().map(|trace| fact("trace", trace.to_owned())));
    facts
}

impl Link {
    pub(super) fn new(job: &Job, now: Timestamp) -> Self {
        Self {
            id: job.id.0,
            state: show::state(job.state),
            text: job.error.as_deref().map_or_else(String::new, |error| show::line(error, 120)),
            at: Moment::new(job.finished_at.unwrap_or(job.due_at), now),
        }
    }
}

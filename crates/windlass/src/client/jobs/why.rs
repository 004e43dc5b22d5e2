//! Why a job is where it is, in two plain sentences.

use crate::client::jobs::Jobs;
use crate::client::jobs::waiting::Waiting;
use crate::job::Job;
use crate::store::{GateName, Holder, MAX_PARKED, StoreError};
use windlass_core::explain::span;
use windlass_core::gate::{Gate, GateRule, WaitingFor};
use windlass_core::{Attempt, JobId, Millis, Reason, State, Timestamp, verdict};

/// Why a job is where it is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The job's state.
    pub state: State,
    /// What it waits for, if it waits for something.
    pub waiting: Option<Waiting>,
    /// Two sentences: what is the case, and what follows from it.
    pub sentences: [String; 2],
}

impl Jobs<'_> {
    /// Why a job is where it is: what it waits for and until when, who runs it, or why it gave up. `None` if there is
    /// no such job.
    ///
    /// ```
    /// use windlass::Windlass;
    /// use windlass::core::gate::WaitingFor;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let id = windlass.enqueue_kind("email", &serde_json::json!({})).queue("mail").await?;
    /// let why = windlass.jobs().why(id).await?.unwrap();
    /// assert_eq!(why.waiting.unwrap().waiting_for, WaitingFor::Worker);
    /// assert!(why.sentences[0].starts_with("No worker serves the queue mail"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn why(&self, id: JobId) -> Result<Option<Explanation>, StoreError> {
        let Some(job) = self.get(id).await? else { return Ok(None) };
        let one = std::slice::from_ref(&job);
        let waiting = self.waiting(one).await?.remove(&id);
        let holder = self.holders(one).await?.pop();
        let last = self.latest_attempts(id, 1).await?.pop();
        let now = self.windlass.clock().now();
        let is_parked = waiting.as_ref().is_some_and(|waiting| waiting.behind.is_some());
        let before = if is_parked { self.windlass.store().parked_before(id).await? } else { 0 };
        let sentences = match job.state {
            State::Queued | State::Retrying if is_late(&job, now) => late(&job, now),
            State::Queued | State::Retrying => match &waiting {
                Some(waiting) => waits(&job, waiting, before, last.as_ref(), now),
                None => due(&job, now),
            },
            State::Running if job.cancel_requested => stops(&job, holder.as_ref(), now),
            State::Running => runs(&job, holder.as_ref(), now),
            State::Succeeded | State::Cancelled | State::Failed => finished(&job, last.as_ref()),
        };
        Ok(Some(Explanation { state: job.state, waiting, sentences }))
    }
}

/// `2026-01-01T12:00:30Z (in 30 s)`
fn at(moment: Timestamp, now: Timestamp) -> String {
    if moment > now {
        format!("{moment} (in {})", span(rounded(moment.since(now))))
    } else {
        format!("{moment} ({} ago)", span(rounded(now.since(moment))))
    }
}

/// Rounded for reading: whole minutes from two minutes on, whole seconds below.
fn rounded(span: Millis) -> Millis {
    let unit = if span >= Millis::from_secs(120) { 60_000 } else { 1000 };
    Millis::new((span.get() + unit / 2) / unit * unit)
}

fn due(job: &Job, now: Timestamp) -> [String; 2] {
    [
        format!("It has been due since {}, and nothing holds it back.", at(job.due_at, now)),
        format!("The next free worker of the queue {} takes it; jobs of higher priority go first.", job.queue),
    ]
}

/// Whether the job has not started in time and upkeep is about to end it.
fn is_late(job: &Job, now: Timestamp) -> bool {
    verdict::is_late(job.start_by, job.first_attempt_at.is_some(), now)
}

fn late(job: &Job, now: Timestamp) -> [String; 2] {
    let by = job.start_by.map(|by| at(by, now)).unwrap_or_default();
    [
        format!("It had to start by {by} and has not, so it does not start any more."),
        "Within seconds a node ends it as failed (expired); if none does, no node runs.".into(),
    ]
}

fn waits(job: &Job, waiting: &Waiting, before: u64, last: Option<&Attempt>, now: Timestamp) -> [String; 2] {
    let queue = &job.queue;
    let until = waiting.until.map(|until| at(until, now)).unwrap_or_default();
    match (waiting.waiting_for, &waiting.behind) {
        (WaitingFor::RunAt, _) => [
            format!("It waits for its time, {until}."),
            "It was enqueued for then, or a snooze or a worker that stopped postponed it.".into(),
        ],
        (WaitingFor::Retry, _) => {
            [format!("It waits for retry {} of {}, {until}.", job.failures, job.policy.max_retries), failure(job, last)]
        }
        (WaitingFor::Paused, _) => [
            format!("Its queue {queue} is paused."),
            format!("It starts after the queue is resumed: windlass queues resume {queue}."),
        ],
        (WaitingFor::Worker, _) if waiting.others > 0 => [
            format!("No worker of the queue {queue} has a handler for the kind {}.", job.kind),
            format!(
                "{} {} the queue, but only for other kinds; it starts when a worker with that handler reports.",
                counted(waiting.others, "worker"),
                if waiting.others == 1 { "serves" } else { "serve" },
            ),
        ],
        (WaitingFor::Worker, _) => [
            format!("No worker serves the queue {queue} ({} jobs).", job.executor),
            "It starts when one does: nobody has reported to work that queue within the last minute.".into(),
        ],
        (what, Some((name, rule, gate))) => {
            let [case, mut follows] = behind(what, name, rule, gate, &until, now);
            if name.key.is_some() && before > 0 {
                follows.pop();
                let more = if before >= u64::from(MAX_PARKED) { "or more " } else { "" };
                follows = format!("{follows}, after {before} {more}that wait before it.");
            }
            [case, follows]
        }
        (what, None) => [format!("It waits for {what}."), format!("It may start {until}.")],
    }
}

/// A job that a gate refused.
fn behind(what: WaitingFor, name: &GateName, rule: &GateRule, gate: &Gate, until: &str, now: Timestamp) -> [String; 2] {
    let place = match name.key.as_deref() {
        Some(_) if name.is_replay() => "the replay that sent it again".into(),
        None => format!("the queue {}", name.queue),
        Some("") => format!("the jobs of the queue {} that have no limit key", name.queue),
        Some(key) => format!("the key {key} of the queue {}", name.queue),
    };
    match what {
        WaitingFor::Concurrency => [
            format!(
                "{} of at most {} attempts of {place} are running.",
                gate.in_use(),
                rule.limits.concurrency.unwrap_or_default()
            ),
            "It starts when one of them ends and it is its turn.".into(),
        ],
        WaitingFor::Rate => {
            let rate = rule.limits.rate.filter(|_| !name.is_replay());
            let rate = rate.map_or_else(String::new, |rate| format!(" of {rate}"));
            [format!("The rate{rate} of {place} is used up."), format!("The next start is possible at {until}.")]
        }
        WaitingFor::Hold => match gate.held(now) {
            Some(hold) => {
                let reason = if hold.reason.is_empty() { String::new() } else { format!(" ({})", hold.reason) };
                [
                    format!("A hold by {} stops {place}{reason}.", hold.origin),
                    format!("It ends at {until}; then starts are slow at first."),
                ]
            }
            None => [
                format!("A hold on {place} has ended, and starts are slow at first."),
                format!("The next start is possible at {until}."),
            ],
        },
        WaitingFor::Breaker => {
            let next = if until.is_empty() {
                "One attempt tests the destination now; if it succeeds, others follow.".into()
            } else {
                format!("At {until} the next start is possible, at first one to test it.")
            };
            [format!("The circuit breaker of {place} has opened, because its destination failed."), next]
        }
        WaitingFor::Budget => [
            format!("The retry budget of {place} is used up: too many of the last starts were retries."),
            format!("The next retry is possible at {until}; first attempts are not delayed."),
        ],
        WaitingFor::RunAt | WaitingFor::Retry | WaitingFor::Paused | WaitingFor::Worker => {
            [format!("It waits for {what}."), format!("It may start {until}.")]
        }
    }
}

/// It was asked to stop and has not yet.
fn stops(job: &Job, holder: Option<&Holder>, now: Timestamp) -> [String; 2] {
    let by = holder.map(|holder| format!(" by {}", holder.worker)).unwrap_or_default();
    let until = holder.map(|holder| format!(", at the latest when its lease ends at {}", at(holder.lease_until, now)));
    [
        format!("It is running: attempt {}{by}, which was asked to stop because the job is cancelled.", job.attempt),
        format!(
            "It ends as cancelled when the attempt ends{}; if the attempt still succeeds, it ends as succeeded.",
            until.unwrap_or_default()
        ),
    ]
}

/// `1 worker`, `3 workers`
fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn runs(job: &Job, holder: Option<&Holder>, now: Timestamp) -> [String; 2] {
    match holder {
        Some(holder) => [
            format!(
                "It is running: attempt {} by {}, since {}.",
                job.attempt,
                holder.worker,
                at(holder.started_at, now)
            ),
            format!(
                "The worker holds its lease until {} and renews it; if it stops, the attempt counts as lost.",
                at(holder.lease_until, now)
            ),
        ],
        None => [
            format!("It is running: attempt {}.", job.attempt),
            "Its lease has ended, and the attempt is about to be counted as lost.".into(),
        ],
    }
}

fn finished(job: &Job, last: Option<&Attempt>) -> [String; 2] {
    let ended = job.finished_at.map(|at| format!(" at {at}")).unwrap_or_default();
    let tries = if job.attempt == 1 { "1 attempt".to_owned() } else { format!("{} attempts", job.attempt) };
    match (job.state, job.reason) {
        (State::Succeeded, _) => {
            [format!("It succeeded{ended}."), format!("It took {tries}, and {} failed.", job.failures)]
        }
        (State::Cancelled, _) => {
            [format!("It was cancelled{ended}, after {tries}."), "It does not run again unless it is replayed.".into()]
        }
        (_, Some(reason)) => [format!("It gave up{ended}: {}.", gave_up(job, reason, last)), failure(job, last)],
        (_, None) => [format!("It failed{ended}."), failure(job, last)],
    }
}

fn gave_up(job: &Job, reason: Reason, last: Option<&Attempt>) -> String {
    match reason {
        Reason::Permanent => match last.filter(|attempt| attempt.why.contains("rule")) {
            Some(attempt) => format!("an error rule ended it ({})", attempt.why),
            None => "its failure is one that is never retried (permanent)".into(),
        },
        Reason::Exhausted => format!("all {} retries are used up (exhausted)", job.policy.max_retries),
        Reason::Deadline => {
            let limit = job.policy.max_elapsed.map(|limit| format!(" of {}", span(limit))).unwrap_or_default();
            format!("the next attempt would start after its maxElapsed{limit} (deadline)")
        }
        Reason::Expired => {
            let by = job.start_by.map(|by| format!(" by {by}")).unwrap_or_default();
            format!("it had not started{by} (expired)")
        }
        Reason::AtMostOnce => "it may start only once, and that attempt did not succeed (at_most_once)".into(),
        Reason::CrashLoop => {
            format!("its worker was lost {} times in a row, so it is quarantined (crash_loop)", job.policy.max_crashes)
        }
    }
}

/// The last failure, and what followed from it.
fn failure(job: &Job, last: Option<&Attempt>) -> String {
    let class = job.error_class.as_deref().unwrap_or("unknown");
    let message: String = job.error.as_deref().unwrap_or_default().chars().take(200).collect();
    let why = last.map(|attempt| format!(" ({})", attempt.why)).unwrap_or_default();
    match (job.error_class.is_some(), message.is_empty()) {
        (false, true) => "No attempt has failed.".into(),
        (_, true) => format!("The last failure was {class}{why}."),
        (_, false) => format!("The last failure was {class}: {message}{why}."),
    }
}

//! Attempt: one claim-and-execution of a job, as its history records it.

use crate::decide::Why;
use crate::job::words;
use crate::rules::Then;
use crate::time::{Millis, Timestamp};
use std::fmt;

words! {
    /// How an attempt ended. A lost or cancelled attempt has the status `FAILED`, and its class says which.
    Status {
        Succeeded = "SUCCESS",
        Failed = "FAILED",
        Snoozed = "SNOOZED",
        Released = "RELEASED",
    }
}

/// Why a job whose probe failed waits. Its attempt counts no failure, so that its label is not that of a retry.
const PROBE_FAILED: &str = "a probe failed: it counts no failure, and the job waits for the breaker";

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Numbered from 1 without gaps; grows with every claim.
    pub number: u32,
    /// Failures counted before this attempt: 0 is the first attempt, k is retry #k.
    pub retry: u32,
    pub status: Status,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub error_class: Option<String>,
    pub error: Option<String>,
    pub note: Option<String>,
    /// The stack trace of the error.
    pub trace: Option<String>,
    /// How often the job had been replayed: 0 is its first run.
    pub replay: u32,
    pub worker: String,
    /// When the next attempt is due, if the policy or the handler asked for one.
    pub next_run_at: Option<Timestamp>,
    pub delay: Option<Millis>,
    /// The reason for the job's next state, in words.
    pub why: String,
}

impl Attempt {
    /// `Initial`, `Retry #1`, …; `Snoozed`, `Released` or `Probe` for attempts that count no failure. After a replay,
    /// with its number: `Replay 1: Initial`.
    #[must_use]
    pub fn label(&self) -> String {
        label(self.replay, self.retry, self.status, &self.why)
    }

    #[must_use]
    pub fn duration(&self) -> Millis {
        self.finished_at.since(self.started_at)
    }
}

/// The label of an attempt in an execution log.
#[must_use]
pub fn label(replay: u32, retry: u32, status: Status, why: &str) -> String {
    let within = match (status, retry) {
        (Status::Failed, _) if why == PROBE_FAILED => "Probe".into(),
        (Status::Snoozed, _) => "Snoozed".into(),
        (Status::Released, _) => "Released".into(),
        (Status::Succeeded | Status::Failed, 0) => "Initial".into(),
        (Status::Succeeded | Status::Failed, k) => format!("Retry #{k}"),
    };
    if replay == 0 { within } else { format!("Replay {replay}: {within}") }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Backoff { retry, of, base } => write!(f, "retry {retry}/{of}: backoff {base}"),
            Self::RetryAfter { retry, of, asked } => write!(f, "retry {retry}/{of}: Retry-After {asked}"),
            Self::RetryIn { retry, of } => write!(f, "retry {retry}/{of}: the failure asked for exactly this delay"),
            Self::Snoozed => f.write_str("snoozed by the handler"),
            Self::Released => f.write_str("released by a stopping worker"),
            Self::CancelRequested => f.write_str("cancel was requested"),
            Self::CancelledByHandler => f.write_str("cancelled by the handler"),
            Self::GaveUp(reason) => write!(f, "gave up: {reason}"),
            Self::RuleRetry { rule, retry, of, delay } => write!(f, "retry {retry}/{of}: {rule}, {delay}"),
            Self::Rule { rule, then } => match then {
                Then::Retry => write!(f, "retried by {rule}"),
                Then::GiveUp => write!(f, "gave up: permanent, by {rule}"),
                Then::Snooze => write!(f, "snoozed by {rule}"),
                Then::Hold => write!(f, "snoozed by {rule}, which holds its key"),
                Then::Discard => write!(f, "gave up and discarded by {rule}"),
            },
            Self::Probe => f.write_str(PROBE_FAILED),
        }
    }
}

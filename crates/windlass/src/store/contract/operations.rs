//! What operators and their tools do to jobs, and what is kept about it: actions, tokens, workers, alerts, audit.

use crate::job::NewJob;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{JobId, State, Timestamp};

/// The result of cancelling one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It was waiting and has been cancelled.
    Now,
    /// It is running and was asked to stop.
    Requested,
    /// It had already finished, in this state: nothing changed.
    Finished(State),
    /// There is no such job.
    NotFound,
}

/// Dead letters to be declared dealt with.
#[derive(Debug, Clone)]
pub struct Discard {
    /// Which jobs.
    pub ids: Vec<JobId>,
    /// Why.
    pub reason: String,
    /// Who did it.
    pub by: String,
    /// A description of the request, for the audit.
    pub what: String,
}

impl Discard {
    /// The audit's detail: what was asked for, and why.
    pub(crate) fn detail(&self) -> String {
        let parts = [self.what.as_str(), self.reason.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
    }
}

/// The result of discarding one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// It is discarded, now or before: repeating is harmless and keeps the first reason.
    Done,
    /// Not a failed job.
    NotDead,
    /// There is no such job.
    NotFound,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amended {
    /// It was changed.
    Done,
    /// It is not waiting: running, or finished.
    NotWaiting(State),
    /// There is no such job.
    NotFound,
}

/// An API token, as stored, without the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Public part, by which it is looked up.
    pub id: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of the secret part.
    pub hash: [u8; 32],
    /// What it allows.
    pub scopes: Vec<String>,
    /// `None`: all tenants.
    pub tenant: Option<Tenant>,
    /// The queues it is limited to. `None`: all queues.
    pub queues: Option<Vec<QueueName>>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A browser that has signed in with a token. It ends with the token, at its own end, or when the browser signs out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the secret that the browser keeps.
    pub hash: [u8; 32],
    /// The token it was opened with.
    pub token: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl Token {
    /// Whether it is accepted at this time: neither revoked nor expired.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// A worker as it last reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    /// The worker's id.
    pub worker: crate::store::WorkerId,
    /// The machine it runs on.
    pub host: String,
    /// The version of the program.
    pub version: String,
    /// Queue names with their concurrency, for display.
    pub queues: Vec<(String, u32)>,
    /// The kinds of jobs that it has handlers for; `None`: all.
    pub kinds: Option<Vec<String>>,
    /// How many run now.
    pub running: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// When it last reported.
    pub seen_at: Timestamp,
}

/// One alert rule on one subject, across the whole fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The name of the rule.
    pub rule: String,
    /// What the rule measures.
    pub measure: String,
    /// What it is about: a queue, or empty for everything.
    pub subject: String,
    /// Its status.
    pub status: AlertStatus,
    /// Grows by one with each incident.
    pub incident: i64,
    /// When the condition began to hold, or ceased to.
    pub since: Timestamp,
    /// When it began to fire.
    pub fired_at: Option<Timestamp>,
    /// When it was resolved.
    pub resolved_at: Option<Timestamp>,
    /// When operators were last notified that it fires.
    pub notified_at: Option<Timestamp>,
    /// The tenant that was affected most; empty if unknown.
    pub tenant: String,
    /// The queue that was affected most; empty if unknown.
    pub queue: String,
    /// What was measured, for display.
    pub detail: String,
}

/// The status of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertStatus {
    /// The condition holds, but not long enough yet.
    Pending,
    /// The condition has held for long enough.
    Firing,
    /// The condition no longer holds.
    Resolved,
}

impl AlertStatus {
    /// The name of the status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Firing, Self::Resolved].into_iter().find(|s| s.as_str() == word)
    }
}

/// A change of an alert, made by exactly one node: it is applied only if the alert still matches `before`.
#[derive(Debug, Clone)]
pub struct AlertChange {
    /// Status, incident and the time of the last notice as read; `None`: no such alert yet.
    pub before: Option<(AlertStatus, i64, Option<Timestamp>)>,
    /// The alert as it is now.
    pub after: Alert,
    /// Notices to the operators, enqueued in the same commit.
    pub notices: Vec<NewJob>,
}

/// One entry of the audit: what an operator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub by: String,
    /// What was done.
    pub action: String,
    /// How many.
    pub count: u64,
    /// Details.
    pub detail: String,
}

//! What people and their tools do to jobs, and what is kept about them: verbs, tokens, workers, alerts, audit.

use crate::job::NewJob;
use windlass_core::job::Tenant;
use windlass_core::{JobId, State, Timestamp};

/// What cancelling one job came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It was waiting and has ended.
    Now,
    /// It is running and was asked to stop.
    Requested,
    /// It had finished before, in this state: nothing changed.
    Finished(State),
    NotFound,
}

/// Dead letters declared dealt with.
#[derive(Debug, Clone)]
pub struct Discard {
    pub ids: Vec<JobId>,
    pub reason: String,
    pub by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// Now, or before: repeating is harmless and keeps the first reason.
    Done,
    /// Not a failed job.
    NotDead,
    NotFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amended {
    Done,
    /// Not waiting: running, or finished.
    NotWaiting(State),
    NotFound,
}

/// An API token, as stored: never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Public part, by which it is looked up.
    pub id: String,
    pub name: String,
    /// SHA-256 of the secret part.
    pub hash: [u8; 32],
    pub scopes: Vec<String>,
    /// `None`: all tenants.
    pub tenant: Option<Tenant>,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// A worker as it last reported itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    pub worker: crate::store::WorkerId,
    pub host: String,
    pub version: String,
    /// Queue names with their concurrency, for people.
    pub queues: Vec<(String, u32)>,
    pub running: u32,
    pub started_at: Timestamp,
    pub seen_at: Timestamp,
}

/// One alert rule on one subject, over the whole fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    pub rule: String,
    /// What it is about: a queue, or empty for everything.
    pub subject: String,
    pub status: AlertStatus,
    /// Grows by one with each incident.
    pub incident: i64,
    /// When the condition began to hold, or to be clear.
    pub since: Timestamp,
    pub fired_at: Option<Timestamp>,
    pub resolved_at: Option<Timestamp>,
    /// What was measured, for people.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertStatus {
    /// The condition holds, but not long enough yet.
    Pending,
    Firing,
    Resolved,
}

impl AlertStatus {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Firing, Self::Resolved].into_iter().find(|s| s.as_str() == word)
    }
}

/// A change of an alert, made by exactly one node: it happens only if the alert is still as `before` says.
#[derive(Debug, Clone)]
pub struct AlertChange {
    /// Status and incident as read; `None`: no such alert yet.
    pub before: Option<(AlertStatus, i64)>,
    pub after: Alert,
    /// Notices to the operators, enqueued in the same commit.
    pub notices: Vec<NewJob>,
}

/// One line of the audit: what a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub at: Timestamp,
    pub by: String,
    pub action: String,
    pub count: u64,
    pub detail: String,
}

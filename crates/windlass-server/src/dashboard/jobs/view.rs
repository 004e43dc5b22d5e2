//! What the list of jobs shows.

use crate::dashboard::show::{self, Moment, StateView};
use windlass::Job;
use windlass::client::Found;
use windlass_core::{State, Timestamp};

/// The longest error in a row.
const MAX_ERROR: usize = 140;

/// A job in a table.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) id: i64,
    pub(crate) state: StateView,
    pub(crate) kind: String,
    pub(crate) queue: String,
    pub(crate) tenant: String,
    pub(crate) attempts: String,
    /// What the time means: due, since, ended.
    pub(crate) what: &'static str,
    pub(crate) at: Moment,
    pub(crate) error: String,
    pub(crate) class: String,
}

impl JobRow {
    pub(crate) fn new(job: &Job, now: Timestamp) -> Self {
        let (what, at) = match job.state {
            State::Queued | State::Retrying => ("due", job.due_at),
            State::Running => ("since", job.claimed_at.unwrap_or(job.due_at)),
            State::Succeeded | State::Failed | State::Cancelled => ("ended", job.finished_at.unwrap_or(job.due_at)),
        };
        Self {
            id: job.id.0,
            state: show::state(job.state),
            kind: job.kind.to_string(),
            queue: job.queue.to_string(),
            tenant: job.tenant.to_string(),
            attempts: attempts(job),
            what,
            at: Moment::new(at, now),
            error: job.error.as_deref().map_or_else(String::new, |error| show::line(error, MAX_ERROR)),
            class: job.error_class.clone().unwrap_or_default(),
        }
    }
}

/// The attempt that runs or was made last, of those that its policy allows.
fn attempts(job: &Job) -> String {
    let made = match job.state {
        State::Running | State::Succeeded => job.failures + 1,
        State::Queued | State::Retrying | State::Failed | State::Cancelled => job.failures,
    };
    format!("{made}/{}", job.max_attempts())
}

/// How far a search looked, in words.
pub(super) fn searched(found: &Found) -> String {
    let looked = show::number(found.searched.into());
    let looked = match found.is_complete {
        true => format!("Looked at all {looked} jobs of this filter."),
        false => {
            format!("Looked at the newest {looked} jobs of this filter. Older ones may match too: narrow the filter.")
        }
    };
    match found.is_sealed {
        true => {
            format!("{looked} Payloads and errors are sealed, so they were not searched: only ids, keys and classes.")
        }
        false => looked,
    }
}

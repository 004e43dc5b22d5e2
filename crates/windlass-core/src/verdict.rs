//! Verdicts: what cancel, replay, discard, amend and expire do to a job in a given state. Pure.
//! Stores read a job, call these functions, and apply the answer. `decide` makes the decision after an attempt.

use crate::job::{Priority, State};
use crate::time::{Millis, Timestamp};

/// The parts of a job that a verdict depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// Whether an operator has discarded it.
    pub is_discarded: bool,
    /// Its order among the due jobs of its queue.
    pub priority: Priority,
    /// When it is, or was last, due.
    pub due_at: Timestamp,
    /// The time by which it must start.
    pub start_by: Option<Timestamp>,
    /// Whether it has had an attempt since it was stored or last replayed.
    pub has_started: bool,
}

/// What a cancel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelVerdict {
    /// It was waiting: end it as cancelled.
    EndNow,
    /// It is running: ask the attempt to stop.
    AskToStop,
    /// It had finished in this state: change nothing.
    Finished(State),
}

/// Which jobs a replay applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayOnly {
    /// Archived jobs go back to `queued`; waiting ones become due now.
    Any,
    /// Only dead letters: repeating the request finds none left and changes nothing.
    DeadLetters,
}

/// What a replay does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// It had finished: it goes back to `queued` with all retries available again, and `replays` grows by one.
    Requeue(Allowance),
    /// It is waiting: it becomes due at this time, which is never later than before.
    RunNow(Timestamp),
    /// It is waiting and only dead letters were requested: change nothing.
    LeaveWaiting,
    /// It is running: change nothing.
    Running,
    /// It finished and is not a dead letter, and only those were requested: change nothing.
    NotDead,
}

/// The initial values of a replayed job. Its result, reason, discard and cancel request are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// When it is due.
    pub due_at: Timestamp,
    /// Failures the policy has counted: none.
    pub failures: u32,
    /// Lost leases in a row: none.
    pub crashes: u32,
    /// The delay that decorrelated jitter grows from: none.
    pub previous_delay: Millis,
    /// The time by which it has to start, unless that has passed.
    pub start_by: Option<Timestamp>,
}

/// What a discard does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscardVerdict {
    /// A dead letter: it is marked as dealt with.
    Discard,
    /// It was discarded before: keep the first time and reason.
    AlreadyDiscarded,
    /// Not a failed job: change nothing.
    NotDead,
}

/// A change to a waiting job. `None` leaves a field as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amend {
    /// The new priority.
    pub priority: Option<Priority>,
    /// The new due time.
    pub run_at: Option<Timestamp>,
}

/// What an amend does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmendVerdict {
    /// It is waiting: these are its values from now on.
    Change {
        /// Its priority.
        priority: Priority,
        /// Its due time.
        due_at: Timestamp,
    },
    /// It is running or has finished: change nothing.
    NotWaiting(State),
}

/// What cancelling a job in this state does.
#[must_use]
pub const fn cancel(state: State) -> CancelVerdict {
    match state {
        State::Queued | State::Retrying => CancelVerdict::EndNow,
        State::Running => CancelVerdict::AskToStop,
        State::Succeeded | State::Failed | State::Cancelled => CancelVerdict::Finished(state),
    }
}

/// What replaying a job does. `due_at` is when it will be due if it goes back to its queue.
#[must_use]
pub fn replay(job: &Standing, only: ReplayOnly, due_at: Timestamp, now: Timestamp) -> ReplayVerdict {
    match job.state {
        State::Running => ReplayVerdict::Running,
        State::Queued | State::Retrying => match only {
            ReplayOnly::Any => ReplayVerdict::RunNow(job.due_at.min(now)),
            ReplayOnly::DeadLetters => ReplayVerdict::LeaveWaiting,
        },
        State::Succeeded | State::Failed | State::Cancelled => {
            if only == ReplayOnly::DeadLetters && !is_dead_letter(job.state, job.is_discarded) {
                return ReplayVerdict::NotDead;
            }
            ReplayVerdict::Requeue(Allowance {
                due_at,
                failures: 0,
                crashes: 0,
                previous_delay: Millis::ZERO,
                start_by: job.start_by.filter(|by| *by > now),
            })
        }
    }
}

/// What discarding a job does.
#[must_use]
pub const fn discard(state: State, is_discarded: bool) -> DiscardVerdict {
    match state {
        State::Failed if is_discarded => DiscardVerdict::AlreadyDiscarded,
        State::Failed => DiscardVerdict::Discard,
        State::Queued | State::Running | State::Retrying | State::Succeeded | State::Cancelled => {
            DiscardVerdict::NotDead
        }
    }
}

/// What amending a job does.
#[must_use]
pub fn amend(job: &Standing, change: Amend) -> AmendVerdict {
    match job.state {
        State::Queued | State::Retrying => AmendVerdict::Change {
            priority: change.priority.unwrap_or(job.priority),
            due_at: change.run_at.unwrap_or(job.due_at),
        },
        State::Running | State::Succeeded | State::Failed | State::Cancelled => AmendVerdict::NotWaiting(job.state),
    }
}

/// Whether a job ends as `expired`: it waits, has never started, and the time by which it had to start has passed.
#[must_use]
pub fn expires(job: &Standing, now: Timestamp) -> bool {
    match job.state {
        State::Queued | State::Retrying => is_late(job.start_by, job.has_started, now),
        State::Running | State::Succeeded | State::Failed | State::Cancelled => false,
    }
}

/// Whether a waiting job may no longer be claimed, because it should have started by now.
#[must_use]
pub fn is_late(start_by: Option<Timestamp>, has_started: bool, now: Timestamp) -> bool {
    !has_started && start_by.is_some_and(|by| by <= now)
}

/// Whether a job awaits manual action.
#[must_use]
pub const fn is_dead_letter(state: State, is_discarded: bool) -> bool {
    matches!(state, State::Failed) && !is_discarded
}

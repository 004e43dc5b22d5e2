//! The rules of Windlass: when to try again, when to give up, when a schedule fires.
//!
//! Everything here is pure. Nothing reads a clock, draws a random number or does I/O: `now` and `roll`
//! are passed in as values, so every decision can be computed again from the recorded inputs.
//!
//! Start with [`decide()`]: it decides the next state of a job after an attempt. [`verdict`] defines what operators'
//! actions do to a job, and [`pick`] which due jobs a claim takes.

pub mod attempt;
pub mod backoff;
pub mod decide;
pub mod explain;
pub mod failure;
pub mod gate;
pub mod jitter;
pub mod job;
pub mod key;
pub mod nearest;
pub mod pick;
pub mod policy;
pub mod preview;
pub mod quiet;
pub mod quota;
pub mod retention;
pub mod rules;
pub mod schedule;
pub mod sealed;
pub mod signature;
pub mod simulate;
pub mod slots;
pub mod time;
pub mod timekeeping;
pub mod trace_context;
pub mod verdict;

pub use attempt::{Attempt, Status};
pub use backoff::Backoff;
pub use decide::{Effect, Next, Outcome, Progress, Running, Transition, Why, decide};
pub use explain::explain;
pub use failure::{Advice, Failure};
pub use gate::{Flow, Gate, WaitingFor};
pub use jitter::{Jitter, Roll, Window};
pub use job::{Delivery, Executor, JobId, NameError, Priority, Reason, State};
pub use policy::{Policy, PolicyError};
pub use preview::{Preview, preview};
pub use quiet::QuietHours;
pub use retention::{Keep, Retention, RetentionLevel};
pub use rules::{LiveRules, Rule, RuleName};
pub use schedule::{Cadence, CadenceError, NextFiring, Timing};
pub use signature::Secret;
pub use time::{Millis, Timestamp};

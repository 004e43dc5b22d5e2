//! Jobs of other job queues, as their users can dump them: one file per system, each a pure function from a dumped
//! value to a draft. What does not fit is a reason in words.

mod bullmq;
mod faktory;
mod graphile_worker;
mod pg_boss;
mod read;
mod sidekiq;

use serde_json::Value;
use windlass::RunAt;
use windlass::protocol::{Catalogue, Draft, Idempotency, KeyWindow};
use windlass_core::job::{Kind, QueueName};
use windlass_core::policy::{MAX_RETRIES, Partial};
use windlass_core::{Millis, Timestamp};

/// How long the id of an imported job is remembered: within this time, a second import stores nothing twice.
const REMEMBERED: Millis = Millis::from_secs(30 * 86_400);
/// The most characters of a queue's name.
const LONGEST_NAME: usize = 64;

/// A system that jobs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum System {
    PgBoss,
    GraphileWorker,
    Sidekiq,
    Bullmq,
    Faktory,
}

impl System {
    const fn as_str(self) -> &'static str {
        match self {
            Self::PgBoss => "pg-boss",
            Self::GraphileWorker => "graphile-worker",
            Self::Sidekiq => "sidekiq",
            Self::Bullmq => "bullmq",
            Self::Faktory => "faktory",
        }
    }

    /// The job that a dumped value describes, or why it is not taken.
    pub(super) fn read(self, dumped: &Dumped, catalogue: &Catalogue) -> Result<Foreign, String> {
        let mut job = match self {
            Self::PgBoss => pg_boss::read(&dumped.value),
            Self::GraphileWorker => graphile_worker::read(&dumped.value),
            Self::Sidekiq => sidekiq::read(&dumped.value, dumped.due),
            Self::Bullmq => bullmq::read(&dumped.value),
            Self::Faktory => faktory::read(&dumped.text, &dumped.value, dumped.due, catalogue),
        }?;
        let key = match job.draft.idempotency.take() {
            Some(own @ Idempotency { window: KeyWindow::For(_), .. }) => own,
            Some(own) => Idempotency { window: KeyWindow::For(REMEMBERED), ..own },
            None => {
                Idempotency { key: format!("{}:{}", self.as_str(), job.id).into(), window: KeyWindow::For(REMEMBERED) }
            }
        };
        job.draft.idempotency = Some(key);
        Ok(job)
    }
}

/// One job of a dump.
#[derive(Debug, Clone)]
pub(super) struct Dumped {
    pub(super) text: String,
    pub(super) value: Value,
    /// When it is due, from the line after it: the score of a Redis sorted set, in seconds.
    pub(super) due: Option<f64>,
}

/// A job of another system.
#[derive(Debug, Clone)]
pub(super) struct Foreign {
    /// Its id there.
    pub(super) id: String,
    pub(super) draft: Draft,
    /// What changes by the move, in words.
    pub(super) notes: Vec<String>,
}

impl Foreign {
    fn new(id: String, kind: &str, payload: &Value) -> Result<Self, String> {
        if id.is_empty() {
            return Err("it has no id".into());
        }
        let kind = Kind::new(kind).map_err(|error| error.to_string())?;
        Ok(Self { id, draft: Draft::new(kind, payload.to_string()), notes: Vec::new() })
    }

    /// Puts it into the queue of this name, or of one as near as names allow.
    fn queue(&mut self, name: &str) -> Result<(), String> {
        let near: String = name
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-') { c } else { '-' })
            .skip_while(|c| !c.is_ascii_alphanumeric())
            .take(LONGEST_NAME)
            .collect();
        let queue =
            QueueName::new(&near).map_err(|_| format!("the queue `{name}` has no name that can be used here"))?;
        if near != name {
            self.notes.push(format!("the queue `{name}` is called `{near}` here"));
        }
        self.draft.queue = Some(queue);
        Ok(())
    }

    fn due(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.draft.run_at = RunAt::At(at);
        }
    }

    /// The retries that are left of `allowed`.
    fn retries_left(&mut self, allowed: u64, used: u64) {
        let left = u32::try_from(allowed.saturating_sub(used)).unwrap_or(u32::MAX).min(MAX_RETRIES);
        self.draft.retry = Partial { max_retries: Some(left), ..self.draft.retry.clone() };
    }

    /// The delays of a line such as `fixed:base=5s,jitter=none`.
    fn delays(&mut self, line: &str) -> Result<(), String> {
        let max_retries = self.draft.retry.max_retries;
        let read = Partial::parse_line(line).map_err(|error| error.to_string())?;
        self.draft.retry = Partial { max_retries, ..read };
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Jobs of other job queues, as their users can dump them: one file per system, each a pure function from a dumped
//! value to a draft. What does not fit is a reason in words.

mod bullmq;
mod faktory;
mod graphile_worker;
mod pg_boss;
mod read;
mod sidekiq;

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
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

    /// The field with the job's input.
    const fn payload_field(self) -> &'static str {
        match self {
            Self::PgBoss | Self::Bullmq => "data",
            Self::GraphileWorker => "payload",
            Self::Sidekiq | Self::Faktory => "args",
        }
    }

    /// The job that a dumped line describes, or why it is not taken.
    pub(super) fn read(self, dumped: &Dumped, catalogue: &Catalogue) -> Result<Foreign, String> {
        let mut job = match self {
            Self::PgBoss => pg_boss::read(dumped),
            Self::GraphileWorker => graphile_worker::read(dumped),
            Self::Sidekiq => sidekiq::read(dumped),
            Self::Bullmq => bullmq::read(dumped),
            Self::Faktory => faktory::read(dumped, catalogue),
        }?;
        // The key is made from the id only. A unique key of the old system may expire sooner, and two of its jobs may
        // have the same one.
        let key = format!("{}:{}", self.as_str(), job.id).into();
        job.draft.idempotency = Some(Idempotency { key, window: KeyWindow::For(REMEMBERED) });
        Ok(job)
    }
}

/// One job of a dump.
#[derive(Debug, Clone)]
pub(super) struct Dumped {
    text: String,
    /// Its fields, except for the payload.
    value: Value,
    /// The payload as it is written: numbers may have more digits than ours.
    payload: Option<String>,
    /// When it is due, from the line after it: the score of a Redis sorted set, in seconds.
    due: Option<f64>,
}

impl Dumped {
    /// # Errors
    /// The line is not a JSON object, or its payload could not be shown.
    pub(super) fn parse(system: System, text: String, due: Option<f64>) -> Result<Self, String> {
        let fields: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_str(&text);
        let mut fields = fields.map_err(|_| "it is not a JSON object")?;
        let payload = fields.remove(system.payload_field()).map(|raw| raw.get().to_owned());
        // A list with a payload that no value of ours can hold could not be shown.
        if payload.as_deref().is_some_and(|payload| serde_json::from_str::<Value>(payload).is_err()) {
            return Err("its payload has a number above 1.8e308, or is nested too deeply".into());
        }
        let read = |(name, raw): (String, Box<RawValue>)| Some((name, serde_json::from_str(raw.get()).ok()?));
        let value = Value::Object(fields.into_iter().filter_map(read).collect());
        Ok(Self { text, value, payload, due })
    }
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
    fn new(id: String, kind: &str, payload: &str) -> Result<Self, String> {
        if id.is_empty() {
            return Err("it has no id".into());
        }
        let kind = Kind::new(kind).map_err(|error| error.to_string())?;
        Ok(Self { id, draft: Draft::new(kind, payload.to_owned()), notes: Vec::new() })
    }

    /// Puts it into the queue of this name, or of one as near as names allow.
    fn queue(&mut self, name: &str) -> Result<(), String> {
        let queue = near(name)?;
        if queue.as_str() != name {
            self.notes.push(format!("the queue `{name}` is called `{}` here", queue.as_str()));
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

/// The name that is as near to this one as names of queues allow.
fn near(name: &str) -> Result<QueueName, String> {
    let near: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(LONGEST_NAME)
        .collect();
    QueueName::new(&near).map_err(|_| format!("the queue `{name}` has no name that can be used here"))
}

#[cfg(test)]
mod tests;

//! Rows that cannot be opened: each is logged once, a claimed job among them is given back, and a list shows what is in
//! clear.

use super::cipher::OpenError;
use super::store::SealedStore;
use crate::job::{ClaimedJob, HttpCall, Job, Payload, Webhook};
use crate::leases::transition::{Trace, commit_of};
use crate::store::{Commit, Committed, Schedule, StoreError};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_core::{Millis, Next, Outcome, Progress, Roll, Timestamp};

/// How long a job that could not be opened waits at least, and at most. In between it waits as long again as it has
/// waited since it was first claimed: soon if the key comes soon, and without filling its history if it does not.
const WAIT: (Millis, Millis) = (Millis::from_secs(10), Millis::from_secs(600));
/// The most rows that are remembered; beyond it, all are forgotten and may be logged again.
const MAX_LOGGED: usize = 10_000;

/// The rows that were logged.
#[derive(Debug, Default)]
pub(super) struct Logged(Mutex<HashSet<String>>);

impl Logged {
    /// Whether a row is to be logged now.
    pub(super) fn is_new(&self, row: &str) -> bool {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= MAX_LOGGED {
            rows.clear();
        }
        rows.insert(row.to_owned())
    }
}

/// A job of a list that is sealed with a key that this node lacks: what is in clear, and the reason in place of its
/// values.
pub(super) fn without_values(mut job: Job, error: &OpenError) -> Job {
    job.payload = reason(error);
    job.error = job.error.map(|_| format!("({error})"));
    job.result = job.result.map(|_| reason(error));
    job.http = job.http.map(|call| call_in_clear(&call));
    job.webhook = job.webhook.map(|webhook| webhook_in_clear(&webhook));
    job
}

/// The same of a schedule.
pub(super) fn schedule_without_values(mut schedule: Schedule, error: &OpenError) -> Schedule {
    let template = &mut schedule.spec.template;
    template.payload = reason(error);
    template.http = template.http.take().map(|call| call_in_clear(&call));
    template.webhook = template.webhook.take().map(|webhook| webhook_in_clear(&webhook));
    schedule
}

fn reason(error: &OpenError) -> Payload {
    serde_json::Value::from(format!("({error})")).to_string().into()
}

fn call_in_clear(call: &HttpCall) -> Arc<HttpCall> {
    Arc::new(HttpCall { url: place(&call.url), headers: Vec::new(), secret: None, ..call.clone() })
}

fn webhook_in_clear(webhook: &Webhook) -> Arc<Webhook> {
    Arc::new(Webhook { url: place(&webhook.url), secret: None, ..webhook.clone() })
}

/// The part of a URL that is never sealed.
fn place(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Claimed jobs: opened ones, and those that could not be opened, with the reason.
#[derive(Default)]
pub(super) struct Sorted {
    pub opened: Vec<ClaimedJob>,
    unopened: Vec<(ClaimedJob, OpenError)>,
}

impl SealedStore {
    pub(super) fn sort_claimed(&self, jobs: Vec<ClaimedJob>) -> Sorted {
        let mut sorted = Sorted::default();
        for claimed in jobs {
            match self.cipher.open_job(claimed.job.clone()) {
                Ok(job) => sorted.opened.push(ClaimedJob { job, ..claimed }),
                Err(error) => {
                    if self.logged.is_new(&format!("job {}", claimed.id)) {
                        tracing::warn!(job_id = %claimed.id, %error, "a claimed job cannot be opened and waits again");
                    }
                    sorted.unopened.push((claimed, error));
                }
            }
        }
        sorted
    }

    /// Gives back the jobs that could not be opened: whoever claimed does not learn of them, and ends the lease that
    /// they share with the others.
    pub(super) async fn give_back(&self, sorted: &Sorted, worker: &str) -> Result<(), StoreError> {
        if sorted.unopened.is_empty() {
            return Ok(());
        }
        let now = self.inner.clock().now();
        let commits = sorted.unopened.iter().map(|(job, error)| given_back(job, error, worker, now)).collect();
        let committed = self.inner.commit(commits, Vec::new()).await?;
        let asked = sorted.unopened.iter().zip(committed).filter(|(_, done)| *done == Committed::CancelRequested);
        let cancelled =
            |(job, error): &(ClaimedJob, OpenError)| given_back(&job.with_cancel_requested(), error, worker, now);
        let again: Vec<Commit> = asked.map(|(unopened, _)| cancelled(unopened)).collect();
        if !again.is_empty() {
            self.inner.commit(again, Vec::new()).await?;
        }
        Ok(())
    }
}

/// The commit of a job that was not started. It counts no failure, and nothing in it needs to be opened or sealed.
fn given_back(job: &ClaimedJob, error: &OpenError, worker: &str, now: Timestamp) -> Commit {
    let trace = Trace {
        started_at: job.claimed_at.unwrap_or(now),
        finished_at: now,
        worker: worker.to_owned(),
        note: Some(format!("not started: {error}")),
        result: None,
    };
    // A release has no delay of its own to spread, so any roll will do.
    let mut commit = commit_of(job, &Outcome::Released(Progress::NotStarted), trace, Roll(0));
    if let Next::Wait { state, .. } = commit.transition.next {
        let delay = now.since(job.first_attempt_at.unwrap_or(now)).clamp(WAIT.0, WAIT.1);
        commit.transition.next = Next::Wait { state, due_at: now + delay, delay };
    }
    commit
}

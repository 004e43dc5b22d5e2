//! FETCH: reserves one job, from the first of the named queues that has one.

use super::outage::Waiting;
use super::reply::Reply;
use super::session::Session;
use super::wire;
use serde_json::{Value, json};
use windlass::StoreError;
use windlass::protocol::ClaimedJob;
use windlass::remote::{AttemptResult, HeldAttempt, TakeRequest};
use windlass_core::job::QueueName;
use windlass_core::{Millis, Outcome, Progress};

/// How long an empty FETCH waits.
const WAIT: Millis = Millis::from_secs(2);
/// The most queues of one FETCH.
const MAX_QUEUES: usize = 100;
const DEFAULT_QUEUE: &str = "default";

impl Session {
    /// Claims a job. May be dropped at any time: a job that nobody received is given back. During an outage there is
    /// nothing to fetch.
    pub(super) async fn fetch(&self, names: &[&str]) -> Result<Option<ClaimedJob>, Reply> {
        let names = if names.is_empty() { &[DEFAULT_QUEUE][..] } else { names };
        if names.len() > MAX_QUEUES {
            return Err(Reply::Error(format!("FETCH takes at most {MAX_QUEUES} queues")));
        }
        let queues = names.iter().map(|name| QueueName::new(name)).collect::<Result<Vec<_>, _>>();
        let queues = queues.map_err(|error| Reply::Error(error.to_string()))?;
        match self.take(queues).await.map_err(Reply::from) {
            Err(Reply::Outage(_)) => {
                self.windlass().clock().sleep(WAIT).await;
                Ok(None)
            }
            taken => taken,
        }
    }

    /// Makes the reply that hands a claimed job out. To be awaited to its end: it gives the job back if that fails.
    pub(super) async fn hand_out(&self, job: &ClaimedJob) -> Result<Reply, Reply> {
        let held = held(job);
        let waiting = Waiting::new(self.windlass().clock());
        let mut reserved = self.reserved(job, held).await;
        while waiting.tries_again(&reserved).await {
            reserved = self.reserved(job, held).await;
        }
        match reserved {
            Ok(failure) => {
                let fetched = wire::fetched(job, failure);
                let jid = fetched.jid().unwrap_or_default();
                self.workers().keep(self.name(), &jid, held);
                Ok(Reply::Text(fetched.json()))
            }
            Err(refused) => {
                self.give_back(job).await;
                // The next FETCH may find it.
                Err(if matches!(refused, Reply::Outage(_)) { Reply::Nothing } else { refused })
            }
        }
    }

    /// The queues are asked in their order. Only if all are empty does it wait, for whichever has a job first.
    async fn take(&self, queues: Vec<QueueName>) -> Result<Option<ClaimedJob>, StoreError> {
        let request = |queues: Vec<QueueName>, wait: Millis| TakeRequest {
            worker: self.worker(),
            queues,
            kinds: None,
            max: 1,
            wait,
            lease_for: wire::DEFAULT_RESERVE,
        };
        if queues.len() > 1 {
            for queue in &queues {
                let taken = self.remote().take(request(vec![queue.clone()], Millis::new(0))).await?;
                if let Some(job) = taken.into_iter().next() {
                    return Ok(Some(job));
                }
            }
        }
        Ok(self.remote().take(request(queues, WAIT)).await?.into_iter().next())
    }

    /// Reserves a job for as long as it asks. Returns why it failed last, if it did.
    async fn reserved(&self, job: &ClaimedJob, held: HeldAttempt) -> Result<Option<Value>, Reply> {
        let reserve_for = wire::of(job).reserve_for();
        if reserve_for != wire::DEFAULT_RESERVE {
            self.remote().extend(&self.worker(), &[held], reserve_for).await?;
        }
        Ok(self.failure(job).await?)
    }

    async fn failure(&self, job: &ClaimedJob) -> Result<Option<Value>, StoreError> {
        if job.failures == 0 {
            return Ok(None);
        }
        let attempts = self.windlass().jobs().latest_attempts(job.id, 1).await?;
        Ok(attempts.last().map(|last| {
            json!({
                "retry_count": job.failures - 1,
                "remaining": job.policy.max_retries.saturating_sub(job.failures - 1),
                "failed_at": last.finished_at.to_string(),
                "next_at": job.due_at.to_string(),
                "message": job.error,
                "errtype": job.error_class,
                "backtrace": last.trace.as_deref().map(|trace| trace.lines().collect::<Vec<_>>()),
            })
        }))
    }

    /// Gives a job back that its worker never received.
    pub(super) async fn give_back(&self, job: &ClaimedJob) {
        let held = held(job);
        let outcome = Outcome::Released(Progress::NotStarted);
        let result = AttemptResult { held, outcome, note: None, result: None };
        if let Err(error) = self.remote().finish(&self.worker(), &[result]).await {
            tracing::warn!(%error, job_id = %held.job, "a job could not be given back; its reservation has to end first");
        }
    }
}

fn held(job: &ClaimedJob) -> HeldAttempt {
    HeldAttempt { job: job.id, attempt: job.attempt, lease: job.lease }
}

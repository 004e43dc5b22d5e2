//! Enqueue: a typed job, a builder for its options, and the result.

pub(crate) mod batch;
pub(crate) mod draft;
pub(crate) mod outgoing;
pub(crate) mod retry;
pub(crate) mod typed;

use crate::client::enqueue::batch::wrong_policy;
use crate::client::enqueue::draft::{Draft, DraftError, WebhookDraft};
use crate::client::enqueue::retry::{IntoRetry, Retry};
use crate::client::policies::catalogue::Catalogue;
use crate::client::tenants::quota::{Admission, with_refusals};
use crate::client::windlass::Windlass;
use crate::event::{Event, EventKind};
use crate::executor::handlers::JobKind;
use crate::job::{DEFAULT_KEY_WINDOW, HttpCall, Idempotency, KeyWindow, NewJob, Payload, RunAt};
use crate::store::{Atomicity, Enqueued, StoreError};
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::quota::OverQuota;
use windlass_core::{Delivery, JobId, Millis, Priority, Timestamp};

/// Why a job was not stored. In every case but [`StoreError::Unknown`] nothing happened.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// A value is not accepted: which one, and what would be accepted.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// Its idempotency key belongs to another job.
    #[error("the idempotency key stands for job {0}, which has another kind or payload")]
    KeyConflict(JobId),
    /// The database refused it.
    #[error("the store refused the job: {0}")]
    Refused(String),
    /// A quota of its tenant is used up.
    #[error("{0}")]
    OverQuota(OverQuota),
    /// Another job of an all-or-nothing batch was refused.
    #[error("not stored, because another job of the batch was refused")]
    NotStored,
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job about to be stored. Awaiting it stores the job and returns its id.
#[derive(Debug)]
#[must_use = "a job is stored when its builder is awaited"]
pub struct Enqueue<'a> {
    windlass: &'a Windlass,
    /// The first invalid value, reported when the builder is awaited.
    pub(super) draft: Result<Draft, DraftError>,
    pub(super) retry: Option<Retry>,
}

impl Windlass {
    /// A job of `J`'s kind, due now, in its kind's queue (or `default`), unless the builder says otherwise. Awaiting
    /// the builder stores the job and returns its id. From then on, the job survives a crash.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windlass::{JobKind, Windlass};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, JobKind)]
    /// #[job(kind = "email", queue = "email")]
    /// struct SendEmail { to: String }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let windlass = Windlass::open("memory:").await?;
    /// let email = SendEmail { to: "ann@example.org".into() };
    /// let id = windlass.enqueue(email).delay(Duration::from_secs(60)).retry("full-jitter").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[allow(clippy::needless_pass_by_value)] // The caller gives the job away: `enqueue(SendEmail { to })`.
    pub fn enqueue<J: JobKind>(&self, job: J) -> Enqueue<'_> {
        Template::of::<J>().enqueue(self, &job, &mut Vec::new())
    }

    /// A job of any kind with any JSON payload.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let windlass = windlass::Windlass::open("memory:").await?;
    /// let id = windlass.enqueue_kind("email", &serde_json::json!({"to": "ann@example.org"})).queue("email").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue_kind(&self, kind: &str, payload: &serde_json::Value) -> Enqueue<'_> {
        let draft = named_kind(kind).map(|kind| Draft::new(kind, payload.to_string()));
        Enqueue { windlass: self, draft, retry: None }
    }

    /// Stores complete jobs.
    ///
    /// # Errors
    /// The store cannot be written to.
    #[doc(hidden)]
    pub async fn enqueue_jobs(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>, StoreError> {
        self.store_jobs(jobs, atomicity).await
    }

    pub(crate) async fn store_jobs(
        &self,
        jobs: Vec<NewJob>,
        atomicity: Atomicity,
    ) -> Result<Vec<Enqueued>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let catalogue = self.catalogue().await?;
        let Admission { refused, storing: _storing } = self.admit(&jobs, atomicity, &catalogue).await?;
        let Some(refused) = refused else {
            return self.store_admitted(jobs, atomicity).await;
        };
        let admitted = match atomicity {
            Atomicity::All => Vec::new(),
            Atomicity::Each => {
                jobs.into_iter().zip(&refused).filter(|(_, no)| no.is_none()).map(|(job, _)| job).collect()
            }
        };
        Ok(with_refusals(refused, self.store_admitted(admitted, atomicity).await?))
    }

    async fn store_admitted(&self, jobs: Vec<NewJob>, atomicity: Atomicity) -> Result<Vec<Enqueued>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        // Read before the store takes the jobs. Skipped if there are no subscribers.
        let events: Option<Vec<Event>> = self.events().has_listeners().then(|| jobs.iter().map(queued).collect());
        let result = self.store().enqueue(jobs, atomicity).await;
        self.inner().record_contact(&result);
        let stored = result?;
        for (event, enqueued) in events.into_iter().flatten().zip(&stored) {
            if let Enqueued::Created { id, created_at, due_at } = enqueued {
                self.events().emit(|| Event { job: *id, at: *created_at, due_at: *due_at, ..event });
            }
        }
        Ok(stored)
    }
}

/// What all jobs of one type share.
pub(super) struct Template {
    kind: Result<Kind, DraftError>,
    queue: Result<Option<QueueName>, DraftError>,
    retry: Option<Retry>,
}

impl Template {
    pub(super) fn of<J: JobKind>() -> Self {
        Self {
            kind: named_kind(J::KIND),
            queue: J::QUEUE.map(named_queue).transpose(),
            retry: J::RETRY.map(|line| Retry::Line(line.into())),
        }
    }

    /// A job with this payload. `buffer` is used to write its text.
    pub(super) fn enqueue<'a, J: JobKind>(&self, windlass: &'a Windlass, job: &J, buffer: &mut Vec<u8>) -> Enqueue<'a> {
        let draft = self.draft(job, buffer);
        Enqueue { windlass, draft, retry: self.retry.clone() }
    }

    fn draft<J: JobKind>(&self, job: &J, buffer: &mut Vec<u8>) -> Result<Draft, DraftError> {
        let kind = self.kind.clone()?;
        buffer.clear();
        let wrong = |why: String| DraftError::new("payload", format!("is not JSON: {why}"));
        serde_json::to_writer(&mut *buffer, job).map_err(|error| wrong(error.to_string()))?;
        let text = str::from_utf8(buffer).map_err(|error| wrong(error.to_string()))?;
        let queue = self.queue.clone()?;
        Ok(Draft { queue, ..Draft::new(kind, Payload::from(text)) })
    }
}

impl<'a> Enqueue<'a> {
    /// Its queue, instead of its kind's queue.
    pub fn queue(self, name: &str) -> Self {
        match named_queue(name) {
            Ok(queue) => self.with(|draft| draft.queue = Some(queue)),
            Err(error) => self.wrong(error),
        }
    }

    /// Its owner, instead of the tenant `default`.
    pub fn tenant(self, name: &str) -> Self {
        match named_tenant(name) {
            Ok(tenant) => self.with(|draft| draft.tenant = tenant),
            Err(error) => self.wrong(error),
        }
    }

    /// Its priority among the due jobs of its queue.
    pub fn priority(self, priority: Priority) -> Self {
        self.with(|draft| draft.priority = priority)
    }

    /// Due this long after it is stored.
    pub fn delay(self, span: impl Into<Millis>) -> Self {
        let span = span.into();
        self.with(|draft| draft.run_at = RunAt::After(span))
    }

    /// Due at this moment: a [`Timestamp`] or a [`std::time::SystemTime`].
    pub fn run_at(self, moment: impl Into<Timestamp>) -> Self {
        let moment = moment.into();
        self.with(|draft| draft.run_at = RunAt::At(moment))
    }

    /// If it is not started by then, it fails (`expired`).
    pub fn start_by(self, moment: impl Into<Timestamp>) -> Self {
        let moment = moment.into();
        self.with(|draft| draft.start_by = Some(moment))
    }

    /// Its retry policy: a name, a line, fields over the levels below, or a whole policy.
    pub fn retry(mut self, retry: impl IntoRetry) -> Self {
        self.retry = Some(retry.into_retry());
        self
    }

    /// How often its effects may happen: at least once (with retries), or at most once (a failure ends it).
    pub fn delivery(self, delivery: Delivery) -> Self {
        self.with(|draft| draft.delivery = delivery)
    }

    /// Longest an attempt may take.
    pub fn timeout(self, span: impl Into<Millis>) -> Self {
        let span = span.into();
        self.with(|draft| draft.timeout = Some(span))
    }

    /// A key for this job: for a day, enqueueing with the same key returns this job instead.
    pub fn idempotency_key(self, key: impl AsRef<str>) -> Self {
        self.idempotency_key_for(key, KeyWindow::For(DEFAULT_KEY_WINDOW))
    }

    /// The same with another time window, or for as long as the job is live.
    pub fn idempotency_key_for(self, key: impl AsRef<str>, window: impl Into<KeyWindow>) -> Self {
        let (key, window) = (key.as_ref().into(), window.into());
        self.with(|draft| draft.idempotency = Some(Idempotency { key, window }))
    }

    /// Makes it an HTTP job, which Windlass runs itself by calling a URL.
    pub fn http(self, call: HttpCall) -> Self {
        self.with(|draft| draft.http = Some(call))
    }

    /// Calls this URL when the job has finished. For events, a secret or a policy use [`Enqueue::webhook_with`].
    pub fn webhook(self, url: &str) -> Self {
        self.webhook_with(WebhookDraft::new(url))
    }

    /// Calls a URL when the job has finished, with the events, secret and policy of `webhook`.
    pub fn webhook_with(self, webhook: WebhookDraft) -> Self {
        self.with(|draft| draft.webhook = Some(webhook))
    }

    /// What per-key limits, holds and breakers apply to: a customer, an account, a destination.
    pub fn limit_key(self, key: impl Into<String>) -> Self {
        let key = key.into();
        self.with(|draft| draft.limit_key = Some(key))
    }

    /// The W3C trace context the job's attempts belong to.
    pub fn traceparent(self, context: impl Into<String>) -> Self {
        let context = context.into();
        self.with(|draft| draft.traceparent = Some(context.into()))
    }

    /// The complete, checked job, without storing it. For callers with their own transaction.
    ///
    /// # Errors
    /// The job is invalid, or the store cannot be read.
    pub async fn complete(self) -> Result<NewJob, EnqueueError> {
        let catalogue = self.windlass.catalogue().await?;
        self.complete_with(&catalogue)
    }

    #[allow(dead_code)] // Without any database there is no transaction to join.
    pub(crate) fn windlass(&self) -> &'a Windlass {
        self.windlass
    }

    pub(crate) fn complete_with(self, catalogue: &Catalogue) -> Result<NewJob, EnqueueError> {
        let mut draft = self.draft?;
        if let Some(retry) = self.retry {
            draft.retry = retry.read(catalogue).map_err(|error| wrong_policy(&error))?;
        }
        Ok(catalogue.complete(draft)?)
    }

    /// Stores the job and returns whether it is new.
    ///
    /// # Errors
    /// As awaiting the builder.
    pub async fn send(self) -> Result<Enqueued, EnqueueError> {
        let windlass = self.windlass;
        let job = self.complete().await?;
        let mut stored = windlass.store_jobs(vec![job], Atomicity::Each).await?;
        Ok(stored.pop().expect("a store answers for every job"))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Ok(draft) = &mut self.draft {
            change(draft);
        }
        self
    }

    /// Keeps the first invalid value, which is the one reported.
    pub(super) fn wrong(mut self, error: DraftError) -> Self {
        if self.draft.is_ok() {
            self.draft = Err(error);
        }
        self
    }
}

impl<'a> IntoFuture for Enqueue<'a> {
    type Output = Result<JobId, EnqueueError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.send().await.and_then(id_of) })
    }
}

pub(crate) fn id_of(enqueued: Enqueued) -> Result<JobId, EnqueueError> {
    match enqueued {
        Enqueued::Created { id, .. } | Enqueued::Existing(id) => Ok(id),
        Enqueued::KeyConflict(id) => Err(EnqueueError::KeyConflict(id)),
        Enqueued::Refused(why) => Err(EnqueueError::Refused(why)),
        Enqueued::OverQuota(refusal) => Err(EnqueueError::OverQuota(refusal)),
        Enqueued::NotStored => Err(EnqueueError::NotStored),
    }
}

fn named_kind(name: &str) -> Result<Kind, DraftError> {
    Kind::new(name).map_err(|error| DraftError::new("kind", error.to_string()))
}

pub(super) fn named_queue(name: &str) -> Result<QueueName, DraftError> {
    QueueName::new(name).map_err(|error| DraftError::new("queue", error.to_string()))
}

pub(super) fn named_tenant(name: &str) -> Result<Tenant, DraftError> {
    Tenant::new(name).map_err(|error| DraftError::new("tenantId", error.to_string()))
}

/// The event of a job that is about to be stored. The store sets its id and time.
fn queued(job: &NewJob) -> Event {
    Event {
        at: Timestamp::EPOCH,
        job: JobId(0),
        tenant: job.tenant.clone(),
        queue: job.queue.clone(),
        kind: job.kind.clone(),
        attempt: 0,
        retry: 0,
        max_attempts: job.max_attempts(),
        schedule: job.schedule,
        due_at: Timestamp::EPOCH,
        event_kind: EventKind::Queued,
    }
}

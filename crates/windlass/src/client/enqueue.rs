//! Enqueue: a typed job, a builder for what is special about it, and what comes of it.

use crate::client::catalogue::Catalogue;
use crate::client::draft::{Draft, DraftError, WebhookDraft};
use crate::client::windlass::Windlass;
use crate::event::{Event, EventKind};
use crate::executor::handlers::JobKind;
use crate::job::{DEFAULT_KEY_WINDOW, HttpCall, Idempotency, KeyWindow, NewJob, Payload, RunAt};
use crate::store::{Atomicity, Enqueued, StoreError};
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::Partial;
use windlass_core::{Delivery, JobId, Millis, Policy, Priority, State, Timestamp};

/// Why a job was not stored. In every case but [`StoreError::Unknown`] nothing happened.
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// Its idempotency key stands for another job.
    #[error("the idempotency key stands for job {0}, which has another kind or payload")]
    KeyConflict(JobId),
    /// The database would not take it.
    #[error("the store refused the job: {0}")]
    Refused(String),
    /// A neighbour in an all-or-nothing batch was refused.
    #[error("not stored, because another job of the batch was refused")]
    NotStored,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a job says what its retry policy is: the name or line of one, some fields, or a whole policy.
pub trait IntoRetry {
    fn into_retry(self) -> Retry;
}

/// A job's own part of its retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retry {
    /// A preset or named policy (`"full-jitter"`), or a line (`"steps:30s/60s/120s"`), read with the store's names.
    Line(String),
    Fields(Box<Partial>),
}

impl IntoRetry for &str {
    fn into_retry(self) -> Retry {
        Retry::Line(self.into())
    }
}

impl IntoRetry for String {
    fn into_retry(self) -> Retry {
        Retry::Line(self)
    }
}

impl IntoRetry for Partial {
    fn into_retry(self) -> Retry {
        Retry::Fields(Box::new(self))
    }
}

impl IntoRetry for Policy {
    fn into_retry(self) -> Retry {
        Retry::Fields(Box::new(Partial::from(&self)))
    }
}

impl IntoRetry for &Policy {
    fn into_retry(self) -> Retry {
        Retry::Fields(Box::new(Partial::from(self)))
    }
}

/// A job about to be stored; awaiting it stores it and gives its id.
#[derive(Debug)]
#[must_use = "a job is stored when its builder is awaited"]
pub struct Enqueue<'a> {
    windlass: &'a Windlass,
    /// What was wrong with a value given so far; told when awaited.
    draft: Result<Draft, DraftError>,
    retry: Option<Retry>,
}

impl Windlass {
    /// A job of `J`'s kind, due now, in the queue `default`, unless the builder says otherwise. Once the builder's
    /// future returns, the job survives a crash.
    #[allow(clippy::needless_pass_by_value)] // A job is handed over: `enqueue(SendEmail { to })`.
    pub fn enqueue<J: JobKind>(&self, job: J) -> Enqueue<'_> {
        self.enqueue_payload(J::KIND, serde_json::to_string(&job).map(Payload::from))
    }

    /// A job of any kind with any JSON payload.
    pub fn enqueue_kind(&self, kind: &str, payload: &serde_json::Value) -> Enqueue<'_> {
        self.enqueue_payload(kind, Ok(payload.to_string().into()))
    }

    fn enqueue_payload(&self, kind: &str, payload: Result<Payload, serde_json::Error>) -> Enqueue<'_> {
        let kind = Kind::new(kind).map_err(|e| DraftError::new("kind", e.to_string()));
        let payload = payload.map_err(|e| DraftError::new("payload", format!("is not JSON: {e}")));
        let draft = kind.and_then(|kind| payload.map(|payload| Draft::new(kind, payload)));
        Enqueue { windlass: self, draft, retry: None }
    }

    /// Stores many jobs of one kind in one commit.
    ///
    /// # Errors
    /// The first job that cannot be: then none is stored.
    pub async fn enqueue_many<J: JobKind>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Result<Vec<JobId>, EnqueueError> {
        let drafts = jobs.into_iter().map(|job| self.enqueue(job).draft).collect::<Result<Vec<Draft>, _>>()?;
        let stored = self.enqueue_drafts(drafts, Atomicity::All).await?;
        stored.into_iter().map(|one| one.map_err(EnqueueError::from).and_then(id_of)).collect()
    }

    /// Stores drafts, with a result for each in the order given. Where all must stand or fall together, one that cannot become a
    /// job leaves all the others [`Enqueued::NotStored`].
    ///
    /// # Errors
    /// The store's trouble with the batch as a whole.
    pub async fn enqueue_drafts(
        &self,
        drafts: Vec<Draft>,
        atomicity: Atomicity,
    ) -> Result<Vec<Result<Enqueued, DraftError>>, StoreError> {
        let catalogue = self.catalogue().await?;
        let completed: Vec<Result<NewJob, DraftError>> = drafts.into_iter().map(|d| catalogue.complete(d)).collect();
        if atomicity == Atomicity::All && completed.iter().any(Result::is_err) {
            return Ok(completed.into_iter().map(|one| one.map(|_| Enqueued::NotStored)).collect());
        }
        let jobs: Vec<NewJob> = completed.iter().filter_map(|one| one.as_ref().ok()).cloned().collect();
        let mut stored = self.store_jobs(jobs, atomicity).await?.into_iter();
        let mut next = |_| stored.next().expect("a store answers for every job");
        Ok(completed.into_iter().map(|one| one.map(&mut next)).collect())
    }

    /// Stores jobs that are complete already.
    ///
    /// # Errors
    /// The store cannot be written to.
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
        let reported = self.events().has_listeners().then(|| jobs.clone());
        let result = self.store().enqueue(jobs, atomicity).await;
        self.record_contact(&result);
        let stored = result?;
        for (job, enqueued) in reported.iter().flatten().zip(&stored) {
            if let Enqueued::Created { id, created_at, .. } = enqueued {
                self.events().emit(|| queued(job, *id, *created_at));
            }
        }
        Ok(stored)
    }
}

impl<'a> Enqueue<'a> {
    pub fn queue(self, name: &str) -> Self {
        self.parsed(|draft| {
            draft.queue = Some(QueueName::new(name).map_err(|e| DraftError::new("queue", e.to_string()))?);
            Ok(())
        })
    }

    pub fn tenant(self, name: &str) -> Self {
        self.parsed(|draft| {
            draft.tenant = Tenant::new(name).map_err(|e| DraftError::new("tenantId", e.to_string()))?;
            Ok(())
        })
    }

    pub fn priority(self, priority: Priority) -> Self {
        self.with(|draft| draft.priority = priority)
    }

    /// Due this long after it is stored.
    pub fn delay(self, span: impl Into<Millis>) -> Self {
        let span = span.into();
        self.with(|draft| draft.run_at = RunAt::After(span))
    }

    /// Due at this moment.
    pub fn run_at(self, moment: Timestamp) -> Self {
        self.with(|draft| draft.run_at = RunAt::At(moment))
    }

    /// Not started by then, it fails (`expired`).
    pub fn start_by(self, moment: Timestamp) -> Self {
        self.with(|draft| draft.start_by = Some(moment))
    }

    /// Its retry policy: a name, a line, fields over the levels below, or a whole policy.
    pub fn retry(mut self, retry: impl IntoRetry) -> Self {
        self.retry = Some(retry.into_retry());
        self
    }

    pub fn delivery(self, delivery: Delivery) -> Self {
        self.with(|draft| draft.delivery = delivery)
    }

    /// Longest an attempt may take.
    pub fn timeout(self, span: impl Into<Millis>) -> Self {
        let span = span.into();
        self.with(|draft| draft.timeout = Some(span))
    }

    /// A name for this job: for a day, enqueueing it again returns this job instead.
    pub fn idempotency_key(self, key: impl AsRef<str>) -> Self {
        self.idempotency_key_for(key, KeyWindow::For(DEFAULT_KEY_WINDOW))
    }

    /// The same, for a time of the caller's choice, or as long as the job is live.
    pub fn idempotency_key_for(self, key: impl AsRef<str>, window: KeyWindow) -> Self {
        let key = key.as_ref().into();
        self.with(|draft| draft.idempotency = Some(Idempotency { key, window }))
    }

    /// Makes it a job that Windlass runs itself, by calling a URL.
    pub fn http(self, call: HttpCall) -> Self {
        self.with(|draft| draft.http = Some(call))
    }

    /// Tells this URL when the job has finished. For events, a secret or a policy use [`Enqueue::webhook_with`].
    pub fn webhook(self, url: &str) -> Self {
        let events = vec![State::Succeeded, State::Failed, State::Cancelled];
        self.webhook_with(WebhookDraft { url: url.into(), events, secret: None, policy: Partial::default() })
    }

    pub fn webhook_with(self, webhook: WebhookDraft) -> Self {
        self.with(|draft| draft.webhook = Some(webhook))
    }

    /// The W3C trace context the job's attempts belong to.
    pub fn traceparent(self, context: impl Into<String>) -> Self {
        let context = context.into();
        self.with(|draft| draft.traceparent = Some(context))
    }

    /// What would be stored, complete and checked, without storing it: for callers with a transaction of their own.
    ///
    /// # Errors
    /// What is wrong with the job, or a store that cannot be read.
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
        match self.retry {
            None => {}
            Some(Retry::Fields(fields)) => draft.retry = *fields,
            Some(Retry::Line(line)) => {
                let read = catalogue.read(&serde_json::Value::String(line));
                draft.retry = read.map_err(|e| DraftError::new("retry", e.to_string()))?;
            }
        }
        Ok(catalogue.complete(draft)?)
    }

    /// Stores the job and tells whether it is new.
    ///
    /// # Errors
    /// As awaiting the builder.
    pub async fn send(self) -> Result<Enqueued, EnqueueError> {
        let windlass = self.windlass;
        let job = self.complete().await?;
        let mut stored = windlass.store_jobs(vec![job], Atomicity::Each).await?;
        Ok(stored.pop().expect("a store answers for every job"))
    }

    fn with(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Ok(draft) = &mut self.draft {
            change(draft);
        }
        self
    }

    fn parsed(mut self, change: impl FnOnce(&mut Draft) -> Result<(), DraftError>) -> Self {
        if let Ok(draft) = &mut self.draft
            && let Err(error) = change(draft)
        {
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
        Enqueued::NotStored => Err(EnqueueError::NotStored),
    }
}

fn queued(job: &NewJob, id: JobId, at: Timestamp) -> Event {
    Event {
        at,
        job: id,
        tenant: job.tenant.clone(),
        queue: job.queue.clone(),
        kind: job.kind.clone(),
        attempt: 0,
        retry: 0,
        max_attempts: job.policy.max_attempts(),
        schedule: job.schedule,
        event_kind: EventKind::Queued,
    }
}

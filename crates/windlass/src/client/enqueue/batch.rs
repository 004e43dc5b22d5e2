//! Batches: many jobs stored in one commit.

use crate::client::enqueue::draft::{DraftError, WebhookDraft};
use crate::client::enqueue::retry::{IntoRetry, Retry};
use crate::client::enqueue::{Enqueue, EnqueueError, Template, id_of, named_queue, named_tenant};
use crate::client::policies::catalogue::Catalogue;
use crate::client::windlass::Windlass;
use crate::executor::handlers::JobKind;
use crate::job::{NewJob, RunAt};
use crate::store::{Atomicity, Enqueued};
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use std::sync::Arc;
use windlass_core::policy::Partial;
use windlass_core::{Delivery, JobId, Millis, PolicyError, Priority, Timestamp};

/// Jobs about to be stored in one commit. Awaiting it stores all of them or none. Returns their ids in order, or the
/// error of the first refused job.
#[derive(Debug)]
#[must_use = "jobs are stored when their batch is awaited"]
pub struct EnqueueMany<'a> {
    windlass: &'a Windlass,
    jobs: Vec<Enqueue<'a>>,
    retry: Option<Retry>,
}

/// A batch in which each job is stored or refused by itself. Awaiting it returns a result for each job, in order.
#[derive(Debug)]
#[must_use = "jobs are stored when their batch is awaited"]
pub struct EnqueueEach<'a>(EnqueueMany<'a>);

impl Windlass {
    /// Many jobs of one kind, in one commit: much faster than one by one. The builder's options apply to all of them.
    ///
    /// ```
    /// use windlass::{JobKind, Priority, Windlass};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, JobKind)]
    /// struct SendEmail { to: String }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let windlass = Windlass::open("memory:").await?;
    /// let emails = ["ann", "bob"].map(|to| SendEmail { to: format!("{to}@example.org") });
    /// let ids = windlass.enqueue_many(emails).queue("email").priority(Priority::Low).await?;
    /// assert_eq!(ids.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue_many<J: JobKind>(&self, jobs: impl IntoIterator<Item = J>) -> EnqueueMany<'_> {
        let (template, mut buffer) = (Template::of::<J>(), Vec::new());
        self.enqueue_all(jobs.into_iter().map(|job| template.enqueue(self, &job, &mut buffer)))
    }

    /// Many jobs of any kinds, each with its own options, in one commit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use windlass::{JobKind, Windlass};
    /// # #[derive(serde::Serialize, serde::Deserialize, JobKind)] struct SendEmail { to: String }
    /// # #[derive(serde::Serialize, serde::Deserialize, JobKind)] struct Report;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let windlass = Windlass::open("memory:").await?;
    /// let ids = windlass
    ///     .enqueue_all([
    ///         windlass.enqueue(SendEmail { to: "ann@example.org".into() }).queue("email"),
    ///         windlass.enqueue(Report).delay(Duration::from_secs(60)).retry("stepped"),
    ///     ])
    ///     .await?;
    /// # assert_eq!(ids.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue_all<'a>(&'a self, jobs: impl IntoIterator<Item = Enqueue<'a>>) -> EnqueueMany<'a> {
        EnqueueMany { windlass: self, jobs: jobs.into_iter().collect(), retry: None }
    }
}

impl<'a> EnqueueMany<'a> {
    /// The queue of all of them.
    pub fn queue(self, name: &str) -> Self {
        let queue = named_queue(name);
        self.all(|job| match &queue {
            Ok(queue) => job.with(|draft| draft.queue = Some(queue.clone())),
            Err(error) => job.wrong(error.clone()),
        })
    }

    /// The tenant of all of them.
    pub fn tenant(self, name: &str) -> Self {
        let tenant = named_tenant(name);
        self.all(|job| match &tenant {
            Ok(tenant) => job.with(|draft| draft.tenant = tenant.clone()),
            Err(error) => job.wrong(error.clone()),
        })
    }

    /// The priority of all of them.
    pub fn priority(self, priority: Priority) -> Self {
        self.all(|job| job.with(|draft| draft.priority = priority))
    }

    /// All are due this long after they are stored.
    pub fn delay(self, span: impl Into<Millis>) -> Self {
        let span = span.into();
        self.all(|job| job.with(|draft| draft.run_at = RunAt::After(span)))
    }

    /// All are due at this moment.
    pub fn run_at(self, moment: impl Into<Timestamp>) -> Self {
        let moment = moment.into();
        self.all(|job| job.with(|draft| draft.run_at = RunAt::At(moment)))
    }

    /// Those not started by then fail (`expired`).
    pub fn start_by(self, moment: impl Into<Timestamp>) -> Self {
        let moment = moment.into();
        self.all(|job| job.with(|draft| draft.start_by = Some(moment)))
    }

    /// The retry policy of all of them: a name, a line, fields over the levels below, or a whole policy.
    pub fn retry(mut self, retry: impl IntoRetry) -> Self {
        self.retry = Some(retry.into_retry());
        self
    }

    /// How often their effects may happen: see [`Enqueue::delivery`].
    pub fn delivery(self, delivery: Delivery) -> Self {
        self.all(|job| job.with(|draft| draft.delivery = delivery))
    }

    /// Longest an attempt of any of them may take.
    pub fn timeout(self, span: impl Into<Millis>) -> Self {
        let span = span.into();
        self.all(|job| job.with(|draft| draft.timeout = Some(span)))
    }

    /// Calls this URL when one of them has finished.
    pub fn webhook(self, url: &str) -> Self {
        self.all(|job| job.with(|draft| draft.webhook = Some(WebhookDraft::new(url))))
    }

    /// What per-key limits, holds and breakers apply to, for all of them.
    pub fn limit_key(self, key: impl Into<String>) -> Self {
        let key = key.into();
        self.all(|job| job.with(|draft| draft.limit_key = Some(key.clone())))
    }

    /// The W3C trace context that the attempts of all of them belong to.
    pub fn traceparent(self, context: impl Into<String>) -> Self {
        let context: Arc<str> = context.into().into();
        self.all(|job| job.with(|draft| draft.traceparent = Some(context.clone())))
    }

    /// Stores or refuses each job by itself. A refused job does not affect the others.
    ///
    /// ```
    /// # use windlass::{JobKind, Windlass};
    /// # #[derive(serde::Serialize, serde::Deserialize, JobKind)] struct Report;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let windlass = Windlass::open("memory:").await?;
    /// let jobs = [windlass.enqueue(Report), windlass.enqueue(Report).queue("NOT A NAME")];
    /// for result in windlass.enqueue_all(jobs).each().await {
    ///     match result {
    ///         Ok(id) => println!("stored as {id}"),
    ///         Err(error) => println!("refused: {error}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn each(self) -> EnqueueEach<'a> {
        EnqueueEach(self)
    }

    /// How many jobs there are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is none in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn all(mut self, change: impl Fn(Enqueue<'a>) -> Enqueue<'a>) -> Self {
        self.jobs = self.jobs.into_iter().map(change).collect();
        self
    }

    async fn send_all(self) -> Result<Vec<JobId>, EnqueueError> {
        let windlass = self.windlass;
        let catalogue = windlass.catalogue().await?;
        let jobs = self.complete(&catalogue).collect::<Result<Vec<NewJob>, EnqueueError>>()?;
        let stored = windlass.store_jobs(jobs, Atomicity::All).await?;
        // The refused job has the reason. The others only say that another job was refused.
        let refused = stored.iter().position(|one| one.id().is_none() && *one != Enqueued::NotStored);
        match refused {
            Some(place) => Err(refusal(stored, place)),
            None => stored.into_iter().map(id_of).collect(),
        }
    }

    async fn send_each(self) -> Vec<Result<JobId, EnqueueError>> {
        let windlass = self.windlass;
        let catalogue = match windlass.catalogue().await {
            Ok(catalogue) => catalogue,
            Err(error) => return self.jobs.iter().map(|_| Err(error.clone().into())).collect(),
        };
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let refused: Vec<Option<EnqueueError>> =
            self.complete(&catalogue).map(|one| one.map(|job| jobs.push(job)).err()).collect();
        let mut stored = windlass.store_jobs(jobs, Atomicity::Each).await.map(Vec::into_iter);
        let mut next = || match &mut stored {
            Ok(stored) => id_of(stored.next().expect("a store answers for every job")),
            Err(error) => Err(error.clone().into()),
        };
        refused.into_iter().map(|refused| refused.map_or_else(&mut next, Err)).collect()
    }

    fn complete(self, catalogue: &Catalogue) -> impl Iterator<Item = Result<NewJob, EnqueueError>> {
        let mut policies = Policies { catalogue, last: None };
        self.jobs.into_iter().map(move |job| {
            let retry = self.retry.as_ref().or(job.retry.as_ref());
            let retry = retry.map(|retry| policies.read(retry)).transpose();
            let mut draft = job.draft?;
            if let Some(retry) = retry.map_err(|error| wrong_policy(&error))? {
                draft.retry = retry;
            }
            Ok(catalogue.complete(draft)?)
        })
    }
}

/// Parses policies. The jobs of a batch mostly share one.
struct Policies<'c> {
    catalogue: &'c Catalogue,
    last: Option<(Retry, Partial)>,
}

impl Policies<'_> {
    fn read(&mut self, retry: &Retry) -> Result<Partial, PolicyError> {
        if let Some((_, policy)) = self.last.as_ref().filter(|(last, _)| last == retry) {
            return Ok(policy.clone());
        }
        let policy = retry.read(self.catalogue)?;
        self.last = Some((retry.clone(), policy.clone()));
        Ok(policy)
    }
}

pub(crate) fn wrong_policy(error: &PolicyError) -> DraftError {
    DraftError::new("retry", error.to_string())
}

fn refusal(mut stored: Vec<Enqueued>, place: usize) -> EnqueueError {
    id_of(stored.swap_remove(place)).err().unwrap_or(EnqueueError::NotStored)
}

impl<'a> IntoFuture for EnqueueMany<'a> {
    type Output = Result<Vec<JobId>, EnqueueError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send_all())
    }
}

impl<'a> IntoFuture for EnqueueEach<'a> {
    type Output = Vec<Result<JobId, EnqueueError>>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.0.send_each())
    }
}

//! The builder of a schedule: a new one, or a change of one.

use super::Schedules;
use crate::client::enqueue::draft::DraftError;
use crate::client::enqueue::{Enqueue, EnqueueError};
use crate::executor::handlers::JobKind;
use crate::job::{NewJob, RunAt};
use crate::store::{DeadRuns, Missed, Overlap, Recurrence, Schedule, ScheduleSpec, StoreError};
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use windlass_core::{Cadence, CadenceError, JobId, Millis, Timestamp};

/// Why a schedule was not created or changed. In every case but [`StoreError::Unknown`] nothing happened.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The cron line, interval or time zone is wrong.
    #[error(transparent)]
    Cadence(#[from] CadenceError),
    /// A field is missing or wrong: which one, and what would be accepted.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// There is no such schedule.
    #[error("there is no schedule {0}")]
    NotFound(JobId),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A schedule about to be created or changed. Awaiting it does so and returns the schedule.
#[derive(Debug)]
#[must_use = "a schedule is made or changed when its builder is awaited"]
pub struct ScheduleBuilder<'a> {
    schedules: Schedules<'a>,
    /// The schedule to change; `None` creates a new one.
    id: Option<JobId>,
    cadence: Option<String>,
    zone: Option<String>,
    recurrence: Option<Recurrence>,
    overlap: Option<Overlap>,
    missed: Option<Missed>,
    dead_letters: Option<DeadRuns>,
    paused: Option<bool>,
    template: Option<Template<'a>>,
}

/// The job each firing enqueues.
#[derive(Debug)]
enum Template<'a> {
    Enqueue(Box<Enqueue<'a>>),
    Complete(Box<NewJob>),
}

impl<'a> ScheduleBuilder<'a> {
    pub(super) fn new(schedules: Schedules<'a>, id: Option<JobId>) -> Self {
        Self {
            schedules,
            id,
            cadence: None,
            zone: None,
            recurrence: None,
            overlap: None,
            missed: None,
            dead_letters: None,
            paused: None,
            template: None,
        }
    }

    /// Fires by a cron line of 5 fields, or 6 (seconds first), on the wall clock of the schedule's time zone.
    pub fn cron(self, line: &str) -> Self {
        Self { cadence: Some(line.to_owned()), ..self }
    }

    /// Fires at an interval of at least a second, counted from when the schedule was created.
    pub fn every(self, interval: impl Into<Millis>) -> Self {
        Self { cadence: Some(Cadence::interval_text(interval.into())), ..self }
    }

    /// The time zone of a cron line, by its IANA name; `UTC` if not set.
    pub fn time_zone(self, name: &str) -> Self {
        Self { zone: Some(name.to_owned()), ..self }
    }

    /// Fires once, at the first time the cadence names. The schedule is removed when its run has ended; the run stays.
    pub fn once(self) -> Self {
        self.recurrence(Recurrence::OneShot)
    }

    /// Whether it continues after its first firing; it does if not set.
    pub fn recurrence(self, recurrence: Recurrence) -> Self {
        Self { recurrence: Some(recurrence), ..self }
    }

    /// What to do when the last run is still live. By default the firing is skipped.
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap: Some(overlap), ..self }
    }

    /// What to do with firings that were missed while no node was up. By default, one run replaces all of them.
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed: Some(missed), ..self }
    }

    /// Which failed runs of a recurring schedule stay dead letters. By default only the latest: a schedule that fails
    /// every ten seconds must not bury the others.
    pub fn dead_letters(self, keep: DeadRuns) -> Self {
        Self { dead_letters: Some(keep), ..self }
    }

    /// Paused: it does not fire until it is resumed.
    pub fn paused(self) -> Self {
        self.set_paused(true)
    }

    /// Paused or not, in a change.
    pub fn set_paused(self, paused: bool) -> Self {
        Self { paused: Some(paused), ..self }
    }

    /// Each firing enqueues this job in the queue `default`.
    pub fn job<J: JobKind>(self, job: J) -> Self {
        let template = self.schedules.windlass.enqueue(job);
        self.template(template)
    }

    /// Each firing enqueues a job of any kind with any JSON payload in the queue `default`.
    pub fn job_kind(self, kind: &str, payload: &serde_json::Value) -> Self {
        let template = self.schedules.windlass.enqueue_kind(kind, payload);
        self.template(template)
    }

    /// Each firing enqueues the job of this builder: `windlass.enqueue(job).queue("reports").retry("full-jitter")`. The
    /// firing sets the time, so the builder may set neither a time nor an idempotency key. The schedule belongs to the
    /// job's tenant.
    pub fn template(self, job: Enqueue<'a>) -> Self {
        Self { template: Some(Template::Enqueue(Box::new(job))), ..self }
    }

    /// Each firing enqueues this complete job.
    #[doc(hidden)]
    pub fn complete_template(self, job: NewJob) -> Self {
        Self { template: Some(Template::Complete(Box::new(job))), ..self }
    }

    async fn send(mut self) -> Result<Schedule, ScheduleError> {
        let template = match self.template.take() {
            None => None,
            Some(template) => Some(template.complete().await?),
        };
        match self.id {
            None => self.make(template).await,
            Some(id) => self.change(id, template).await,
        }
    }

    async fn make(self, template: Option<NewJob>) -> Result<Schedule, ScheduleError> {
        let template = template.ok_or_else(|| DraftError::new("job", "is needed: what each firing enqueues"))?;
        let (cadence, zone) = self.read_cadence(None, self.schedules.windlass.clock().now())?;
        let spec = ScheduleSpec {
            tenant: template.tenant.clone(),
            cadence,
            zone,
            recurrence: self.recurrence.unwrap_or(Recurrence::Recurring),
            overlap: self.overlap.unwrap_or(Overlap::Skip),
            missed: self.missed.unwrap_or(Missed::One),
            dead_letters: self.dead_letters.unwrap_or(DeadRuns::Latest),
            template,
        };
        if !self.schedules.scope.covers(&spec.tenant) {
            return Err(DraftError::new("job/tenantId", "is another tenant than the one this handle is for").into());
        }
        Ok(self.schedules.add(spec, self.paused == Some(true)).await?)
    }

    async fn change(self, id: JobId, template: Option<NewJob>) -> Result<Schedule, ScheduleError> {
        let schedule = self.schedules.get(id).await?.ok_or(ScheduleError::NotFound(id))?;
        let mut spec = schedule.spec.clone();
        if self.cadence.is_some() || self.zone.is_some() {
            (spec.cadence, spec.zone) = self.read_cadence(Some(&spec), schedule.created_at)?;
        }
        if let Some(template) = template {
            if template.tenant != spec.tenant {
                return Err(DraftError::new("job/tenantId", "cannot move a schedule to another tenant").into());
            }
            spec.template = template;
        }
        spec.recurrence = self.recurrence.unwrap_or(spec.recurrence);
        spec.overlap = self.overlap.unwrap_or(spec.overlap);
        spec.missed = self.missed.unwrap_or(spec.missed);
        spec.dead_letters = self.dead_letters.unwrap_or(spec.dead_letters);
        let changed = self.schedules.apply(&schedule, Some(spec), self.paused).await?;
        changed.ok_or(ScheduleError::NotFound(id))
    }

    /// The cadence's text and time zone, checked and normalised.
    fn read_cadence(&self, old: Option<&ScheduleSpec>, anchor: Timestamp) -> Result<(String, String), ScheduleError> {
        let text = self.cadence.as_deref().or(old.map(|spec| spec.cadence.as_str()));
        let text = text.ok_or_else(|| DraftError::new("cron", "is needed: a cron line, or an interval"))?;
        if Cadence::interval_in(text).is_some() && self.zone.is_some() {
            return Err(DraftError::new("timezone", "has no effect on an interval").into());
        }
        let zone = self.zone.as_deref().or(old.map(|spec| spec.zone.as_str())).unwrap_or("UTC");
        let cadence = Cadence::read(text, zone, anchor)?;
        Ok((cadence.text(), cadence.zone().to_owned()))
    }
}

impl Template<'_> {
    async fn complete(self) -> Result<NewJob, ScheduleError> {
        let job = match self {
            Self::Complete(job) => *job,
            Self::Enqueue(job) => job.complete().await.map_err(refused)?,
        };
        let set = [
            ("runAt", job.run_at != RunAt::Now),
            ("startBy", job.start_by.is_some()),
            ("idempotencyKey", job.idempotency.is_some()),
        ];
        match set.into_iter().find(|(_, is_set)| *is_set) {
            Some((field, _)) => {
                Err(DraftError::new(format!("job/{field}"), "is set by each firing; a schedule's job has none").into())
            }
            None => Ok(job),
        }
    }
}

/// Errors of completing a job, before anything is stored.
fn refused(error: EnqueueError) -> ScheduleError {
    match error {
        EnqueueError::Draft(error) => error.into(),
        EnqueueError::Store(error) => error.into(),
        error @ (EnqueueError::KeyConflict(_)
        | EnqueueError::Refused(_)
        | EnqueueError::OverQuota(_)
        | EnqueueError::NotStored) => DraftError::new("job", error.to_string()).into(),
    }
}

impl<'a> IntoFuture for ScheduleBuilder<'a> {
    type Output = Result<Schedule, ScheduleError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

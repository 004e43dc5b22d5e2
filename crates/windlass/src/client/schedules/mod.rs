//! Schedules: create, read, change, pause, resume, trigger, preview and remove them. Core decides when one fires next
//! ([`windlass_core::Timing`]); `upkeep` fires the due ones.

mod build;

pub use build::{ScheduleBuilder, ScheduleError};

use crate::client::windlass::Windlass;
use crate::job::{Job, RunAt};
use crate::store::{
    Fired, Firing, Page, Recurrence, Schedule, ScheduleChange, ScheduleSpec, Scope, StoreError, Trigger,
};
use windlass_core::{Attempt, Cadence, CadenceError, JobId, Millis, NextFiring, State, Timestamp, Timing};

/// Rules that enqueue jobs at given times. Made by [`Windlass::schedules`].
#[derive(Debug, Clone)]
pub struct Schedules<'a> {
    windlass: &'a Windlass,
    scope: Scope,
}

impl Windlass {
    /// The schedules: rules that enqueue jobs at given times.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windlass::client::Overlap;
    /// use windlass::{JobKind, Windlass};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Report { of: String }
    /// impl JobKind for Report {
    ///     const KIND: &'static str = "report";
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let daily = windlass
    ///     .schedules()
    ///     .cron("0 9 * * MON-FRI")
    ///     .time_zone("Europe/Berlin")
    ///     .overlap(Overlap::Allow)
    ///     .job(Report { of: "sales".into() })
    ///     .await?;
    /// assert!(daily.next_at.is_some());
    ///
    /// // The builder that enqueues a job sets everything a job can have.
    /// let slow = windlass.enqueue(Report { of: "stock".into() }).queue("slow").retry("full-jitter");
    /// let hourly = windlass.schedules().every(Duration::from_secs(3600)).template(slow).await?;
    ///
    /// windlass.schedules().pause(daily.id).await?;
    /// let run = windlass.schedules().trigger(hourly.id).await?.unwrap();
    /// assert_eq!(run.queue.as_str(), "slow");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { windlass: self, scope: Scope::All }
    }
}

impl<'a> Schedules<'a> {
    /// The schedules of one tenant, or of all.
    #[must_use]
    pub fn within(self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// A new schedule that fires by a cron line of 5 fields, or 6 (seconds first). Created when the builder is awaited.
    pub fn cron(&self, line: &str) -> ScheduleBuilder<'a> {
        self.create().cron(line)
    }

    /// A new schedule that fires at an interval of at least a second, counted from now. Created when the builder is
    /// awaited.
    pub fn every(&self, interval: impl Into<Millis>) -> ScheduleBuilder<'a> {
        self.create().every(interval)
    }

    /// A new schedule; set everything on the builder. Created when the builder is awaited.
    pub fn create(&self) -> ScheduleBuilder<'a> {
        ScheduleBuilder::new(self.clone(), None)
    }

    /// A change of a schedule. Fields that the builder does not set stay as they are. Made when the builder is awaited.
    pub fn change(&self, id: JobId) -> ScheduleBuilder<'a> {
        ScheduleBuilder::new(self.clone(), Some(id))
    }

    /// A schedule.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get(&self, id: JobId) -> Result<Option<Schedule>, StoreError> {
        self.windlass.store().schedule(&self.scope, id).await
    }

    /// Schedules, a page at a time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self, page: Page) -> Result<Vec<Schedule>, StoreError> {
        self.windlass.store().schedules(&self.scope, page).await
    }

    /// Pauses a schedule: it does not fire until it is resumed. `None` if there is no such schedule.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn pause(&self, id: JobId) -> Result<Option<Schedule>, StoreError> {
        self.set_paused(id, true).await
    }

    /// Resumes a schedule at its next firing after now. Firings during the pause are skipped. `None` if there is no
    /// such schedule.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn resume(&self, id: JobId) -> Result<Option<Schedule>, StoreError> {
        self.set_paused(id, false).await
    }

    /// Removes a schedule; its runs stay. Returns whether it existed.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove(&self, id: JobId) -> Result<bool, StoreError> {
        self.windlass.store().remove_schedule(&self.scope, id).await
    }

    /// Fires a schedule now, even if it is paused or its last run is live. Returns the run, or `None` if there is no
    /// such schedule.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn trigger(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let Some(schedule) = self.get(id).await? else { return Ok(None) };
        let mut job = schedule.spec.template.clone();
        (job.run_at, job.schedule) = (RunAt::Now, Some(schedule.id));
        let firing = Firing { schedule: schedule.id, trigger: Trigger::Operator, job: Some(job) };
        let result = self.windlass.store().fire(firing).await;
        self.windlass.inner().record_contact(&result);
        match result? {
            Fired::Enqueued(run) => self.windlass.store().job(&self.scope, run).await,
            Fired::Skipped | Fired::NotOurs => Ok(None),
        }
    }

    /// The next firings of a schedule, at most 1000. `None` if there is no such schedule.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn preview(&self, id: JobId, count: usize) -> Result<Option<Vec<Timestamp>>, StoreError> {
        let Some(schedule) = self.get(id).await? else { return Ok(None) };
        let cadence = schedule.cadence().map_err(|error| {
            StoreError::corrupt(format!("schedule {id}"), format!("a schedule's cadence can be read: {error}"))
        })?;
        Ok(Some(cadence.next_n(self.windlass.clock().now(), count)))
    }

    /// The latest attempts of all runs of a schedule, oldest first, with the job of each. Also works for a one-shot
    /// schedule that was removed, because its run stays.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn history(&self, id: JobId, limit: u32) -> Result<Vec<(JobId, Attempt)>, StoreError> {
        self.windlass.store().schedule_attempts(&self.scope, id, limit).await
    }

    /// When the live run of a schedule is tried again, if it waits for a retry.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn retry_at(&self, schedule: &Schedule) -> Result<Option<Timestamp>, StoreError> {
        let Some(id) = schedule.last_job else { return Ok(None) };
        let run = self.windlass.store().job(&Scope::Tenant(schedule.spec.tenant.clone()), id).await?;
        Ok(run.filter(|job| job.state == State::Retrying).map(|job| job.due_at))
    }

    async fn set_paused(&self, id: JobId, paused: bool) -> Result<Option<Schedule>, StoreError> {
        let Some(schedule) = self.get(id).await? else { return Ok(None) };
        self.apply(&schedule, None, Some(paused)).await
    }

    /// Stores a new schedule. A schedule that starts paused gets its next firing and the pause in one write, so that it
    /// cannot fire in between.
    async fn add(&self, spec: ScheduleSpec, paused: bool) -> Result<Schedule, StoreError> {
        let now = self.windlass.clock().now();
        let first = timing(&spec, now, paused, None).first(now);
        let schedule = self.windlass.store().add_schedule(spec, first.filter(|_| !paused)).await?;
        if !paused {
            return Ok(schedule);
        }
        let change = ScheduleChange { paused: Some(true), next_at: Some(first), ..ScheduleChange::default() };
        let changed = self.windlass.store().change_schedule(&Scope::All, schedule.id, change).await?;
        Ok(changed.unwrap_or(schedule))
    }

    /// Changes a schedule, its next firing included.
    async fn apply(
        &self,
        schedule: &Schedule,
        spec: Option<ScheduleSpec>,
        paused: Option<bool>,
    ) -> Result<Option<Schedule>, StoreError> {
        let now = self.windlass.clock().now();
        let before = timing(&schedule.spec, schedule.created_at, schedule.paused, schedule.next_at);
        let new = spec.as_ref().unwrap_or(&schedule.spec);
        let after = timing(new, schedule.created_at, paused.unwrap_or(schedule.paused), schedule.next_at);
        let next_at = match before.changed(&after, now) {
            NextFiring::Unchanged => None,
            NextFiring::At(next_at) => Some(next_at),
        };
        let change = ScheduleChange { spec, paused, next_at };
        self.windlass.store().change_schedule(&self.scope, schedule.id, change).await
    }
}

impl Schedule {
    /// When it fires.
    ///
    /// # Errors
    /// The stored text cannot be read.
    pub fn cadence(&self) -> Result<Cadence, CadenceError> {
        Cadence::read(&self.spec.cadence, &self.spec.zone, self.created_at)
    }
}

fn timing(spec: &ScheduleSpec, anchor: Timestamp, paused: bool, next_at: Option<Timestamp>) -> Timing {
    Timing {
        cadence: Cadence::read(&spec.cadence, &spec.zone, anchor).ok(),
        recurs: spec.recurrence == Recurrence::Recurring,
        paused,
        next_at,
    }
}

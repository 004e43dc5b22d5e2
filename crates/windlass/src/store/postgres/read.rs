//! Reads: jobs, attempts, groups, depths, tallies.

use super::Inner;
use super::fault::again;
use super::pool::On;
use super::rows::{self, Columns};
use super::sql::Sql;
use crate::job::{Job, QueueId};
use crate::store::{DeadGroup, Depth, JobFilter, Order, Page, Queue, Scope, StoreError};
use crate::tally::Tally;
use std::collections::HashSet;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, State, Timestamp};

pub(super) fn tenant_of(scope: &Scope) -> Option<&str> {
    match scope {
        Scope::All => None,
        Scope::Tenant(tenant) => Some(tenant.as_str()),
    }
}

/// A filter as the statements take it.
struct Filter<'a> {
    states: Option<Vec<&'static str>>,
    queue: Option<&'a str>,
    /// All of these must be the job's tenant.
    tenants: Option<Vec<&'a str>>,
    kind: Option<&'a str>,
    class: Option<&'a str>,
    since: Option<i64>,
    schedule: Option<i64>,
    parent: Option<i64>,
    executor: Option<&'static str>,
    fingerprint: Option<&'a str>,
}

impl<'a> Filter<'a> {
    fn new(scope: &'a Scope, filter: &'a JobFilter) -> Self {
        let tenants: Vec<&str> =
            tenant_of(scope).into_iter().chain(filter.tenant.as_ref().map(Tenant::as_str)).collect();
        Self {
            states: (!filter.states.is_empty()).then(|| filter.states.iter().copied().map(State::as_str).collect()),
            queue: filter.queue.as_ref().map(QueueName::as_str),
            tenants: (!tenants.is_empty()).then_some(tenants),
            kind: filter.kind.as_ref().map(Kind::as_str),
            class: filter.error_class.as_deref(),
            since: filter.since.map(Timestamp::as_millis),
            schedule: filter.schedule.map(|id| id.0),
            parent: filter.parent.map(|id| id.0),
            executor: filter.executor.map(Executor::as_str),
            fingerprint: filter.fingerprint.as_deref(),
        }
    }
}

impl Inner {
    pub(super) async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        let ids = [id.0];
        again(|| async {
            let lent = self.pool.get().await?;
            // A job that moves between the two reads is found by looking at the first place again.
            for sql in [Sql::JobLive, Sql::JobArchived, Sql::JobLive] {
                let rows = lent.query(sql, &[&ids.as_slice()]).await?;
                let jobs = self.jobs_in(On::Own(&lent), &rows, 0).await?;
                if let Some(job) = jobs.into_iter().next() {
                    return Ok(Some(job).filter(|job| scope.covers(&job.tenant)));
                }
            }
            Ok(None)
        })
        .await
    }

    pub(super) async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>, StoreError> {
        let f = Filter::new(scope, filter);
        let after = page.after.map(|id| id.0);
        let limit = i64::from(page.limit);
        let wants_live = !filter.dead_letters
            && filter.fingerprint.is_none()
            && (filter.states.is_empty() || filter.states.iter().any(|state: &State| state.is_live()));
        let sql = match page.order {
            Order::NewestFirst => Sql::JobsNewest,
            Order::OldestFirst => Sql::JobsOldest,
        };
        again(|| async {
            let lent = self.pool.get().await?;
            let rows = lent
                .query(
                    sql,
                    &[
                        &after,
                        &limit,
                        &wants_live,
                        &f.states,
                        &f.queue,
                        &f.tenants,
                        &f.kind,
                        &f.class,
                        &f.since,
                        &f.schedule,
                        &f.parent,
                        &f.executor,
                        &filter.dead_letters,
                        &f.fingerprint,
                    ],
                )
                .await?;
            self.jobs_in(On::Own(&lent), &rows, 0).await
        })
        .await
    }

    pub(super) async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>, StoreError> {
        if self.job(scope, id).await?.is_none() {
            return Ok(Vec::new());
        }
        let rows = self.read(Sql::Attempts, &[&id.0, &i64::from(limit)]).await?;
        rows.iter().rev().map(|row| Ok(rows::attempt(row)?.1)).collect()
    }

    pub(super) async fn schedule_attempts(
        &self,
        scope: &Scope,
        schedule: JobId,
        limit: u32,
    ) -> Result<Vec<(JobId, Attempt)>, StoreError> {
        let params: super::pool::Params<'_> = &[&schedule.0, &i64::from(limit), &tenant_of(scope)];
        let rows = self.read(Sql::ScheduleAttempts, params).await?;
        rows.iter().rev().map(rows::attempt).collect()
    }

    pub(super) async fn dead_groups(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        limit: u32,
    ) -> Result<Vec<DeadGroup>, StoreError> {
        if !filter.states.is_empty() && !filter.states.contains(&State::Failed) {
            return Ok(Vec::new());
        }
        let f = Filter::new(scope, filter);
        let limit = i64::from(limit);
        let params: super::pool::Params<'_> = &[
            &limit,
            &f.queue,
            &f.tenants,
            &f.kind,
            &f.class,
            &f.since,
            &f.schedule,
            &f.parent,
            &f.executor,
            &f.fingerprint,
        ];
        let rows = self.read(Sql::DeadGroups, params).await?;
        rows.iter().map(dead_group).collect()
    }

    pub(super) async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>, StoreError> {
        let rows = self.read(Sql::Depths, &[&self.fixed(), &tenant_of(scope)]).await?;
        let depth = |row| {
            let mut c = Columns::new(row);
            let queue = QueueId(c.next()?);
            let mut count = || Ok::<u64, StoreError>(c.next::<i64>()?.max(0) as u64);
            let (due, later, running, dead) = (count()?, count()?, count()?, count()?);
            Ok(Depth { queue, due, later, running, dead, oldest_due: c.moment_if()? })
        };
        rows.iter().map(depth).collect()
    }

    pub(super) async fn tallies(
        &self,
        scope: &Scope,
        since: Option<Timestamp>,
    ) -> Result<Vec<(Queue, Kind, Tally)>, StoreError> {
        again(|| async {
            let lent = self.pool.get().await?;
            let on = On::Own(&lent);
            let rows = on.query(Sql::Tallies, &[&since.map(Timestamp::as_millis), &tenant_of(scope)]).await?;
            let ids = rows.iter().map(|row| Columns::new(row).next()).collect::<Result<HashSet<i64>, _>>()?;
            self.look_up_queues(on, &ids).await?;
            let mut tallies = Vec::with_capacity(rows.len());
            for row in &rows {
                let mut c = Columns::new(row);
                let queue = self.names.queue(c.next()?);
                let kind = Kind::new(c.text()?).map_err(|e| StoreError::corrupt("tally", e.to_string()))?;
                let mut values = [0; Tally::COLUMNS.len()];
                for value in &mut values {
                    *value = c.next()?;
                }
                if let Some(queue) = queue {
                    tallies.push(((*queue).clone(), kind, Tally::from_values(values)));
                }
            }
            // As Rust orders names: the server's collation may not.
            tallies.sort_by(|a, b| (a.0.id, &a.1).cmp(&(b.0.id, &b.1)));
            Ok(tallies)
        })
        .await
    }
}

fn dead_group(row: &tokio_postgres::Row) -> Result<DeadGroup, StoreError> {
    let mut c = Columns::new(row);
    let corrupt = |error: windlass_core::NameError| StoreError::corrupt("dead letter", error.to_string());
    Ok(DeadGroup {
        fingerprint: c.next()?,
        tenant: Tenant::new(c.text()?).map_err(corrupt)?,
        queue: QueueName::new(c.text()?).map_err(corrupt)?,
        kind: Kind::new(c.text()?).map_err(corrupt)?,
        error_class: c.next()?,
        message: c.next()?,
        count: c.next::<i64>()?.max(0) as u64,
        first_seen: c.moment()?,
        last_seen: c.moment()?,
        example: JobId(c.next()?),
    })
}

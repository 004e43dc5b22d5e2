//! Reads: jobs, attempts, groups.

use crate::job::{Job, LeaseId};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::names;
use crate::store::postgres::registry;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::rows;
use crate::store::{DeadCount, DeadGroup, Holder, JobFilter, KeyedJob, Order, Page, Queue, Scope, Steps, StoreError};
use futures_util::join;
use std::collections::HashSet;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, JobId, State, Timestamp};

pub(in crate::store::postgres) fn tenant_of(scope: &Scope) -> Option<&str> {
    match scope {
        Scope::All => None,
        Scope::Tenant(tenant) => Some(tenant.as_str()),
    }
}

/// A filter as the statements take it.
struct Filter<'a> {
    states: Option<Vec<&'static str>>,
    /// The queues' numbers, if not all queues are selected.
    queues: Option<Vec<i64>>,
    kind: Option<&'a str>,
    class: Option<&'a str>,
    since: Option<i64>,
    schedule: Option<i64>,
    parent: Option<i64>,
    fingerprint: Option<&'a str>,
}

impl<'a> Filter<'a> {
    fn new(filter: &'a JobFilter, queues: Option<Vec<i64>>) -> Self {
        Self {
            states: (!filter.states.is_empty()).then(|| filter.states.iter().copied().map(State::as_str).collect()),
            queues,
            kind: filter.kind.as_ref().map(Kind::as_str),
            class: filter.error_class.as_deref(),
            since: filter.since.map(Timestamp::as_millis),
            schedule: filter.schedule.map(|id| id.0),
            parent: filter.parent.map(|id| id.0),
            fingerprint: filter.fingerprint.as_deref(),
        }
    }
}

pub(in crate::store::postgres) async fn job(
    store: &Inner,
    scope: &Scope,
    id: JobId,
) -> Result<Option<Job>, StoreError> {
    let ids = [id.0];
    again(|| async {
        let lent = store.pool.get().await?;
        // A job that stops running between the two reads is found by the first one again.
        for sql in [Sql::JobFound, Sql::JobRunning, Sql::JobFound] {
            let rows = lent.query(sql, &[&ids.as_slice()]).await?;
            let jobs = names::jobs_in(store, On::Own(&lent), &rows).await?;
            if let Some(job) = jobs.into_iter().next() {
                return Ok(Some(job).filter(|job| scope.covers(&job.tenant)));
            }
        }
        Ok(None)
    })
    .await
}

pub(in crate::store::postgres) async fn keyed(
    store: &Inner,
    tenant: &Tenant,
    key: &str,
) -> Result<Option<KeyedJob>, StoreError> {
    let tenant = tenant.as_str();
    again(|| async {
        let lent = store.pool.get().await?;
        let rows = lent.query(Sql::Keyed, &[&tenant, &key]).await?;
        let read = |row| {
            let row = Columns::new(row);
            Ok(KeyedJob { job: JobId(row.get("id")?), lease: row.get::<Option<i64>>("lease_id")?.map(LeaseId) })
        };
        rows.first().map(read).transpose()
    })
    .await
}

pub(in crate::store::postgres) async fn jobs_by_id(
    store: &Inner,
    scope: &Scope,
    ids: &[JobId],
) -> Result<Vec<Job>, StoreError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    again(|| async {
        let lent = store.pool.get().await?;
        let mut found: Vec<Job> = Vec::with_capacity(ids.len());
        let mut missing = ids.clone();
        // As for one job.
        for sql in [Sql::JobFound, Sql::JobRunning, Sql::JobFound] {
            if missing.is_empty() {
                break;
            }
            let rows = lent.query(sql, &[&missing]).await?;
            found.extend(names::jobs_in(store, On::Own(&lent), &rows).await?);
            let known: HashSet<i64> = found.iter().map(|job| job.id.0).collect();
            missing.retain(|id| !known.contains(id));
        }
        found.retain(|job| scope.covers(&job.tenant));
        Ok(found)
    })
    .await
}

/// The numbers of the queues that scope and filter select; `None` if that is all of them.
pub(in crate::store::postgres) async fn queues_meant(
    store: &Inner,
    scope: &Scope,
    filter: &JobFilter,
) -> Result<Option<Vec<i64>>, StoreError> {
    let is_narrowed = filter.queue.is_some() || filter.tenant.is_some() || filter.executor.is_some();
    if *scope == Scope::All && !is_narrowed {
        return Ok(None);
    }
    let is_meant = |queue: &Queue| {
        scope.covers(&queue.tenant)
            && filter.tenant.as_ref().is_none_or(|tenant| *tenant == queue.tenant)
            && filter.queue.as_ref().is_none_or(|name| *name == queue.name)
            && filter.executor.is_none_or(|executor| executor == queue.executor)
    };
    Ok(Some(registry::queues(store).await?.iter().filter(|queue| is_meant(queue)).map(|queue| queue.id.0).collect()))
}

pub(in crate::store::postgres) async fn jobs(
    store: &Inner,
    scope: &Scope,
    filter: &JobFilter,
    page: Page,
) -> Result<Vec<Job>, StoreError> {
    let queues = queues_meant(store, scope, filter).await?;
    if queues.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let f = Filter::new(filter, queues);
    let after = page.after.map(|id| id.0);
    let limit = i64::from(page.limit);
    let wants = |is_meant: fn(&State) -> bool| filter.states.is_empty() || filter.states.iter().any(is_meant);
    let only_failed = filter.dead_letters || filter.fingerprint.is_some();
    let wants_live = !only_failed && wants(|state| state.is_live());
    let wants_ended_well = !only_failed && wants(|state| matches!(state, State::Succeeded | State::Cancelled));
    let wants_failed = wants(|state| *state == State::Failed);
    let sql = match page.order {
        Order::NewestFirst => Sql::JobsNewest,
        Order::OldestFirst => Sql::JobsOldest,
    };
    again(|| async {
        let lent = store.pool.get().await?;
        let params: Params<'_> = &[
            &after,
            &limit,
            &wants_live,
            &f.states,
            &f.queues,
            &f.kind,
            &f.class,
            &f.since,
            &f.schedule,
            &f.parent,
            &filter.dead_letters,
            &f.fingerprint,
            &wants_ended_well,
            &wants_failed,
        ];
        let work = async {
            let rows = lent.query(sql, params).await?;
            names::jobs_in(store, On::Own(&lent), &rows).await
        };
        let (begun, jobs) = join!(lent.begin_reading(), work);
        lent.conclude(begun, jobs).await
    })
    .await
}

pub(in crate::store::postgres) async fn attempts(
    store: &Inner,
    scope: &Scope,
    id: JobId,
    limit: u32,
) -> Result<Vec<Attempt>, StoreError> {
    if job(store, scope, id).await?.is_none() {
        return Ok(Vec::new());
    }
    let rows = store.read(Sql::Attempts, &[&id.0, &i64::from(limit)]).await?;
    rows.iter().rev().map(|row| Ok(rows::attempt(row)?.1)).collect()
}

pub(in crate::store::postgres) async fn schedule_attempts(
    store: &Inner,
    scope: &Scope,
    schedule: JobId,
    limit: u32,
) -> Result<Vec<(JobId, Attempt)>, StoreError> {
    let params: Params<'_> = &[&schedule.0, &i64::from(limit), &tenant_of(scope)];
    let rows = store.read(Sql::ScheduleAttempts, params).await?;
    rows.iter().rev().map(rows::attempt).collect()
}

pub(in crate::store::postgres) async fn dead_groups(
    store: &Inner,
    scope: &Scope,
    filter: &JobFilter,
    limit: u32,
) -> Result<Vec<DeadGroup>, StoreError> {
    if !filter.states.is_empty() && !filter.states.contains(&State::Failed) {
        return Ok(Vec::new());
    }
    let f = Filter::new(filter, queues_meant(store, scope, filter).await?);
    let limit = i64::from(limit);
    let params: Params<'_> = &[&limit, &f.queues, &f.kind, &f.class, &f.since, &f.schedule, &f.parent, &f.fingerprint];
    let rows = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, rows) = join!(lent.begin_reading(), lent.query(Sql::DeadGroups, params));
        lent.conclude(begun, rows).await
    })
    .await?;
    rows.iter().map(dead_group).collect()
}

pub(in crate::store::postgres) async fn dead_series(
    store: &Inner,
    scope: &Scope,
    filter: &JobFilter,
    steps: Steps,
) -> Result<Vec<DeadCount>, StoreError> {
    if !filter.states.is_empty() && !filter.states.contains(&State::Failed) {
        return Ok(Vec::new());
    }
    let f = Filter::new(filter, queues_meant(store, scope, filter).await?);
    let (from, length) = (steps.from.as_millis(), steps.length.get() as i64);
    let end = from + length * i64::from(steps.count);
    let params: Params<'_> =
        &[&from, &f.queues, &f.kind, &f.class, &f.since, &f.schedule, &f.parent, &f.fingerprint, &length, &end];
    let rows = store.read(Sql::DeadSeries, params).await?;
    let count = |row: &Row| {
        let c = Columns::new(row);
        let tenant = Tenant::new(c.text("tenant")?);
        Ok(DeadCount {
            fingerprint: c.get("fingerprint")?,
            tenant: tenant.map_err(|error| StoreError::corrupt("dead letter", error.to_string()))?,
            step: c.get::<i64>("step")? as usize,
            count: c.large_count("jobs")?,
        })
    };
    rows.iter().map(count).collect()
}

fn dead_group(row: &Row) -> Result<DeadGroup, StoreError> {
    let c = Columns::new(row);
    let corrupt = |error: windlass_core::NameError| StoreError::corrupt("dead letter", error.to_string());
    Ok(DeadGroup {
        fingerprint: c.get("fingerprint")?,
        tenant: Tenant::new(c.text("tenant")?).map_err(corrupt)?,
        queue: QueueName::new(c.text("queue")?).map_err(corrupt)?,
        kind: Kind::new(c.text("kind")?).map_err(corrupt)?,
        error_class: c.get("error_class")?,
        message: c.get("message")?,
        count: c.large_count("jobs")?,
        first_seen: c.moment("first_seen")?,
        last_seen: c.moment("last_seen")?,
        example: JobId(c.get("example")?),
    })
}

/// Who runs those of these jobs that run.
pub(in crate::store::postgres) async fn holders(store: &Inner, ids: &[JobId]) -> Result<Vec<Holder>, StoreError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let holder = |row| {
        let c = Columns::new(row);
        Ok(Holder {
            job: JobId(c.get("id")?),
            worker: c.get("worker")?,
            started_at: c.moment("claimed_at")?,
            lease_until: c.moment("expires_at")?,
        })
    };
    store.read(Sql::Holders, &[&ids]).await?.iter().map(holder).collect()
}

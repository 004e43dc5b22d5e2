//! Schedules: kept by id, fired by compare-and-set under the row's lock.

use crate::store::json::template_to_text;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::enqueue;
use crate::store::postgres::life::names::{self, Numbers};
use crate::store::postgres::reads::read::tenant_of;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::{Columns, only};
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::rows;
use crate::store::{
    Fired, Firing, Order, Overlap, Page, Recurrence, SUPERSEDED, Schedule, ScheduleChange, ScheduleSpec, Scope,
    StoreError, Trigger,
};
use futures_util::join;
use windlass_core::{JobId, Timestamp};

pub(in crate::store::postgres) async fn add_schedule(
    store: &Inner,
    spec: &ScheduleSpec,
    next_at: Option<Timestamp>,
) -> Result<Schedule, StoreError> {
    let template = template_to_text(&spec.template);
    let is_one_shot = spec.recurrence == Recurrence::OneShot;
    let rows = store
        .write(
            Sql::ScheduleAdd,
            &[
                &store.fixed(),
                &spec.tenant.as_str(),
                &spec.cadence,
                &spec.zone,
                &is_one_shot,
                &spec.overlap.as_str(),
                &spec.missed.as_str(),
                &spec.dead_letters.as_str(),
                &template,
                &next_at.map(Timestamp::as_millis),
            ],
        )
        .await?;
    one(&rows)?.ok_or_else(|| StoreError::corrupt("schedule", "a new one is returned"))
}

pub(in crate::store::postgres) async fn schedule(
    store: &Inner,
    scope: &Scope,
    id: JobId,
) -> Result<Option<Schedule>, StoreError> {
    one(&store.read(Sql::Schedule, &[&id.0, &tenant_of(scope)]).await?)
}

pub(in crate::store::postgres) async fn schedules(
    store: &Inner,
    scope: &Scope,
    page: Page,
) -> Result<Vec<Schedule>, StoreError> {
    let sql = match page.order {
        Order::NewestFirst => Sql::SchedulesNewest,
        Order::OldestFirst => Sql::SchedulesOldest,
    };
    let after = page.after.map(|id| id.0);
    let rows = store.read(sql, &[&after, &i64::from(page.limit), &tenant_of(scope)]).await?;
    rows.iter().map(rows::schedule).collect()
}

pub(in crate::store::postgres) async fn change_schedule(
    store: &Inner,
    scope: &Scope,
    id: JobId,
    change: &ScheduleChange,
) -> Result<Option<Schedule>, StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let on = On::Own(&lent);
        let work = async {
            let Some(mut schedule) = one(&on.query(Sql::ScheduleLock, &[&id.0, &tenant_of(scope)]).await?)? else {
                return Ok(None);
            };
            if let Some(spec) = &change.spec {
                schedule.spec = spec.clone();
                schedule.spec.template.schedule = Some(id);
            }
            schedule.paused = change.paused.unwrap_or(schedule.paused);
            schedule.next_at = change.next_at.unwrap_or(schedule.next_at);
            put(on, &schedule).await?;
            Ok(Some(schedule))
        };
        let (begun, changed) = join!(lent.begin(), work);
        lent.conclude(begun, changed).await
    })
    .await
}

pub(in crate::store::postgres) async fn remove_schedule(
    store: &Inner,
    scope: &Scope,
    id: JobId,
) -> Result<bool, StoreError> {
    Ok(!store.write(Sql::ScheduleRemove, &[&id.0, &tenant_of(scope)]).await?.is_empty())
}

pub(in crate::store::postgres) async fn due_schedules(
    store: &Inner,
    limit: u32,
) -> Result<(Vec<Schedule>, Option<Timestamp>), StoreError> {
    let due = store.read(Sql::SchedulesDue, &[&store.fixed(), &i64::from(limit)]).await?;
    let next = store.read(Sql::SchedulesNext, &[&store.fixed()]).await?;
    let due = due.iter().map(rows::schedule).collect::<Result<_, _>>()?;
    let next = next.first().map_or(Ok(None), |row| Columns::new(row).moment_if("next_at"))?;
    Ok((due, next))
}

pub(in crate::store::postgres) async fn fire(store: &Inner, firing: &Firing) -> Result<Fired, StoreError> {
    again(|| async {
        let numbers = names::numbers(store, firing.job.as_slice()).await?;
        let lent = store.pool.get().await?;
        let (begun, fired) = join!(lent.begin(), fire_on(store, On::Own(&lent), firing, &numbers));
        lent.conclude(begun, fired).await
    })
    .await
}

async fn fire_on(store: &Inner, on: On<'_>, firing: &Firing, numbers: &[Numbers]) -> Result<Fired, StoreError> {
    let rows = on.query(Sql::ScheduleLock, &[&firing.schedule.0, &None::<&str>]).await?;
    let Some(schedule) = one(&rows)? else {
        return Ok(Fired::NotOurs);
    };
    let (next_at, last_at, is_skipped) = match firing.trigger {
        Trigger::Operator => (schedule.next_at, None, false),
        Trigger::Due { nominal, next_at } => {
            if schedule.paused || schedule.next_at != Some(nominal) {
                return Ok(Fired::NotOurs);
            }
            let overlaps = schedule.spec.overlap == Overlap::Skip && is_live(on, schedule.last_job).await?;
            (next_at, Some(nominal), overlaps)
        }
    };
    let stored = match &firing.job {
        Some(job) if !is_skipped => enqueue::insert(store, on, std::slice::from_ref(job), numbers, &[0]).await?,
        _ => Vec::new(),
    };
    let job = stored.first().map(|stored| stored.id);
    let moment = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let params: crate::store::postgres::connection::pool::Params<'_> =
        &[&firing.schedule.0, &moment(next_at), &moment(last_at), &job.map(|id| id.0)];
    on.query(Sql::ScheduleFired, params).await?;
    Ok(job.map_or(Fired::Skipped, Fired::Enqueued))
}

async fn is_live(on: On<'_>, job: Option<JobId>) -> Result<bool, StoreError> {
    let Some(id) = job else {
        return Ok(false);
    };
    let rows = on.query(Sql::IsLive, &[&id.0]).await?;
    Ok(only(&rows, "is_live")?.unwrap_or(false))
}

async fn put(on: On<'_>, schedule: &Schedule) -> Result<(), StoreError> {
    let spec = &schedule.spec;
    let template = template_to_text(&spec.template);
    let is_one_shot = spec.recurrence == Recurrence::OneShot;
    on.query(
        Sql::ScheduleChange,
        &[
            &schedule.id.0,
            &spec.tenant.as_str(),
            &spec.cadence,
            &spec.zone,
            &is_one_shot,
            &spec.overlap.as_str(),
            &spec.missed.as_str(),
            &spec.dead_letters.as_str(),
            &template,
            &schedule.paused,
            &schedule.next_at.map(Timestamp::as_millis),
        ],
    )
    .await
    .map(drop)
}

/// A run of a schedule has failed and is kept: it may take the place of the one that failed before it. Returns the
/// queues of the dead letters that are none any more.
pub(super) async fn run_failed(store: &Inner, on: On<'_>, schedule: JobId, run: JobId) -> Result<Vec<i64>, StoreError> {
    let none: Option<&str> = None;
    let Some(found) = one(&on.query(Sql::ScheduleLock, &[&schedule.0, &none]).await?)? else {
        return Ok(Vec::new());
    };
    on.query(Sql::ScheduleDead, &[&schedule.0, &run.0]).await?;
    let Some(before) = found.last_dead.filter(|before| *before != run && found.spec.supersedes()) else {
        return Ok(Vec::new());
    };
    let rows = on.query(Sql::ScheduleSupersede, &[&store.fixed(), &before.0, &SUPERSEDED]).await?;
    rows.iter().map(|row| Columns::new(row).get("queue_id")).collect()
}

fn one(rows: &[Row]) -> Result<Option<Schedule>, StoreError> {
    rows.first().map(rows::schedule).transpose()
}

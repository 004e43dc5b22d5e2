//! Schedules: kept by id, fired by compare-and-set.

use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::commit;
use crate::store::sqlite::reads::columns::schedule;
use crate::store::sqlite::reads::read::{page_start, tenant_of};
use crate::store::sqlite::reads::rows;
use crate::store::{
    DeadRuns, Fired, Firing, Missed, Order, Overlap, Page, Recurrence, SUPERSEDED, Schedule, ScheduleChange,
    ScheduleSpec, Scope, StoreError, Trigger, json,
};
use rusqlite::{Connection, Params, Row, params};
use windlass_core::job::Tenant;
use windlass_core::{JobId, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

pub(in crate::store::sqlite) fn add_schedule(
    tx: &mut Tx<'_>,
    spec: ScheduleSpec,
    next_at: Option<Timestamp>,
) -> Result<Schedule> {
    let id = tx.draw_ids(1)?;
    tx.conn.prepare_cached(sql!("schedules.sql", "schedule_add"))?.execute(params![
        id.0,
        spec.tenant.as_str(),
        spec.cadence,
        spec.zone,
        spec.recurrence == Recurrence::OneShot,
        spec.overlap.as_str(),
        spec.missed.as_str(),
        spec.dead_letters.as_str(),
        json::template_to_text(&spec.template),
        next_at.map(Timestamp::as_millis),
        tx.now.as_millis(),
    ])?;
    tx.rings = true;
    Ok(Schedule {
        id,
        spec,
        paused: false,
        next_at,
        last_at: None,
        last_job: None,
        last_dead: None,
        created_at: tx.now,
    })
}

pub(in crate::store::sqlite) fn change_schedule(
    tx: &mut Tx<'_>,
    scope: &Scope,
    id: JobId,
    change: ScheduleChange,
) -> Result<Option<Schedule>> {
    let Some(mut schedule) = find(tx.conn, scope, id)? else { return Ok(None) };
    if let Some(spec) = change.spec {
        schedule.spec = spec;
    }
    schedule.paused = change.paused.unwrap_or(schedule.paused);
    schedule.next_at = change.next_at.unwrap_or(schedule.next_at);
    let spec = &schedule.spec;
    tx.conn.prepare_cached(sql!("schedules.sql", "schedule_change"))?.execute(params![
        id.0,
        spec.tenant.as_str(),
        spec.cadence,
        spec.zone,
        spec.recurrence == Recurrence::OneShot,
        spec.overlap.as_str(),
        spec.missed.as_str(),
        spec.dead_letters.as_str(),
        json::template_to_text(&spec.template),
        schedule.paused,
        schedule.next_at.map(Timestamp::as_millis),
    ])?;
    tx.rings = true;
    Ok(Some(schedule))
}

pub(in crate::store::sqlite) fn remove_schedule(tx: &mut Tx<'_>, scope: &Scope, id: JobId) -> Result<bool> {
    if find(tx.conn, scope, id)?.is_none() {
        return Ok(false);
    }
    Ok(tx.conn.prepare_cached(sql!("schedules.sql", "schedule_remove"))?.execute([id.0])? > 0)
}

pub(in crate::store::sqlite) fn fire(tx: &mut Tx<'_>, firing: &Firing) -> Result<Fired> {
    let Some(schedule) = find(tx.conn, &Scope::All, firing.schedule)? else { return Ok(Fired::NotOurs) };
    let (next_at, last_at, skip) = match firing.trigger {
        Trigger::Operator => (schedule.next_at, schedule.last_at, false),
        Trigger::Due { nominal, next_at } => {
            if schedule.paused || schedule.next_at != Some(nominal) {
                return Ok(Fired::NotOurs);
            }
            let last_is_live = match schedule.last_job {
                Some(job) => is_live(tx, job)?,
                None => false,
            };
            (next_at, Some(nominal), schedule.spec.overlap == Overlap::Skip && last_is_live)
        }
    };
    let job = match firing.job.as_ref().filter(|_| !skip) {
        Some(new) => commit::store_follow_up(tx, new)?,
        None => None,
    };
    let last_job = job.or(schedule.last_job);
    tx.conn.prepare_cached(sql!("schedules.sql", "schedule_fired"))?.execute(params![
        firing.schedule.0,
        next_at.map(Timestamp::as_millis),
        last_at.map(Timestamp::as_millis),
        last_job.map(|id| id.0),
    ])?;
    Ok(job.map_or(Fired::Skipped, Fired::Enqueued))
}

fn is_live(tx: &Tx<'_>, job: JobId) -> Result<bool> {
    Ok(tx.conn.prepare_cached(sql!("jobs.sql", "is_live"))?.exists([job.0])?)
}

impl Reader {
    pub(in crate::store::sqlite) fn schedule(&mut self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        find(&self.conn, scope, id)
    }

    pub(in crate::store::sqlite) fn schedules(&mut self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        let select = match page.order {
            Order::NewestFirst => sql!("schedules.sql", "schedules_newest"),
            Order::OldestFirst => sql!("schedules.sql", "schedules_oldest"),
        };
        let tenant = tenant_of(scope).map(Tenant::as_str);
        list(&self.conn, select, params![tenant, page_start(page), page.limit])
    }

    pub(in crate::store::sqlite) fn due_schedules(
        &mut self,
        limit: u32,
        now: Timestamp,
    ) -> Result<(Vec<Schedule>, Option<Timestamp>)> {
        let now = now.as_millis();
        let due = list(&self.conn, sql!("schedules.sql", "schedules_due"), params![now, limit])?;
        let mut select = self.conn.prepare_cached(sql!("schedules.sql", "schedules_next"))?;
        let next: Option<i64> = select.query_row([now], rows::only)?;
        Ok((due, next.map(Timestamp::from_millis)))
    }
}

fn find(conn: &Connection, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
    let found = list(conn, sql!("schedules.sql", "schedule"), [id.0])?;
    Ok(found.into_iter().next().filter(|schedule| scope.covers(&schedule.spec.tenant)))
}

fn list(conn: &Connection, select: &str, values: impl Params) -> Result<Vec<Schedule>> {
    let mut select = conn.prepare_cached(select)?;
    rows::all(select.query(values)?, read)
}

fn read(row: &Row<'_>) -> Result<Schedule> {
    let id = JobId(row.get(schedule::id)?);
    Ok(Schedule {
        id,
        spec: ScheduleSpec {
            tenant: rows::word(row, schedule::tenant, |word| Tenant::new(word).ok())?,
            cadence: row.get(schedule::cadence)?,
            zone: row.get(schedule::zone)?,
            recurrence: if row.get(schedule::one_shot)? { Recurrence::OneShot } else { Recurrence::Recurring },
            overlap: rows::word(row, schedule::overlap, Overlap::parse)?,
            missed: rows::word(row, schedule::missed, Missed::parse)?,
            dead_letters: rows::word(row, schedule::dead_letters, DeadRuns::parse)?,
            template: json::template_from_text(rows::must(row, schedule::template)?, id)?,
        },
        paused: row.get(schedule::paused)?,
        next_at: rows::moment(row, schedule::next_at)?,
        last_at: rows::moment(row, schedule::last_at)?,
        last_job: row.get::<_, Option<i64>>(schedule::last_job)?.map(JobId),
        last_dead: row.get::<_, Option<i64>>(schedule::last_dead)?.map(JobId),
        created_at: Timestamp::from_millis(row.get(schedule::created_at)?),
    })
}

/// A run of a schedule has failed and is kept: it may take the place of the one that failed before it.
pub(in crate::store::sqlite) fn run_failed(tx: &Tx<'_>, schedule: JobId, run: JobId) -> Result<()> {
    let Some(found) = find(tx.conn, &Scope::All, schedule)? else { return Ok(()) };
    tx.conn.prepare_cached(sql!("schedules.sql", "schedule_dead"))?.execute([schedule.0, run.0])?;
    let before = found.last_dead.filter(|before| *before != run && found.spec.supersedes());
    if let Some(before) = before {
        // A run that was replayed or discarded meanwhile is no dead letter.
        let mut discard = tx.conn.prepare_cached(sql!("schedules.sql", "schedule_supersede"))?;
        discard.execute(params![before.0, tx.now.as_millis(), SUPERSEDED])?;
    }
    Ok(())
}

//! Schedules: kept by id, fired by compare-and-set.

use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::reads::read::{page_start, tenant_of};
use crate::store::sqlite::reads::rows;
use crate::store::{
    Fired, Firing, Missed, Order, Overlap, Page, Recurrence, Schedule, ScheduleChange, ScheduleSpec, Scope, StoreError,
    Trigger, json,
};
use rusqlite::{Connection, Params, Row, params};
use windlass_core::job::Tenant;
use windlass_core::{JobId, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

impl Tx<'_> {
    pub(in crate::store::sqlite) fn add_schedule(
        &mut self,
        spec: ScheduleSpec,
        next_at: Option<Timestamp>,
    ) -> Result<Schedule> {
        let id = self.draw_ids(1)?;
        self.conn.prepare_cached(sql!("schedule_insert"))?.execute(params![
            id.0,
            spec.tenant.as_str(),
            spec.cadence,
            spec.zone,
            spec.recurrence.as_str(),
            spec.overlap.as_str(),
            spec.missed.as_str(),
            json::template_to_text(&spec.template),
            next_at.map(Timestamp::as_millis),
            self.now.as_millis(),
        ])?;
        self.rings = true;
        Ok(Schedule { id, spec, paused: false, next_at, last_at: None, last_job: None, created_at: self.now })
    }

    pub(in crate::store::sqlite) fn change_schedule(
        &mut self,
        scope: &Scope,
        id: JobId,
        change: ScheduleChange,
    ) -> Result<Option<Schedule>> {
        let Some(mut schedule) = find(self.conn, scope, id)? else { return Ok(None) };
        if let Some(spec) = change.spec {
            schedule.spec = spec;
        }
        schedule.paused = change.paused.unwrap_or(schedule.paused);
        schedule.next_at = change.next_at.unwrap_or(schedule.next_at);
        let spec = &schedule.spec;
        self.conn.prepare_cached(sql!("schedule_update"))?.execute(params![
            id.0,
            spec.tenant.as_str(),
            spec.cadence,
            spec.zone,
            spec.recurrence.as_str(),
            spec.overlap.as_str(),
            spec.missed.as_str(),
            json::template_to_text(&spec.template),
            schedule.paused,
            schedule.next_at.map(Timestamp::as_millis),
        ])?;
        self.rings = true;
        Ok(Some(schedule))
    }

    pub(in crate::store::sqlite) fn remove_schedule(&mut self, scope: &Scope, id: JobId) -> Result<bool> {
        if find(self.conn, scope, id)?.is_none() {
            return Ok(false);
        }
        Ok(self.conn.prepare_cached(sql!("schedule_delete"))?.execute([id.0])? > 0)
    }

    pub(in crate::store::sqlite) fn fire(&mut self, firing: &Firing) -> Result<Fired> {
        let Some(schedule) = find(self.conn, &Scope::All, firing.schedule)? else { return Ok(Fired::NotOurs) };
        let (next_at, last_at, skip) = match firing.trigger {
            Trigger::Operator => (schedule.next_at, schedule.last_at, false),
            Trigger::Due { nominal, next_at } => {
                if schedule.paused || schedule.next_at != Some(nominal) {
                    return Ok(Fired::NotOurs);
                }
                let last_is_live = match schedule.last_job {
                    Some(job) => self.is_live(job)?,
                    None => false,
                };
                (next_at, Some(nominal), schedule.spec.overlap == Overlap::Skip && last_is_live)
            }
        };
        let job = match firing.job.as_ref().filter(|_| !skip) {
            Some(new) => self.store_follow_up(new)?,
            None => None,
        };
        let last_job = job.or(schedule.last_job);
        self.conn.prepare_cached(sql!("schedule_fired"))?.execute(params![
            firing.schedule.0,
            next_at.map(Timestamp::as_millis),
            last_at.map(Timestamp::as_millis),
            last_job.map(|id| id.0),
        ])?;
        Ok(job.map_or(Fired::Skipped, Fired::Enqueued))
    }
}

impl Reader {
    pub(in crate::store::sqlite) fn schedule(&mut self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
        find(&self.conn, scope, id)
    }

    pub(in crate::store::sqlite) fn schedules(&mut self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
        let select = match page.order {
            Order::NewestFirst => sql!("schedule_select", "schedules_newest"),
            Order::OldestFirst => sql!("schedule_select", "schedules_oldest"),
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
        let due = list(&self.conn, sql!("schedule_select", "schedules_due"), params![now, limit])?;
        let mut select = self.conn.prepare_cached(sql!("schedules_next"))?;
        let next: Option<i64> = select.query_row([now], |row| row.get(0))?;
        Ok((due, next.map(Timestamp::from_millis)))
    }
}

fn find(conn: &Connection, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
    let found = list(conn, sql!("schedule_select", "by_id"), [id.0])?;
    Ok(found.into_iter().next().filter(|schedule| scope.covers(&schedule.spec.tenant)))
}

fn list(conn: &Connection, select: &str, values: impl Params) -> Result<Vec<Schedule>> {
    let mut select = conn.prepare_cached(select)?;
    rows::all(select.query(values)?, read)
}

fn read(row: &Row<'_>) -> Result<Schedule> {
    let id = JobId(row.get(0)?);
    Ok(Schedule {
        id,
        spec: ScheduleSpec {
            tenant: rows::word(row, 1, |word| Tenant::new(word).ok())?,
            cadence: row.get(2)?,
            zone: row.get(3)?,
            recurrence: rows::word(row, 4, Recurrence::parse)?,
            overlap: rows::word(row, 5, Overlap::parse)?,
            missed: rows::word(row, 6, Missed::parse)?,
            template: json::template_from_text(rows::must(row, 7)?, id)?,
        },
        paused: row.get(8)?,
        next_at: rows::moment(row, 9)?,
        last_at: rows::moment(row, 10)?,
        last_job: row.get::<_, Option<i64>>(11)?.map(JobId),
        created_at: Timestamp::from_millis(row.get(12)?),
    })
}

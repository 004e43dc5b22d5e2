//! Reads: jobs, attempts, groups, depths, tallies.

use crate::fingerprint::normalise;
use crate::job::{Job, LeaseId, QueueId};
use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::life::claim;
use crate::store::sqlite::reads::columns::{dead_group, job_attempt, keyed, lane_waiting, queue_count, tally};
use crate::store::sqlite::reads::rows;
use crate::store::{DeadGroup, Depth, JobFilter, KeyedJob, Order, Page, Queue, Scope, StoreError};
use crate::tally::{Tally, window_start};
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use std::collections::HashMap;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Attempt, Executor, JobId, State, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

/// How many waiting jobs are counted at first.
const FEW: u64 = 1_000;

/// The two halves of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Live,
    Archive,
}

impl Reader {
    pub(in crate::store::sqlite) fn job(&mut self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
        let mut found = self.list(Half::Live, sql!("jobs.sql", "job_live"), &[Value::Integer(id.0)])?;
        if found.is_empty() {
            found = self.list(Half::Archive, sql!("jobs.sql", "job_archived"), &[Value::Integer(id.0)])?;
        }
        Ok(found.into_iter().next().filter(|job| scope.covers(&job.tenant)))
    }

    pub(in crate::store::sqlite) fn jobs(&mut self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
        let Some(mut values) = conditions(scope, filter) else { return Ok(Vec::new()) };
        values[7] = Value::Integer(page_start(page));
        values.push(Value::Integer(page.limit.into()));
        let mut found = Vec::new();
        if filter.dead_letters || filter.fingerprint.is_some() {
            values.push(text(filter.fingerprint.as_deref()));
            let dead = match page.order {
                Order::NewestFirst => sql!("jobs.sql", "dead_newest"),
                Order::OldestFirst => sql!("jobs.sql", "dead_oldest"),
            };
            return self.list(Half::Archive, dead, &values);
        }
        for half in [Half::Live, Half::Archive] {
            let wanted = |state: &State| state.is_live() == (half == Half::Live);
            if filter.states.is_empty() || filter.states.iter().any(wanted) {
                found.extend(self.list(half, listing(half, filter, page.order), &values)?);
            }
        }
        match page.order {
            Order::NewestFirst => found.sort_by_key(|job| std::cmp::Reverse(job.id)),
            Order::OldestFirst => found.sort_by_key(|job| job.id),
        }
        found.truncate(page.limit as usize);
        Ok(found)
    }

    pub(in crate::store::sqlite) fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
        let mut select = self.conn.prepare_cached(sql!("jobs.sql", "keyed"))?;
        let found = rows::all(select.query(params![tenant.as_str(), key])?, |row| {
            let lease = row.get::<_, Option<i64>>(keyed::lease_id)?.map(LeaseId);
            Ok(KeyedJob { job: JobId(row.get(keyed::job_id)?), lease })
        })?;
        Ok(found.into_iter().next())
    }

    fn list(&mut self, half: Half, select: &str, values: &[Value]) -> Result<Vec<Job>> {
        let mut select = self.conn.prepare_cached(select)?;
        let found = select.query(params_from_iter(values))?;
        rows::all(found, |row| match half {
            Half::Live => rows::live(row, &self.conn, &mut self.names),
            Half::Archive => rows::archived(row, &self.conn, &mut self.names),
        })
    }

    pub(in crate::store::sqlite) fn attempts(&mut self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
        if self.job(scope, id)?.is_none() {
            return Ok(Vec::new());
        }
        let mut select = self.conn.prepare_cached(sql!("attempts.sql", "attempts"))?;
        let mut latest = rows::all(select.query(params![id.0, limit])?, rows::attempt)?;
        latest.reverse();
        Ok(latest)
    }

    pub(in crate::store::sqlite) fn schedule_attempts(
        &mut self,
        scope: &Scope,
        schedule: JobId,
        limit: u32,
    ) -> Result<Vec<(JobId, Attempt)>> {
        let mut select = self.conn.prepare_cached(sql!("attempts.sql", "schedule_attempts"))?;
        let found = select.query(params![schedule.0, tenant_of(scope).map(Tenant::as_str), limit])?;
        let mut latest = rows::all(found, |row| Ok((JobId(row.get(job_attempt::job_id)?), rows::attempt(row)?)))?;
        latest.reverse();
        Ok(latest)
    }

    pub(in crate::store::sqlite) fn dead_groups(
        &mut self,
        scope: &Scope,
        filter: &JobFilter,
        limit: u32,
    ) -> Result<Vec<DeadGroup>> {
        let Some(mut values) = conditions(scope, filter) else { return Ok(Vec::new()) };
        values[7] = text(filter.fingerprint.as_deref());
        values.push(Value::Integer(limit.into()));
        let groups = {
            let mut select = self.conn.prepare_cached(sql!("jobs.sql", "dead_groups"))?;
            let found = select.query(params_from_iter(&values))?;
            let moment = |row: &Row<'_>, column| Ok::<_, StoreError>(Timestamp::from_millis(row.get(column)?));
            rows::all(found, |row| {
                Ok((
                    row.get::<_, String>(dead_group::fingerprint)?,
                    row.get::<_, i64>(dead_group::count)?,
                    moment(row, dead_group::first_seen)?,
                    moment(row, dead_group::last_seen)?,
                    row.get(dead_group::example)?,
                ))
            })?
        };
        let mut named = Vec::with_capacity(groups.len());
        for (fingerprint, count, first_seen, last_seen, example) in groups {
            let Some(job) = self.job(&Scope::All, JobId(example))? else { continue };
            named.push(DeadGroup {
                fingerprint,
                tenant: job.tenant,
                queue: job.queue,
                kind: job.kind,
                error_class: job.error_class.unwrap_or_default(),
                message: normalise(job.error.as_deref().unwrap_or_default()),
                count: count.max(0) as u64,
                first_seen,
                last_seen,
                example: job.id,
            });
        }
        Ok(named)
    }

    pub(in crate::store::sqlite) fn queues(&mut self) -> Result<Vec<Queue>> {
        let mut select = self.conn.prepare_cached(sql!("queues.sql", "queues"))?;
        rows::all(select.query([])?, rows::queue)
    }

    pub(in crate::store::sqlite) fn depths(&mut self, scope: &Scope, now: Timestamp) -> Result<Vec<Depth>> {
        let mut depths: Vec<Depth> = Vec::new();
        for queue in self.queues()?.into_iter().filter(|queue| scope.covers(&queue.tenant)) {
            depths.push(Depth { queue: queue.id, due: 0, later: 0, running: 0, dead: 0, oldest_due: None });
        }
        let places: HashMap<QueueId, usize> = depths.iter().enumerate().map(|(at, depth)| (depth.queue, at)).collect();
        for (lane, waiting) in self.lanes_waiting()? {
            let Some(at) = places.get(&claim::queue_of(lane)) else { continue };
            // Parked jobs are due. What a gate keeps back says nothing about the workers, so they have no age.
            let (due, oldest) = if lane < 0 { (waiting, None) } else { self.due_in(lane, waiting, now)? };
            let depth = &mut depths[*at];
            depth.due += due;
            depth.later += waiting.saturating_sub(due);
            depth.oldest_due = [depth.oldest_due, oldest].into_iter().flatten().min();
        }
        for (queue, running) in self.counts(sql!("queues.sql", "depth_running"))? {
            places.get(&queue).into_iter().for_each(|at| depths[*at].running = running);
        }
        for (queue, dead) in self.counts(sql!("queues.sql", "depth_dead"))? {
            places.get(&queue).into_iter().for_each(|at| depths[*at].dead = dead);
        }
        Ok(depths)
    }

    /// The lanes in which jobs wait, and how many.
    fn lanes_waiting(&self) -> Result<Vec<(i64, u64)>> {
        let mut select = self.conn.prepare_cached(sql!("queues.sql", "lanes_waiting"))?;
        rows::all(select.query([])?, |row| Ok((row.get(lane_waiting::lane)?, number(row, lane_waiting::waiting)?)))
    }

    /// How many of the jobs that wait in a lane are due, and since when the first is. Counts those that are due or
    /// those that are not, whichever are fewer: the number of waiting jobs is known.
    fn due_in(&self, lane: i64, waiting: u64, now: Timestamp) -> Result<(u64, Option<Timestamp>)> {
        let mut due = self.conn.prepare_cached(sql!("queues.sql", "lane_due"))?;
        let mut later = self.conn.prepare_cached(sql!("queues.sql", "lane_later"))?;
        let mut limit = FEW;
        loop {
            let within = [lane, now.as_millis(), limit as i64];
            let (count, first) =
                due.query_row(within, |row| Ok((row.get::<_, i64>(0)?.max(0) as u64, row.get::<_, Option<i64>>(1)?)))?;
            let first = first.map(Timestamp::from_millis);
            if count < limit {
                return Ok((count, first));
            }
            let count = later.query_row(within, rows::only::<i64>)?.max(0) as u64;
            if count < limit {
                return Ok((waiting.saturating_sub(count), first));
            }
            limit *= 4;
        }
    }

    fn counts(&self, select: &str) -> Result<Vec<(QueueId, u64)>> {
        let mut select = self.conn.prepare_cached(select)?;
        rows::all(select.query([])?, |row| {
            Ok((QueueId(row.get(queue_count::queue_id)?), number(row, queue_count::count)?))
        })
    }

    pub(in crate::store::sqlite) fn tallies(
        &mut self,
        scope: &Scope,
        since: Option<Timestamp>,
    ) -> Result<Vec<(Queue, Kind, Tally)>> {
        let queues: HashMap<QueueId, Queue> = self.queues()?.into_iter().map(|queue| (queue.id, queue)).collect();
        let mut select = self.conn.prepare_cached(sql!("tallies.sql", "tallies"))?;
        let since = since.map(|since| window_start(since).as_millis());
        let sums = rows::all(select.query([since])?, |row| {
            let mut values = [0; Tally::COLUMNS.len()];
            for (place, value) in values.iter_mut().enumerate() {
                *value = row.get(tally::COUNT + place)?;
            }
            let kind = self.names.kind(rows::must(row, tally::kind)?)?;
            Ok((QueueId(row.get(tally::queue_id)?), kind, Tally::from_values(values)))
        })?;
        let named = sums.into_iter().filter_map(|(id, kind, tally)| {
            let queue = queues.get(&id).filter(|queue| scope.covers(&queue.tenant))?;
            Some((queue.clone(), kind, tally))
        });
        Ok(named.collect())
    }
}

/// The first ten parameters of the listings, from scope and filter. `None` if the two exclude each other. The parameter
/// for the page's start (or the fingerprint) is not set yet.
pub(super) fn conditions(scope: &Scope, filter: &JobFilter) -> Option<Vec<Value>> {
    let own = tenant_of(scope);
    if let (Some(own), Some(asked)) = (own, &filter.tenant)
        && own != asked
    {
        return None;
    }
    let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
    let states = (!states.is_empty()).then(|| serde_json::json!(states).to_string());
    Some(vec![
        text(own.or(filter.tenant.as_ref()).map(Tenant::as_str)),
        text(filter.queue.as_ref().map(QueueName::as_str)),
        text(filter.executor.map(Executor::as_str)),
        states.map_or(Value::Null, Value::Text),
        text(filter.kind.as_ref().map(Kind::as_str)),
        text(filter.error_class.as_deref()),
        filter.since.map_or(Value::Null, |since| Value::Integer(since.as_millis())),
        Value::Null,
        filter.schedule.map_or(Value::Null, |id| Value::Integer(id.0)),
        filter.parent.map_or(Value::Null, |id| Value::Integer(id.0)),
    ])
}

/// The listing whose index serves the filter best.
fn listing(half: Half, filter: &JobFilter, order: Order) -> &'static str {
    use Half::{Archive, Live};
    use Order::{NewestFirst, OldestFirst};
    match (half, order, filter.schedule.is_some(), filter.parent.is_some()) {
        (Live, NewestFirst, true, _) => sql!("jobs.sql", "live_schedule_newest"),
        (Live, OldestFirst, true, _) => sql!("jobs.sql", "live_schedule_oldest"),
        (Live, NewestFirst, false, true) => sql!("jobs.sql", "live_parent_newest"),
        (Live, OldestFirst, false, true) => sql!("jobs.sql", "live_parent_oldest"),
        (Live, NewestFirst, false, false) => sql!("jobs.sql", "live_newest"),
        (Live, OldestFirst, false, false) => sql!("jobs.sql", "live_oldest"),
        (Archive, NewestFirst, true, _) => sql!("jobs.sql", "archive_schedule_newest"),
        (Archive, OldestFirst, true, _) => sql!("jobs.sql", "archive_schedule_oldest"),
        (Archive, NewestFirst, false, true) => sql!("jobs.sql", "archive_parent_newest"),
        (Archive, OldestFirst, false, true) => sql!("jobs.sql", "archive_parent_oldest"),
        (Archive, NewestFirst, false, false) => sql!("jobs.sql", "archive_newest"),
        (Archive, OldestFirst, false, false) => sql!("jobs.sql", "archive_oldest"),
    }
}

/// The id after which the page starts.
pub(in crate::store::sqlite) fn page_start(page: Page) -> i64 {
    let open = match page.order {
        Order::NewestFirst => i64::MAX,
        Order::OldestFirst => 0,
    };
    page.after.map_or(open, |after| after.0)
}

pub(in crate::store::sqlite) fn tenant_of(scope: &Scope) -> Option<&Tenant> {
    match scope {
        Scope::All => None,
        Scope::Tenant(tenant) => Some(tenant),
    }
}

pub(super) fn text(value: Option<&str>) -> Value {
    value.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

fn number(row: &Row<'_>, column: usize) -> Result<u64> {
    Ok(row.get::<_, i64>(column)?.max(0) as u64)
}

//! Counts in steps of time, for plots.

use crate::job::QueueId;
use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::columns::{dead_count, series};
use crate::store::sqlite::reads::read::{conditions, text};
use crate::store::sqlite::reads::rows;
use crate::store::{DeadCount, JobFilter, Queue, Scope, Steps, StoreError};
use crate::tally::Tally;
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::collections::HashMap;
use windlass_core::Millis;
use windlass_core::job::Tenant;

type Result<T> = std::result::Result<T, StoreError>;

impl Reader {
    pub(in crate::store::sqlite) fn series(
        &mut self,
        scope: &Scope,
        steps: Steps,
    ) -> Result<Vec<(usize, Queue, Tally)>> {
        let queues: HashMap<QueueId, Queue> = self.queues()?.into_iter().map(|queue| (queue.id, queue)).collect();
        let mut select = self.conn.prepare_cached(sql!("tallies.sql", "series"))?;
        let sums = rows::all(select.query(bounds(steps))?, |row| {
            let mut values = [0; Tally::COLUMNS.len()];
            for (place, value) in values.iter_mut().enumerate() {
                *value = row.get(series::COUNT + place)?;
            }
            let step: i64 = row.get(series::step)?;
            Ok((step as usize, QueueId(row.get(series::queue_id)?), Tally::from_values(values)))
        })?;
        let named = sums.into_iter().filter_map(|(step, id, tally)| {
            let queue = queues.get(&id).filter(|queue| scope.covers(&queue.tenant))?;
            Some((step, queue.clone(), tally))
        });
        Ok(named.collect())
    }

    pub(in crate::store::sqlite) fn dead_series(
        &mut self,
        scope: &Scope,
        filter: &JobFilter,
        steps: Steps,
    ) -> Result<Vec<DeadCount>> {
        let Some(mut values) = conditions(scope, filter) else { return Ok(Vec::new()) };
        values[7] = text(filter.fingerprint.as_deref());
        values.extend(bounds(steps).map(Value::Integer));
        let mut select = self.conn.prepare_cached(sql!("jobs.sql", "dead_series"))?;
        rows::all(select.query(params_from_iter(&values))?, |row| {
            let tenant: String = row.get(dead_count::tenant)?;
            let tenant = Tenant::new(&tenant).map_err(|error| StoreError::corrupt("queue", error.to_string()))?;
            let (step, count): (i64, i64) = (row.get(dead_count::step)?, row.get(dead_count::count)?);
            let fingerprint = row.get(dead_count::fingerprint)?;
            Ok(DeadCount { fingerprint, tenant, step: step as usize, count: count as u64 })
        })
    }
}

/// The start of the first step, the length of each, and the end.
fn bounds(steps: Steps) -> [i64; 3] {
    let end = steps.from + Millis::new(steps.length.get() * u64::from(steps.count));
    [steps.from.as_millis(), steps.length.get() as i64, end.as_millis()]
}

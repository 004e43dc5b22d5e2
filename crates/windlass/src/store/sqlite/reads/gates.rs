//! Reads of gates and of what is parked behind them.

use crate::store::gates::{GateStatus, MAX_PARKED, QueueFlow, is_shut};
use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::life::gate_rows::read;
use crate::store::sqlite::reads::columns::parked;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::upkeep::retention::setting;
use crate::store::{ParkedJob, Scope, SettingKey, StoreError};
use rusqlite::params;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{JobId, Timestamp};

impl Reader {
    pub(in crate::store::sqlite) fn parked(&mut self, ids: &[JobId]) -> Result<Vec<ParkedJob>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("gates.sql", "parked"))?;
        let listed = serde_json::json!(ids.iter().map(|id| id.0).collect::<Vec<i64>>()).to_string();
        let found = rows::all(select.query([listed])?, |row| {
            Ok((JobId(row.get(parked::id)?), row.get::<_, i64>(parked::gate_id)?))
        })?;
        let mut one = self.conn.prepare_cached(sql!("gates.sql", "gate"))?;
        let mut jobs = Vec::with_capacity(found.len());
        for (job, gate) in found {
            let gates = rows::all(one.query([gate])?, read)?;
            jobs.extend(gates.into_iter().map(|(_, gate, state)| ParkedJob { job, gate, state }));
        }
        Ok(jobs)
    }

    pub(in crate::store::sqlite) fn gates(
        &mut self,
        scope: &Scope,
        queue: Option<&QueueName>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<GateStatus>, StoreError> {
        let found = match queue {
            Some(queue) => {
                let mut select = self.conn.prepare_cached(sql!("gates.sql", "gates_listed"))?;
                rows::all(select.query([queue.as_str()])?, read)?
            }
            None => {
                let mut select = self.conn.prepare_cached(sql!("gates.sql", "gates_shut"))?;
                let shut = rows::all(select.query([])?, read)?;
                shut.into_iter().filter(|(_, _, gate)| is_shut(gate, now)).collect()
            }
        };
        let mut statuses = Vec::new();
        for (id, name, gate) in found {
            let is_seen = name.tenant.as_ref().map_or(*scope == Scope::All, |tenant| scope.covers(tenant));
            if !is_seen || statuses.len() == limit as usize {
                continue;
            }
            let rule = self.flow(name.tenant.as_ref(), &name.queue)?.rule(&name);
            let mut count = self.conn.prepare_cached(sql!("gates.sql", "gate_parked"))?;
            let parked: i64 = count.query_row(params![id, MAX_PARKED], rows::only)?;
            statuses.push(GateStatus { name, rule, gate, parked: parked.max(0) as u64 });
        }
        statuses.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(statuses)
    }

    pub(in crate::store::sqlite) fn parked_before(&mut self, id: JobId) -> Result<u64, StoreError> {
        let mut count = self.conn.prepare_cached(sql!("gates.sql", "parked_before"))?;
        let before: i64 = count.query_row(params![id.0, MAX_PARKED], rows::only)?;
        Ok(before.max(0) as u64)
    }

    fn flow(&self, tenant: Option<&Tenant>, queue: &QueueName) -> Result<QueueFlow, StoreError> {
        let key = |tenant: Option<&Tenant>| SettingKey::Queue { tenant: tenant.cloned(), name: queue.as_str().into() };
        let shared = setting(&self.conn, &key(None))?;
        let own = match tenant {
            Some(_) => setting(&self.conn, &key(tenant))?,
            None => None,
        };
        Ok(QueueFlow::read(own.as_deref(), shared.as_deref()).unwrap_or_default())
    }
}

//! Reads of gates and of what is parked behind them.

use crate::store::gates::{GateStatus, MAX_PARKED, QueueFlow, is_shut};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::gates::rows::read;
use crate::store::postgres::reads::read::tenant_of;
use crate::store::postgres::registry;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::upkeep::retention;
use crate::store::{ParkedJob, Scope, SettingKey, StoreError};
use std::collections::HashMap;
use windlass_core::JobId;
use windlass_core::gate::GateRule;
use windlass_core::job::QueueName;

pub(in crate::store::postgres) async fn parked(store: &Inner, ids: &[JobId]) -> Result<Vec<ParkedJob>, StoreError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let rows = store.read(Sql::Parked, &[&ids]).await?;
    let parked = |row| {
        let (_, gate, state) = read(row)?;
        Ok(ParkedJob { job: JobId(Columns::new(row).get("job_id")?), gate, state })
    };
    rows.iter().map(parked).collect()
}

pub(in crate::store::postgres) async fn parked_before(store: &Inner, id: JobId) -> Result<u64, StoreError> {
    let rows = store.read(Sql::ParkedBefore, &[&id.0, &i64::from(MAX_PARKED)]).await?;
    let before: i64 = rows.first().map_or(Ok(0), |row| Columns::new(row).get("jobs"))?;
    Ok(before.max(0) as u64)
}

pub(in crate::store::postgres) async fn gates(
    store: &Inner,
    scope: &Scope,
    queue: Option<&QueueName>,
    limit: u32,
) -> Result<Vec<GateStatus>, StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        gates_on(store, On::Own(&lent), scope, queue, limit).await
    })
    .await
}

async fn gates_on(
    store: &Inner,
    on: On<'_>,
    scope: &Scope,
    queue: Option<&QueueName>,
    limit: u32,
) -> Result<Vec<GateStatus>, StoreError> {
    let tenant = tenant_of(scope);
    let rows = match queue {
        Some(queue) => on.query(Sql::GatesListed, &[&queue.as_str(), &tenant, &i64::from(limit)]).await?,
        None => on.query(Sql::GatesShut, &[&tenant]).await?,
    };
    let now = store.now_on(on).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let (id, name, gate) = read(row)?;
        if queue.is_some() || is_shut(&gate, now) {
            found.push((id, name, gate));
        }
    }
    found.truncate(limit as usize);
    let ids: Vec<i64> = found.iter().map(|(id, ..)| *id).collect();
    let mut counts: HashMap<i64, i64> = HashMap::new();
    for row in &on.query(Sql::GatesParked, &[&ids, &i64::from(MAX_PARKED)]).await? {
        let c = Columns::new(row);
        counts.insert(c.get("id")?, c.get("jobs")?);
    }
    let settings = registry::settings_on(on).await?;
    let mut statuses: Vec<GateStatus> = Vec::with_capacity(found.len());
    for (id, name, gate) in found {
        let parked = counts.get(&id).copied().unwrap_or_default().max(0) as u64;
        statuses.push(GateStatus { rule: rule(&settings, &name), name, gate, parked });
    }
    statuses.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(statuses)
}

fn rule(settings: &[(SettingKey, String)], name: &crate::store::GateName) -> GateRule {
    let flow = match &name.tenant {
        Some(tenant) => retention::flow(settings, tenant, &name.queue),
        None => {
            let key = SettingKey::Queue { tenant: None, name: name.queue.as_str().into() };
            let shared = settings.iter().find(|(of, _)| *of == key).map(|(_, value)| value.as_str());
            QueueFlow::read(None, shared)
        }
    };
    flow.map(|flow| flow.rule(name)).unwrap_or_default()
}

//! What queues' settings say to a transaction: how long finished jobs are kept, and which gates there are. They are
//! read again after a second, because other nodes may change them.

use crate::clock::Clock;
use crate::job::QueueId;
use crate::store::gates::QueueFlow;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::names::Names;
use crate::store::sqlite::reads::rows;
use crate::store::sqlite::reads::settings::stored_setting;
use crate::store::{Retention, SettingKey, StoreError, in_force, json};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::Millis;

/// How long the settings are cached.
const FRESH_FOR: Millis = Millis::from_secs(1);

#[derive(Debug)]
pub(in crate::store::sqlite) struct Retentions {
    /// The machine's clock, even if the store uses a test clock.
    watch: Clock,
    read_at: Millis,
    known: HashMap<QueueId, Retention>,
    flows: HashMap<QueueId, Option<Arc<QueueFlow>>>,
}

impl Default for Retentions {
    fn default() -> Self {
        Self { watch: Clock::system(), read_at: Millis::ZERO, known: HashMap::new(), flows: HashMap::new() }
    }
}

impl Retentions {
    pub(in crate::store::sqlite) fn forget(&mut self) {
        self.known.clear();
        self.flows.clear();
    }

    /// The queue's flow settings, if it has any.
    pub(in crate::store::sqlite) fn flow(
        &mut self,
        conn: &Connection,
        names: &mut Names,
        queue: QueueId,
    ) -> Result<Option<Arc<QueueFlow>>, StoreError> {
        if let Some(flow) = self.flows.get(&queue) {
            return Ok(flow.clone());
        }
        let (own, shared) = settings(conn, names, queue)?;
        let flow = QueueFlow::read(own.as_deref(), shared.as_deref()).map(Arc::new);
        self.flows.insert(queue, flow.clone());
        Ok(flow)
    }

    pub(in crate::store::sqlite) fn of(
        &mut self,
        conn: &Connection,
        names: &mut Names,
        queue: QueueId,
    ) -> Result<Retention, StoreError> {
        if let Some(retention) = self.known.get(&queue) {
            return Ok(*retention);
        }
        let (own, shared) = settings(conn, names, queue)?;
        let retention = json::retention_of(own.as_deref(), shared.as_deref());
        self.known.insert(queue, retention);
        Ok(retention)
    }

    /// Must be called once per transaction.
    pub(in crate::store::sqlite) fn refresh(&mut self) {
        let now = self.watch.monotonic();
        if now.get() >= self.read_at.get() + FRESH_FOR.get() {
            self.read_at = now;
            self.forget();
        }
    }
}

/// The tenant's own setting of a queue, and the one for all tenants.
fn settings(
    conn: &Connection,
    names: &mut Names,
    queue: QueueId,
) -> Result<(Option<String>, Option<String>), StoreError> {
    let key = names.queue(conn, queue)?;
    let name = key.1.as_str().to_owned();
    let shared = setting(conn, &SettingKey::Queue { tenant: None, name: name.clone() })?;
    Ok((setting(conn, &SettingKey::Queue { tenant: Some(key.0.clone()), name })?, shared))
}

/// A setting in force.
pub(in crate::store::sqlite) fn setting(conn: &Connection, key: &SettingKey) -> Result<Option<String>, StoreError> {
    let (scope, tenant, name) = key.parts();
    let mut select = conn.prepare_cached(sql!("queues.sql", "setting"))?;
    let stored = rows::all(select.query(params![scope, tenant, name])?, stored_setting)?;
    Ok(in_force(stored).pop().map(|(_, value)| value))
}

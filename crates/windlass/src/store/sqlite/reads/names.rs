//! Names and numbers: queues and policies are rows that jobs refer to. They are added once and never changed (except a
//! queue's pause), so cached entries stay valid. If the transaction that added one is rolled back, the cache must be
//! cleared.

use crate::job::QueueId;
use crate::store::StoreError;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::reads::columns::queue;
use crate::store::sqlite::reads::rows;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Executor, Policy, Timestamp};

/// The most entries of one type; beyond it the cache is emptied.
const MAX_NAMES: usize = 10_000;

type QueueKey = (Tenant, QueueName, Executor);

#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Names {
    queues: Known<QueueId, Arc<QueueKey>>,
    queue_ids: HashMap<QueueKey, QueueId>,
    policies: Known<i64, Arc<Policy>>,
    policy_ids: HashMap<Arc<Policy>, i64>,
    kinds: Known<Arc<str>, Kind>,
    /// The last of each: most batches have one queue and policy.
    last_queue: Option<(QueueKey, QueueId)>,
    last_policy: Option<(Arc<Policy>, i64)>,
}

impl Names {
    pub(in crate::store::sqlite) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The number of a queue, which is registered on first use.
    pub(in crate::store::sqlite) fn queue_id(
        &mut self,
        conn: &Connection,
        (tenant, name, executor): (&Tenant, &QueueName, Executor),
        now: Timestamp,
    ) -> Result<QueueId, StoreError> {
        if let Some((key, id)) = &self.last_queue
            && key.0 == *tenant
            && key.1 == *name
            && key.2 == executor
        {
            return Ok(*id);
        }
        let key = (tenant.clone(), name.clone(), executor);
        let id = match self.queue_ids.get(&key) {
            Some(id) => *id,
            None => find_or_add_queue(conn, &key, now)?,
        };
        limit(&mut self.queue_ids);
        self.queue_ids.insert(key.clone(), id);
        self.last_queue = Some((key, id));
        Ok(id)
    }

    /// A queue's owner and name.
    pub(in crate::store::sqlite) fn queue(
        &mut self,
        conn: &Connection,
        id: QueueId,
    ) -> Result<Arc<QueueKey>, StoreError> {
        if let Some(key) = self.queues.get(&id) {
            return Ok(key);
        }
        let mut select = conn.prepare_cached(sql!("queues.sql", "queue"))?;
        let key = one(&mut select, id.0, |row| {
            Ok((text(row, queue::tenant)?, text(row, queue::name)?, text(row, queue::executor)?))
        })?;
        let key = key.and_then(|(tenant, name, executor)| {
            Some((Tenant::new(&tenant).ok()?, QueueName::new(&name).ok()?, Executor::parse(&executor)?))
        });
        let key = Arc::new(key.ok_or_else(|| StoreError::corrupt(format!("queue {}", id.0), "jobs name real queues"))?);
        self.queues.add(id, &key);
        Ok(key)
    }

    /// The number of a policy, which is stored on first use.
    pub(in crate::store::sqlite) fn policy_id(
        &mut self,
        conn: &Connection,
        policy: &Arc<Policy>,
    ) -> Result<i64, StoreError> {
        if let Some((last, id)) = &self.last_policy
            && (Arc::ptr_eq(last, policy) || last == policy)
        {
            return Ok(*id);
        }
        let id = match self.policy_ids.get(policy) {
            Some(id) => *id,
            None => find_or_add_policy(conn, &policy.to_string())?,
        };
        limit(&mut self.policy_ids);
        self.policy_ids.insert(policy.clone(), id);
        self.last_policy = Some((policy.clone(), id));
        Ok(id)
    }

    pub(in crate::store::sqlite) fn policy(&mut self, conn: &Connection, id: i64) -> Result<Arc<Policy>, StoreError> {
        if let Some(policy) = self.policies.get(&id) {
            return Ok(policy);
        }
        let mut select = conn.prepare_cached(sql!("queues.sql", "policy"))?;
        let line = one(&mut select, id, rows::only::<String>)?;
        let policy = line.and_then(|line| Policy::parse_canonical(&line).ok());
        let policy =
            Arc::new(policy.ok_or_else(|| StoreError::corrupt(format!("policy {id}"), "jobs name real policies"))?);
        self.policies.add(id, &policy);
        Ok(policy)
    }

    pub(in crate::store::sqlite) fn kind(&mut self, text: &str) -> Result<Kind, StoreError> {
        if let Some(kind) = self.kinds.get(text) {
            return Ok(kind);
        }
        let kind = Kind::new(text).map_err(|error| StoreError::corrupt("a job's kind", error.to_string()))?;
        self.kinds.add(text.into(), &kind);
        Ok(kind)
    }
}

/// Cached entries, and the last one separately: most batches have one queue, kind and policy.
#[derive(Debug)]
struct Known<K, V> {
    all: HashMap<K, V>,
    last: Option<(K, V)>,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self { all: HashMap::new(), last: None }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Known<K, V> {
    fn get<Q: ?Sized + Eq + Hash>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some((last, value)) = &self.last
            && last.borrow() == key
        {
            return Some(value.clone());
        }
        let (key, value) = self.all.get_key_value(key)?;
        self.last = Some((key.clone(), value.clone()));
        Some(value.clone())
    }

    fn add(&mut self, key: K, value: &V) {
        limit(&mut self.all);
        self.all.insert(key, value.clone());
    }
}

fn find_or_add_queue(conn: &Connection, key: &QueueKey, now: Timestamp) -> Result<QueueId, StoreError> {
    let parts = params![key.0.as_str(), key.1.as_str(), key.2.as_str()];
    let found = conn.prepare_cached(sql!("queues.sql", "queue_find"))?.query_row(parts, rows::only).optional()?;
    if let Some(id) = found {
        return Ok(QueueId(id));
    }
    let mut add = conn.prepare_cached(sql!("queues.sql", "queue_add"))?;
    Ok(QueueId(add.insert(params![key.0.as_str(), key.1.as_str(), key.2.as_str(), now.as_millis()])?))
}

fn find_or_add_policy(conn: &Connection, line: &str) -> Result<i64, StoreError> {
    let found = conn.prepare_cached(sql!("queues.sql", "policy_find"))?.query_row([line], rows::only).optional()?;
    match found {
        Some(id) => Ok(id),
        None => Ok(conn.prepare_cached(sql!("queues.sql", "policy_add"))?.insert([line])?),
    }
}

fn one<T>(
    select: &mut CachedStatement<'_>,
    id: i64,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    Ok(select.query_row([id], read).optional()?)
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    row.get(column)
}

fn limit<K, V>(names: &mut HashMap<K, V>) {
    if names.len() >= MAX_NAMES {
        names.clear();
    }
}

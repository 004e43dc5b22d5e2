//! Names: queues and policies by number, cached both ways. Numbers never change.

use crate::client::policies::catalogue::Catalogue;
use crate::job::{ClaimedJob, Job, NewJob};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::registry;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::rows::{self, Known};
use crate::store::{Queue, StoreError};
use futures_util::join;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::{Partial, Role};
use windlass_core::{Executor, Policy};

/// The most policies cached: callers may send any number of them.
const POLICY_LIMIT: usize = 10_000;

type QueueKey = (Tenant, QueueName, Executor);

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Names(RwLock<Maps>);

#[derive(Debug, Default)]
struct Maps {
    queues: HashMap<i64, Arc<Queue>>,
    queue_ids: HashMap<QueueKey, i64>,
    policies: HashMap<i64, Arc<Policy>>,
    policy_ids: HashMap<Arc<Policy>, i64>,
}

impl Names {
    fn read<T>(&self, look: impl FnOnce(&Maps) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn learn_queue(&self, queue: Queue) -> Arc<Queue> {
        let mut maps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let queue = Arc::new(queue);
        maps.queue_ids.insert((queue.tenant.clone(), queue.name.clone(), queue.executor), queue.id.0);
        maps.queues.insert(queue.id.0, queue.clone());
        queue
    }

    fn learn_policy(&self, id: i64, policy: &Arc<Policy>) {
        let mut maps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if maps.policies.len() >= POLICY_LIMIT {
            maps.policies.clear();
            maps.policy_ids.clear();
        }
        maps.policies.insert(id, policy.clone());
        maps.policy_ids.insert(policy.clone(), id);
    }

    fn queue_id(&self, key: &QueueKey) -> Option<i64> {
        self.read(|maps| maps.queue_ids.get(key).copied())
    }

    pub(in crate::store::postgres) fn queue(&self, id: i64) -> Option<Arc<Queue>> {
        self.read(|maps| maps.queues.get(&id).cloned())
    }

    fn policy_id(&self, policy: &Arc<Policy>) -> Option<i64> {
        self.read(|maps| maps.policy_ids.get(policy).copied())
    }
}

/// The numbers a new job's row needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::postgres) struct Numbers {
    pub(in crate::store::postgres) queue: i64,
    pub(in crate::store::postgres) policy: i64,
}

/// The numbers of each job's queue and policy, registering new ones on a connection of its own, so that no caller's
/// transaction holds a queue's row.
pub(in crate::store::postgres) async fn numbers(store: &Inner, jobs: &[NewJob]) -> Result<Vec<Numbers>, StoreError> {
    let mut numbers = Vec::with_capacity(jobs.len());
    let mut last: Option<(&NewJob, Numbers)> = None;
    for job in jobs {
        let same = last.filter(|(before, _)| {
            before.tenant == job.tenant
                && before.queue == job.queue
                && before.executor == job.executor
                && Arc::ptr_eq(&before.policy, &job.policy)
        });
        let found = match same {
            Some((_, found)) => found,
            None => Numbers {
                queue: queue_number(store, &job.tenant, &job.queue, job.executor).await?,
                policy: policy_number(store, &job.policy).await?,
            },
        };
        last = Some((job, found));
        numbers.push(found);
    }
    Ok(numbers)
}

pub(in crate::store::postgres) async fn queue_number(
    store: &Inner,
    tenant: &Tenant,
    name: &QueueName,
    executor: Executor,
) -> Result<i64, StoreError> {
    let key = (tenant.clone(), name.clone(), executor);
    match store.names.queue_id(&key) {
        Some(id) => Ok(id),
        None => Ok(find_or_add_queue(store, tenant, name, executor).await?.id.0),
    }
}

pub(in crate::store::postgres) async fn find_or_add_queue(
    store: &Inner,
    tenant: &Tenant,
    name: &QueueName,
    executor: Executor,
) -> Result<Arc<Queue>, StoreError> {
    let (tenant, name, executor) = (tenant.as_str(), name.as_str(), executor.as_str());
    let (find, now): (Params<'_>, _) = (&[&tenant, &name, &executor], store.fixed());
    let row = find_or_add(store, Sql::QueueFind, find, Sql::QueueAdd, &[&now, &tenant, &name, &executor]).await?;
    Ok(store.names.learn_queue(rows::queue(&row)?))
}

/// Finds a row, or adds it, on a connection reserved for this: a caller that holds a connection of the pool must not
/// wait for another.
async fn find_or_add(store: &Inner, find: Sql, by: Params<'_>, add: Sql, with: Params<'_>) -> Result<Row, StoreError> {
    again(|| async {
        let lent = store.registry.get().await?;
        if let Some(row) = lent.query(find, by).await?.pop() {
            return Ok(row);
        }
        let (begun, added) = join!(lent.begin(), lent.query(add, with));
        lent.conclude(begun, added).await?;
        let lent = store.registry.get().await?;
        lent.query(find, by).await?.pop().ok_or_else(|| StoreError::unavailable("it could not be registered"))
    })
    .await
}

pub(in crate::store::postgres) async fn policy_number(store: &Inner, policy: &Arc<Policy>) -> Result<i64, StoreError> {
    if let Some(id) = store.names.policy_id(policy) {
        return Ok(id);
    }
    let line = policy.to_string();
    let row = find_or_add(store, Sql::PolicyFind, &[&line], Sql::PolicyAdd, &[&line]).await?;
    let id = Columns::new(&row).get("id")?;
    store.names.learn_policy(id, policy);
    Ok(id)
}

/// The jobs in rows that begin with the columns of one.
pub(in crate::store::postgres) async fn jobs_in(
    store: &Inner,
    on: On<'_>,
    rows: &[Row],
) -> Result<Vec<Job>, StoreError> {
    let known = known(store, on, rows).await?;
    rows.iter().map(|row| rows::job(row, &known)).collect()
}

/// The running jobs in rows that begin with the columns of one.
pub(in crate::store::postgres) async fn claimed_in(
    store: &Inner,
    on: On<'_>,
    rows: &[Row],
) -> Result<Vec<ClaimedJob>, StoreError> {
    let known = known(store, on, rows).await?;
    rows.iter().map(|row| rows::claimed(row, &known)).collect()
}

async fn known(store: &Inner, on: On<'_>, rows: &[Row]) -> Result<Known, StoreError> {
    let mut queues = HashSet::new();
    let mut policies = HashSet::new();
    let mut lines = HashSet::new();
    for row in rows {
        let (queue, policy) = rows::references(row)?;
        queues.insert(queue);
        match policy {
            Ok(id) => drop(policies.insert(id)),
            Err(line) => drop(lines.insert(line)),
        }
    }
    let mut known =
        Known { queues: HashMap::new(), policies: HashMap::new(), lines: HashMap::new(), webhooks: HashMap::new() };
    look_up_queues(store, on, &queues).await?;
    known.queues.extend(queues.into_iter().filter_map(|id| Some((id, store.names.queue(id)?))));
    known.policies = look_up_policies(store, on, policies).await?;
    if !lines.is_empty() {
        let catalogue = Catalogue::load(&registry::settings_on(on).await?);
        for line in lines {
            if let Some(queue) = known.queues.get(&line.0) {
                let policy = policy_of_line(&catalogue, queue, &line.1, &line.2)?;
                if let Some(webhook) = catalogue.webhook_of(&queue.tenant) {
                    known.webhooks.insert(line.0, Arc::new(webhook));
                }
                known.lines.insert(line, Arc::new(policy));
            }
        }
    }
    Ok(known)
}

pub(in crate::store::postgres) async fn look_up_queues(
    store: &Inner,
    on: On<'_>,
    ids: &HashSet<i64>,
) -> Result<(), StoreError> {
    if ids.iter().any(|id| store.names.queue(*id).is_none()) {
        for row in on.query(Sql::Queues, &[]).await? {
            store.names.learn_queue(rows::queue(&row)?);
        }
    }
    Ok(())
}

async fn look_up_policies(
    store: &Inner,
    on: On<'_>,
    ids: HashSet<i64>,
) -> Result<HashMap<i64, Arc<Policy>>, StoreError> {
    let mut found: HashMap<i64, Arc<Policy>> = store
        .names
        .read(|maps| ids.iter().filter_map(|id| maps.policies.get(id).map(|policy| (*id, policy.clone()))).collect());
    let missing: Vec<i64> = ids.into_iter().filter(|id| !found.contains_key(id)).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    for row in on.query(Sql::Policies, &[&missing]).await? {
        let c = Columns::new(&row);
        let (id, line): (i64, &str) = (c.get("id")?, c.text("line")?);
        let policy = Policy::parse_canonical(line)
            .map_err(|error| StoreError::corrupt(format!("policy {id}"), error.to_string()))?;
        let policy = Arc::new(policy);
        store.names.learn_policy(id, &policy);
        found.insert(id, policy);
    }
    Ok(found)
}

/// The policy that a line written by an SQL caller means, merged with what is set for its kind, queue and server. A
/// line that cannot be read falls back to those, because the job must still run.
fn policy_of_line(catalogue: &Catalogue, queue: &Queue, kind: &str, line: &str) -> Result<Policy, StoreError> {
    let role = match queue.executor {
        Executor::Worker => Role::Handler,
        Executor::Http => Role::Http,
    };
    let kind = Kind::new(kind).map_err(|error| StoreError::corrupt(format!("kind `{kind}`"), error.to_string()))?;
    let effective = |own: &Partial| catalogue.effective(&queue.tenant, &queue.name, &kind, role, own);
    let own = match line {
        "" => Ok(Partial::default()),
        line => Partial::parse_line_with(line, &|name| catalogue.named(name)),
    };
    own.and_then(|own| effective(&own))
        .or_else(|error| {
            tracing::warn!(queue = %queue.name, %kind, %error, "a job's retry line makes no policy: using the default");
            effective(&Partial::default())
        })
        .or_else(|_| Partial::resolve(&[role.default_policy()], &role.default_give_up_on()))
        .map_err(|error| StoreError::corrupt("default policy", error.to_string()))
}

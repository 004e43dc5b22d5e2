//! Names: queues and policies by number, remembered both ways. Neither ever changes its number.

use super::Inner;
use super::fault::again;
use super::pool::On;
use super::rows::{self, Columns, Known};
use super::sql::Sql;
use crate::job::{Job, NewJob};
use crate::store::{Queue, SettingKey, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_postgres::Row;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::policy::{Partial, Role};
use windlass_core::{Executor, Policy};

/// The most policies remembered: callers may send any number of them.
const POLICY_LIMIT: usize = 10_000;

type QueueKey = (Tenant, QueueName, Executor);

#[derive(Debug, Default)]
pub(super) struct Names(RwLock<Maps>);

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

    pub(super) fn queue(&self, id: i64) -> Option<Arc<Queue>> {
        self.read(|maps| maps.queues.get(&id).cloned())
    }

    fn policy_id(&self, policy: &Arc<Policy>) -> Option<i64> {
        self.read(|maps| maps.policy_ids.get(policy).copied())
    }
}

/// The numbers a new job's row needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) queue: i64,
    pub(super) policy: i64,
}

impl Inner {
    /// The numbers of each job's queue and policy, registering what is new: on a connection of its own, so that no
    /// caller's transaction holds a queue's row.
    pub(super) async fn numbers(&self, jobs: &[NewJob]) -> Result<Vec<Numbers>, StoreError> {
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
                    queue: self.queue_number(&job.tenant, &job.queue, job.executor).await?,
                    policy: self.policy_number(&job.policy).await?,
                },
            };
            last = Some((job, found));
            numbers.push(found);
        }
        Ok(numbers)
    }

    pub(super) async fn queue_number(
        &self,
        tenant: &Tenant,
        name: &QueueName,
        executor: Executor,
    ) -> Result<i64, StoreError> {
        let key = (tenant.clone(), name.clone(), executor);
        match self.names.queue_id(&key) {
            Some(id) => Ok(id),
            None => Ok(self.find_or_add_queue(tenant, name, executor).await?.id.0),
        }
    }

    pub(super) async fn find_or_add_queue(
        &self,
        tenant: &Tenant,
        name: &QueueName,
        executor: Executor,
    ) -> Result<Arc<Queue>, StoreError> {
        again(|| async {
            let lent = self.pool.get().await?;
            let (tenant, name, executor) = (tenant.as_str(), name.as_str(), executor.as_str());
            let find = || lent.query(Sql::QueueFind, &[&tenant, &name, &executor]);
            let mut found = find().await?;
            if found.is_empty() {
                // Adding it twice does no harm, so an unknown outcome is none.
                lent.query(Sql::QueueAdd, &[&self.fixed(), &tenant, &name, &executor]).await?;
                found = find().await?;
            }
            let row = found.first().ok_or_else(|| StoreError::unavailable("the queue could not be registered"))?;
            Ok(self.names.learn_queue(rows::queue(row)?))
        })
        .await
    }

    pub(super) async fn policy_number(&self, policy: &Arc<Policy>) -> Result<i64, StoreError> {
        if let Some(id) = self.names.policy_id(policy) {
            return Ok(id);
        }
        let line = policy.to_string();
        let id = again(|| async {
            let lent = self.pool.get().await?;
            let find = || lent.query(Sql::PolicyFind, &[&line]);
            let mut found = find().await?;
            if found.is_empty() {
                lent.query(Sql::PolicyAdd, &[&line]).await?;
                found = find().await?;
            }
            let row = found.first().ok_or_else(|| StoreError::unavailable("the policy could not be stored"))?;
            Columns::new(row).next::<i64>()
        })
        .await?;
        self.names.learn_policy(id, policy);
        Ok(id)
    }

    /// The jobs in rows that hold one from column `first` on.
    pub(super) async fn jobs_in(&self, on: On<'_>, rows: &[Row], first: usize) -> Result<Vec<Job>, StoreError> {
        let known = self.known(on, rows, first).await?;
        rows.iter().map(|row| rows::job(row, first, &known)).collect()
    }

    async fn known(&self, on: On<'_>, rows: &[Row], first: usize) -> Result<Known, StoreError> {
        let mut queues = HashSet::new();
        let mut policies = HashSet::new();
        let mut lines = HashSet::new();
        for row in rows {
            let (queue, policy, line) = rows::references(row, first)?;
            queues.insert(queue);
            match policy {
                Some(id) => drop(policies.insert(id)),
                None => drop(lines.insert((queue, line.unwrap_or_default()))),
            }
        }
        let mut known = Known { queues: HashMap::new(), policies: HashMap::new(), lines: HashMap::new() };
        self.look_up_queues(on, &queues).await?;
        known.queues.extend(queues.into_iter().filter_map(|id| Some((id, self.names.queue(id)?))));
        known.policies = self.look_up_policies(on, policies).await?;
        for (queue, line) in lines {
            let policy = match known.queues.get(&queue) {
                Some(found) => self.settle_line(on, found, &line).await?,
                None => continue,
            };
            known.lines.insert((queue, line), policy);
        }
        Ok(known)
    }

    pub(super) async fn look_up_queues(&self, on: On<'_>, ids: &HashSet<i64>) -> Result<(), StoreError> {
        if ids.iter().any(|id| self.names.queue(*id).is_none()) {
            for row in on.query(Sql::Queues, &[]).await? {
                self.names.learn_queue(rows::queue(&row)?);
            }
        }
        Ok(())
    }

    async fn look_up_policies(&self, on: On<'_>, ids: HashSet<i64>) -> Result<HashMap<i64, Arc<Policy>>, StoreError> {
        let mut found: HashMap<i64, Arc<Policy>> = self.names.read(|maps| {
            ids.iter().filter_map(|id| maps.policies.get(id).map(|policy| (*id, policy.clone()))).collect()
        });
        let missing: Vec<i64> = ids.into_iter().filter(|id| !found.contains_key(id)).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        for row in on.query(Sql::Policies, &[&missing]).await? {
            let mut c = Columns::new(&row);
            let (id, line): (i64, &str) = (c.next()?, c.text()?);
            let policy = Policy::parse_canonical(line)
                .map_err(|error| StoreError::corrupt(format!("policy {id}"), error.to_string()))?;
            let policy = Arc::new(policy);
            self.names.learn_policy(id, &policy);
            found.insert(id, policy);
        }
        Ok(found)
    }

    /// The policy that a line written by an SQL caller means: the line, over the queue's, over the default. A line that
    /// cannot be read falls back to the default, because the job must still run.
    async fn settle_line(&self, on: On<'_>, queue: &Queue, line: &str) -> Result<Arc<Policy>, StoreError> {
        let settings = self.settings_on(on).await?;
        let named = |name: &str| {
            let key = SettingKey::Policy { name: name.into() };
            let text = settings.iter().find(|(known, _)| *known == key).map(|(_, value)| value)?;
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            Partial::from_json(&value, &windlass_core::policy::no_names).ok()
        };
        let role = match queue.executor {
            Executor::Worker => Role::Handler,
            Executor::Http => Role::Http,
        };
        let mut levels = Vec::new();
        if !line.is_empty() {
            match Partial::parse_line_with(line, &named) {
                Ok(level) => levels.push(level),
                Err(error) => tracing::warn!(queue = %queue.name, %error, "a job's retry line cannot be read"),
            }
        }
        levels.push(role.default_policy());
        let settled = Partial::resolve(&levels, &role.default_give_up_on()).or_else(|error| {
            tracing::warn!(queue = %queue.name, %error, "a job's retry line makes no policy");
            Partial::resolve(&[role.default_policy()], &role.default_give_up_on())
        });
        settled.map(Arc::new).map_err(|error| StoreError::corrupt("default policy", error.to_string()))
    }
}

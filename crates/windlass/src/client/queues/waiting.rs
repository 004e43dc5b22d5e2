//! How many jobs wait, and for what: per queue and in total.

use super::{MAX_GATES, Queues};
use crate::client::jobs::waiting::{SEEN_WITHIN, serves_queue};
use crate::store::{GateStatus, StoreError};
use std::collections::BTreeMap;
use windlass_core::Timestamp;
use windlass_core::gate::{Start, WaitingFor};
use windlass_core::job::{QueueName, Tenant};

/// Waiting jobs by what they wait for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WaitingCounts {
    /// Due, and nothing holds them back: the next free worker takes them.
    pub ready: u64,
    /// Waiting for their time: a `runAt`, or the delay before a retry. They are not counted apart, because that would
    /// read every one of them.
    pub later: u64,
    /// Due, and waiting for this. Jobs behind one limit key are counted up to 10,000.
    pub behind: BTreeMap<WaitingFor, u64>,
}

/// What the jobs of one tenant's queue wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueWaiting {
    /// Its owner.
    pub tenant: Tenant,
    /// Its name.
    pub queue: QueueName,
    /// How many wait for what.
    pub counts: WaitingCounts,
}

impl WaitingCounts {
    /// The sum of both.
    fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.later += other.later;
        for (what, count) in &other.behind {
            *self.behind.entry(*what).or_default() += count;
        }
    }

    fn wait(&mut self, what: WaitingFor, count: u64) {
        if count > 0 {
            *self.behind.entry(what).or_default() += count;
        }
    }

    /// Each reason with its count, in a fixed order; only those that any job has.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let behind = self.behind.iter().map(|(what, count)| (what.as_str(), *count));
        [("ready", self.ready), ("later", self.later)].into_iter().chain(behind).filter(|(_, count)| *count > 0)
    }
}

impl Queues<'_> {
    /// How many jobs of each queue wait, and for what: one entry per tenant and name that has any.
    ///
    /// ```
    /// use windlass::Windlass;
    /// use windlass::core::gate::WaitingFor;
    /// use windlass::core::job::QueueName;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.enqueue_kind("email", &serde_json::json!({})).queue("mail").await?;
    /// windlass.queues().pause(&QueueName::new("mail")?).await?;
    /// let waiting = windlass.queues().waiting().await?;
    /// assert_eq!(waiting[0].counts.behind[&WaitingFor::Paused], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn waiting(&self) -> Result<Vec<QueueWaiting>, StoreError> {
        let now = self.windlass.clock().now();
        let gates = self.gates().all().await?;
        let workers = self.windlass.store().workers(now - SEEN_WITHIN).await?;
        let depths = self.depths().await?;
        let mut found: BTreeMap<(Tenant, QueueName), (WaitingCounts, u64, bool)> = BTreeMap::new();
        for queue in self.rows().await? {
            let Some(depth) = depths.iter().find(|depth| depth.queue == queue.id) else { continue };
            let entry = found.entry((queue.tenant.clone(), queue.name.clone())).or_default();
            entry.0.later += depth.later;
            if queue.paused {
                entry.0.wait(WaitingFor::Paused, depth.due);
            } else {
                entry.1 += depth.due;
                entry.2 |= workers.iter().any(|worker| serves_queue(worker, queue.name.as_str(), queue.executor));
            }
        }
        let mut waiting = Vec::new();
        for ((tenant, queue), (mut counts, due, is_served)) in found {
            behind_gates(&mut counts, &gates, (&tenant, &queue), due, is_served, now);
            if counts != WaitingCounts::default() {
                waiting.push(QueueWaiting { tenant, queue, counts });
            }
        }
        Ok(waiting)
    }

    /// The sum of [`Queues::waiting`] over all queues.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn waiting_in_all(&self) -> Result<WaitingCounts, StoreError> {
        let mut total = WaitingCounts::default();
        self.waiting().await?.iter().for_each(|queue| total.add(&queue.counts));
        Ok(total)
    }
}

/// Shares out the due jobs of a queue: those behind its gates by what the gates say, the rest by the queue's own gate.
fn behind_gates(
    counts: &mut WaitingCounts,
    gates: &[GateStatus],
    (tenant, queue): (&Tenant, &QueueName),
    due: u64,
    is_served: bool,
    now: Timestamp,
) {
    let is_of = |status: &&GateStatus| {
        status.name.queue == *queue && status.name.tenant.as_ref().is_none_or(|own| own == tenant)
    };
    let own: Vec<&GateStatus> = gates.iter().filter(is_of).filter(|status| !status.name.is_replay()).collect();
    let mut left = due;
    let mut stopped = None;
    for status in &own {
        let refused = status.gate.check(&status.rule, Start::FIRST, now).err().map(|refusal| refusal.waiting_for);
        if status.name.key.is_none() {
            stopped = stopped.or(refused);
        }
        // Behind the gate of a queue, only retries are parked. A gate that has just opened says what it was.
        let usual = if status.name.key.is_none() { WaitingFor::Budget } else { WaitingFor::Concurrency };
        let parked = status.parked.min(left);
        left -= parked;
        counts.wait(if status.name.key.is_none() { usual } else { refused.unwrap_or(usual) }, parked);
    }
    // Of a queue with more gates than are listed, what the others hold back is counted with the most frequent reason.
    let is_cut = own.len() >= MAX_GATES as usize;
    let common = counts.behind.iter().max_by_key(|(_, count)| **count).map(|(what, _)| *what).filter(|_| is_cut);
    match stopped.or(common) {
        Some(what) => counts.wait(what, left),
        None if is_served => counts.ready += left,
        None => counts.wait(WaitingFor::Worker, left),
    }
}

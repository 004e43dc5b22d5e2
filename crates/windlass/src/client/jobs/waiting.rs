//! What waiting jobs wait for.

use crate::client::jobs::Jobs;
use crate::client::queues::MAX_GATES;
use crate::job::Job;
use crate::store::gates::QueueFlow;
use crate::store::{GateName, Queue, SettingKey, StoreError, WorkerReport};
use std::collections::{BTreeSet, HashMap};
use windlass_core::gate::{Gate, GateRule, Start, WaitingFor, destination};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, JobId, Millis, State, Timestamp};

/// A worker that has not reported for this long does not work.
pub(crate) const SEEN_WITHIN: Millis = Millis::from_secs(60);

/// What a waiting job waits for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Waiting {
    /// What for.
    pub waiting_for: WaitingFor,
    /// Until when, if that is known.
    pub until: Option<Timestamp>,
    /// The gate that refused it, with what the gate enforces and its state.
    pub behind: Option<(GateName, GateRule, Gate)>,
    /// For a job that waits for a worker: how many workers serve its queue but do not know its kind.
    pub others: u32,
}

impl Waiting {
    const fn plain(waiting_for: WaitingFor, until: Option<Timestamp>) -> Self {
        Self { waiting_for, until, behind: None, others: 0 }
    }
}

impl Jobs<'_> {
    /// What those of these jobs that wait are waiting for. A job that is due and could start is not in the answer: the
    /// next free worker takes it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn waiting(&self, jobs: &[Job]) -> Result<HashMap<JobId, Waiting>, StoreError> {
        let now = self.windlass.clock().now();
        let is_waiting = |job: &&Job| matches!(job.state, State::Queued | State::Retrying);
        let (later, due): (Vec<&Job>, Vec<&Job>) = jobs.iter().filter(is_waiting).partition(|job| job.due_at > now);
        let mut found: HashMap<JobId, Waiting> = HashMap::new();
        for job in later {
            let what = if job.state == State::Retrying { WaitingFor::Retry } else { WaitingFor::RunAt };
            found.insert(job.id, Waiting::plain(what, Some(job.due_at)));
        }
        if due.is_empty() {
            return Ok(found);
        }
        let store = self.windlass.store();
        let queues = store.queues().await?;
        let served = |workers: &[WorkerReport], job: &Job| {
            workers.iter().filter(|worker| serves_queue(worker, job.queue.as_str(), job.executor)).count()
        };
        let workers = store.workers(now - SEEN_WITHIN).await?;
        found.extend(self.refused(&due, now).await?);
        for job in due {
            let is_of = |queue: &&Queue| queue.tenant == job.tenant && queue.name == job.queue;
            if queues.iter().filter(is_of).any(|queue| queue.paused) {
                found.insert(job.id, Waiting::plain(WaitingFor::Paused, None));
            } else if !found.contains_key(&job.id) && !workers.iter().any(|worker| serves(worker, job)) {
                let others = served(&workers, job) as u32;
                found.insert(job.id, Waiting { others, ..Waiting::plain(WaitingFor::Worker, None) });
            }
        }
        Ok(found)
    }

    /// Jobs that a gate refuses: those parked behind one, and those that no claim has looked at because it is shut.
    async fn refused(&self, due: &[&Job], now: Timestamp) -> Result<Vec<(JobId, Waiting)>, StoreError> {
        let store = self.windlass.store();
        let ids: Vec<JobId> = due.iter().map(|job| job.id).collect();
        let parked = store.parked(&ids).await?;
        let settings: HashMap<SettingKey, String> = store.settings().await?.into_iter().collect();
        let flows = flows_of(&settings, due);
        let mut known: HashMap<GateName, Gate> =
            parked.iter().map(|parked| (parked.gate.clone(), parked.state.clone())).collect();
        let limited: BTreeSet<&QueueName> =
            flows.iter().filter(|(_, flow)| flow.is_gated()).map(|((_, queue), _)| *queue).collect();
        let mut found = store.gates(&self.scope, None, MAX_GATES).await?;
        for queue in limited {
            found.extend(store.gates(&self.scope, Some(queue), MAX_GATES).await?);
        }
        known.extend(found.into_iter().map(|status| (status.name, status.gate)));
        let behind: HashMap<JobId, GateName> = parked.into_iter().map(|parked| (parked.job, parked.gate)).collect();
        let waiting = due.iter().filter_map(|job| {
            let flow = flows.get(&(&job.tenant, &job.queue))?;
            let names = behind.get(&job.id).cloned().into_iter().chain(gates_of(flow, job));
            let start = Start { is_retry: job.failures > 0, delivery: job.delivery, has_others: false };
            names.into_iter().find_map(|name| {
                let (rule, gate) = (flow.rule(&name), known.get(&name)?);
                let refusal = gate.check(&rule, start, now).err()?;
                let behind = Some((name, rule, gate.clone()));
                Some((job.id, Waiting { behind, ..Waiting::plain(refusal.waiting_for, refusal.until) }))
            })
        });
        Ok(waiting.collect())
    }
}

/// The flow settings in force for the queues of these jobs.
fn flows_of<'j>(
    settings: &HashMap<SettingKey, String>,
    jobs: &[&'j Job],
) -> HashMap<(&'j Tenant, &'j QueueName), QueueFlow> {
    let mut flows = HashMap::new();
    for job in jobs {
        let setting = |tenant| settings.get(&SettingKey::Queue { tenant, name: job.queue.to_string() });
        let read = || {
            let (own, shared) = (setting(Some(job.tenant.clone())), setting(None));
            QueueFlow::read(own.map(String::as_str), shared.map(String::as_str)).unwrap_or_default()
        };
        flows.entry((&job.tenant, &job.queue)).or_insert_with(read);
    }
    flows
}

/// The gates that a job asks, in their order.
fn gates_of(flow: &QueueFlow, job: &Job) -> Vec<GateName> {
    let called = job.http.as_deref().and_then(|call| destination(&call.url));
    let key = flow.key_of(&job.tenant, job.limit_key.as_deref(), called.as_deref());
    flow.gates_of(&job.tenant, &job.queue, key.as_ref())
}

/// Whether a worker takes jobs of this queue. A worker of all queues reports `* (worker)` or `* (http)`.
pub(crate) fn serves_queue(worker: &WorkerReport, queue: &str, executor: Executor) -> bool {
    let all = format!("* ({executor})");
    worker.queues.iter().any(|(name, _)| name == queue || *name == all)
}

/// Whether a worker takes such a job: it serves the queue and knows the kind.
fn serves(worker: &WorkerReport, job: &Job) -> bool {
    let knows = match job.executor {
        Executor::Http => true,
        Executor::Worker => {
            worker.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| *kind == *job.kind.as_str()))
        }
    };
    knows && serves_queue(worker, job.queue.as_str(), job.executor)
}

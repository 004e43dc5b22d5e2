//! What waiting jobs wait for.

use crate::client::jobs::Jobs;
use crate::client::queues::MAX_GATES;
use crate::job::Job;
use crate::store::gates::QueueFlow;
use crate::store::{GateName, Queue, SettingKey, StoreError, WorkerReport};
use std::collections::HashMap;
use windlass_core::gate::{Gate, GateRule, Start, WaitingFor, destination};
use windlass_core::{JobId, Millis, State, Timestamp};

/// A worker that has not reported for this long does not work.
const SEEN_WITHIN: Millis = Millis::from_secs(60);

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
}

impl Waiting {
    const fn plain(waiting_for: WaitingFor, until: Option<Timestamp>) -> Self {
        Self { waiting_for, until, behind: None }
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
        let workers = store.workers(now - SEEN_WITHIN).await?;
        found.extend(self.parked(&due, now).await?);
        for job in due {
            let is_of = |queue: &&Queue| queue.tenant == job.tenant && queue.name == job.queue;
            if queues.iter().filter(is_of).any(|queue| queue.paused) {
                found.insert(job.id, Waiting::plain(WaitingFor::Paused, None));
            } else if !found.contains_key(&job.id) && !workers.iter().any(|worker| serves(worker, job)) {
                found.insert(job.id, Waiting::plain(WaitingFor::Worker, None));
            }
        }
        Ok(found)
    }

    /// Jobs that a gate refuses: those parked behind one, and those that no worker has asked for since it was shut.
    async fn parked(&self, due: &[&Job], now: Timestamp) -> Result<Vec<(JobId, Waiting)>, StoreError> {
        let store = self.windlass.store();
        let ids: Vec<JobId> = due.iter().map(|job| job.id).collect();
        let parked = store.parked(&ids).await?;
        let shut = store.gates(&self.scope, None, MAX_GATES).await?;
        if parked.is_empty() && shut.is_empty() {
            return Ok(Vec::new());
        }
        let settings: HashMap<SettingKey, String> = store.settings().await?.into_iter().collect();
        let mut parked: HashMap<JobId, (GateName, Gate)> =
            parked.into_iter().map(|parked| (parked.job, (parked.gate, parked.state))).collect();
        let waiting = due.iter().filter_map(|job| {
            let shut = || shut.iter().find(|status| stops(&settings, &status.name, job));
            let (gate, state) =
                parked.remove(&job.id).or_else(|| shut().map(|status| (status.name.clone(), status.gate.clone())))?;
            let rule = flow_of(&settings, &gate).rule(&gate);
            let start = Start { is_retry: job.failures > 0, delivery: job.delivery, has_others: false };
            let refusal = state.check(&rule, start, now).err()?;
            let behind = Some((gate, rule, state));
            Some((job.id, Waiting { waiting_for: refusal.waiting_for, until: refusal.until, behind }))
        });
        Ok(waiting.collect())
    }
}

/// Whether a gate is one of a job's.
fn stops(settings: &HashMap<SettingKey, String>, gate: &GateName, job: &Job) -> bool {
    if gate.queue != job.queue || gate.tenant.as_ref().is_some_and(|tenant| *tenant != job.tenant) {
        return false;
    }
    let called = job.http.as_deref().and_then(|call| destination(&call.url));
    let own = flow_of(settings, gate).key_of(&job.tenant, job.limit_key.as_deref(), called.as_deref());
    gate.key.as_deref().is_none_or(|key| key == own.as_deref().unwrap_or_default())
}

/// The flow settings in force for a gate's queue.
fn flow_of(settings: &HashMap<SettingKey, String>, gate: &GateName) -> QueueFlow {
    let setting = |tenant| settings.get(&SettingKey::Queue { tenant, name: gate.queue.to_string() });
    let own = gate.tenant.clone().and_then(|tenant| setting(Some(tenant)));
    QueueFlow::read(own.map(String::as_str), setting(None).map(String::as_str)).unwrap_or_default()
}

/// Whether a worker takes jobs of this queue. A worker of all queues reports `* (worker)` or `* (http)`.
fn serves(worker: &WorkerReport, job: &Job) -> bool {
    let all = format!("* ({})", job.executor);
    worker.queues.iter().any(|(name, _)| name == job.queue.as_str() || *name == all)
}

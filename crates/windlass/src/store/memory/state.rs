//! The state of the reference model, and the few operations that keep its maps consistent.

use super::super::{
    Alert, Audit, Queue, Schedule, Scope, Session, Setting, SettingKey, Token, WorkerId, WorkerReport, in_force, json,
};
use super::gates::GateState;
use crate::job::{Job, LeaseId, QueueId};
use crate::random::Random;
use crate::store::Keep;
use crate::tally::Tally;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::pick;
use windlass_core::{Attempt, Executor, JobId, Millis, Priority, State as JobState, Timestamp};

#[derive(Debug)]
pub(super) struct State {
    pub random: Random,
    pub last_id: i64,
    /// Live jobs.
    pub live: BTreeMap<JobId, Job>,
    /// Live jobs that are neither running nor parked, in claim order.
    pub waiting: BTreeSet<Place>,
    pub archive: BTreeMap<JobId, Job>,
    /// Attempts of live and archived jobs.
    pub ledger: HashMap<JobId, Vec<Line>>,
    pub leases: BTreeMap<LeaseId, Lease>,
    /// The lease of each running job.
    pub running: HashMap<JobId, LeaseId>,
    pub queues: Vec<Queue>,
    pub keys: HashMap<(Tenant, Arc<str>), Key>,
    pub schedules: BTreeMap<JobId, Schedule>,
    /// Settings by key and node; the operator's have no node.
    pub settings: BTreeMap<(SettingKey, String), Named>,
    pub installation: String,
    pub tokens: Vec<Token>,
    pub sessions: Vec<Session>,
    pub workers: BTreeMap<WorkerId, WorkerReport>,
    pub alerts: BTreeMap<(String, String), Alert>,
    pub audits: Vec<Audit>,
    pub counts: Vec<(Timestamp, QueueId, Kind, Tally)>,
    /// Since when queues are paused.
    pub paused_at: HashMap<QueueId, Timestamp>,
    /// Until when replays with a rate are due.
    pub paced_until: HashMap<QueueId, Timestamp>,
    pub gates: GateState,
}

/// A setting and when its node was last seen.
#[derive(Debug)]
pub(super) struct Named {
    pub setting: Setting,
    pub seen_at: Timestamp,
}

/// A waiting job's place in its queue.
pub(super) type Place = (QueueId, Reverse<Priority>, Timestamp, JobId);

#[derive(Debug)]
pub(super) struct Line {
    pub attempt: Attempt,
    pub lease: LeaseId,
}

#[derive(Debug)]
pub(super) struct Lease {
    pub worker: WorkerId,
    pub expires_at: Timestamp,
    pub length: Millis,
    pub jobs: Vec<JobId>,
}

#[derive(Debug)]
pub(super) struct Key {
    pub job: JobId,
    /// `None`: as long as the job is live.
    pub until: Option<Timestamp>,
}

impl State {
    pub(super) fn new(random: Random) -> Self {
        // Not from `random`: the numbers that a test's seed gives belong to its jobs.
        let installation = format!("{:012x}", Random::system().number() >> 16);
        Self {
            random,
            last_id: 0,
            live: BTreeMap::new(),
            waiting: BTreeSet::new(),
            archive: BTreeMap::new(),
            ledger: HashMap::new(),
            leases: BTreeMap::new(),
            running: HashMap::new(),
            queues: Vec::new(),
            keys: HashMap::new(),
            schedules: BTreeMap::new(),
            settings: BTreeMap::new(),
            installation,
            tokens: Vec::new(),
            sessions: Vec::new(),
            workers: BTreeMap::new(),
            alerts: BTreeMap::new(),
            audits: Vec::new(),
            counts: Vec::new(),
            paused_at: HashMap::new(),
            paced_until: HashMap::new(),
            gates: GateState::default(),
        }
    }

    pub(super) fn draw_id(&mut self) -> JobId {
        self.last_id += 1;
        JobId(self.last_id)
    }

    pub(super) fn queue(&mut self, tenant: &Tenant, name: &QueueName, executor: Executor, now: Timestamp) -> &Queue {
        let found = self.queues.iter().position(|q| q.tenant == *tenant && q.name == *name && q.executor == executor);
        let index = found.unwrap_or_else(|| {
            let id = QueueId(self.queues.len() as i64 + 1);
            let queue =
                Queue { id, tenant: tenant.clone(), name: name.clone(), executor, paused: false, created_at: now };
            self.queues.push(queue);
            self.queues.len() - 1
        });
        &self.queues[index]
    }

    /// Stores a live job at its place. Every change of a live job goes through here.
    pub(super) fn put(&mut self, job: Job) {
        if let Some(before) = self.live.get(&job.id) {
            self.waiting.remove(&place(before));
        }
        self.gates.unpark(job.id);
        if job.state != JobState::Running {
            self.waiting.insert(place(&job));
        }
        self.live.insert(job.id, job);
    }

    /// Moves a finished job to the archive, or removes it if its queue keeps none.
    pub(super) fn finish(&mut self, job: Job) {
        if let Some(before) = self.live.remove(&job.id) {
            self.waiting.remove(&place(&before));
        }
        self.gates.unpark(job.id);
        if let Some(schedule) = job.schedule {
            super::schedule::end_one_shot(self, schedule);
        }
        if self.keep(&job) == Keep::Drop {
            self.ledger.remove(&job.id);
        } else {
            let (id, schedule, failed_at) = (job.id, job.schedule, job.finished_at);
            let has_failed = job.state == JobState::Failed && job.discarded_at.is_none();
            self.archive.insert(id, job);
            if let (true, Some(schedule), Some(now)) = (has_failed, schedule, failed_at) {
                super::schedule::run_failed(self, schedule, id, now);
            }
        }
    }

    pub(super) fn keep(&self, job: &Job) -> Keep {
        let name = job.queue.as_str().to_owned();
        let setting = |tenant| {
            let key = SettingKey::Queue { tenant, name: name.clone() };
            let named = self.settings.values().map(|named| &named.setting).filter(|setting| setting.key == key);
            in_force(named.cloned().collect()).pop().map(|(_, value)| value)
        };
        json::retention_of(setting(Some(job.tenant.clone())).as_deref(), setting(None).as_deref()).of(job.state)
    }

    pub(super) fn count(&mut self, now: Timestamp, queue: QueueId, kind: &Kind, delta: Tally) {
        self.counts.push((now, queue, kind.clone(), delta));
    }

    /// A job, live or archived, if the scope covers it.
    pub(super) fn find(&self, scope: &Scope, id: JobId) -> Option<&Job> {
        self.live.get(&id).or_else(|| self.archive.get(&id)).filter(|job| scope.covers(&job.tenant))
    }
}

pub(super) fn place(job: &Job) -> Place {
    let (priority, due_at, id) = pick::order(job.priority, job.due_at, job.id);
    (job.queue_id, priority, due_at, id)
}

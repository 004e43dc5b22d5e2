//! Gates in a store: which gates a job passes, what each enforces, and which due jobs of a gated queue a claim takes.
//! Pure; the stores read and write the rows.

pub(crate) mod admit;
pub(crate) mod claim_gates;
mod end;
pub(crate) mod passes;
mod replay;

pub(crate) use admit::{Admitted, Offered, admit};
pub(crate) use claim_gates::ClaimGates;
pub(crate) use end::{end, hold};
pub(crate) use replay::key_of as replay_key;

use serde_json::Value;
use std::sync::Arc;
use windlass_core::gate::{Across, BreakerState, Flow, Gate, GateRule, Honor, Opens, Start};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Millis, Timestamp};

/// The most gates whose parked jobs one claim looks at.
pub(crate) const MAX_OPENED: u32 = 256;

/// Stands for all tenants in the name of a gate. No tenant has this name.
const ALL_TENANTS: &str = "*";

/// The name of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GateName {
    /// Its tenant; `None`: the queues of that name of all tenants, or a replay (see [`GateName::is_replay`]).
    pub tenant: Option<Tenant>,
    /// Its queue.
    pub queue: QueueName,
    /// Its limit key; `None`: the whole queue. Jobs without a key share the empty one.
    pub key: Option<Arc<str>>,
}

impl GateName {
    /// Tenant (`*` for all), queue, scope and key, as stored.
    pub(crate) fn parts(&self) -> (&str, &str, &'static str, &str) {
        let tenant = self.tenant.as_ref().map_or(ALL_TENANTS, Tenant::as_str);
        (tenant, self.queue.as_str(), self.scope().as_str(), self.key.as_deref().unwrap_or_default())
    }

    /// What it is a gate of.
    pub(crate) const fn scope(&self) -> GateScope {
        match (&self.tenant, &self.key) {
            (None, Some(_)) => GateScope::Replay,
            (Some(_), Some(_)) => GateScope::Key,
            (_, None) => GateScope::Queue,
        }
    }

    /// Parses the output of [`GateName::parts`].
    pub(crate) fn from_parts(tenant: &str, queue: &str, scope: &str, key: &str) -> Option<Self> {
        let tenant = if tenant == ALL_TENANTS { None } else { Some(Tenant::new(tenant).ok()?) };
        let key = match GateScope::parse(scope)? {
            GateScope::Queue => None,
            GateScope::Key if tenant.is_some() => Some(key.into()),
            GateScope::Replay if tenant.is_none() => Some(key.into()),
            GateScope::Key | GateScope::Replay => return None,
        };
        Some(Self { tenant, queue: QueueName::new(queue).ok()?, key })
    }
}

/// What a gate is a gate of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateScope {
    /// A queue, of one tenant or of all.
    Queue,
    /// A limit key, or the jobs without one.
    Key,
    /// A replay with a rate.
    Replay,
}

impl GateScope {
    const ALL: [Self; 3] = [Self::Queue, Self::Key, Self::Replay];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Key => "key",
            Self::Replay => "replay",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A gate as an operator sees it.
#[derive(Debug, Clone)]
pub struct GateStatus {
    /// Which gate.
    pub name: GateName,
    /// What it enforces now.
    pub rule: GateRule,
    /// Its state.
    pub gate: Gate,
    /// How many jobs are parked behind it, counted up to [`MAX_PARKED`].
    pub parked: u64,
}

/// Parked jobs are counted up to here.
pub const MAX_PARKED: u32 = 10_000;

/// What is in force for one tenant's queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueFlow {
    /// The tenant's own.
    flow: Flow,
    /// What the queues of that name of all tenants share.
    all: Option<GateRule>,
}

impl QueueFlow {
    /// From the tenant's own setting of the queue and the one for all tenants. `None` if neither is about flow.
    pub(crate) fn read(own: Option<&str>, shared: Option<&str>) -> Option<Self> {
        let parse = |text: Option<&str>| text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let (own, shared) = (parse(own), parse(shared));
        let (own_flow, shared_flow) = (own.as_ref().and_then(flow_in), shared.as_ref().and_then(flow_in));
        if own_flow.is_none() && shared_flow.is_none() {
            return None;
        }
        let all = shared_flow.filter(|flow| flow.across == Across::All).map(|flow| flow.queue);
        let mut flow = flow_in(&overlaid(shared, own)).unwrap_or_default();
        if all.is_some() {
            // The shared limits count over all tenants; the tenant's own apply in addition.
            flow.queue = own_flow.map(|flow| flow.queue).unwrap_or_default();
        }
        Some(Self { flow, all })
    }

    /// Whether any gate enforces anything.
    pub(crate) fn is_gated(&self) -> bool {
        self.flow.is_gated() || self.all.is_some_and(|rule| !rule.is_none())
    }

    /// How many of its jobs may be taken ahead of free slots. A job that is held ahead counts as running, so a limit on
    /// concurrency still holds; a rate, a budget or a breaker decides about the moment of a start.
    pub(crate) fn ahead(&self, asked: u32) -> u32 {
        let rules = [Some(self.flow.queue), Some(self.flow.per_key), self.all];
        if rules.into_iter().flatten().all(|rule| rule.counts_only()) { asked } else { 0 }
    }

    /// How many of the jobs parked behind one limit key are worth looking at, if a claim takes at most this many: as
    /// many as may run at once, and a few in case some of them need a free slot or have lost a worker.
    pub(crate) fn per_key(&self, most: u32) -> u32 {
        self.flow.per_key.limits.concurrency.map_or(most, |limit| limit.saturating_add(4).min(most))
    }

    /// The limit key of a job.
    pub(crate) fn key_of(&self, tenant: &Tenant, key: Option<&str>, destination: Option<&str>) -> Option<Arc<str>> {
        self.flow.key_of(tenant.as_str(), key, destination).map(|key| Arc::from(&*key))
    }

    /// The gates of a job, in the order they are asked.
    pub(crate) fn gates_of(&self, tenant: &Tenant, queue: &QueueName, key: Option<&Arc<str>>) -> Vec<GateName> {
        let mut names = self.gates_of_queue(tenant, queue);
        names.push(Self::gate_of_key(tenant, queue, key));
        names
    }

    /// The gates that all jobs of a queue ask.
    fn gates_of_queue(&self, tenant: &Tenant, queue: &QueueName) -> Vec<GateName> {
        let name = |tenant: Option<&Tenant>| GateName { tenant: tenant.cloned(), queue: queue.clone(), key: None };
        self.all.is_some().then(|| name(None)).into_iter().chain([name(Some(tenant))]).collect()
    }

    /// The gate of a limit key.
    fn gate_of_key(tenant: &Tenant, queue: &QueueName, key: Option<&Arc<str>>) -> GateName {
        let key = key.cloned().unwrap_or_else(|| "".into());
        GateName { tenant: Some(tenant.clone()), queue: queue.clone(), key: Some(key) }
    }

    /// What a gate enforces.
    pub(crate) fn rule(&self, name: &GateName) -> GateRule {
        let (tenant, _, _, key) = name.parts();
        self.rule_of(name.scope(), tenant, key)
    }

    /// The same by the parts of a name.
    pub(crate) fn rule_of(&self, scope: GateScope, tenant: &str, key: &str) -> GateRule {
        match scope {
            GateScope::Replay => replay::rule(key),
            GateScope::Queue if tenant == ALL_TENANTS => self.all.unwrap_or_default(),
            GateScope::Queue => self.flow.queue,
            GateScope::Key if key.is_empty() => self.flow.keyless(),
            GateScope::Key => self.flow.per_key,
        }
    }

    /// How long an automatic hold lasts at most.
    fn max_hold(&self) -> Millis {
        self.flow.max_hold
    }

    /// Whether an answer with `Retry-After` holds the whole key.
    fn holds_key(&self, executor: Executor) -> bool {
        let usual = match executor {
            Executor::Http => Honor::Key,
            Executor::Worker => Honor::Job,
        };
        self.flow.honor_retry_after.unwrap_or(usual) == Honor::Key
    }
}

/// When a claim should look at the jobs parked behind a gate. `None`: when an attempt of the gate ends.
pub(crate) fn opens_at(scope: GateScope, gate: &Gate, rule: &GateRule, now: Timestamp) -> Option<Timestamp> {
    // Behind the gate of a queue, only retries are parked: those that its budget refused.
    let start = Start { is_retry: scope == GateScope::Queue, ..Start::FIRST };
    match gate.opens_to(rule, start, now) {
        Opens::Now => Some(now),
        Opens::At(moment) => Some(moment),
        Opens::OnEvent => None,
    }
}

/// Whether a gate is nothing but a number, and stays so under this rule: a start adds one, an end takes one away.
pub(crate) fn only_counts(rule: &GateRule, gate: &Gate) -> bool {
    rule.counts_only() && gate.is_plain()
}

/// Whether nothing, or only a probe, may start: the gate is held or its breaker is open.
pub(crate) fn is_shut(gate: &Gate, now: Timestamp) -> bool {
    gate.held(now).is_some() || gate.breaker(now) != BreakerState::Closed
}

/// The flow settings in a queue's setting. They were checked when they were set.
fn flow_in(setting: &Value) -> Option<Flow> {
    Flow::from_value(setting).unwrap_or_else(|error| {
        tracing::warn!(%error, "a queue's flow settings cannot be read and are ignored");
        None
    })
}

/// The fields of the second, and those of the first that it does not set.
fn overlaid(under: Option<Value>, over: Option<Value>) -> Value {
    let mut merged = under.unwrap_or_default();
    match (merged.as_object_mut(), over) {
        (Some(fields), Some(Value::Object(own))) => {
            fields.extend(own.into_iter().filter(|(_, value)| !value.is_null()));
        }
        (Some(_), None | Some(_)) => {}
        (None, own) => return own.unwrap_or_default(),
    }
    merged
}

//! Gates in a store: which gates a job passes, what each enforces, and which due jobs of a gated queue a claim takes.
//! Pure; the stores read and write the rows.

mod admit;
mod end;
mod replay;

pub(crate) use admit::{Admitted, Offered, admit};
pub(crate) use end::{end, hold};
pub(crate) use replay::key_of as replay_key;

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_core::gate::{Across, BreakerState, Flow, Gate, GateRule, Honor, Opens, Start};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Millis, Timestamp};

/// The most gates whose parked jobs one claim looks at.
pub(crate) const MAX_OPENED: u32 = 256;

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
        let tenant = self.tenant.as_ref().map_or("*", Tenant::as_str);
        let scope = match (&self.tenant, &self.key) {
            (None, Some(_)) => "replay",
            (Some(_), Some(_)) => "key",
            (_, None) => "queue",
        };
        (tenant, self.queue.as_str(), scope, self.key.as_deref().unwrap_or_default())
    }

    /// Parses the output of [`GateName::parts`].
    pub(crate) fn from_parts(tenant: &str, queue: &str, scope: &str, key: &str) -> Option<Self> {
        let tenant = if tenant == "*" { None } else { Some(Tenant::new(tenant).ok()?) };
        let key = match scope {
            "queue" => None,
            "key" if tenant.is_some() => Some(key.into()),
            "replay" if tenant.is_none() => Some(key.into()),
            _ => return None,
        };
        Some(Self { tenant, queue: QueueName::new(queue).ok()?, key })
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

/// The states of gates, by name.
pub(crate) type Gates = BTreeMap<GateName, Gate>;

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
        let name = |tenant: Option<&Tenant>, key| GateName { tenant: tenant.cloned(), queue: queue.clone(), key };
        let all = self.all.is_some().then(|| name(None, None));
        let key = key.cloned().unwrap_or_else(|| "".into());
        all.into_iter().chain([name(Some(tenant), None), name(Some(tenant), Some(key))]).collect()
    }

    /// What a gate enforces.
    pub(crate) fn rule(&self, name: &GateName) -> GateRule {
        match (&name.tenant, name.key.as_deref()) {
            (None, Some(key)) => replay::rule(key),
            (None, None) => self.all.unwrap_or_default(),
            (Some(_), None) => self.flow.queue,
            (Some(_), Some("")) => self.flow.keyless(),
            (Some(_), Some(_)) => self.flow.per_key,
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
pub(crate) fn opens_at(name: &GateName, gate: &Gate, rule: &GateRule, now: Timestamp) -> Option<Timestamp> {
    // Behind the gate of a queue, only retries are parked: those that its budget refused.
    let start = Start { is_retry: name.key.is_none(), ..Start::FIRST };
    match gate.opens_to(rule, start, now) {
        Opens::Now => Some(now),
        Opens::At(moment) => Some(moment),
        Opens::OnEvent => None,
    }
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

//! Gauges: what the store says now. The same on every node, so take the largest of them, not their sum.

use super::MAX_LABEL_SETS;
use super::labels::{OTHER, TenantLabel};
use crate::alert::NOTICE_QUEUE;
use crate::client::queues::QueueWaiting;
use crate::client::windlass::Windlass;
use crate::store::{Alert, AlertStatus, Depth, GateStatus, Queue, StoreError};
use crate::tally::Tally;
use crate::webhook::DELIVERY_QUEUE;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use windlass_core::gate::BreakerState;
use windlass_core::job::{Kind, Tenant};
use windlass_core::quota::Quota;
use windlass_core::{Executor, Millis, Timestamp};

/// The window of the retry rate.
const WINDOW: Millis = Millis::from_secs(300);

type Labels = Vec<(&'static str, String)>;
type Counts = Family<Labels, Gauge>;
type Measures = Family<Labels, Gauge<f64, AtomicU64>>;

/// What was read.
#[derive(Debug)]
pub(super) struct Gauges {
    queues: Vec<Queue>,
    depths: Vec<Depth>,
    recent: Vec<(Queue, Kind, Tally)>,
    alerts: Vec<Alert>,
    gates: Vec<GateStatus>,
    waiting: Vec<QueueWaiting>,
}

impl Gauges {
    pub(super) async fn read(windlass: &Windlass) -> Result<Self, StoreError> {
        Ok(Self {
            queues: windlass.queues().rows().await?,
            depths: windlass.queues().depths().await?,
            recent: windlass.stats().by_queue_and_kind(WINDOW).await?,
            alerts: windlass.alerts().list().await?,
            gates: windlass.queues().gates().all().await?,
            waiting: windlass.queues().waiting().await?,
        })
    }

    /// A registry of what was read; only that the store is away if nothing was.
    pub(super) fn registry(
        gauges: Option<&Self>,
        refusals: Vec<Refusal>,
        tenants: TenantLabel,
        now: Timestamp,
    ) -> Registry {
        let mut registry = Registry::default();
        register_refusals(&mut registry, refusals, tenants);
        let up = Gauge::<i64>::default();
        up.set(i64::from(gauges.is_some()));
        registry.register("windlass_store_up", "Whether the store answered: 1 or 0", up);
        if let Some(gauges) = gauges {
            gauges.register_depths(&mut registry, tenants, now);
            gauges.register_rate(&mut registry, tenants);
            gauges.register_alerts(&mut registry);
            gauges.register_gates(&mut registry, tenants, now);
        }
        registry
    }

    fn register_depths(&self, registry: &mut Registry, tenants: TenantLabel, now: Timestamp) {
        let [jobs, dead, failed]: [Counts; 3] = Default::default();
        let oldest = Measures::default();
        registry.register("windlass_queue_jobs", "Live jobs: due, waiting for their time, running", jobs.clone());
        registry.register("windlass_dead_letters", "Failed jobs and deliveries that await manual action", dead.clone());
        let help = "Failed jobs that await manual action, deliveries and notices not counted";
        registry.register("windlass_failed_jobs", help, failed.clone());
        let help = "How long the job that has been due longest has waited";
        registry.register("windlass_oldest_due_seconds", help, oldest.clone());
        let mut names = Names::new(tenants);
        for depth in &self.depths {
            let Some(queue) = self.queues.iter().find(|queue| queue.id == depth.queue) else { continue };
            let labels = names.labels(queue);
            for (state, count) in [("due", depth.due), ("waiting", depth.later), ("running", depth.running)] {
                let labels = [labels.clone(), vec![("state", state.to_owned())]].concat();
                jobs.get_or_create(&labels).inc_by(count as i64);
            }
            dead.get_or_create(&labels).inc_by(depth.dead as i64);
            if !is_own(queue) {
                failed.get_or_create(&labels).inc_by(depth.dead as i64);
            }
            let age = depth.oldest_due.map_or(0.0, |due| now.since(due).get() as f64 / 1000.0);
            let gauge = oldest.get_or_create(&labels);
            gauge.set(gauge.get().max(age));
        }
    }

    fn register_rate(&self, registry: &mut Registry, tenants: TenantLabel) {
        let rate = Measures::default();
        registry.register("windlass_retry_rate", "Retries for each first attempt in the last 5 minutes", rate.clone());
        let mut names = Names::new(tenants);
        let mut sums: BTreeMap<Labels, Tally> = BTreeMap::new();
        for (queue, _, tally) in &self.recent {
            *sums.entry(names.labels(queue)).or_default() += *tally;
        }
        for (labels, sum) in sums {
            // Retries of jobs that were first tried before the window may be all there are: they count as one each.
            let ratio = sum.retries.max(0) as f64 / sum.first_attempts.max(1) as f64;
            rate.get_or_create(&labels).set(ratio);
        }
    }

    /// Due jobs that may not start, holds and open breakers. A queue without them has no series.
    fn register_gates(&self, registry: &mut Registry, tenants: TenantLabel, now: Timestamp) {
        let [waiting, open, holds]: [Counts; 3] = Default::default();
        let help = "Due jobs that may not start yet, by what they wait for";
        registry.register("windlass_waiting", help, waiting.clone());
        registry.register("windlass_breaker_open", "Circuit breakers that are not closed", open.clone());
        registry.register("windlass_holds", "Holds in force", holds.clone());
        let mut names = Names::new(tenants);
        for status in &self.gates {
            let is_of = |queue: &&Queue| {
                queue.name == status.name.queue
                    && status.name.tenant.as_ref().is_none_or(|tenant| *tenant == queue.tenant)
            };
            let Some(queue) = self.queues.iter().find(is_of) else { continue };
            let labels = names.labels(queue);
            if status.gate.held(now).is_some() {
                holds.get_or_create(&labels).inc();
            }
            if status.rule.breaker.is_some() && status.gate.breaker(now) != BreakerState::Closed {
                open.get_or_create(&labels).inc();
            }
        }
        for queue in &self.waiting {
            let labels = names.of_queue(queue.queue.as_str(), queue.tenant.as_str());
            for (what, count) in &queue.counts.behind {
                let labels = [labels.clone(), vec![("for", what.to_string())]].concat();
                waiting.get_or_create(&labels).inc_by(*count as i64);
            }
        }
    }

    fn register_alerts(&self, registry: &mut Registry) {
        let states = Counts::default();
        registry.register("windlass_alert_state", "1 for the state an alert is in, 0 for the others", states.clone());
        for alert in self.alerts.iter().take(MAX_LABEL_SETS) {
            for status in [AlertStatus::Pending, AlertStatus::Firing, AlertStatus::Resolved] {
                let (rule, queue) = (alert.rule.clone(), alert.subject.clone());
                let labels = vec![("rule", rule), ("queue", queue), ("status", status.as_str().to_owned())];
                states.get_or_create(&labels).set(i64::from(alert.status == status));
            }
        }
    }
}

/// A tenant, a quota, and how often it refused something.
pub(super) type Refusal = (Tenant, Quota, u64);

fn register_refusals(registry: &mut Registry, refusals: Vec<Refusal>, tenants: TenantLabel) {
    let counts = Family::<Labels, Counter>::default();
    let help = "What this process refused because a tenant's quota was used up";
    registry.register("windlass_quota_refusals", help, counts.clone());
    let mut known = BTreeSet::new();
    for (tenant, quota, count) in refusals {
        let mut labels = vec![("quota", quota.as_str().to_owned())];
        if tenants == TenantLabel::On {
            known.insert(tenant.clone());
            let name = if known.len() < MAX_LABEL_SETS { tenant.to_string() } else { OTHER.to_owned() };
            labels.push(("tenant", name));
        }
        counts.get_or_create(&labels).inc_by(count);
    }
}

/// Queues that Windlass fills itself.
fn is_own(queue: &Queue) -> bool {
    queue.executor == Executor::Http && [DELIVERY_QUEUE, NOTICE_QUEUE].contains(&queue.name.as_str())
}

/// Labels of queues, the first of them by their own names.
struct Names {
    tenants: TenantLabel,
    known: BTreeSet<Labels>,
}

impl Names {
    const fn new(tenants: TenantLabel) -> Self {
        Self { tenants, known: BTreeSet::new() }
    }

    fn labels(&mut self, queue: &Queue) -> Labels {
        self.of_queue(queue.name.as_str(), queue.tenant.as_str())
    }

    fn of_queue(&mut self, queue: &str, tenant: &str) -> Labels {
        let own = self.of(queue, tenant);
        // One place is left for all the others together.
        if self.known.contains(&own) || self.known.len() < MAX_LABEL_SETS - 1 {
            self.known.insert(own.clone());
            return own;
        }
        self.of(OTHER, OTHER)
    }

    fn of(&self, queue: &str, tenant: &str) -> Labels {
        let mut labels = vec![("queue", queue.to_owned())];
        if self.tenants == TenantLabel::On {
            labels.push(("tenant", tenant.to_owned()));
        }
        labels
    }
}

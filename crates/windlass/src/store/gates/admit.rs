//! Admission: which of a gated queue's due jobs start now, and which are parked behind the gate that refused them.

use super::{GateName, Gates, QueueFlow};
use std::cmp::Reverse;
use std::sync::Arc;
use windlass_core::gate::{Gate, Pass, Refusal, Start, WaitingFor};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::pick::{Candidate, Picker, order};
use windlass_core::{Delivery, JobId, Priority, Timestamp};

/// A due job, waiting or parked, as a store offers it.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub id: JobId,
    pub priority: Priority,
    pub due_at: Timestamp,
    pub candidate: Candidate,
    /// Whether it has failed before in its present allowance.
    pub is_retry: bool,
    pub key: Option<Arc<str>>,
}

impl Offered {
    pub(crate) fn order(&self) -> (Reverse<Priority>, Timestamp, JobId) {
        order(self.priority, self.due_at, self.id)
    }
}

/// What becomes of offered jobs. Those that are in neither list stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// Jobs that start, with the gates they pass and whether they are probes.
    pub started: Vec<Passed>,
    /// Jobs that a gate refused.
    pub parked: Vec<(JobId, GateName)>,
    /// What stopped the whole queue.
    pub stopped: Option<Refusal>,
}

/// A job that starts.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub id: JobId,
    pub gates: Vec<GateName>,
    pub is_probe: bool,
}

/// Decides about due jobs of one queue, in their order. `gates` has the gates that exist; those that begin to enforce
/// something are added.
pub(crate) fn admit(
    (tenant, queue): (&Tenant, &QueueName),
    flow: &QueueFlow,
    gates: &mut Gates,
    offered: &[Offered],
    picker: &mut Picker,
    now: Timestamp,
) -> Admitted {
    let mut admitted = Admitted::default();
    for job in offered {
        if picker.is_full() {
            break;
        }
        if picker.most(job.candidate) == 0 {
            continue;
        }
        let mut names = flow.gates_of(tenant, queue, job.key.as_ref());
        names.retain(|name| gates.contains_key(name) || !flow.rule(name).is_none());
        let start = start(job, offered);
        match check(flow, gates, &names, start, now) {
            Ok(is_probe) => {
                picker.pick(job.candidate);
                for name in &names {
                    let pass = Pass { is_probe: is_probe && name.key.is_some() };
                    gates.entry(name.clone()).or_default().start(&flow.rule(name), start, pass, now);
                }
                admitted.started.push(Passed { id: job.id, gates: names, is_probe });
            }
            // First attempts go on while retries wait for the budget; anything else stops the whole queue.
            Err((name, refusal)) if name.key.is_none() && refusal.waiting_for != WaitingFor::Budget => {
                admitted.stopped = Some(refusal);
                break;
            }
            Err((name, _)) => {
                gates.entry(name.clone()).or_default();
                admitted.parked.push((job.id, name));
            }
        }
    }
    admitted
}

fn start(job: &Offered, offered: &[Offered]) -> Start {
    let delivery = job.candidate.delivery;
    // Only at-most-once jobs leave a probe to others.
    let is_other = |other: &Offered| other.key == job.key && other.candidate.delivery == Delivery::AtLeastOnce;
    let has_others = delivery == Delivery::AtMostOnce && offered.iter().any(is_other);
    Start { is_retry: job.is_retry, delivery, has_others }
}

/// Asks every gate; a refusal consumes nothing. Returns whether the job would be a probe.
fn check(
    flow: &QueueFlow,
    gates: &Gates,
    names: &[GateName],
    start: Start,
    now: Timestamp,
) -> Result<bool, (GateName, Refusal)> {
    let fresh = Gate::default();
    let mut is_probe = false;
    for name in names {
        let gate = gates.get(name).unwrap_or(&fresh);
        let pass = gate.check(&flow.rule(name), start, now).map_err(|refusal| (name.clone(), refusal))?;
        is_probe |= pass.is_probe;
    }
    Ok(is_probe)
}

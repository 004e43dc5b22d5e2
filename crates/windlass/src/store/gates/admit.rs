//! Admission: which of a gated queue's due jobs start now, and which are parked behind the gate that refused them.

use super::{GateName, Gates, QueueFlow};
use crate::store::Parking;
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
    /// The gate of the replay with a rate that sent it again.
    pub replay: Option<GateName>,
}

impl Offered {
    pub(crate) fn order(&self) -> (Reverse<Priority>, Timestamp, JobId) {
        order(self.priority, self.due_at, self.id)
    }

    /// The gates it asks, in their order.
    pub(crate) fn gates(&self, flow: &QueueFlow, tenant: &Tenant, queue: &QueueName) -> Vec<GateName> {
        let mut names = flow.gates_of(tenant, queue, self.key.as_ref());
        names.extend(self.replay.clone());
        names
    }
}

/// What becomes of offered jobs. Those that are in neither list stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// Jobs that start, with the gates they pass and whether they are probes.
    pub started: Vec<Passed>,
    /// Jobs that a gate refused.
    pub parked: Vec<(JobId, GateName)>,
    /// Why, for each of them.
    pub refusals: Vec<Parking>,
    /// What stopped the whole queue.
    pub stopped: Option<Refusal>,
    /// Free slots are filled, and gates refuse what could be taken ahead of more.
    pub is_enough: bool,
}

/// A job that starts.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub id: JobId,
    pub gates: Vec<GateName>,
    pub is_probe: bool,
}

/// After so many refusals nothing more is taken ahead of free slots.
const MAX_REFUSED_AHEAD: u32 = 16;

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
    let (mut admitted, mut refused_ahead) = (Admitted::default(), 0);
    for job in offered {
        if picker.is_full() {
            break;
        }
        // The rate of a replay decides about the moment of a start: such a job does not wait for a slot.
        let must_start = job.replay.is_some() && !picker.has_slot();
        if must_start || picker.most(job.candidate) == 0 {
            continue;
        }
        let mut names = job.gates(flow, tenant, queue);
        names.retain(|name| gates.contains_key(name) || !flow.rule(name).is_none());
        let start = start(job, offered);
        match check(flow, gates, &names, start, now) {
            Ok(is_probe) => {
                picker.pick(job.candidate);
                for name in &names {
                    let pass = Pass { is_probe: is_probe && name.is_of_key() };
                    gates.entry(name.clone()).or_default().start(&flow.rule(name), start, pass, now);
                }
                admitted.started.push(Passed { id: job.id, gates: names, is_probe });
            }
            // First attempts go on while retries wait for the budget; anything else stops the whole queue.
            Err((name, refusal)) if name.key.is_none() && refusal.waiting_for != WaitingFor::Budget => {
                admitted.stopped = Some(refusal);
                break;
            }
            // It is not needed now. Parking it would cost two writes, and by the time a slot is free its gate may open.
            Err(_) if !picker.has_slot() => {
                refused_ahead += 1;
                if refused_ahead == MAX_REFUSED_AHEAD {
                    admitted.is_enough = true;
                    break;
                }
            }
            Err((name, Refusal { waiting_for, until })) => {
                gates.entry(name.clone()).or_default();
                admitted.parked.push((job.id, name));
                admitted.refusals.push(Parking { job: job.id, waiting_for, until });
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

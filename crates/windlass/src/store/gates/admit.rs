//! Admission: which of a gated queue's due jobs start now, and which are parked behind the gate that refused them.

use super::GateName;
use super::claim_gates::{ClaimGates, Places};
use crate::store::Parking;
use std::cmp::Reverse;
use std::sync::Arc;
use windlass_core::gate::{Refusal, Start, WaitingFor};
use windlass_core::pick::{Candidate, Picker, order};
use windlass_core::{Delivery, JobId, Millis, Priority, Timestamp};

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
}

/// What becomes of offered jobs. Those that are in neither list stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// Jobs that start, with the places of the gates they pass and whether they are probes.
    pub started: Vec<Started>,
    /// Jobs that a gate refused.
    pub parked: Vec<(JobId, usize)>,
    /// Why, for each of them.
    pub refusals: Vec<Parking>,
    /// What stopped the whole queue, and when to ask it again.
    pub stopped: Option<Refusal>,
    /// Free slots are filled, and gates refuse what could be taken ahead of more.
    pub is_enough: bool,
    /// Whether a gate refused anything.
    pub has_refused: bool,
}

/// A job that starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub id: JobId,
    pub gates: Places,
    pub is_probe: bool,
}

/// After so many refusals nothing more is taken ahead of free slots.
const MAX_REFUSED_AHEAD: u32 = 16;

/// The shortest wait for a rate.
const GATHER: Millis = Millis::new(10);

/// Decides about due jobs of one queue, in their order. `asked` has the gates of each, which have been read.
pub(crate) fn admit(
    claim_gates: &mut ClaimGates,
    offered: &[Offered],
    asked: &[Places],
    picker: &mut Picker,
    now: Timestamp,
) -> Admitted {
    let (mut admitted, mut refused_ahead) = (Admitted::default(), 0);
    for (job, asked) in offered.iter().zip(asked) {
        if picker.is_full() {
            break;
        }
        // The rate of a replay decides about the moment of a start: such a job does not wait for a slot.
        let must_start = job.replay.is_some() && !picker.has_slot();
        if must_start || picker.most(job.candidate) == 0 {
            continue;
        }
        let (gates, start) = (claim_gates.asked(asked), start(job, offered));
        let checked = claim_gates.check(&gates, start, now);
        admitted.has_refused |= checked.is_err();
        match checked {
            Ok(is_probe) => {
                picker.pick(job.candidate);
                claim_gates.start(&gates, start, is_probe, now);
                admitted.started.push(Started { id: job.id, gates, is_probe });
            }
            // First attempts go on while retries wait for the budget; anything else stops the whole queue.
            Err((place, refusal))
                if claim_gates.entries()[place].name.key.is_none() && refusal.waiting_for != WaitingFor::Budget =>
            {
                admitted.stopped = Some(Refusal { until: ask_again_at(refusal, now), ..refusal });
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
            Err((place, Refusal { waiting_for, until })) => {
                claim_gates.park(place);
                admitted.parked.push((job.id, place));
                admitted.refusals.push(Parking { job: job.id, waiting_for, until });
            }
        }
    }
    admitted
}

/// A rate of hundreds a second is asked for several starts at once: a claim for each would cost more than the jobs do.
fn ask_again_at(refusal: Refusal, now: Timestamp) -> Option<Timestamp> {
    let is_rate = refusal.waiting_for == WaitingFor::Rate;
    refusal.until.map(|until| if is_rate { until.max(now + GATHER) } else { until })
}

fn start(job: &Offered, offered: &[Offered]) -> Start {
    let delivery = job.candidate.delivery;
    // Only at-most-once jobs leave a probe to others.
    let is_other = |other: &Offered| other.key == job.key && other.candidate.delivery == Delivery::AtLeastOnce;
    let has_others = delivery == Delivery::AtMostOnce && offered.iter().any(is_other);
    Start { is_retry: job.is_retry, delivery, has_others }
}

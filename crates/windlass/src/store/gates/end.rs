//! The end of an attempt as its gates see it: the slot comes back, the breaker learns, and an answer may ask for a
//! hold.

use super::{GateName, GateScope, QueueFlow};
use crate::store::Commit;
use windlass_core::gate::{Ended, Gate, GateRule, Hold, HoldOrigin, Opens, Pass};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, Timestamp};

/// Records that an attempt which had passed a gate ended. Returns whether the gate let nothing go before: then
/// something may start that could not.
pub(crate) fn end(
    gate: &mut Gate,
    (scope, rule): (GateScope, &GateRule),
    (ended, is_probe): (Ended, bool),
    now: Timestamp,
) -> bool {
    let opens = gate.opens(rule, now) != Opens::Now;
    gate.end(rule, Pass { is_probe: is_probe && scope == GateScope::Key }, ended, now);
    opens
}

/// The hold that an attempt's end asks for, and of which gate.
pub(crate) fn hold(
    flow: &QueueFlow,
    (tenant, queue, executor): (&Tenant, &QueueName, Executor),
    commit: &Commit,
    now: Timestamp,
) -> Option<(GateName, Hold)> {
    let asked = commit.hold.as_deref()?;
    let is_wanted = match asked.origin {
        HoldOrigin::RetryAfter => flow.holds_key(executor),
        HoldOrigin::Operator(_) | HoldOrigin::Rule => true,
    };
    let key = flow.key_of(tenant, asked.limit_key.as_deref(), asked.destination.as_deref());
    let key = key.filter(|_| is_wanted)?;
    let name = GateName { tenant: Some(tenant.clone()), queue: queue.clone(), key: Some(key) };
    let until = now + asked.span.min(flow.max_hold());
    Some((name, Hold { since: now, until, origin: asked.origin.clone(), reason: asked.reason.clone() }))
}

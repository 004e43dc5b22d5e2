//! Schedules: fires the due ones. Any number of nodes may try; the store lets only one fire each.

use super::BATCH;
use crate::client::windlass::Windlass;
use crate::job::{NewJob, RunAt};
use crate::leases::outage::store_failed;
use crate::store::{Fired, Firing, Missed, Order, Page, Recurrence, Schedule, ScheduleSpec, Scope, Trigger};
use windlass_core::schedule::{Cadence, CadenceError};
use windlass_core::{Millis, Timestamp};

/// A firing later than this was missed, because no node was running.
const MISSED_AFTER: Millis = Millis::from_secs(10);
/// How long to wait after a schedule that cannot be read, or a store that does not answer.
const AFTER_TROUBLE: Millis = Millis::from_secs(5);

/// The cadence of a schedule's text: a cron line, or `every 30s` counted from `anchor`.
///
/// # Errors
/// What is wrong with the text and what would be accepted.
pub fn cadence(spec: &ScheduleSpec, anchor: Timestamp) -> Result<Cadence, CadenceError> {
    Cadence::read(&spec.cadence, &spec.zone, anchor)
}

/// Fires all due schedules. Returns when the next firing is.
pub(super) async fn fire_due(windlass: &Windlass) -> Option<Timestamp> {
    loop {
        let result = windlass.store().due_schedules(BATCH).await;
        windlass.inner().record_contact(&result);
        let (due, next) = match result {
            Ok(found) => found,
            Err(error) => {
                store_failed!(error, "due schedules could not be read");
                return Some(windlass.clock().now() + AFTER_TROUBLE);
            }
        };
        if due.is_empty() {
            return next;
        }
        let mut trouble = false;
        for schedule in &due {
            // A schedule that cannot be fired must not keep the others from firing.
            trouble |= !fire(windlass, schedule).await;
        }
        if trouble {
            return Some(windlass.clock().now() + AFTER_TROUBLE);
        }
    }
}

/// After the clock was set back: schedules whose next firing was computed by the faster clock go on from now.
pub(super) async fn after_set_back(windlass: &Windlass) {
    let (mut after, limit) = (None, BATCH);
    loop {
        let page = Page { after, limit, order: Order::OldestFirst };
        let result = windlass.store().schedules(&Scope::All, page).await;
        windlass.inner().record_contact(&result);
        let found = match result {
            Ok(found) => found,
            Err(error) => return store_failed!(error, "schedules could not be compared with the clock"),
        };
        for schedule in &found {
            if let Some(firing) = moved_back(schedule, windlass.clock().now()) {
                let result = windlass.store().fire(firing).await;
                windlass.inner().record_contact(&result);
                match result {
                    Ok(_) => tracing::warn!(
                        schedule = schedule.id.0,
                        "the clock was set back; the schedule goes on from now"
                    ),
                    Err(error) => store_failed!(error, schedule = schedule.id.0, "a schedule could not be moved"),
                }
            }
        }
        after = found.last().map(|schedule| schedule.id);
        if found.len() < limit as usize {
            return;
        }
    }
}

/// A firing without a job, which moves the schedule to its next time after `now`. Pure.
fn moved_back(schedule: &Schedule, now: Timestamp) -> Option<Firing> {
    let nominal = schedule.next_at.filter(|_| schedule.spec.recurrence == Recurrence::Recurring && !schedule.paused)?;
    // An interval counts from now, because its anchor is in the future.
    let next_at = cadence(&schedule.spec, now).ok()?.after_set_back(nominal, now)?;
    let trigger = Trigger::Due { nominal, next_at: Some(next_at) };
    Some(Firing { schedule: schedule.id, trigger, job: None })
}

/// Fires one schedule. Returns whether the store and the schedule were in order.
async fn fire(windlass: &Windlass, schedule: &Schedule) -> bool {
    let firing = match firing(schedule, windlass.clock().now()) {
        Ok(Some(firing)) => firing,
        Ok(None) => return true,
        Err(error) => {
            tracing::error!(schedule = schedule.id.0, %error, "a schedule cannot be read and does not fire");
            return false;
        }
    };
    let result = windlass.store().fire(firing).await;
    windlass.inner().record_contact(&result);
    match result {
        Ok(Fired::Enqueued(job)) => tracing::debug!(schedule = schedule.id.0, job_id = job.0, "a schedule fired"),
        Ok(Fired::Skipped) => tracing::debug!(schedule = schedule.id.0, "a firing was skipped"),
        Ok(Fired::NotOurs) => {}
        Err(error) => {
            store_failed!(error, schedule = schedule.id.0, "a schedule could not be fired");
            return false;
        }
    }
    true
}

/// The due firing, if any: one job for all nominal times that have passed. Pure.
///
/// # Errors
/// The schedule's cadence cannot be read.
pub fn firing(schedule: &Schedule, now: Timestamp) -> Result<Option<Firing>, CadenceError> {
    let Some(nominal) = schedule.next_at.filter(|at| *at <= now) else { return Ok(None) };
    let spec = &schedule.spec;
    let was_missed = now.since(nominal) > MISSED_AFTER;
    let next_at = match spec.recurrence {
        Recurrence::OneShot => None,
        Recurrence::Recurring => cadence(spec, nominal)?.next_after(now),
    };
    // A one-shot schedule has no later firing, so its only firing is not skipped.
    let skip = was_missed && spec.missed == Missed::Skip && spec.recurrence == Recurrence::Recurring;
    let run_at = if was_missed { RunAt::Now } else { RunAt::At(nominal) };
    let job =
        (!skip).then(|| NewJob { run_at, schedule: Some(schedule.id), idempotency: None, ..spec.template.clone() });
    Ok(Some(Firing { schedule: schedule.id, trigger: Trigger::Due { nominal, next_at }, job }))
}

//! Schedules: kept by id, fired by compare-and-set.

use super::super::{
    Fired, Firing, Order, Overlap, Page, Recurrence, Schedule, ScheduleChange, ScheduleSpec, Scope, Trigger,
};
use super::enqueue;
use super::read::is_beyond;
use super::state::State;
use crate::job::Job;
use crate::store::SUPERSEDED;
use windlass_core::verdict::{self, DiscardVerdict};
use windlass_core::{JobId, Timestamp};

pub(super) fn add_schedule(
    state: &mut State,
    spec: ScheduleSpec,
    next_at: Option<Timestamp>,
    now: Timestamp,
) -> Schedule {
    let id = state.draw_id();
    let schedule =
        Schedule { id, spec, paused: false, next_at, last_at: None, last_job: None, last_dead: None, created_at: now };
    state.schedules.insert(id, schedule.clone());
    schedule
}

pub(super) fn schedule<'a>(state: &'a State, scope: &Scope, id: JobId) -> Option<&'a Schedule> {
    state.schedules.get(&id).filter(|s| scope.covers(&s.spec.tenant))
}

pub(super) fn schedules(state: &State, scope: &Scope, page: Page) -> Vec<Schedule> {
    let mut found: Vec<&Schedule> = state.schedules.values().filter(|s| scope.covers(&s.spec.tenant)).collect();
    if page.order == Order::NewestFirst {
        found.reverse();
    }
    let beyond = |s: &&Schedule| is_beyond(s.id, page);
    found.into_iter().filter(beyond).take(page.limit as usize).cloned().collect()
}

pub(super) fn change_schedule(state: &mut State, scope: &Scope, id: JobId, change: ScheduleChange) -> Option<Schedule> {
    schedule(state, scope, id)?;
    let schedule = state.schedules.get_mut(&id)?;
    if let Some(spec) = change.spec {
        schedule.spec = spec;
    }
    schedule.paused = change.paused.unwrap_or(schedule.paused);
    schedule.next_at = change.next_at.unwrap_or(schedule.next_at);
    Some(schedule.clone())
}

pub(super) fn remove_schedule(state: &mut State, scope: &Scope, id: JobId) -> bool {
    schedule(state, scope, id).is_some() && state.schedules.remove(&id).is_some()
}

pub(super) fn due_schedules(state: &State, limit: u32, now: Timestamp) -> (Vec<Schedule>, Option<Timestamp>) {
    let waiting = || state.schedules.values().filter(|s| !s.paused).filter_map(|s| s.next_at.map(|at| (at, s)));
    let mut due: Vec<(Timestamp, &Schedule)> = waiting().filter(|(at, _)| *at <= now).collect();
    due.sort_by_key(|(at, schedule)| (*at, schedule.id));
    let due = due.into_iter().take(limit as usize).map(|(_, schedule)| schedule.clone()).collect();
    (due, waiting().map(|(at, _)| at).filter(|at| *at > now).min())
}

pub(super) fn fire(state: &mut State, firing: &Firing, now: Timestamp) -> Fired {
    let Some(schedule) = state.schedules.get(&firing.schedule) else { return Fired::NotOurs };
    let last_is_live = schedule.last_job.is_some_and(|job| state.live.contains_key(&job));
    let overlaps = schedule.spec.overlap == Overlap::Skip && last_is_live;
    let mut schedule = schedule.clone();
    let skip = match firing.trigger {
        Trigger::Operator => false,
        Trigger::Due { nominal, next_at } => {
            if schedule.paused || schedule.next_at != Some(nominal) {
                return Fired::NotOurs;
            }
            schedule.next_at = next_at;
            schedule.last_at = Some(nominal);
            overlaps
        }
    };
    let job = firing.job.as_ref().filter(|_| !skip).and_then(|new| enqueue::store(state, new, now).id());
    schedule.last_job = job.or(schedule.last_job);
    state.schedules.insert(schedule.id, schedule);
    job.map_or(Fired::Skipped, Fired::Enqueued)
}

/// Removes a one-shot schedule that has no firing left, now that its run has ended.
pub(super) fn end_one_shot(state: &mut State, id: JobId) {
    let is_over = |s: &Schedule| s.spec.recurrence == Recurrence::OneShot && s.next_at.is_none();
    if state.schedules.get(&id).is_some_and(is_over) {
        state.schedules.remove(&id);
    }
}

/// A run of a schedule has failed: it may take the place of the one that failed before it.
pub(super) fn run_failed(state: &mut State, schedule: JobId, run: JobId, now: Timestamp) {
    let Some(schedule) = state.schedules.get_mut(&schedule) else { return };
    let before = schedule.last_dead.replace(run).filter(|before| *before != run);
    let Some(before) = before.filter(|_| schedule.spec.supersedes()) else { return };
    let dead = |job: &&mut Job| verdict::discard(job.state, job.discarded_at.is_some()) == DiscardVerdict::Discard;
    if let Some(job) = state.archive.get_mut(&before).filter(dead) {
        (job.discarded_at, job.discard_reason) = (Some(now), Some(SUPERSEDED.into()));
    }
}

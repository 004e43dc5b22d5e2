//! The clock of a running system: time since boot, plus how far the followed clock is ahead of it.

use super::machine::Machine;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use windlass_core::timekeeping::{Course, DRIFT, Sighting, slept};
use windlass_core::{Millis, Timestamp};

/// How often a clock was set, or its machine slept, since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockChanges {
    /// The clock was set forward.
    pub forward: u64,
    /// The clock was set back.
    pub back: u64,
    /// The machine slept.
    pub slept: u64,
}

#[derive(Debug)]
pub(super) struct System {
    machine: Arc<dyn Machine>,
    started: Millis,
    state: Mutex<State>,
    /// Wakes sleepers when the clock was set or the machine slept.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    /// How far the time in use is ahead of the time since boot.
    ahead: i64,
    /// The machine's own clock.
    own: Course,
    /// The clock of the store's server, once it was read.
    server: Option<Course>,
    looked: (Millis, Millis),
    stepped_at: Option<Millis>,
    changes: ClockChanges,
}

impl System {
    pub(super) fn new(machine: Arc<dyn Machine>) -> Self {
        let own = Course::seen(sight(&*machine));
        let (boot, awake) = (machine.boot(), machine.awake());
        let state = State {
            ahead: own.ahead(),
            own,
            server: None,
            looked: (boot, awake),
            stepped_at: None,
            changes: ClockChanges::default(),
        };
        Self { machine, started: boot, state: Mutex::new(state), changed: watch::Sender::new(0) }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.at(self.machine.boot())
    }

    fn at(&self, boot: Millis) -> Timestamp {
        let boot = i64::try_from(boot.get()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.lock().ahead.saturating_add(boot))
    }

    pub(super) fn boot(&self) -> Millis {
        self.machine.boot()
    }

    pub(super) fn boot_id(&self) -> String {
        self.machine.boot_id()
    }

    pub(super) fn elapsed(&self) -> Millis {
        self.machine.boot() - self.started
    }

    /// Reads the machine's clocks. Returns how far its time of day is ahead of the time since boot.
    pub(super) fn look(&self) -> i64 {
        let sighting = sight(&*self.machine);
        let (boot, awake) = (self.machine.boot(), self.machine.awake());
        let mut state = self.lock();
        let (since_boot, since_awake) = (boot - state.looked.0, awake - state.looked.1);
        state.looked = (boot, awake);
        // Once a step is over, the course narrows again, so it needs no attention here.
        (state.own, _) = state.own.follow(sighting);
        let own = state.own.ahead();
        if let Some(slept) = slept(since_boot, since_awake) {
            state.changes.slept += 1;
            drop(state);
            tracing::warn!(slept_ms = slept.get(), "the machine slept for {slept}; due jobs start now");
            self.changed.send_modify(|count| *count += 1);
        }
        own
    }

    /// Uses this difference to the time since boot from now on.
    pub(super) fn set(&self, ahead: i64) {
        let mut state = self.lock();
        let step = ahead.saturating_sub(std::mem::replace(&mut state.ahead, ahead));
        self.stepped(state, step);
    }

    /// Uses this difference from the beginning: nothing has been timed by another one.
    pub(super) fn start_at(&self, ahead: i64) {
        self.lock().ahead = ahead;
    }

    /// Follows a clock that was read between `asked` and now.
    pub(super) fn follow(&self, time: Timestamp, asked: Millis) {
        let answered = self.machine.boot() + Millis::new(1);
        let sighting = Sighting { time, asked: self.started + asked, answered };
        let mut state = self.lock();
        let Some(course) = state.server else {
            let course = Course::seen(sighting);
            (state.server, state.ahead) = (Some(course), course.ahead());
            return;
        };
        let (course, step) = course.follow(sighting);
        (state.server, state.ahead) = (Some(course), course.ahead());
        self.stepped(state, step.map_or(0, |step| step.0));
    }

    fn stepped(&self, mut state: MutexGuard<'_, State>, step: i64) {
        if step.abs() <= DRIFT {
            return;
        }
        state.stepped_at = Some(self.machine.boot());
        let direction = if step > 0 { "forward" } else { "back" };
        *(if step > 0 { &mut state.changes.forward } else { &mut state.changes.back }) += 1;
        drop(state);
        let span = Millis::new(step.unsigned_abs());
        tracing::warn!(step_ms = step, "the store's clock was set {direction} by {span}; due times follow it");
        self.changed.send_modify(|count| *count += 1);
    }

    /// How long ago the clock was set.
    pub(super) fn since_step(&self) -> Option<Millis> {
        let stepped_at = self.lock().stepped_at;
        stepped_at.map(|at| self.machine.boot() - at)
    }

    pub(super) fn changes(&self) -> ClockChanges {
        self.lock().changes
    }

    /// Waits until `left` says that nothing is left to wait for. Cancel-safe.
    pub(super) async fn wait(&self, left: impl Fn(&Self) -> Millis) {
        let mut changed = self.changed.subscribe();
        loop {
            let left = left(self);
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left.to_std()) => {}
                // The sender lives as long as this future.
                _ = changed.changed() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the time of day between two readings of the time since boot. Both are rounded, so the second is taken one
/// millisecond later: nothing runs early.
fn sight(machine: &dyn Machine) -> Sighting {
    let asked = machine.boot();
    let time = machine.wall();
    Sighting { time, asked, answered: machine.boot() + Millis::new(1) }
}

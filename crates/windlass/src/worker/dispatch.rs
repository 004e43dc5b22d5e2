//! Dispatch: the slots of a group of queues. A slot is a task that runs one held job after another and ends when none
//! is left. A thousand quick jobs need only a few tasks, and an idle worker needs none.

use super::backlog::{Line, SharedBacklog, Unstarted};
use super::execute::run_held;
use super::pace::Pace;
use crate::client::tenants::quota::HttpQuotas;
use crate::clock::Clock;
use crate::event::Reporter;
use crate::executor::Execute;
use crate::leases::fair_share::{GroupRoom, Room};
use crate::leases::held::Held;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_core::Millis;

/// What every slot of a worker needs.
#[derive(Debug)]
pub(crate) struct DispatchContext {
    pub reporter: Reporter,
    pub held_leases: Arc<crate::leases::held_leases::HeldLeases>,
    /// Drops the handlers that still run.
    pub abort: CancellationToken,
    pub tracker: TaskTracker,
    pub clock: Clock,
}

/// Queues that share an executor and a number of slots.
pub(crate) struct Group {
    run: Arc<dyn Execute>,
    concurrency: u32,
    /// Whether slots are shared between tenants and destinations.
    is_shared: bool,
    context: Arc<DispatchContext>,
    inner: Mutex<Inner>,
    finished: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    /// Held jobs that wait for a slot.
    backlog: VecDeque<Held>,
    /// Used instead of `backlog` if slots are shared between tenants and destinations.
    shared: Option<SharedBacklog<Held>>,
    slot_tasks: u32,
    pace: Pace,
    /// How many jobs to hold ahead of free slots, so that no slot is idle while a claim is under way.
    ahead: u32,
    /// Attempts that slots have taken so far.
    taken: u64,
}

impl Group {
    pub(crate) fn new(run: Arc<dyn Execute>, concurrency: u32, context: Arc<DispatchContext>) -> Arc<Self> {
        let shared = run.slot_limits(concurrency).map(SharedBacklog::new);
        let is_shared = shared.is_some();
        let inner = Mutex::new(Inner { shared, ..Inner::default() });
        Arc::new(Self { run, concurrency, is_shared, context, inner, finished: AtomicU64::new(0) })
    }

    /// How many jobs can be taken now, by the pace of the slots so far and the time of the last claim. Releases held
    /// jobs that would wait too long for a slot.
    pub(crate) fn room(&self, claim_took: Millis) -> GroupRoom {
        if self.is_shared {
            return self.shared_room(claim_took);
        }
        let mut inner = self.lock();
        let (slot_tasks, finished) = (inner.slot_tasks, self.finished.load(Ordering::Relaxed));
        inner.pace.measure(slot_tasks, finished, self.context.clock.monotonic());
        let hold = inner.pace.hold(self.concurrency, claim_took);
        inner.ahead = hold.ahead;
        // Slots that are about to take a job.
        let starting = u64::from(slot_tasks).saturating_sub(inner.taken - finished);
        let most = usize::try_from(hold.most.saturating_add(starting)).unwrap_or(usize::MAX);
        let excess = if inner.backlog.len() > most { inner.backlog.split_off(most) } else { VecDeque::new() };
        let waiting = inner.backlog.len() as u32;
        let ahead = if waiting <= inner.ahead / 2 { inner.ahead - waiting } else { 0 };
        let room = Room { slots: self.concurrency.saturating_sub(slot_tasks + waiting), ahead };
        drop(inner);
        // Dropping the guards releases the jobs.
        drop(excess);
        room.into()
    }

    fn shared_room(&self, claim_took: Millis) -> GroupRoom {
        let now = self.context.clock.monotonic();
        let mut inner = self.lock();
        let free = self.concurrency.saturating_sub(inner.slot_tasks);
        let Some(shared) = &mut inner.shared else { return GroupRoom::default() };
        let late = shared.take_late(now);
        let (all, tenants) = shared.room(free, claim_took, now);
        drop(inner);
        for (held, why) in late {
            match why {
                // Dropping the guard releases the job.
                Unstarted::NoSlot => drop(held),
                Unstarted::DestinationBusy => {
                    let busy = self.run.busy(&held.ticket().job);
                    held.finish(busy);
                }
            }
        }
        GroupRoom { all, tenants: Some(tenants) }
    }

    /// Whether slots are shared between tenants and destinations.
    pub(crate) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Narrows what tenants may hold of shared slots.
    pub(crate) fn set_quotas(&self, quotas: HttpQuotas) {
        if let Some(shared) = &mut self.lock().shared {
            shared.set_quotas(quotas);
        }
    }

    /// Whether it pays to wait for more free slots: most are in use, and quick handlers are about to free them.
    pub(crate) fn is_about_to_have_room(&self) -> bool {
        let inner = self.lock();
        inner.slot_tasks > self.concurrency / 2 && inner.ahead >= self.concurrency
    }

    /// Whether jobs of this kind can run here.
    pub(crate) fn knows(&self, kind: &str) -> bool {
        self.run.knows(kind)
    }

    pub(crate) fn running(&self) -> u32 {
        self.lock().slot_tasks
    }

    /// Takes held jobs and starts slots for them, up to the group's concurrency.
    pub(crate) fn deliver(self: &Arc<Self>, held: Vec<Held>) {
        let started = {
            let mut inner = self.lock();
            let free = self.concurrency.saturating_sub(inner.slot_tasks);
            let started = match &mut inner.shared {
                None => {
                    inner.backlog.extend(held);
                    (inner.backlog.len() as u32).min(free)
                }
                Some(shared) => {
                    let now = self.context.clock.monotonic();
                    for held in held {
                        let job = &held.ticket().job;
                        let line = Line { tenant: job.tenant.clone(), destination: self.run.destination(job) };
                        let queue = job.queue_id;
                        shared.push(line, queue, held, now);
                    }
                    // The first slot starts the next one, as long as jobs may start.
                    u32::from(shared.has_next()).min(free)
                }
            };
            let slot_tasks = inner.slot_tasks + started;
            self.change_slots(&mut inner, slot_tasks);
            started
        };
        for _ in 0..started {
            self.context.tracker.spawn(SlotTask(Some(self.clone())).run());
        }
    }

    /// Drops the jobs that have not started. Their guards release them.
    pub(crate) fn release_waiting(&self) {
        let mut inner = self.lock();
        let waiting = std::mem::take(&mut inner.backlog);
        let shared = inner.shared.as_mut().map(SharedBacklog::take_all);
        drop(inner);
        drop((waiting, shared));
    }

    /// The next job for a slot. The slot ends if there is none.
    fn take(self: &Arc<Self>) -> Option<(Held, Option<Counted<'_>>)> {
        if !self.is_shared {
            return self.next().map(|held| (held, None));
        }
        let (line, held) = self.next_shared()?;
        Some((held, Some(Counted(self, line))))
    }

    /// The next job that may start, if slots are shared; its slot is counted until [`Group::ended`]. Starts another
    /// slot if another job may start.
    fn next_shared(self: &Arc<Self>) -> Option<(Line, Held)> {
        let now = self.context.clock.monotonic();
        let mut inner = self.lock();
        let next = inner.shared.as_mut().and_then(|shared| shared.next(now));
        let has_more = inner.shared.as_ref().is_some_and(SharedBacklog::has_next);
        if next.is_none() {
            inner.slot_tasks -= 1;
        }
        let is_next_slot = next.is_some() && has_more && inner.slot_tasks < self.concurrency;
        inner.slot_tasks += u32::from(is_next_slot);
        drop(inner);
        if is_next_slot {
            self.context.tracker.spawn(SlotTask(Some(self.clone())).run());
        }
        if !has_more {
            self.context.held_leases.room.notify_one();
        }
        next
    }

    /// The call of a job that [`Group::next_shared`] returned has ended.
    fn ended(&self, line: &Line) {
        let now = self.context.clock.monotonic();
        let has_room = self.lock().shared.as_mut().is_some_and(|shared| shared.ended(line, now));
        if has_room {
            self.context.held_leases.room.notify_one();
        }
    }

    fn next(&self) -> Option<Held> {
        let mut inner = self.lock();
        let next = inner.backlog.pop_front();
        inner.taken += u64::from(next.is_some());
        if next.is_none() {
            // Under the same lock as the check for an empty backlog: otherwise a job added in between would wait for
            // this slot.
            let slot_tasks = inner.slot_tasks - 1;
            self.change_slots(&mut inner, slot_tasks);
        }
        let is_low = inner.backlog.len() as u32 == inner.ahead / 2;
        drop(inner);
        if is_low || next.is_none() {
            self.context.held_leases.room.notify_one();
        }
        next
    }

    fn free_slot(&self) {
        let mut inner = self.lock();
        let slot_tasks = inner.slot_tasks - 1;
        self.change_slots(&mut inner, slot_tasks);
    }

    fn change_slots(&self, inner: &mut Inner, slot_tasks: u32) {
        inner.pace.count(inner.slot_tasks, self.context.clock.monotonic());
        inner.slot_tasks = slot_tasks;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

/// A running slot. Removed from its group when it ends normally.
struct SlotTask(Option<Arc<Group>>);

/// A call under way. Frees its place when it ends, however it ends.
struct Counted<'a>(&'a Group, Line);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.ended(&self.1);
    }
}

impl SlotTask {
    async fn run(mut self) {
        while let Some(group) = &self.0 {
            let Some((held, counted)) = group.take() else {
                self.0 = None;
                return;
            };
            let context = &group.context;
            run_held(held, &*group.run, &context.reporter, &context.abort).await;
            drop(counted);
            group.finished.fetch_add(1, Ordering::Relaxed);
            // Handlers that never wait must not block the thread for other tasks.
            tokio::task::coop::consume_budget().await;
        }
    }
}

impl Drop for SlotTask {
    /// If a handler panics when it is dropped, its task ends too. The slot must still be freed.
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            group.free_slot();
            group.deliver(Vec::new());
            group.context.held_leases.room.notify_one();
        }
    }
}

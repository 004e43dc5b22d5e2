//! Dispatch: the slots of a group of queues. A slot is a task that runs one held job after another and ends when none
//! is left. A thousand quick jobs need only a few tasks, and an idle worker needs none.

use super::execute::run_held;
use crate::event::Reporter;
use crate::executor::Execute;
use crate::leases::fair_share::Room;
use crate::leases::held::Held;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most jobs that one group holds ahead of its free slots: as many as no-op handlers finish in a few hundredths of
/// a second.
pub(crate) const MAX_AHEAD: u32 = 4000;

/// What every slot of a worker needs.
#[derive(Debug)]
pub(crate) struct DispatchContext {
    pub reporter: Reporter,
    pub held_leases: Arc<crate::leases::held_leases::HeldLeases>,
    /// Drops the handlers that still run.
    pub abort: CancellationToken,
    pub tracker: TaskTracker,
}

/// Queues that share an executor and a number of slots.
pub(crate) struct Group {
    run: Arc<dyn Execute>,
    concurrency: u32,
    context: Arc<DispatchContext>,
    inner: Mutex<Inner>,
    finished: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    /// Held jobs that wait for a slot.
    backlog: VecDeque<Held>,
    slot_tasks: u32,
    /// How many jobs to hold ahead of free slots, so that no slot is idle while a claim is under way.
    ahead: u32,
}

/// Whether a claim returned all it asked for, so that there may be more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    Met,
    More,
}

impl Group {
    pub(crate) fn new(run: Arc<dyn Execute>, concurrency: u32, context: Arc<DispatchContext>) -> Arc<Self> {
        Arc::new(Self { run, concurrency, context, inner: Mutex::default(), finished: AtomicU64::new(0) })
    }

    pub(crate) fn room(&self) -> Room {
        let inner = self.lock();
        let waiting = inner.backlog.len() as u32;
        let ahead = if waiting <= inner.ahead / 2 { inner.ahead - waiting } else { 0 };
        Room { slots: self.concurrency.saturating_sub(inner.slot_tasks + waiting), ahead }
    }

    pub(crate) fn running(&self) -> u32 {
        self.lock().slot_tasks
    }

    /// Attempts finished so far.
    pub(crate) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Adjusts how many jobs to hold ahead, from how many were finished while a claim was under way. If all held jobs
    /// were finished and the store has more, slots were idle and commits were small: then the number is doubled.
    pub(crate) fn adapt(&self, finished: u64, demand: Demand) {
        let wanted = u32::try_from(finished.saturating_mul(2)).unwrap_or(MAX_AHEAD);
        let mut inner = self.lock();
        let was_short = demand == Demand::More && finished > 0 && inner.backlog.is_empty();
        let kept = if was_short { inner.ahead * 2 } else { inner.ahead / 4 * 3 };
        inner.ahead = wanted.max(kept).min(MAX_AHEAD);
    }

    /// Takes held jobs and starts slots for them, up to the group's concurrency.
    pub(crate) fn deliver(self: &Arc<Self>, held: Vec<Held>) {
        let started = {
            let mut inner = self.lock();
            inner.backlog.extend(held);
            let started = (inner.backlog.len() as u32).min(self.concurrency.saturating_sub(inner.slot_tasks));
            inner.slot_tasks += started;
            started
        };
        for _ in 0..started {
            self.context.tracker.spawn(SlotTask(Some(self.clone())).run());
        }
    }

    /// Drops the jobs that have not started. Their guards release them.
    pub(crate) fn release_waiting(&self) {
        let waiting = std::mem::take(&mut self.lock().backlog);
        drop(waiting);
    }

    fn next(&self) -> Option<Held> {
        let mut inner = self.lock();
        let next = inner.backlog.pop_front();
        if next.is_none() {
            // Under the same lock as the check for an empty backlog: otherwise a job added in between would wait for
            // this slot.
            inner.slot_tasks -= 1;
        }
        let is_low = inner.backlog.len() as u32 == inner.ahead / 2;
        drop(inner);
        if is_low || next.is_none() {
            self.context.held_leases.room.notify_one();
        }
        next
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

impl SlotTask {
    async fn run(mut self) {
        while let Some(group) = &self.0 {
            let Some(held) = group.next() else {
                self.0 = None;
                return;
            };
            let context = &group.context;
            run_held(held, &*group.run, &context.reporter, &context.abort).await;
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
            group.lock().slot_tasks -= 1;
            group.deliver(Vec::new());
            group.context.held_leases.room.notify_one();
        }
    }
}
